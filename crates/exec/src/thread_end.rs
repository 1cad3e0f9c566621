//! The end of a thread, waited for within a limit.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval at which the end of a thread is checked.
const CHECK_INTERVAL: Duration = Duration::from_micros(500);

/// Joins a thread that ends within this time. Otherwise the thread is left to itself.
pub(super) fn join_within<T>(thread: JoinHandle<T>, time: Duration) -> Option<thread::Result<T>> {
    let until = Instant::now() + time;
    while !thread.is_finished() {
        if Instant::now() >= until {
            return None;
        }
        cyclescope_platform::time::sleep(CHECK_INTERVAL);
    }
    Some(thread.join())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_does_not_end_is_left_to_itself() {
        let (end, ends) = channel::<()>();
        let endless = thread::spawn(move || ends.recv());
        assert!(join_within(endless, Duration::from_millis(5)).is_none());
        drop(end);
        let ended = join_within(thread::spawn(|| 7), Duration::from_secs(60));
        assert_eq!(ended.expect("it ends").expect("it does not panic"), 7);
    }
}
