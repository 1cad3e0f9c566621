//! Counters of events in a program's own threads.
#![cfg(all(feature = "std", target_os = "linux"))]

use cyclescope_clock::{CountedEvent, CounterError, CounterReading, EventCounters, read_cpu_number};

const DUMMY: CountedEvent = CountedEvent { unit: 1, config: 9 };

#[test]
fn each_thread_counts_its_own_events() {
    let count_thread = || {
        let counters = EventCounters::open([CountedEvent::PAGE_FAULTS, DUMMY, CountedEvent::TASK_CLOCK])?;
        let before = counters.read()?;
        let mut pages = std::hint::black_box(vec![0u8; 32 << 20]);
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&pages);
        Ok::<_, CounterError>((counters.reads_by_rdpmc(), counters.read()?.since(&before).counts))
    };
    let idle = match EventCounters::open([DUMMY]) {
        Ok(dummy) => dummy,
        Err(error) => return cyclescope_skipped::report_skipped(error),
    };
    let before = idle.read().unwrap();
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(count_thread)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    for (by_rdpmc, [faults, dummies, time]) in counts {
        // Events of the kernel are on no hardware counter.
        assert!(!by_rdpmc && faults > 0 && dummies == 0 && time > 0, "{by_rdpmc} {faults} {dummies} {time}");
    }
    assert_eq!(idle.read().unwrap().since(&before).counts, [0]);
}

#[test]
fn a_pair_across_two_cpus_is_noticed() {
    let reading = |count, cpu| CounterReading { counts: [count], cpu: Some(cpu) };
    let moved = reading(7, 1).since(&reading(u64::MAX, 0));
    assert_eq!((moved.counts, moved.has_moved), ([8], true));
    assert!(!reading(2, 1).since(&reading(1, 1)).has_moved);
    // The thread may move between the two.
    let kernels_number = || {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("proc is mounted");
        let fields = stat.rsplit(')').next().expect("a line");
        // Field 39, `processor`, of which the name is the second (proc_pid_stat(5)).
        fields.split_whitespace().nth(36).and_then(|field| field.parse::<u32>().ok())
    };
    assert!((0..100).any(|_| read_cpu_number().is_none_or(|cpu| Some(cpu) == kernels_number())));
}

#[test]
fn an_event_that_is_not_there_is_an_error() {
    let unknown = CountedEvent { unit: 1, config: 1 << 20 };
    let refused = EventCounters::open([DUMMY, unknown]).map(drop);
    assert!(matches!(refused, Err(CounterError::NoCounter | CounterError::Forbidden)), "{refused:?}");
}
