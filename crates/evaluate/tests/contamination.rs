//! Contamination of readings by neighbouring code on this machine, for timing methods with and
//! without their fences.
//!
//! The tests have a separate file and run serially, because activity on a sibling changes the
//! results.

use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::{Clock, ClockStep};
use cyclescope_core::machine::Machine;
use cyclescope_core::random::Random;
use cyclescope_evaluate::TestedClock;
use cyclescope_evaluate::contamination::{
    Contamination, ContaminationFault, FAULTS, PromiseVerdict, TOLERANCE_CYCLES, measure_contamination,
};
use cyclescope_exec::user::{UserExecutor, UserOptions, user_capabilities};
use cyclescope_measure::resolve_imul_latency;
use cyclescope_run::RunRequest;
use std::arch::asm;
use std::sync::atomic::AtomicU64;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

const LEADING: ContaminationFault = ContaminationFault::LeadingUnfinished;
const EARLY: ContaminationFault = ContaminationFault::BodyStartedEarly;
const UNFINISHED: ContaminationFault = ContaminationFault::BodyUnfinished;
const FOLLOWING: ContaminationFault = ContaminationFault::FollowingInTheWay;
const STORES: ContaminationFault = ContaminationFault::StoresNotDrained;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn named(name: &str) -> Clock {
    *Clock::find_named(name).expect("the clock exists")
}

