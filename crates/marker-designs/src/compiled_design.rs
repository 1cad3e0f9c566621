//! The compiled functions of markers, as loaded in this process.

use super::listener;
use super::source::BASE;
use super::source::design::{self, SiteDesign};
use crate::ProbeKind;
use cyclescope_code::asm::CodeMode;
use std::ffi::{CStr, c_char};
use std::mem::offset_of;
use std::ptr;

/// Mirrors `struct marker_code` of `marker.h`.
#[repr(C)]
struct RawCode {
    guard: *const c_char,
    context: *const c_char,
    start: *const u8,
    stop: *const u8,
    entry: *const u8,
    target: *const u8,
}

/// Mirrors `struct marker_design` of `marker.h`; its `RawCode` entries follow it.
#[repr(C)]
pub struct RawDesign {
    name: *const c_char,
    compiler: *const c_char,
    enabled: *const u8,
    probe: *const u8,
    switch_to: *const u8,
    grace_period: *const u8,
    records: *const u8,
    records_end: *const u8,
    entries: *const u8,
    entries_end: *const u8,
    codes: usize,
}

// SAFETY: the compilers' tables are constants, and their pointers are only compared and read.
unsafe impl Sync for RawDesign {}
// SAFETY: as above.
unsafe impl Sync for RawCode {}

impl RawDesign {
    /// An empty table.
    const NONE: RawDesign = RawDesign {
        name: ptr::null(),
        compiler: ptr::null(),
        enabled: ptr::null(),
        probe: ptr::null(),
        switch_to: ptr::null(),
        grace_period: ptr::null(),
        records: ptr::null(),
        records_end: ptr::null(),
        entries: ptr::null(),
        entries_end: ptr::null(),
        codes: 0,
    };
}

/// The table of a design in Rust.
#[repr(C)]
struct Table<const CODES: usize> {
    design: RawDesign,
    codes: [RawCode; CODES],
}

// SAFETY: as for its parts.
unsafe impl<const CODES: usize> Sync for Table<CODES> {}

include!(concat!(env!("OUT_DIR"), "/designs.rs"));

unsafe extern "C" {
    /// The probes of `probes.c`. The guard field holds the probe's name.
    static cyclescope_probes: [RawCode; 5];
}

/// A compiled design.
#[derive(Debug, Clone)]
pub struct CompiledDesign {
    /// The design that was compiled.
    pub design: &'static SiteDesign,
    /// The mode of its functions.
    pub mode: CodeMode,
    /// Version of the compiler.
    pub compiler: String,
    /// Address of the variable that enables the marker, if there is one.
    pub enabled: Option<u64>,
    /// Address of the pointer to the marker's probe, if it calls one.
    pub probe: Option<u64>,
    /// Address of `extern "C" fn(state: u32)`, which puts the marker's library into a state. Only
    /// for [`Enabling::Switch`](design::Enabling::Switch).
    pub switch: Option<u64>,
    /// Address of the counter that the guard's read-side lock copies, if it has one.
    pub grace_period: Option<u64>,
    /// Its functions.
    pub codes: Vec<CompiledFunction>,
}

/// A compiled function: a loop, with or without a marker.
#[derive(Debug, Clone)]
pub struct CompiledFunction {
    /// Guard of its marker; `None` for the loop without a marker. For a probe, the probe's name.
    pub guard: Option<String>,
    /// Name of its loop's context.
    pub context: String,
    /// The mode of its code.
    pub mode: CodeMode,
    /// Address of its first byte.
    pub start: u64,
    /// Its bytes, including functions stored with it.
    pub bytes: &'static [u8],
    /// Offset of its entry point.
    pub entry: usize,
    /// The places that enabling patches.
    pub sites: Vec<PatchSite>,
}

/// A place to patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchSite {
    /// Offset of the place in the function.
    pub place: usize,
    /// Target address of the jump or call.
    pub target: u64,
}

impl CompiledDesign {
    /// The designs compiled into this program.
    pub fn list_built() -> Vec<CompiledDesign> {
        let read = |design: &*const RawDesign| {
            // SAFETY: the tables belong to this build and are linked into this program.
            unsafe { CompiledDesign::read_table(*design as u64, CodeMode::default()) }
        };
        BUILT.iter().map(read).collect()
    }

