//! The bench on this machine.

use super::*;
use crate::bench::call;
use crate::survey::PROOF_LOOPS;

/// A bench of one design in some loops, which are this program's own.
fn bench(design: &str, contexts: &[&str]) -> (UserBench, Vec<SkippedCase>) {
    bench_of_loops(design, contexts, true)
}

fn bench_of_loops(design: &str, contexts: &[&str], own_code: bool) -> (UserBench, Vec<SkippedCase>) {
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    let cpu = (0..1024).rev().find(|cpu| allowed.is_set(*cpu)).expect("some CPU");
    let options = UserOptions { cpu, own_code, ..UserOptions::default() };
    let clock = Clock::find_named("lfence-rdtsc-lfence").expect("there is this clock");
    let designs: Vec<CompiledDesign> =
        CompiledDesign::list_built().into_iter().filter(|compiled| compiled.design.name == design).collect();
    UserBench::new(&options, clock, 1.0, &designs, contexts, &[], 1).unwrap()
}

/// A swap of the two loops or of the two lengths would fail the test.
#[test]
fn a_costly_marker_lengthens_only_its_own_column() {
    let (mut bench, _) = bench("flag", &["empty"]);
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
