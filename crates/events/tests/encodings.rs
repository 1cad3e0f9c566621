//! Encodings of short names equal those of libpfm4, where it is installed.

use cyclescope_core::machine::Machine;
use cyclescope_events::EventCatalog;
use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// Bits that libpfm4 sets for the use of a counter: user, kernel, interrupt, enable (Intel SDM vol.
/// 3B, figure 20-6).
const CONTROL_BITS: u64 = 0x53 << 16;
/// `PFM_PLM0 | PFM_PLM3` (`perfmon/pfmlib.h`): kernel and user.
const PRIVILEGES: c_int = 9;

type Encode =
    unsafe extern "C" fn(*const c_char, c_int, *mut *mut c_char, *mut c_int, *mut *mut u64, *mut c_int) -> c_int;

/// The library's function.
struct PfmLibrary(Encode);

impl PfmLibrary {
    fn open() -> Option<PfmLibrary> {
        // SAFETY: the names are NUL-terminated, the functions have these types
        // (pfm_initialize(3), pfm_get_event_encoding(3)), and no other thread reads the environment.
        unsafe {
            std::env::set_var("LIBPFM_ENCODE_INACTIVE", "1");
            let library = libc::dlopen(c"libpfm.so.4".as_ptr(), libc::RTLD_NOW);
            let find = |name: &CStr| Some(libc::dlsym(library, name.as_ptr())).filter(|found| !found.is_null());
            if library.is_null() {
                return None;
            }
            let start = find(c"pfm_initialize")?;
            let encode = find(c"pfm_get_event_encoding")?;
            let start = std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(start);
            let encode = std::mem::transmute::<*mut c_void, Encode>(encode);
            (start() == 0).then_some(PfmLibrary(encode))
        }
    }

    /// The encoding of an event.
    fn encode(&self, name: &str) -> Option<u64> {
        let name = CString::new(name).expect("no NUL");
        let (mut codes, mut number): (*mut u64, c_int) = (std::ptr::null_mut(), 0);
        let none = std::ptr::null_mut();
        // SAFETY: the library allocates the array and writes its length.
        unsafe {
            let answer =
                (self.0)(name.as_ptr(), PRIVILEGES, none, std::ptr::null_mut(), &raw mut codes, &raw mut number);
            (answer == 0 && number > 0).then(|| *codes & !CONTROL_BITS)
        }
    }
}

/// A core, its name in libpfm4, and pairs of our short name and libpfm4's.
type KnownCore = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const INTEL: &[(&str, &str)] = &[
    ("uops", "UOPS_ISSUED:ANY"),
    ("decoder", "IDQ:MITE_UOPS"),
    ("uop-cache", "IDQ:DSB_UOPS"),
    ("microcode", "IDQ:MS_UOPS"),
    ("loop-buffer", "LSD:UOPS"),
    ("uop-cache-switches", "DSB2MITE_SWITCHES:PENALTY_CYCLES"),
    ("machine-clears", "MACHINE_CLEARS:COUNT"),
    ("memory-order-clears", "MACHINE_CLEARS:MEMORY_ORDERING"),
    ("self-modifying-clears", "MACHINE_CLEARS:SMC"),
    ("failed-forwardings", "LD_BLOCKS:STORE_FORWARD"),
    ("taken-branches", "BR_INST_RETIRED:NEAR_TAKEN"),
    ("retired-branches", "BR_INST_RETIRED:ALL_BRANCHES"),
    ("mispredicted-branches", "BR_MISP_RETIRED:ALL_BRANCHES"),
    ("load-page-walks", "DTLB_LOAD_MISSES:WALK_COMPLETED"),
    ("l1-replacements", "L1D:REPLACEMENT"),
];