    /// Reads a compiler's table at an address. Its words are as wide as those of its code.
    ///
    /// # Safety
    ///
    /// There must be a table from text of [`super::source`], in a program or library that stays
    /// loaded.
    ///
    /// # Panics
    ///
    /// If its design is not one of [`design::ALL`].
    pub unsafe fn read_table(address: u64, mode: CodeMode) -> CompiledDesign {
        let table = TableWords { at: address, mode };
        // SAFETY: guaranteed by the caller, for the table and the codes that follow it.
        unsafe {
            let name = read_text(table.read(offset_of!(RawDesign, name)));
            let pointer = |offset| Some(table.read(offset)).filter(|pointer| *pointer != 0);
            let patches = |code: &TableWords| table.list_patches(code.read(offset_of!(RawCode, target)));
            let codes = table.list_codes(size_of::<RawDesign>(), table.read(offset_of!(RawDesign, codes)));
            CompiledDesign {
                design: design::ALL.iter().find(|one| one.name == name).expect("tables are made from this list"),
                mode,
                compiler: read_text(table.read(offset_of!(RawDesign, compiler))),
                enabled: pointer(offset_of!(RawDesign, enabled)),
                probe: pointer(offset_of!(RawDesign, probe)),
                switch: pointer(offset_of!(RawDesign, switch_to)),
                grace_period: pointer(offset_of!(RawDesign, grace_period)),
                codes: codes.map(|code| code.read_function(&patches(&code))).collect(),
            }
        }
    }

    /// Name of the section that holds a function.
    pub fn section_of(&self, code: &CompiledFunction) -> String {
        let guard = code.guard.as_deref().unwrap_or(BASE).replace('-', "_");
        format!("in_cyclescope_{}_{guard}_{}", self.design.identifier(), code.context)
    }

    /// The loop of this context, with a marker and this guard, or without a marker.
    pub fn find_function(&self, context: &str, guard: Option<&str>) -> Option<&CompiledFunction> {
        self.codes.iter().find(|code| code.context == context && code.guard.as_deref() == guard)
    }
}

/// The probes for markers of a mode.
#[derive(Debug, Clone)]
pub struct ProbeSet {
    functions: Vec<CompiledFunction>,
    /// Address of the number of calls of the counting probe.
    pub hits: u64,
    /// The mode of their code.
    pub mode: CodeMode,
}

impl ProbeSet {
    /// The probes compiled into this program.
    pub fn read_built() -> ProbeSet {
        let table = &raw const cyclescope_probes;
        // SAFETY: a table of this build.
        unsafe { ProbeSet::read_table(table as u64, listener::hits_address(), CodeMode::default()) }
    }

    /// Reads the table of `probes.c` at an address. `hits` is the address of its counter.
    ///
    /// # Safety
    ///
    /// There must be such a table, in a program or library that stays loaded.
    pub unsafe fn read_table(address: u64, hits: u64, mode: CodeMode) -> ProbeSet {
        let table = TableWords { at: address, mode };
        // SAFETY: guaranteed by the caller.
        let functions = unsafe {
            let codes = table.list_codes(0, ProbeKind::ALL.len() as u64);
            codes.map(|code| code.read_function(&[])).collect()
        };
        ProbeSet { functions, hits, mode }
    }

    /// The code of a probe.
    ///
    /// # Panics
    ///
    /// If `probes.c` has no such probe.
    pub fn find(&self, probe: ProbeKind) -> &CompiledFunction {
        let named = |code: &&CompiledFunction| code.guard.as_deref() == Some(probe.c_name());
        self.functions.iter().find(named).expect("probes.c has it")
    }
}

/// An instruction that enabling patches.
struct PatchTarget {
    address: u64,
    /// Target after patching.
    target: u64,
}

/// Part of a compiler's table in memory. Offsets are those of the tables of 64-bit code, whose words
/// are all of 8 bytes.
#[derive(Clone, Copy)]
struct TableWords {
    at: u64,
    mode: CodeMode,
}

/// Bytes of a word in the tables of 64-bit code.
const WORD_BYTES: usize = 8;

impl TableWords {
    /// Bytes of a word.
    fn width(self) -> u64 {
        u64::from(self.mode.bits()) / 8
    }

    /// The part that begins at an offset.
    fn skip(self, offset: usize) -> TableWords {
        TableWords { at: self.at + (offset / WORD_BYTES) as u64 * self.width(), ..self }
    }

    /// The word at an offset.
    ///
    /// # Safety
    ///
    /// The offset is in a table that stays in memory.
    unsafe fn read(self, offset: usize) -> u64 {
        let address = self.skip(offset).at;
        // SAFETY: guaranteed by the caller; compilers align words.
        unsafe {
            match self.mode {
                CodeMode::Bits64 => (address as *const u64).read(),
                CodeMode::Bits32 => u64::from((address as *const u32).read()),
            }
        }
    }

