//! Encodings of short names equal those of the kernel's tables, which `perf list` prints for any
//! core, where perf is installed.

use cyclescope_core::machine::Machine;
use cyclescope_events::EventCatalog;
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// Pairs of our short name and the kernel's.
type NamePairs = &'static [(&'static str, &'static str)];
/// A core's name, its CPUID as perf writes it, and its names: first those that perf must know.
type KernelCore = (&'static str, &'static str, &'static [NamePairs]);

/// Names of all Intel cores.
const INTEL: NamePairs = &[
    ("uops", "uops_issued.any"),
    ("decoder", "idq.mite_uops"),
    ("uop-cache", "idq.dsb_uops"),
    ("microcode", "idq.ms_uops"),
    ("uop-cache-switches", "dsb2mite_switches.penalty_cycles"),
    ("machine-clears", "machine_clears.count"),
    ("memory-order-clears", "machine_clears.memory_ordering"),
    ("self-modifying-clears", "machine_clears.smc"),
    ("failed-forwardings", "ld_blocks.store_forward"),
    ("taken-branches", "br_inst_retired.near_taken"),
    ("retired-branches", "br_inst_retired.all_branches"),
    ("mispredicted-branches", "br_misp_retired.all_branches"),
    ("load-page-walks", "dtlb_load_misses.walk_completed"),
    ("l1-replacements", "l1d.replacement"),
];

/// Names of all AMD cores since Zen.
const AMD: NamePairs = &[
    ("retired-branches", "ex_ret_brn"),
    ("mispredicted-branches", "ex_ret_brn_misp"),
    ("taken-branches", "ex_ret_brn_tkn"),
    ("forwardings", "ls_stlf"),
];

const HASWELL: NamePairs = &[
    ("uops-retired", "uops_retired.retire_slots"),
    ("port0", "uops_executed_port.port_0"),
    ("port7", "uops_executed_port.port_7"),
    ("length-changing-prefix", "ild_stall.lcp"),
    ("l1-misses", "mem_load_uops_retired.l1_miss"),
    ("l2-misses", "mem_load_uops_retired.l2_miss"),
    ("l3-misses", "mem_load_uops_retired.l3_miss"),
    ("false-aliases", "ld_blocks_partial.address_alias"),
    ("assists", "fp_assist.any"),
];

const GOLDEN_COVE: NamePairs = &[
    ("uops-retired", "uops_retired.slots"),
    ("uops-executed", "uops_executed.thread"),
    ("loop-buffer", "lsd.uops"),
    ("port0", "uops_dispatched.port_0"),
    ("port1", "uops_dispatched.port_1"),
    ("port23a", "uops_dispatched.port_2_3_10"),
    ("port49", "uops_dispatched.port_4_9"),
    ("port5b", "uops_dispatched.port_5_11"),
    ("port6", "uops_dispatched.port_6"),
    ("port78", "uops_dispatched.port_7_8"),
    ("length-changing-prefix", "decode.lcp"),
    ("l1-misses", "mem_load_retired.l1_miss"),
    ("l2-misses", "mem_load_retired.l2_miss"),
    ("l3-misses", "mem_load_retired.l3_miss"),
    ("assists", "assists.fp"),
];

const ZEN_4: NamePairs = &[
    ("uops", "de_src_op_disp.all"),
    ("decoder", "de_src_op_disp.x86_decoder"),
    ("uop-cache", "de_src_op_disp.op_cache"),
    ("uops-microcode", "ex_ret_ucode_ops"),
    ("l1-fills", "ls_any_fills_from_sys.all"),
];

const SKYLAKE: NamePairs = &[
    ("uops-retired", "uops_retired.retire_slots"),
    ("uops-executed", "uops_executed.thread"),
    ("loop-buffer", "lsd.uops"),
    ("port0", "uops_dispatched_port.port_0"),
    ("port1", "uops_dispatched_port.port_1"),
    ("port2", "uops_dispatched_port.port_2"),
    ("port3", "uops_dispatched_port.port_3"),
    ("port4", "uops_dispatched_port.port_4"),
    ("port5", "uops_dispatched_port.port_5"),
    ("port6", "uops_dispatched_port.port_6"),
    ("port7", "uops_dispatched_port.port_7"),
    ("length-changing-prefix", "ild_stall.lcp"),
    ("l1-misses", "mem_load_retired.l1_miss"),
    ("l2-misses", "mem_load_retired.l2_miss"),
    ("l3-misses", "mem_load_retired.l3_miss"),
    ("false-aliases", "ld_blocks_partial.address_alias"),
    ("assists", "fp_assist.any"),
];

const SUNNY_COVE: NamePairs = &[
    ("uops-retired", "uops_retired.slots"),
    ("uops-executed", "uops_executed.thread"),
    ("loop-buffer", "lsd.uops"),
    ("port0", "uops_dispatched.port_0"),
    ("port1", "uops_dispatched.port_1"),
    ("port23", "uops_dispatched.port_2_3"),
    ("port49", "uops_dispatched.port_4_9"),
    ("port5", "uops_dispatched.port_5"),
    ("port6", "uops_dispatched.port_6"),
    ("port78", "uops_dispatched.port_7_8"),
    ("length-changing-prefix", "ild_stall.lcp"),
    ("l1-misses", "mem_load_retired.l1_miss"),
    ("l2-misses", "mem_load_retired.l2_miss"),
    ("l3-misses", "mem_load_retired.l3_miss"),
    ("false-aliases", "ld_blocks_partial.address_alias"),
    ("assists", "assists.fp"),
];

const ZEN_2: NamePairs = &[("uops-retired", "ex_ret_cops"), ("failed-forwardings", "ls_bad_status2.stli_other")];

const ZEN_3: NamePairs = &[("uops-retired", "ex_ret_ops"), ("failed-forwardings", "ls_bad_status2.stli_other")];

const ZEN_5: NamePairs =
    &[("l1-l2-fills", "ls_dmnd_fills_from_sys.local_l2"), ("load-page-walks", "ls_l1_d_tlb_miss.all_l2_miss")];

const CORES: &[KernelCore] = &[
    ("Haswell", "GenuineIntel-6-3C-3", &[INTEL, HASWELL]),
    ("Broadwell", "GenuineIntel-6-3D-4", &[INTEL, HASWELL]),
    ("Skylake", "GenuineIntel-6-4E-3", &[INTEL, SKYLAKE]),
    ("Sunny Cove", "GenuineIntel-6-7E-5", &[INTEL, SUNNY_COVE]),
    ("Golden Cove", "GenuineIntel-6-8F-6", &[INTEL, GOLDEN_COVE]),
    ("Zen", "AuthenticAMD-23-1-2", &[AMD, &[("uops-retired", "ex_ret_cops")]]),
    ("Zen 2", "AuthenticAMD-23-31-0", &[AMD, ZEN_2]),
    ("Zen 3", "AuthenticAMD-25-1-1", &[AMD, ZEN_3]),
    ("Zen 4", "AuthenticAMD-25-11-1", &[AMD, ZEN_3, ZEN_4]),
    ("Zen 5", "AuthenticAMD-26-2-1", &[AMD, ZEN_3, ZEN_4, ZEN_5]),
];

/// Fields of an Intel core's unit. perf reads them below `SYSFS_PATH`, and does not ask the kernel.
const FIELDS: &[(&str, &str)] = &[
    ("event", "config:0-7"),
    ("umask", "config:8-15"),
    ("edge", "config:18"),
    ("inv", "config:23"),
    ("cmask", "config:24-31"),
];

fn write_unit(root: &Path) {
    let unit = root.join("bus/event_source/devices/cpu");
    std::fs::create_dir_all(unit.join("format")).expect("a folder");
    std::fs::create_dir_all(unit.join("events")).expect("a folder");
    std::fs::write(unit.join("type"), "4\n").expect("a file");
    for (field, bits) in FIELDS {
        std::fs::write(unit.join("format").join(field), format!("{bits}\n")).expect("a file");
    }
}

/// The events of a core in perf's table, by name; `None` if perf does not start.
fn list_kernel_events(root: &Path, cpuid: &str) -> Option<HashMap<String, String>> {
    let listed = Command::new("perf")
        .args(["list", "--details", "pmu"])
        .env("SYSFS_PATH", root)
        .env("PERF_CPUID", cpuid)
        .output()
        .ok()?;
    let (mut events, mut name) = (HashMap::new(), String::new());
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        // A name is indented by two, its description by seven, its encoding by eight.
        match (line.strip_prefix("  "), line.trim().strip_prefix("cpu/")) {
            (_, Some(fields)) if line.starts_with("     ") => {
                let fields = fields.strip_suffix('/').unwrap_or(fields);
                // The period is for sampling.
                let own = fields.split(',').filter(|field| !field.starts_with("period="));
                events.insert(name.clone(), own.collect::<Vec<_>>().join(","));
            }
            (Some(word), _) if word.starts_with(|first: char| first.is_ascii_lowercase()) => {
                name = word.split_whitespace().next().unwrap_or_default().to_string();
            }
            _ => {}
        }
    }
    Some(events)
}

