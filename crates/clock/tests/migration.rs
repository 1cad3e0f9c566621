//! A pair of readings across two CPUs is noticed. The tests move their thread in the middle of one.
#![cfg(all(feature = "std", target_os = "linux"))]

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use cyclescope_clock::{Caveat, CpuPair, CpuReading, CycleClock, Region, pairs, report};

/// System calls (Linux, `syscall_64.tbl`).
const SET_AFFINITY: usize = 203;
const GET_AFFINITY: usize = 204;
/// Words of a set of CPUs.
const WORDS: usize = 16;

type CpuSet = [u64; WORDS];

fn call_with_set(call: usize, set: &mut CpuSet) -> isize {
    let answer: isize;
    // SAFETY: the call reads or writes a set of this length. The kernel changes RCX and R11.
    unsafe {
        asm!("syscall", inlateout("rax") call as isize => answer, in("rdi") 0, in("rsi") size_of::<CpuSet>(),
            in("rdx") set.as_mut_ptr(), lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    answer
}

fn pin(cpu: usize) {
    let mut set = [0; WORDS];
    set[cpu / 64] = 1 << (cpu % 64);
    assert_eq!(call_with_set(SET_AFFINITY, &mut set), 0);
}

/// Two CPUs that this thread may use.
fn two_cpus() -> Option<[usize; 2]> {
    let mut set = [0; WORDS];
    assert!(call_with_set(GET_AFFINITY, &mut set) > 0);
    let mut allowed = (0..64 * WORDS).filter(|cpu| set[cpu / 64] >> (cpu % 64) & 1 == 1);
    Some([allowed.next()?, allowed.next()?])
}

fn has_rdpid() -> bool {
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ecx >> 22 & 1 == 1
}

/// Takes a pair on one CPU, and one whose end is on another.
fn take_pairs<P: CpuPair>([first, second]: [usize; 2]) {
    if let Err(missing) = P::check() {
        return cyclescope_skipped::report_left_out(format_args!("{}: {missing}", P::NAME));
    }
    pin(first);
    let started = P::start_on_cpu();
    let stayed = P::end_on_cpu();
    pin(second);
    let moved = P::end_on_cpu();
    // Linux writes the number into the lower bits.
    assert_eq!(
        [started, stayed, moved].map(|reading: CpuReading| reading.cpu as usize & 0xfff),
        [first, first, second]
    );
    assert!(stayed.since(started).is_some_and(|ticks| ticks < 1 << 40), "{}", P::NAME);
    assert_eq!(moved.since(started), None, "{}", P::NAME);
}

#[test]
fn a_pair_across_two_cpus_has_no_difference() {
    let Some(cpus) = two_cpus() else { return cyclescope_skipped::report_skipped("there is one CPU") };
    take_pairs::<pairs::RdtscpLfence>(cpus);
    take_pairs::<pairs::Rdtscp>(cpus);
    take_pairs::<pairs::MfenceRdtscpLfence>(cpus);
    take_pairs::<pairs::RdtscpCpuid>(cpus);
}

#[test]
fn executions_that_move_to_another_cpu_are_counted() {
    static MOVED: Region = Region::new("moved");
    static STAYED: Region = Region::new("stayed");
    let Some([first, second]) = two_cpus() else { return cyclescope_skipped::report_skipped("there is one CPU") };
    if !has_rdpid() {
        return cyclescope_skipped::report_skipped("the processor has no RDPID");
    }
    for _ in 0..3 {
        pin(first);
        let _timed = MOVED.begin();
        pin(second);
    }
    for _ in 0..200 {
        STAYED.begin().end();
    }
    let clock = CycleClock::new();
    let begun = clock.begin();
    let stayed = clock.end(begun);
    let begun = clock.begin();
    pin(first);
    assert!(!stayed.migrated && clock.end(begun).migrated);
    let report = report();
    let row = |name: &str| report.rows.iter().find(|row| row.name == name).expect("it was executed");
    assert_eq!((row("moved").migrated, row("stayed").migrated), (3, 0));
    assert!(row("moved").caveats.contains(&Caveat::Migrated(3)), "{report}");
    assert!(report.to_string().contains("3 executions ended on another CPU"), "{report}");
}
