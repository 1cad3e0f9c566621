//! Processor state at a snippet's entry, except its general-purpose registers.

use crate::asm::{CodeMode, Emitter};
use crate::context::{FloatElement, ProgramContext};
use iced_x86::{Code, Register};
use std::mem::offset_of;

/// Vector registers that a snippet uses, and their encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VectorSetup {
    /// None.
    #[default]
    None,
    /// XMM registers in legacy SSE code, with clean upper parts.
    Legacy,
    /// XMM or YMM registers in VEX code.
    Ymm,
    /// XMM or YMM registers in EVEX code.
    Evex,
    /// ZMM registers.
    Zmm,
}

/// State set up before a snippet runs. Only what it uses is loaded, because wide registers can slow
/// a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct EntryState {
    /// The mode that the program runs in.
    #[serde(rename = "bits", default, skip_serializing_if = "CodeMode::is_default")]
    pub mode: CodeMode,
    /// Vector registers to load.
    pub vectors: VectorSetup,
    /// Whether the CPU has AVX, so that upper parts can be dirty.
    pub avx: bool,
    /// Whether to load mask registers, 64 bits each.
    pub masks: bool,
    /// Whether to clear the x87 and MMX state.
    pub x87: bool,
    /// Initial numbers in vector registers and memory areas.
    pub element: FloatElement,
}

impl EntryState {
    /// Emits the loads of the state.
    pub(super) fn emit_loads(&self, emitter: &mut Emitter) {
        emitter.push_on_field(Code::Ldmxcsr_m32, offset_of!(ProgramContext, mxcsr));
        if self.x87 {
            emitter.push_without_operands(Code::Fninit);
        }
        let vector = |number: u32| offset_of!(ProgramContext, vector) + 64 * number as usize;
        match self.vectors {
            VectorSetup::None => {}
            VectorSetup::Legacy => {
                // In 32-bit code it clears only registers 0 to 7, and legacy additions then took 3 core
                // cycles instead of 2 (Zen 5). The executor hands over clean upper parts.
                if self.avx && self.mode == CodeMode::Bits64 {
                    emitter.push_without_operands(Code::VEX_Vzeroall);
                }
                for number in 0..self.mode.vector_registers() {
                    emitter.load_field(Code::Movups_xmm_xmmm128, Register::XMM0 + number, vector(number));
                }
            }
            VectorSetup::Ymm => {
                for number in 0..self.mode.vector_registers() {
                    emitter.load_field(Code::VEX_Vmovups_ymm_ymmm256, Register::YMM0 + number, vector(number));
                }
            }
            VectorSetup::Evex => {
                for number in 0..self.mode.evex_registers() {
                    let code = Code::EVEX_Vmovups_ymm_k1z_ymmm256;
                    emitter.load_field(code, Register::YMM0 + number, vector(number));
                }
            }
            VectorSetup::Zmm => {
                for number in 0..self.mode.evex_registers() {
                    let code = Code::EVEX_Vmovups_zmm_k1z_zmmm512;
                    emitter.load_field(code, Register::ZMM0 + number, vector(number));
                }
            }
        }
        if self.masks {
            for number in 0..8usize {
                let field = offset_of!(ProgramContext, mask) + 8 * number;
                emitter.load_field(Code::VEX_Kmovq_kr_km64, Register::K0 + number as u32, field);
            }
        }
    }
}
