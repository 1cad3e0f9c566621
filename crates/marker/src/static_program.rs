//! A program of 32-bit code in this process, at the address that it is linked to.
//!
//! The system's loader loads no 32-bit code into a 64-bit process. Markers need no loader: their
//! program is static, and calls no library.

use cyclescope_core::error::RunError;
use cyclescope_exec::user::{NarrowMemory, PageRights};
use object::read::elf::ElfFile32;
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, SegmentFlags};
use std::collections::HashMap;

/// Bytes of addresses for a program.
const IMAGE_BYTES: u64 = 16 << 20;
const LOADING: &str = "loading a program of 32-bit code";

/// Addresses for a program of 32-bit code. They stay reserved until the process ends.
#[derive(Debug, Clone, Copy)]
pub struct NarrowAddresses {
    memory: &'static NarrowMemory,
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
        Ok(NarrowAddresses { memory: Box::leak(Box::new(NarrowMemory::reserve(IMAGE_BYTES)?)) })
    }

    /// The address to link the program to.
    pub fn start(self) -> u64 {
        self.memory.start()
    }

    /// Loads a program that was linked to these addresses. It stays in memory until the process ends.
    ///
    /// # Errors
    ///
    /// Fails if the file is no such program, or if the system refuses the memory.
    pub fn load_program(self, file: &[u8]) -> Result<StaticProgram, RunError> {
        let file: ElfFile32<Endianness> = ElfFile32::parse(file).map_err(|error| refuse_file(&error.to_string()))?;
        let memory = self.memory;
        let segments = || file.segments().filter(|segment| segment.size() > 0);
        for segment in segments() {
            let data = segment.data().map_err(|error| refuse_file(&error.to_string()))?;
            if !memory.contains(segment.address(), segment.size()) || data.len() as u64 > segment.size() {
                return Err(refuse_file("a segment is outside the reserved addresses"));
            }
            memory.set_rights(segment.address(), segment.size(), PageRights::WRITE)?;
            // SAFETY: the segment is writable.
            unsafe { memory.write(segment.address(), data) };
        }
        for segment in segments() {
            let SegmentFlags::Elf { p_flags, .. } = segment.flags() else { continue };
            memory.set_rights(segment.address(), segment.size(), PageRights::from_segment_flags(p_flags.0))?;
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
