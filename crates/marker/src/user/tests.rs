//! The bench on this machine.

use super::*;
use crate::anatomy::CodePath;
use crate::bench::call;
use crate::source::c::table_symbol;
use crate::source::{context, design, library};
use crate::static_program::NarrowAddresses;
use crate::survey::PROOF_LOOPS;
use cyclescope_code::asm::CodeMode;
use cyclescope_core::machine::Machine;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The designs of this name as 32-bit code, with their probes; `None` without a compiler for it.
fn compile_narrow(name: &str, contexts: &[&str]) -> Option<(Vec<CompiledDesign>, ProbeSet)> {
    // Tests run at the same time.
    static FOLDERS: AtomicU32 = AtomicU32::new(0);
    let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("cyclescope-narrow-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let design = design::ALL.iter().find(|design| design.name == name).expect("a design");
    let contexts: Vec<_> = context::ALL.iter().filter(|one| contexts.contains(&one.name)).copied().collect();
    std::fs::write(folder.join("design.c"), library::write_program_part(design, &contexts)).expect("a file");
    std::fs::write(folder.join("probes.c"), library::write_probes()).expect("a file");
    let addresses = NarrowAddresses::reserve().expect("free addresses");
    let mut command = Command::new("cc");
    command.args(library::NARROW_FLAGS).args(library::NARROW_LINK_FLAGS).current_dir(&folder);
    command.arg(format!("-Wl,-Ttext-segment={:#x}", addresses.start()));
    let built = command.args(["design.c", "probes.c", "-o", "markers"]).output();
    let file = std::fs::read(folder.join("markers"));
    std::fs::remove_dir_all(&folder).expect("the folder is there");
    let (Ok(built), Ok(file)) = (built, file) else {
        cyclescope_skipped::report_skipped("cc builds no 32-bit code");
        return None;
    };
    assert!(built.status.success() && built.stderr.is_empty(), "{}", String::from_utf8_lossy(&built.stderr));
    let program = addresses.load_program(&file).expect("a program of 32-bit code");
    let find = |name: &str| program.find_symbol(name).expect("the program has it");
    // SAFETY: both are tables of the program, which stays in memory.
    unsafe {
        let designs = vec![CompiledDesign::read_table(find(&table_symbol(design)), CodeMode::Bits32)];
        let probes = ProbeSet::read_table(find("cyclescope_probes"), find("marker_hits"), CodeMode::Bits32);
        Some((designs, probes))
    }
}

/// A bench of one design in 32-bit code; `None` if it can't be compiled or run here.
fn narrow_bench(design: &str, contexts: &[&str]) -> Option<UserBench> {
    if let Err(lack) = cyclescope_exec::user::user_capabilities(&Machine::detect()).require_mode(CodeMode::Bits32) {
        cyclescope_skipped::report_skipped(lack);
        return None;
    }
    let (designs, probes) = compile_narrow(design, contexts)?;
    let (bench, skipped) = bench_of_code(true, (&designs, probes), contexts);
    for (case, misfit) in &skipped {
        assert!(case.state.traced, "{case:?}: {misfit}");
        cyclescope_skipped::report_left_out(misfit);
    }
    Some(bench)
}

/// A bench of one design in some loops, which are this program's own.
fn bench(design: &str, contexts: &[&str]) -> (UserBench, Vec<SkippedCase>) {
    bench_of_loops(design, contexts, true)
}

fn bench_of_loops(design: &str, contexts: &[&str], own_code: bool) -> (UserBench, Vec<SkippedCase>) {
    let designs: Vec<CompiledDesign> =
        CompiledDesign::list_built().into_iter().filter(|compiled| compiled.design.name == design).collect();
    bench_of_code(own_code, (&designs, ProbeSet::read_built()), contexts)
}

fn bench_of_code(
    own_code: bool,
    code: (&[CompiledDesign], ProbeSet),
    contexts: &[&str],
) -> (UserBench, Vec<SkippedCase>) {
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    let cpu = (0..1024).rev().find(|cpu| allowed.is_set(*cpu)).expect("some CPU");
    let options = UserOptions { cpu, own_code, ..UserOptions::default() };
    let clock = Clock::find_named("lfence-rdtsc-lfence").expect("there is this clock");
    UserBench::new(&options, clock, 1.0, code, contexts, &[], 1).unwrap()
}

/// A swap of the two loops or of the two lengths would fail the test.
#[test]
fn a_costly_marker_lengthens_only_its_own_column() {
    assert_own_column(bench("flag", &["empty"]).0);
}

#[test]
fn a_costly_marker_of_32_bit_code_lengthens_only_its_own_column() {
    if let Some(bench) = narrow_bench("flag", &["empty"]) {
        assert_own_column(bench);
    }
}

/// Each design of 32-bit code calls its probe in each iteration if it is enabled, and never if not.
#[test]
fn markers_of_32_bit_code_call_their_probes() {
    for design in design::ALL.iter().filter(|design| design.narrow_obstacle().is_none()) {
        // The loops are the same in all designs.
        let contexts = context::ALL.iter().filter(|context| design.name == "flag" || context.name == "empty");
        let contexts: Vec<&str> = contexts.map(|context| context.name).collect();
        let Some(mut bench) = narrow_bench(design.name, &contexts) else { return };
        for case in 0..bench.cases.len() {
            let MarkerCase { state, context, .. } = bench.cases[case].clone();
            let counted = bench.count_hits(case, 3, PROOF_LOOPS).unwrap();
            let calls = state.enabled || design.enabling == Enabling::Probe;
            let expected = if calls { PROOF_LOOPS } else { 0 };
            assert!(counted.is_none_or(|counted| counted == expected), "{} {} {context}", design.name, state.name);
            let visit = CaseVisit { placement: 3, loops: [10, 20], ruler_loops: 10 };
            assert_eq!(bench.run_visits(case, &[visit]).map(|visits| visits.len()), Ok(1), "{}", design.name);
            let anatomy = bench.anatomy(case).unwrap();
            assert!(!anatomy.assembly.is_empty(), "{}", design.name);
        }
    }
}

/// The document's listing of the generic marker: `movzbl`, `test`, `jne`, 11 bytes; of the optimized
/// one: `mov`, `test`, `jne`, 6 bytes (with branches of 8 bits).
#[test]
fn the_sites_of_32_bit_code_are_those_of_the_document() {
    for (design, mnemonics, likely) in
        [("flag", ["movzx", "test", "jne"], 11), ("immediate", ["mov al, 0", "test", "jne"], 6)]
    {
        let Some(bench) = narrow_bench(design, &["empty"]) else { return };
        let anatomy = bench.anatomy(0).unwrap();
        let site = anatomy.assembly.iter().filter(|line| line.site && line.path == CodePath::Likely);
        let site: Vec<_> = site.collect();
        assert!(
            site.len() == 3 && site.iter().zip(mnemonics).all(|(line, begin)| line.text.starts_with(begin)),
            "{site:?}"
        );
        // A compiler may need a branch of 32 bits.
        assert!([likely, likely + 4].contains(&anatomy.likely_bytes), "{site:?}");
    }
}

fn assert_own_column(mut bench: UserBench) {
    let case = bench.cases.iter().position(|case| case.state.name == "format").unwrap();
    let visit = |placement| CaseVisit { placement, loops: [100, 400], ruler_loops: 100 };
    let visits: Vec<CaseVisit> = (0..PLACEMENTS).map(visit).collect();
    let samples = bench.run_visits(case, &visits).unwrap();
    let longer = |long: usize, short: usize| {
        let rounds = samples.iter().filter_map(|samples| samples.rounds().next());
        rounds.filter(|round| round[long] > round[short]).count()
    };
    // An interrupt may reverse some.
    let most = PLACEMENTS * 3 / 4;
    assert!(longer(call::SITE_MANY, call::BASE_MANY) >= most);
    assert!(longer(call::SITE_MANY, call::SITE_FEW) >= most);
    assert!(longer(call::BASE_MANY, call::BASE_FEW) >= most);
    assert!(longer(call::IMUL_LONG, call::IMUL_SHORT) >= most);
    assert!(longer(call::ADD_LONG, call::ADD_SHORT) >= most);
}

#[test]
fn only_loops_of_this_program_share_a_worker() {
    for own_code in [true, false] {
        let (mut bench, _) = bench_of_loops("flag", &["empty", "memcpy"], own_code);
        let mut worker_after = |context: &str| {
            let case = bench.cases.iter().position(|case| case.context == context).expect("it is there");
            bench.run_visits(case, &[CaseVisit { placement: 0, loops: [10, 20], ruler_loops: 10 }]).expect("it runs");
            bench.executors[&0].worker_pid().expect("there is one")
        };
        let first = worker_after("empty");
        assert_eq!(worker_after("empty"), first, "the same loop again");
        assert_eq!(worker_after("memcpy") == first, own_code, "another loop, of this program: {own_code}");
    }
}

/// Requires root and a kernel with uprobes.
#[test]
fn a_tracer_counts_each_iteration_of_its_site_only() {
    let (mut bench, skipped) = bench("usdt", &["empty"]);
    if let Some((_, why)) = skipped.first() {
        return cyclescope_skipped::report_skipped(why);
    }
    let traced = bench.cases.iter().position(|case| case.state.traced).expect("it is there");
    let dormant = bench.cases.iter().position(|case| !case.state.traced).expect("it too");
    for placement in 0..PLACEMENTS {
        assert_eq!(bench.count_hits(traced, placement, PROOF_LOOPS).unwrap(), Some(PROOF_LOOPS), "{placement}");
    }
    let counted =
        |bench: &UserBench| bench.tracers.values().map(|(_, uprobe)| uprobe.read_count().unwrap()).sum::<u64>();
    let before = counted(&bench);
    let visit = CaseVisit { placement: 3, loops: [10, 20], ruler_loops: 10 };
    bench.run_visits(dormant, &[visit]).unwrap();
    assert_eq!(counted(&bench), before);
    bench.run_visits(traced, &[visit]).unwrap();
    // A timed round, and an untimed one before it.
    assert_eq!(counted(&bench), before + 2 * (10 + 20));
}

/// Requires root and a kernel with uprobes.
#[test]
fn a_tracer_follows_its_site_into_loops_with_other_memory() {
    let (mut bench, skipped) = bench("usdt", &["empty", "l2", "l3"]);
    if let Some((_, why)) = skipped.first() {
        return cyclescope_skipped::report_skipped(why);
    }
    let find = |bench: &UserBench, context: &str| {
        bench.cases.iter().position(|case| case.state.traced && case.context == context).expect("it is there")
    };
    let visit = CaseVisit { placement: 3, loops: [10, 20], ruler_loops: 10 };
    for context in ["l2", "l3", "l3", "empty", "l2"] {
        let case = find(&bench, context);
        assert_eq!(bench.count_hits(case, 3, PROOF_LOOPS), Ok(Some(PROOF_LOOPS)), "{context}");
        let visits = bench.run_visits(case, &[visit]);
        assert_eq!(visits.map(|visits| visits.len()), Ok(1), "{context}");
    }
    // The last worker ran loops with another memory.
    let [small, large] = ["l2", "l3"].map(|context| find(&bench, context));
    for case in [large, small] {
        let visits = bench.run_visits(case, &[visit]);
        assert_eq!(visits.map(|visits| visits.len()), Ok(1));
    }
}
