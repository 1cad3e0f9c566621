//! Measures for how long a thread ran, compared with elapsed time.

#[cfg(target_os = "linux")]
pub(crate) use linux::Mark;

#[cfg(not(target_os = "linux"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark;

#[cfg(not(target_os = "linux"))]
impl Mark {
    pub(crate) fn before() -> Mark {
        Mark
    }

    pub(crate) fn behind() -> Mark {
        Mark
    }

    /// Unknown on this system, so all of it.
    pub(crate) fn share_to(self, _: Mark) -> f64 {
        1.0
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::pair::Pair;
    use crate::pairs::ClockGettime;
    use std::ffi::{c_int, c_long};

    /// Least nanoseconds for which another thread takes the CPU, and the share by which the
    /// system's two clocks may differ. Successive readings of both differed by up to 1.8 µs on a
    /// virtual machine (Zen 4).
    const AWAY: f64 = 2_000.0;
    const DIFFER: f64 = 1e-4;
    /// Linux, include/uapi/linux/time.h.
    const CLOCK_THREAD_CPUTIME_ID: c_int = 3;

    #[repr(C)]
    struct Timespec {
        seconds: c_long,
        nanoseconds: c_long,
    }

    /// Linux, include/uapi/linux/resource.h: two times, and fourteen numbers. The last two count
    /// switches to other threads.
    const RUSAGE_THREAD: c_int = 1;

    #[repr(C)]
    #[derive(Default)]
    struct Usage {
        times: [c_long; 4],
        numbers: [c_long; 12],
        waited: c_long,
        preempted: c_long,
    }

    unsafe extern "C" {
        fn clock_gettime(clock: c_int, now: *mut Timespec) -> c_int;
        fn getrusage(who: c_int, usage: *mut Usage) -> c_int;
    }

    /// Both clocks in nanoseconds, and the number of switches to another thread.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Mark {
        wall: u64,
        ran: u64,
        switches: c_long,
    }

    impl Mark {
        /// Takes a mark before the measured code. Another thread may run during a system call. So
        /// the elapsed time is read after the system calls here, and before them at the end.
        /// Otherwise that thread's time would lie between the marks, but outside the measured code.
        pub(crate) fn before() -> Mark {
            let switches = switches();
            let ran = ran();
            Mark { switches, ran, wall: ClockGettime::start() }
        }

        /// Takes a mark after the measured code.
        pub(crate) fn behind() -> Mark {
            let wall = ClockGettime::end();
            let ran = ran();
            Mark { wall, ran, switches: switches() }
        }

        /// Share of the time up to a later mark during which the thread ran. All of it if no other
        /// thread ran, whatever the clocks say. Without this rule and the order of calls above, 150
        /// cycles under background load read 117 and 129 (Zen 4, virtual machine).
        pub(crate) fn share_to(self, later: Mark) -> f64 {
            let wall = later.wall.saturating_sub(self.wall) as f64;
            let ran = later.ran.saturating_sub(self.ran) as f64;
            let away = wall - ran;
            let switched = later.switches != self.switches;
            if switched && ran > 0.0 && away > AWAY + DIFFER * wall { ran / wall } else { 1.0 }
        }
    }

    /// Nanoseconds during which this thread ran.
    fn ran() -> u64 {
        let mut ran = Timespec { seconds: 0, nanoseconds: 0 };
        // SAFETY: the structure belongs to the call. If the call fails, the thread never seems to
        // run, and all time counts.
        unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut ran) };
        ran.seconds as u64 * 1_000_000_000 + ran.nanoseconds as u64
    }

    /// Number of times that this thread gave its CPU to another one.
    fn switches() -> c_long {
        let mut usage = Usage::default();
        // SAFETY: the structure belongs to the call and has the size that Linux writes. If the call
        // fails, there was no switch.
        unsafe { getrusage(RUSAGE_THREAD, &mut usage) };
        usage.waited.wrapping_add(usage.preempted)
    }

    #[cfg(test)]
    mod tests {
        use super::Mark;

        #[test]
        fn a_sleeping_thread_is_away_and_a_working_one_is_not() {
            let mark = |wall, ran| Mark { wall, ran, switches: (wall / 100_000) as i64 };
            assert_eq!(mark(0, 0).share_to(mark(1_000_000, 250_000)), 0.25);
            assert_eq!(mark(0, 0).share_to(mark(1_000_000, 998_500)), 1.0);
            assert_eq!(mark(0, 0).share_to(mark(1_000_000_000, 999_950_000)), 1.0);
            // No other thread ran, and one clock does not advance.
            assert_eq!(mark(0, 0).share_to(Mark { switches: 0, ..mark(1_000_000, 250_000) }), 1.0);
            assert_eq!(mark(0, 0).share_to(mark(1_000_000, 0)), 1.0);
            assert_eq!(mark(5, 5).share_to(mark(0, 0)), 1.0);
            let before = Mark::before();
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(before.share_to(Mark::behind()) < 0.5);
        }
    }
}