/// Steps without one fence, which is then missing from the emitted bytes.
fn without(steps: &'static [ClockStep], fence: usize) -> &'static [ClockStep] {
    let mut steps = steps.to_vec();
    let removed = steps.remove(fence);
    assert!(matches!(removed, ClockStep::Lfence | ClockStep::Mfence), "{removed:?} is not a fence");
    Vec::leak(steps)
}

/// Cores on which faults outside the promises were measured.
const TESTED_CORES: &[&str] = &["Golden Cove", "Zen 4", "Zen 5"];

/// Samples of a plain reading. The median counts.
const SAMPLES: usize = 1001;

fn median(sample: impl Fn() -> [u32; 2]) -> [u32; 2] {
    let mut samples: Vec<[u32; 2]> = (0..SAMPLES).map(|_| sample()).collect();
    [0, 1].map(|at| {
        samples.sort_unstable_by_key(|sample| sample[at]);
        samples[SAMPLES / 2][at]
    })
}

/// TSC ticks of a chain of square roots, by an RDTSC directly after it and by one after a fence.
fn chain() -> [u32; 2] {
    let (start, bare, fenced): (u32, u32, u32);
    // SAFETY: only these registers change.
    unsafe {
        asm!(
            "lfence", "rdtsc", "lfence", "mov {start:e}, eax",
            ".rept 16", "sqrtsd {value}, {value}", ".endr",
            "rdtsc", "mov {bare:e}, eax", "lfence", "rdtsc",
            start = out(reg) start,
            bare = out(reg) bare,
            value = inout(xmm_reg) 1.0f64 => _,
            out("eax") fenced,
            out("edx") _,
            options(nostack)
        );
    }
    [bare.wrapping_sub(start), fenced.wrapping_sub(start)]
}

/// TSC ticks of MFENCE after LFENCE, with `LINES` lines of stores before both.
fn drain<const LINES: u32>() -> u32 {
    // No other store may bring the line into a cache.
    #[repr(align(64))]
    struct Line([AtomicU64; 8]);
    static LINE: Line = Line([const { AtomicU64::new(0) }; 8]);
    let (fenced, drained): (u32, u32);
    // SAFETY: the stores are to the line.
    unsafe {
        asm!(
            "mfence", "lfence", ".rept {lines}",
            "movnti [{line}], {line}", "movnti [{line} + 8], {line}", "movnti [{line} + 16], {line}",
            "movnti [{line} + 24], {line}", "movnti [{line} + 32], {line}", "movnti [{line} + 40], {line}",
            "movnti [{line} + 48], {line}", "movnti [{line} + 56], {line}",
            ".endr", "lfence", "rdtsc", "mov {fenced:e}, eax", "mfence", "lfence", "rdtsc",
            lines = const LINES,
            line = in(reg) LINE.0.as_ptr(),
            fenced = out(reg) fenced,
            out("eax") drained,
            out("edx") _,
            options(nostack)
        );
    }
    drained.wrapping_sub(fenced)
}

/// Faults of an unfenced reading on this core, shown by plain readings: RDTSC does not wait for a
/// chain, and LFENCE, which waits for everything else, does not wait for stores. The study must
/// detect them too.
static SHOWN: LazyLock<Vec<ContaminationFault>> = LazyLock::new(|| {
    let [bare, fenced] = median(chain);
    let [none, one] = median(|| [drain::<0>(), drain::<1>()]);
    let early = if 2 * bare < fenced { &[LEADING, UNFINISHED][..] } else { &[] };
    let stores = if one > 2 * none { &[STORES][..] } else { &[] };
    [early, stores].concat()
});

/// Requires that the faults `must` occur, and no others except `may`. Repeats the measurement until
/// each has a verdict, each time for twice as long: background load widens the intervals, and so
/// does a clock of coarse steps. With steps of 26 ticks 0.3 s left half widths of 2 to 4 cycles. A
/// wrong verdict fails at once.
#[track_caller]
fn assert_faults(clock: &Clock, must: &[ContaminationFault], may: &[ContaminationFault]) {
    const ATTEMPTS: u32 = 6;
    const FIRST_TIME: Duration = Duration::from_millis(300);
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let machine = Machine::detect();
    if let Err(refused) = user_capabilities(&machine).require_clock(clock, &machine) {
        cyclescope_skipped::report_skipped(refused);
        return;
    }
    // Faults outside the promises depend on the core. On tested cores they must be detected, on
    // others only those that plain readings show.
    let core = machine.cpu.microarchitecture.known();
    let is_tested = core.is_some_and(|core| TESTED_CORES.contains(&core.name));
    let all = [must, may].concat();
    let shown: Vec<ContaminationFault> = must.iter().copied().filter(|fault| SHOWN.contains(fault)).collect();
    let rest: Vec<ContaminationFault> = all.iter().copied().filter(|fault| !shown.contains(fault)).collect();
    let (must, may) = if is_tested { (must, may) } else { (&shown[..], &rest[..]) };
    if !is_tested {
        let what = "does outside the promises, except for";
        cyclescope_skipped::report_left_out(format_args!("what {} {what} {shown:?}", machine.cpu.name()));
    }
    let step = clock.reading_step(&machine.tsc);
    let adders = machine.cpu.microarchitecture.known().and_then(|core| core.adders());
    let width = adders.map(cyclescope_measure::ruler::least_unshared_width);
    let allowed = rustix::thread::sched_getaffinity(None).expect("the affinity of this thread");
    let cpu = (0..1024).rev().find(|cpu| allowed.is_set(*cpu)).expect("some CPU");
    let mut user = UserExecutor::spawn(&UserOptions { cpu, ..UserOptions::default() }).expect("a worker");
    let plan = RunRequest::default().make_plan(&user_capabilities(&machine), &machine).expect("a timing method works");
    let imul_latency = resolve_imul_latency(&mut user, &plan).expect("the ruler runs");
    let mut open: Vec<ContaminationFault> = FAULTS.into_iter().filter(|fault| !may.contains(fault)).collect();
    let mut last: Vec<Contamination> = Vec::new();
    for attempt in 0..ATTEMPTS {
        let tested = TestedClock {
            clock,
            executor: "user",
            mode: CodeMode::default(),
            ruler: clock,
            step,
            imul_latency,
            width,
            emulated: false,
        };
        let (time, mut random) = (FIRST_TIME * (1 << attempt.min(4)), Random::new(u64::from(attempt)));
        let rows = measure_contamination(&mut user, &tested, time, &mut random).expect("code that ends");
        for row in rows.iter().filter(|row| !may.contains(&row.fault)) {
            let wrong = Some(!must.contains(&row.fault));
            assert_ne!(row.verdict.fault_happens(), wrong, "{:?} {:?}: {row:#?}", clock.start, clock.end);
        }
        open.retain(|fault| rows.iter().any(|row| row.fault == *fault && row.verdict == PromiseVerdict::Unclear));
        if open.is_empty() {
            return;
        }
        last = rows;
    }
    // Fourteen seconds left no interval narrow. That is no verdict either way.
    last.retain(|row| open.contains(&row.fault));
    let disturbed =
        |row: &Contamination| row.shared || row.cost.known().is_none_or(|cost| cost.half_width() > TOLERANCE_CYCLES);
    assert!(last.iter().all(disturbed), "{:?} {:?}: no verdict on {last:#?}", clock.start, clock.end);
    cyclescope_skipped::report_skipped(
        "the background load is too high, or the clock's step too coarse, for a verdict",
    );
}

#[test]
fn tested_cores_have_names_and_show_the_faults_of_plain_readings() {
    let machine = Machine::detect();
    let core = machine.cpu.microarchitecture.known().copied();
    for name in TESTED_CORES {
        // Any core's entry serves to look up another name.
        let named = core.map(|mut core| {
            core.name = name;
            core.adders()
        });
        assert_ne!(named, Some(None), "no core has the name {name}");
    }
    let core = core.map(|core| core.name);
    match core.filter(|core| TESTED_CORES.contains(core)) {
        Some(core) => assert_eq!(*SHOWN, [LEADING, UNFINISHED, STORES], "{core}"),
        None => cyclescope_skipped::report_left_out("this core is not among the tested ones"),
    }
}

#[test]
fn fenced_methods_keep_their_promises() {
    assert_faults(&named("lfence-rdtsc-lfence"), &[STORES], &[]);
    assert_faults(&named("rdtscp-lfence"), &[STORES], &[]);
    assert_faults(&named("mfence-lfence-rdtsc"), &[], &[]);
}

#[test]
fn bare_readings_show_the_faults_of_this_core() {
    // A core may delay what follows RDTSC until it has read, as Golden Cove does. An early start is
    // not required.
    assert_faults(&named("rdtsc"), &[LEADING, UNFINISHED, STORES], &[EARLY, FOLLOWING]);
    assert_faults(&named("rdtscp"), &[EARLY, STORES], &[FOLLOWING]);
}

#[test]
fn each_fence_of_a_start_excludes_its_faults() {
    let clock = named("lfence-rdtsc-lfence");
    // RDTSC within leading code is read at varying points, and the interval of an early start is
    // wide.
    assert_faults(&Clock { start: without(clock.start, 0), ..clock }, &[LEADING, STORES], &[EARLY]);
    assert_faults(&Clock { start: without(clock.start, 2), ..clock }, &[EARLY, STORES], &[]);
}

#[test]
fn each_fence_of_an_end_excludes_its_faults() {
    let clock = named("lfence-rdtsc-lfence");
    assert_faults(&Clock { end: without(clock.end, 0), ..clock }, &[UNFINISHED, STORES], &[]);
    // Interference by following code depends on the core. Golden Cove has none.
    assert_faults(&Clock { end: without(clock.end, 2), ..clock }, &[STORES], &[FOLLOWING]);
    let clock = named("mfence-lfence-rdtsc");
    assert_faults(&Clock { end: without(clock.end, 0), ..clock }, &[STORES], &[]);
}
