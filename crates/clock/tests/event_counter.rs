//! Counters of events in a program's own threads.
#![cfg(all(feature = "std", target_os = "linux"))]

use cyclescope_clock::{CounterReading, EventCounter, read_cpu_number};

#[test]
fn each_thread_counts_its_own_events() {
    let count_thread = || {
        let faults = EventCounter::open(EventCounter::SOFTWARE, 2)?;
        let before = faults.read()?;
        let mut pages = std::hint::black_box(vec![0u8; 32 << 20]);
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&pages);
        Ok::<_, std::io::Error>((faults.reads_by_rdpmc(), faults.read()?.since(before).count))
    };
    let idle = match EventCounter::open(EventCounter::SOFTWARE, 9) {
        Ok(dummy) => dummy,
        Err(error) => return cyclescope_skipped::report_skipped(error),
    };
    let before = idle.read().unwrap();
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(count_thread)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    // Events of the kernel are on no hardware counter.
    assert!(counts.iter().all(|(by_rdpmc, count)| !by_rdpmc && *count > 0), "{counts:?}");
    assert_eq!(idle.read().unwrap().since(before).count, 0);
}

#[test]
fn a_pair_across_two_cpus_is_noticed() {
    let reading = |count, cpu| CounterReading { count, cpu: Some(cpu) };
    let moved = reading(7, 1).since(reading(u64::MAX, 0));
    assert_eq!((moved.count, moved.has_moved), (8, true));
    assert!(!reading(2, 1).since(reading(1, 1)).has_moved);
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
    assert!(EventCounter::open(EventCounter::SOFTWARE, 1 << 20).is_err());
}