const AMD: &[(&str, &str)] = &[
    ("retired-branches", "RETIRED_BRANCH_INSTRUCTIONS"),
    ("mispredicted-branches", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED"),
    ("taken-branches", "RETIRED_TAKEN_BRANCH_INSTRUCTIONS"),
    ("forwardings", "STORE_TO_LOAD_FORWARD"),
];

const CORES: &[KnownCore] = &[
    (
        "Haswell",
        "hsw",
        &[
            ("uops-retired", "UOPS_RETIRED:RETIRE_SLOTS"),
            ("uops-executed", "UOPS_EXECUTED:CORE"),
            ("port0", "UOPS_EXECUTED_PORT:PORT_0"),
            ("port7", "UOPS_DISPATCHED_PORT:PORT_7"),
            ("l1-misses", "MEM_LOAD_UOPS_RETIRED:L1_MISS"),
            ("l2-misses", "MEM_LOAD_UOPS_RETIRED:L2_MISS"),
            ("l3-misses", "MEM_LOAD_UOPS_RETIRED:L3_MISS"),
            ("length-changing-prefix", "ILD_STALL:LCP"),
            ("assists", "FP_ASSIST:ANY"),
            ("false-aliases", "LD_BLOCKS_PARTIAL:ADDRESS_ALIAS"),
        ],
    ),
    ("Broadwell", "bdw", &[("uops-retired", "UOPS_RETIRED:RETIRE_SLOTS"), ("port0", "UOPS_EXECUTED_PORT:PORT_0")]),
    (
        "Skylake",
        "skl",
        &[
            ("uops-retired", "UOPS_RETIRED:RETIRE_SLOTS"),
            ("uops-executed", "UOPS_EXECUTED:THREAD"),
            ("port0", "UOPS_DISPATCHED_PORT:PORT_0"),
            ("port1", "UOPS_DISPATCHED_PORT:PORT_1"),
            ("port2", "UOPS_DISPATCHED_PORT:PORT_2"),
            ("port3", "UOPS_DISPATCHED_PORT:PORT_3"),
            ("port4", "UOPS_DISPATCHED_PORT:PORT_4"),
            ("port5", "UOPS_DISPATCHED_PORT:PORT_5"),
            ("port6", "UOPS_DISPATCHED_PORT:PORT_6"),
            ("port7", "UOPS_DISPATCHED_PORT:PORT_7"),
            ("l1-misses", "MEM_LOAD_RETIRED:L1_MISS"),
            ("l2-misses", "MEM_LOAD_RETIRED:L2_MISS"),
            ("l3-misses", "MEM_LOAD_RETIRED:L3_MISS"),
            ("assists", "FP_ASSIST:ANY"),
        ],
    ),
    (
        "Sunny Cove",
        "icl",
        &[
            ("uops-retired", "UOPS_RETIRED:SLOTS"),
            ("uops-executed", "UOPS_EXECUTED:THREAD"),
            ("port0", "UOPS_DISPATCHED:PORT_0"),
            ("port1", "UOPS_DISPATCHED:PORT_1"),
            ("port23", "UOPS_DISPATCHED:PORT_2_3"),
            ("port49", "UOPS_DISPATCHED:PORT_4_9"),
            ("port5", "UOPS_DISPATCHED:PORT_5"),
            ("port6", "UOPS_DISPATCHED:PORT_6"),
            ("port78", "UOPS_DISPATCHED:PORT_7_8"),
            ("assists", "ASSISTS:FP"),
        ],
    ),
    (
        "Golden Cove",
        "spr",
        &[
            ("uops-retired", "UOPS_RETIRED:SLOTS"),
            ("port0", "UOPS_DISPATCHED:PORT_0"),
            ("port1", "UOPS_DISPATCHED:PORT_1"),
            ("port23a", "UOPS_DISPATCHED:PORT_2_3_10"),
            ("port49", "UOPS_DISPATCHED:PORT_4_9"),
            ("port5b", "UOPS_DISPATCHED:PORT_5_11"),
            ("port6", "UOPS_DISPATCHED:PORT_6"),
            ("port78", "UOPS_DISPATCHED:PORT_7_8"),
            ("length-changing-prefix", "DECODE:LCP"),
            ("assists", "ASSISTS:FP"),
        ],
    ),
    ("Zen", "amd64_fam17h_zen1", &[("uops-retired", "RETIRED_UOPS")]),
    (
        "Zen 2",
        "amd64_fam17h_zen2",
        &[
            ("decoder", "UOPS_DISPATCHED_FROM_DECODER:DECODER_DISPATCHED"),
            ("uop-cache", "UOPS_DISPATCHED_FROM_DECODER:OPCACHE_DISPATCHED"),
            ("uops-retired", "RETIRED_UOPS"),
            ("failed-forwardings", "BAD_STATUS_2"),
        ],
    ),
    ("Zen 3", "amd64_fam19h_zen3", &[("uops-retired", "RETIRED_OPS"), ("failed-forwardings", "BAD_STATUS_2")]),
    (
        "Zen 4",
        "amd64_fam19h_zen4",
        &[
            ("decoder", "OPS_SOURCE_DISPATCHED_FROM_DECODER:DECODER"),
            ("uop-cache", "OPS_SOURCE_DISPATCHED_FROM_DECODER:OPCACHE"),
            ("uops-retired", "RETIRED_OPS"),
            ("uops-microcode", "RETIRED_UCODE_OPS"),
            ("failed-forwardings", "BAD_STATUS_2"),
        ],
    ),
];

#[test]
fn short_names_have_the_encodings_of_libpfm4() {
    let Some(library) = PfmLibrary::open() else {
        return cyclescope_skipped::report_skipped("libpfm4 is not installed (Debian: libpfm4)");
    };
    let machine = Machine::detect();
    let (mut compared, mut wrong) = (0, Vec::new());
    for (core, unit, own) in CORES {
        let catalog = EventCatalog::of_core(&machine, core);
        let common = if unit.starts_with("amd64") { AMD } else { INTEL };
        for (name, vendor) in common.iter().chain(*own) {
            let ours = catalog.find_event(name).map(|event| event.code.config).ok();
            let theirs = library.encode(&format!("{unit}::{vendor}"));
            compared += 1;
            if ours.is_none() || ours != theirs {
                wrong.push(format!("{core} {name}: {ours:x?}, libpfm4 {vendor}: {theirs:x?}"));
            }
        }
    }
    assert!(wrong.is_empty() && compared > 100, "{compared} compared:\n{}", wrong.join("\n"));
}
