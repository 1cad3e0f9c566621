//! Loggers for the crate `log`.

use super::listener_world::{ListenerWorld, abort_worker, count_hit};
use super::log_memory::LogMemory;
use crate::source::design::log::STATES;
use log::{LevelFilter, Log, Metadata, Record};
use std::io::Write;
use std::sync::Mutex;

/// The loggers of worlds 1, 2, …
static LOGGERS: [&dyn Log; 3] = [&EmptyLogger, &SINK, &CountingLogger];

static SINK: MemoryLogger = MemoryLogger(Mutex::new(LogMemory::new()));

static WORLD: ListenerWorld = ListenerWorld::new_unset();

/// Puts `log` into a state.
///
/// # Safety
///
/// Only in a worker, whose only thread this is.
pub(crate) unsafe extern "C" fn switch(state: u32) {
    let Some(state) = STATES.get(state as usize) else { abort_worker() };
    WORLD.enter_world(state.world, || match state.world.checked_sub(1) {
        Some(logger) => log::set_logger(LOGGERS[logger as usize]).is_ok(),
        None => true,
    });
    log::set_max_level(if state.passes { LevelFilter::Trace } else { LevelFilter::Off });
}

struct EmptyLogger;

impl Log for EmptyLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &Record<'_>) {}

    fn flush(&self) {}
}

struct CountingLogger;

impl Log for CountingLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &Record<'_>) {
        count_hit();
    }

    fn flush(&self) {}
}

/// Formats like `env_logger`, but without its timestamp.
struct MemoryLogger(Mutex<LogMemory>);

impl Log for MemoryLogger {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let Ok(mut memory) = self.0.lock() else { return };
        let _ = writeln!(memory, "[{} {}] {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sink_writes_level_target_and_message() {
        let sink = MemoryLogger(Mutex::new(LogMemory::new()));
        let log_message = |message: std::fmt::Arguments<'_>| {
            let mut record = Record::builder();
            sink.log(&record.level(log::Level::Debug).target("cyclescope::marker").args(message).build());
        };
        log_message(format_args!("{} {:p}", 1, std::ptr::null::<u8>()));
        log_message(format_args!("{} {:p}", 2, std::ptr::null::<u8>()));
        let expected = "[DEBUG cyclescope::marker] 1 0x0\n[DEBUG cyclescope::marker] 2 0x0\n";
        assert_eq!(sink.0.lock().unwrap().as_text(), expected);
    }
}