    /// The address at the distance from itself that a word holds.
    ///
    /// # Safety
    ///
    /// See [`TableWords::read`].
    unsafe fn read_relative(self) -> u64 {
        // SAFETY: guaranteed by the caller.
        let distance = unsafe { self.read(0) };
        match self.mode {
            CodeMode::Bits64 => self.at.wrapping_add(distance),
            CodeMode::Bits32 => u64::from((self.at as u32).wrapping_add(distance as u32)),
        }
    }

    /// This number of functions from an offset on.
    fn list_codes(self, offset: usize, count: u64) -> impl Iterator<Item = TableWords> {
        (0..count as usize).map(move |number| self.skip(offset + number * size_of::<RawCode>()))
    }

    /// The patches of a design. `entry_target` is the target of patched entries.
    ///
    /// # Safety
    ///
    /// This is a design's table that stays in memory.
    unsafe fn list_patches(self, entry_target: u64) -> Vec<PatchTarget> {
        // SAFETY: guaranteed by the caller, for the arrays that the table points to.
        unsafe {
            let [records, records_end, entries, entries_end] = [
                offset_of!(RawDesign, records),
                offset_of!(RawDesign, records_end),
                offset_of!(RawDesign, entries),
                offset_of!(RawDesign, entries_end),
            ]
            .map(|offset| self.read(offset));
            let part = |at| TableWords { at, ..self };
            let records = (records..records_end).step_by(2 * self.width() as usize).map(|at| PatchTarget {
                address: part(at).read_relative(),
                target: part(at).skip(WORD_BYTES).read_relative(),
            });
            let entries = (entries..entries_end).step_by(self.width() as usize);
            let entries = entries.map(|at| PatchTarget { address: part(at).read(0), target: entry_target });
            records.chain(entries).collect()
        }
    }

    /// Reads a function.
    ///
    /// # Safety
    ///
    /// This is a function's part of a table that stays in memory, as its code does.
    unsafe fn read_function(self, patches: &[PatchTarget]) -> CompiledFunction {
        // SAFETY: guaranteed by the caller.
        let read = |offset| unsafe { self.read(offset) };
        let start = read(offset_of!(RawCode, start));
        let len = (read(offset_of!(RawCode, stop)) - start) as usize;
        let inside = patches.iter().filter(|patch| (start..start + len as u64).contains(&patch.address));
        let guard = read_text(read(offset_of!(RawCode, guard)));
        CompiledFunction {
            guard: (guard != BASE).then_some(guard),
            context: read_text(read(offset_of!(RawCode, context))),
            mode: self.mode,
            start,
            // SAFETY: the bounds of a code section of the program, which stays loaded.
            bytes: unsafe { std::slice::from_raw_parts(start as *const u8, len) },
            entry: (read(offset_of!(RawCode, entry)) - start) as usize,
            sites: inside
                .map(|patch| PatchSite { place: (patch.address - start) as usize, target: patch.target })
                .collect(),
        }
    }
}

fn read_text(address: u64) -> String {
    // SAFETY: texts in the compilers' tables are constants that end with NUL.
    unsafe { CStr::from_ptr(address as *const c_char) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{context, design::Enabling};

    #[test]
    fn every_design_has_a_function_for_each_guard_and_context() {
        let built = CompiledDesign::list_built();
        let packaged = design::ALL.iter().filter(|design| design.package.is_some()).count();
        assert_eq!(built.len(), design::ALL.len() - packaged);
        for compiled in &built {
            assert_eq!(compiled.codes.len(), context::ALL.len() * (compiled.design.guards().len() + 1));
            assert!(!compiled.compiler.is_empty());
            assert_eq!(compiled.switch.is_some(), matches!(compiled.design.enabling, Enabling::Switch(_)));
            for context in context::ALL {
                let base = compiled.find_function(context.name, None).expect(
                    "the design has a loop without the \
                     marker",
                );
                assert!(base.sites.is_empty(), "{} {base:?}", compiled.design.name);
                for guard in compiled.design.guards() {
                    let code = compiled.find_function(context.name, Some(guard.name)).expect(
                        "the design has a loop \
                         with the marker",
                    );
                    let patched = matches!(
                        compiled.design.enabling,
                        Enabling::Immediate | Enabling::Jump | Enabling::Entry | Enabling::Tracer
                    );
                    assert_eq!(code.sites.len(), usize::from(patched), "{} {code:?}", compiled.design.name);
                }
            }
        }
    }
}
