//! The compiled functions of markers, as loaded in this process.

use super::source::BASE;
use super::source::design::{self, SiteDesign};
use std::ffi::{CStr, c_char};
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

/// Mirrors `struct marker_record` of `marker.h`.
#[repr(C)]
struct RawRecord {
    place: i64,
    target: i64,
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
    records: *const RawRecord,
    records_end: *const RawRecord,
    entries: *const u64,
    entries_end: *const u64,
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
        // SAFETY: the tables belong to this build and are linked into this program.
        BUILT.iter().map(|design| unsafe { CompiledDesign::read_table(*design) }).collect()
    }

    /// Reads a compiler's table.
    ///
    /// # Safety
    ///
    /// `raw` must be a table from text of [`super::source`], in a program or library that stays
    /// loaded.
    ///
    /// # Panics
    ///
    /// If its design is not one of [`design::ALL`].
    pub unsafe fn read_table(raw: *const RawDesign) -> CompiledDesign {
        // SAFETY: the caller guarantees the table, which its codes follow.
        let (design, codes) = unsafe {
            let codes = std::slice::from_raw_parts(raw.add(1).cast::<RawCode>(), (*raw).codes);
            (&*raw, codes)
        };
        let name = read_text(design.name);
        let address = |pointer: *const u8| (!pointer.is_null()).then_some(pointer as u64);
        CompiledDesign {
            design: design::ALL.iter().find(|one| one.name == name).expect("tables are made from this list"),
            compiler: read_text(design.compiler),
            enabled: address(design.enabled),
            probe: address(design.probe),
            switch: address(design.switch_to),
            grace_period: address(design.grace_period),
            codes: codes.iter().map(|code| code.read_function(&design.list_patches(code))).collect(),
        }
    }

    /// The loop of this context, with a marker and this guard, or without a marker.
    pub fn find_function(&self, context: &str, guard: Option<&str>) -> Option<&CompiledFunction> {
        self.codes.iter().find(|code| code.context == context && code.guard.as_deref() == guard)
    }
}

/// The code of a probe.
///
/// # Panics
///
/// If `probes.c` has no probe of this name.
pub(crate) fn find_probe(name: &str) -> CompiledFunction {
    // SAFETY: a table of this build.
    let probes = unsafe { &cyclescope_probes };
    let codes = probes.iter().map(|probe| probe.read_function(&[]));
    codes.into_iter().find(|code| code.guard.as_deref() == Some(name)).expect("probes.c has it")
}

/// An instruction that enabling patches.
struct PatchTarget {
    address: u64,
    /// Target after patching.
    target: u64,
}

impl RawDesign {
    fn list_patches(&self, code: &RawCode) -> Vec<PatchTarget> {
        let from = |field: &i64| (&raw const *field as u64).wrapping_add_signed(*field);
        // SAFETY: the compiler's bounds of two arrays, or null.
        let (records, entries) =
            unsafe { (slice_between(self.records, self.records_end), slice_between(self.entries, self.entries_end)) };
        let of_record = |record: &RawRecord| PatchTarget { address: from(&record.place), target: from(&record.target) };
        let of_entry = |entry: &u64| PatchTarget { address: *entry, target: code.target as u64 };
        records.iter().map(of_record).chain(entries.iter().map(of_entry)).collect()
    }
}

impl RawCode {
    fn read_function(&self, patches: &[PatchTarget]) -> CompiledFunction {
        let start = self.start as u64;
        let len = (self.stop as u64 - start) as usize;
        let inside = patches.iter().filter(|patch| (start..start + len as u64).contains(&patch.address));
        let guard = read_text(self.guard);
        CompiledFunction {
            guard: (guard != BASE).then_some(guard),
            context: read_text(self.context),
            start,
            // SAFETY: the bounds of a code section of the program, which stays loaded.
            bytes: unsafe { std::slice::from_raw_parts(self.start, len) },
            entry: (self.entry as u64 - start) as usize,
            sites: inside
                .map(|patch| PatchSite { place: (patch.address - start) as usize, target: patch.target })
                .collect(),
        }
    }
}

/// The elements between two bounds; none between null pointers.
///
/// # Safety
///
/// The bounds must be null or enclose one array with static lifetime.
unsafe fn slice_between<T>(start: *const T, end: *const T) -> &'static [T] {
    if start.is_null() {
        return &[];
    }
    let bytes = end as usize - start as usize;
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(start, bytes / size_of::<T>()) }
}

fn read_text(text: *const c_char) -> String {
    // SAFETY: texts in the compilers' tables are constants that end with NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
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
