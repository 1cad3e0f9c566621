//! A program of 32-bit code in this process, at the address that it is linked to.
//!
//! The system's loader loads no 32-bit code into a 64-bit process. Markers need no loader: their
//! program is static, and calls no library.

use cyclescope_core::error::RunError;
use cyclescope_exec::user::reserve_narrow_addresses;
use object::elf::{PF_R, PF_W, PF_X, ProgramFlags};
use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, SegmentFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::collections::HashMap;
use std::ffi::c_void;

/// Bytes of addresses for a program.
const IMAGE_BYTES: u64 = 16 << 20;
const PAGE: u64 = 4096;
const LOADING: &str = "loading a program of 32-bit code";

/// Addresses for a program of 32-bit code. They stay reserved until the process ends.
#[derive(Debug, Clone, Copy)]
pub struct NarrowAddresses {
    start: u64,
}

/// The symbols of a loaded program.
#[derive(Debug)]
pub struct StaticProgram {
    symbols: HashMap<String, u64>,
}

impl NarrowAddresses {
    /// Reserves addresses below 4 GiB.
    ///
    /// # Errors
    ///
    /// Fails if none are free.
    pub fn reserve() -> Result<NarrowAddresses, RunError> {
        Ok(NarrowAddresses { start: reserve_narrow_addresses(IMAGE_BYTES as usize)? })
    }

    /// The address to link the program to.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Loads a program that was linked to these addresses. It stays in memory until the process ends.
    ///
    /// # Errors
    ///
    /// Fails if the file is no such program, or if the system refuses the memory.
    pub fn load_program(self, file: &[u8]) -> Result<StaticProgram, RunError> {
        let file: ElfFile32<Endianness> = ElfFile32::parse(file).map_err(|error| refuse_file(&error.to_string()))?;
        for segment in file.segments() {
            let (address, bytes) = (segment.address(), segment.size());
            let end = address.checked_add(bytes).filter(|end| *end <= self.start + IMAGE_BYTES);
            let data = segment.data().map_err(|error| refuse_file(&error.to_string()))?;
            if address < self.start || end.is_none() || data.len() as u64 > bytes {
                return Err(refuse_file("a segment is outside the reserved addresses"));
            }
            load_segment(address, bytes, data, segment.flags())
                .map_err(|errno| RunError::System { doing: LOADING, errno: errno.raw_os_error() })?;
        }
        let symbol = |symbol: object::read::elf::ElfSymbol32<Endianness>| {
            symbol.name().ok().map(|name| (name.to_string(), symbol.address()))
        };
        Ok(StaticProgram { symbols: file.symbols().filter_map(symbol).collect() })
    }
}

impl StaticProgram {
    /// The address of a symbol.
    ///
    /// # Errors
    ///
    /// Fails if the program has no such symbol.
    pub fn find_symbol(&self, name: &str) -> Result<u64, RunError> {
        self.symbols.get(name).copied().ok_or_else(|| refuse_file(&format!("it has no symbol {name}")))
    }
}

fn refuse_file(why: &str) -> RunError {
    RunError::from_harness(LOADING, why.to_string(), "")
}

/// Maps a segment and copies its bytes.
fn load_segment(address: u64, bytes: u64, data: &[u8], flags: SegmentFlags) -> Result<(), Errno> {
    let first = address / PAGE * PAGE;
    let length = ((address + bytes).next_multiple_of(PAGE) - first) as usize;
    if length == 0 {
        return Ok(());
    }
    let (place, flags) = (
        first as *mut c_void,
        match flags {
            SegmentFlags::Elf { p_flags, .. } => p_flags,
            _ => ProgramFlags(0),
        },
    );
    let protections = [(PF_R, MprotectFlags::READ), (PF_W, MprotectFlags::WRITE), (PF_X, MprotectFlags::EXEC)];
    let allowed = protections.iter().filter(|(flag, _)| flags.0 & flag.0 != 0);
    let allowed = allowed.fold(MprotectFlags::empty(), |all, (_, one)| all | *one);
    let mapping = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the addresses are reserved for this program, and no other part of it uses these pages;
    // the copy stays inside them.
    unsafe {
        rustix::mm::mmap_anonymous(place, length, ProtFlags::READ | ProtFlags::WRITE, mapping)?;
        std::ptr::copy_nonoverlapping(data.as_ptr(), address as *mut u8, data.len());
        rustix::mm::mprotect(place, length, allowed)
    }
}
