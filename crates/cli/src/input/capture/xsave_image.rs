//! The vector, mask and floating point registers of a stopped task, in the format of XSAVE.

use iced_x86::Register;
use std::arch::x86_64::__cpuid_count;

/// Where XSAVE stores the first 16 bytes of the registers 0 to 15 (Intel SDM vol. 1, 13.4.2).
const XMM_AT: usize = 160;
/// State components of XSAVE (Intel SDM vol. 1, 13.1).
const YMM_HIGH: u32 = 2;
const ZMM_HIGH: u32 = 6;
const ZMM_16_TO_31: u32 = 7;
/// Where XSAVE stores its bitmap of components.
const HEADER_AT: usize = 512;
/// The components that a region can use: x87, SSE, AVX and AVX-512. Protection keys and tiles stay
/// as the worker has them.
const COMPONENTS: u64 = 0b1110_0111;

/// An image in the standard format of XSAVE.
#[derive(Clone)]
pub struct XsaveImage(Vec<u8>);

impl XsaveImage {
    /// The image in these bytes.
    pub fn new(bytes: Vec<u8>) -> XsaveImage {
        XsaveImage(bytes)
    }

    /// The bytes, for XRSTOR.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The components to restore, as XRSTOR takes them.
    pub fn components(&self) -> u64 {
        COMPONENTS & supported_components()
    }

    /// An element of a vector register, sign not extended; `None` for other registers.
    pub fn vector_element(&self, register: Register, element: usize, bytes: usize) -> Option<u64> {
        if !register.is_vector_register() {
            return None;
        }
        let (number, offset) = (register.number(), element * bytes);
        let (component, at) = match (number, offset) {
            (16.., _) => (Some(ZMM_16_TO_31), 64 * (number - 16) + offset),
            (_, 0..16) => (None, XMM_AT + 16 * number + offset),
            (_, 16..32) => (Some(YMM_HIGH), 16 * number + offset - 16),
            _ => (Some(ZMM_HIGH), 32 * number + offset - 32),
        };
        let Some(component) = component else { return self.read(at, bytes) };
        // A component that is not in use holds zeros, whatever its bytes are.
        match self.read(HEADER_AT, 8)? >> component & 1 {
            0 => Some(0),
            _ => self.read(component_offset(component) + at, bytes),
        }
    }

    fn read(&self, at: usize, bytes: usize) -> Option<u64> {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(self.0.get(at..at + bytes)?);
        Some(u64::from_le_bytes(word))
    }
}

/// The state components that the system has enabled.
fn supported_components() -> u64 {
    // CPUID.0Dh exists wherever the system saves states with XSAVE.
    let leaf = __cpuid_count(0xd, 0);
    u64::from(leaf.edx) << 32 | u64::from(leaf.eax)
}

fn component_offset(component: u32) -> usize {
    __cpuid_count(0xd, component).ebx as usize
}