#[test]
fn short_names_have_the_encodings_of_the_kernel() {
    let root = tempfile::tempdir().expect("a folder");
    write_unit(root.path());
    let machine = Machine::detect();
    let (mut compared, mut cores, mut wrong) = (0, 0, Vec::new());
    for (core, cpuid, names) in CORES {
        let Some(events) = list_kernel_events(root.path(), cpuid) else {
            return cyclescope_skipped::report_skipped("perf is not installed (Debian: linux-perf)");
        };
        // An older perf takes a core's predecessor for the core.
        let known = names.iter().flat_map(|pairs| pairs.iter());
        let known: Vec<_> = known.filter_map(|(name, kernel)| Some((name, kernel, events.get(*kernel)?))).collect();
        if known.len() < names[0].len() {
            cyclescope_skipped::report_left_out(format!("this perf has no table of {core}"));
            continue;
        }
        cores += 1;
        let catalog = EventCatalog::of_core(&machine, core);
        for (name, kernel, fields) in known {
            let ours = catalog.find_event(name).map(|event| event.code.config).ok();
            let theirs = catalog.find_event(&format!("cpu/{fields}/")).map(|event| event.code.config).ok();
            compared += 1;
            if ours.is_none() || ours != theirs {
                wrong.push(format!("{core} {name}: {ours:x?}, kernel {kernel}: {fields}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    match cores {
        0 => cyclescope_skipped::report_skipped("this perf has no tables of events"),
        _ => assert!(cores >= 6 && compared > 100, "{compared} events of {cores} cores compared"),
    }
}
