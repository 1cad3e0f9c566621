//! Loggers for the crate `log`.

use super::memory::Memory;
use super::world::{World, hit, refuse};
use crate::source::design::log::STATES;
use log::{LevelFilter, Log, Metadata, Record};
use std::io::Write;
use std::sync::Mutex;

/// The loggers of worlds 1, 2, …
static LOGGERS: [&dyn Log; 3] = [&Empty, &SINK, &Count];

static SINK: Sink = Sink(Mutex::new(Memory::new()));

static WORLD: World = World::none();

/// Puts `log` into a state.
///
/// # Safety
///
/// Only in a worker, whose only thread this is.
pub(crate) unsafe extern "C" fn switch(state: u32) {
    let Some(state) = STATES.get(state as usize) else { refuse() };
    WORLD.enter(state.world, || match state.world.checked_sub(1) {
        Some(logger) => log::set_logger(LOGGERS[logger as usize]).is_ok(),
        None => true,
    });
    log::set_max_level(if state.passes { LevelFilter::Trace } else { LevelFilter::Off });
}

struct Empty;

impl Log for Empty {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &Record<'_>) {}

    fn flush(&self) {}
}

struct Count;

impl Log for Count {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &Record<'_>) {
        hit();
    }

    fn flush(&self) {}
}

/// Formats as `env_logger` does without its time.
struct Sink(Mutex<Memory>);

impl Log for Sink {
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
        let sink = Sink(Mutex::new(Memory::new()));
        let tell = |message: std::fmt::Arguments<'_>| {
            let mut record = Record::builder();
            sink.log(&record.level(log::Level::Debug).target("cyclescope::marker").args(message).build());
        };
        tell(format_args!("{} {:p}", 1, std::ptr::null::<u8>()));
        tell(format_args!("{} {:p}", 2, std::ptr::null::<u8>()));
        let expected = "[DEBUG cyclescope::marker] 1 0x0\n[DEBUG cyclescope::marker] 2 0x0\n";
        assert_eq!(sink.0.lock().unwrap().written(), expected);
    }
}
