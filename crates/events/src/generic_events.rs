//! The names that perf gives to events of every machine (Linux, `perf_event.h`; perf-list(1)).

use super::event_code::{EventCode, event_type};

/// Events that the kernel maps to each processor (`enum perf_hw_id`).
const HARDWARE: &[(&str, u64)] = &[
    ("cycles", 0),
    ("cpu-cycles", 0),
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-instructions", 4),
    ("branch-misses", 5),
    ("bus-cycles", 6),
    ("stalled-cycles-frontend", 7),
    ("stalled-cycles-backend", 8),
    ("ref-cycles", 9),
];

/// Events of the kernel (`enum perf_sw_ids`), and whether they happen in the kernel itself.
const SOFTWARE: &[(&str, u64, bool)] = &[
    ("cpu-clock", 0, false),
    ("task-clock", 1, false),
    ("page-faults", 2, false),
    ("faults", 2, false),
    ("context-switches", 3, true),
    ("cs", 3, true),
    ("cpu-migrations", 4, true),
    ("migrations", 4, true),
    ("minor-faults", 5, false),
    ("major-faults", 6, false),
    ("alignment-faults", 7, false),
    ("emulation-faults", 8, false),
    ("dummy", 9, false),
    ("cgroup-switches", 11, true),
];

/// Caches, in the kernel's order (`enum perf_hw_cache_id`).
const CACHES: &[&str] = &["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
/// Accesses to them (`enum perf_hw_cache_op_id`), with the words for all and for misses.
const ACCESSES: &[(&str, &str)] = &[("loads", "load"), ("stores", "store"), ("prefetches", "prefetch")];

/// The event with one of these names.
pub(crate) fn find_generic(name: &str) -> Option<EventCode> {
    list_generic().find(|(known, _)| known == name).map(|(_, code)| code)
}

/// All names, each with its event.
pub(crate) fn list_generic() -> impl Iterator<Item = (String, EventCode)> {
    let hardware =
        HARDWARE.iter().map(|(name, config)| (name.to_string(), EventCode::new(event_type::HARDWARE, *config)));
    let software = SOFTWARE.iter().map(|(name, config, in_kernel)| {
        (name.to_string(), EventCode::new(event_type::SOFTWARE, *config).with_scope(true, *in_kernel))
    });
    let caches = CACHES.iter().enumerate().flat_map(|(cache, name)| {
        ACCESSES.iter().enumerate().flat_map(move |(access, (all, one))| {
            // The result is in bits 16 and up: 0 for accesses, 1 for misses.
            let code =
                |result: u64| EventCode::new(event_type::CACHE, cache as u64 | (access as u64) << 8 | result << 16);
            [(format!("{name}-{all}"), code(0)), (format!("{name}-{one}-misses"), code(1))]
        })
    });
    hardware.chain(software).chain(caches)
}
