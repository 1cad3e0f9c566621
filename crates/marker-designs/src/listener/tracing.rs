//! Subscribers for the crate `tracing`.
//!
//! Making a subscriber allocates memory. `tracing` asks all subscribers that exist in a process for
//! their interest, not only the installed one. So the calling process makes those of all worlds,
//! and a worker drops all but its own.

use super::listener_world::{ListenerWorld, abort_worker, count_hit};
use super::log_memory::LogMemory;
use crate::source::design::tracing::STATES;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tracing::callsite::{Callsite, Identifier, rebuild_interest_cache};
use tracing::field::{Field, FieldSet, Value, Visit};
use tracing::level_filters::LevelFilter;
use tracing::metadata::Kind;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;

/// The subscribers of worlds 1, 2, …
static SUBSCRIBERS: OnceLock<[Mutex<Option<Dispatch>>; 5]> = OnceLock::new();

static WORLD: ListenerWorld = ListenerWorld::new_unset();

/// Whether the maximum level lets markers reach the counting subscriber.
static PASSES: AtomicBool = AtomicBool::new(true);

/// Makes the subscribers, and the sink's thread-local data for this thread.
pub(super) fn prepare_subscribers() {
    SUBSCRIBERS.get_or_init(|| {
        let empty = || Dispatch::new(EventSubscriber::<EmptyHandler>(PhantomData));
        let sink = Arc::new(formatting_subscriber(new_memory()));
        // Dropping the sink would free memory, which may require a system call. So it stays.
        std::mem::forget(sink.clone());
        [
            Dispatch::new(EventSubscriber::<FilteredHandler>(PhantomData)),
            empty(),
            Dispatch::new(EventSubscriber::<FieldsHandler>(PhantomData)),
            Dispatch::new(sink),
            Dispatch::new(EventSubscriber::<CountingHandler>(PhantomData)),
        ]
        .map(|dispatch| Mutex::new(Some(dispatch)))
    });
    // Longer than the message of any marker.
    send_event(&formatting_subscriber(new_memory()), &"cyclescope".repeat(20));
}

/// Puts `tracing` into a state.
///
/// # Safety
///
/// Only in a worker, whose only thread this is.
pub(crate) unsafe extern "C" fn switch(state: u32) {
    let Some(state) = STATES.get(state as usize) else { abort_worker() };
    WORLD.enter_world(state.world, || install_subscriber(state.world));
    if PASSES.swap(state.passes, Ordering::Relaxed) != state.passes {
        rebuild_interest_cache();
    }
}

/// Whether the world's subscriber is the only one now.
fn install_subscriber(world: u32) -> bool {
    let Some(subscribers) = SUBSCRIBERS.get() else { return false };
    let mut installed = world == 0;
    for (number, subscriber) in (1..).zip(subscribers) {
        let Some(subscriber) = subscriber.lock().ok().and_then(|mut slot| slot.take()) else { return false };
        if number == world {
            installed = tracing::dispatcher::set_global_default(subscriber).is_ok();
        }
    }
    rebuild_interest_cache();
    installed
}

/// The formatting subscriber of `tracing-subscriber`. It records no time: the sandbox would permit
/// it, but the clock's cost is not part of this library.
fn formatting_subscriber(writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) -> impl Subscriber + Send + Sync {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::TRACE)
        .without_time()
        .with_ansi(false)
        .with_writer(writer)
        .finish()
}

fn new_memory() -> Mutex<LogMemory> {
    Mutex::new(LogMemory::new())
}

/// Sends an event like a marker's to a subscriber, but with another pointer.
fn send_event(subscriber: &impl Subscriber, pointer: &dyn Value) {
    let fields = METADATA.fields();
    let field = |name| fields.field(name).expect("one of its fields");
    let values = [(&field("number"), Some(&1 as &dyn Value)), (&field("pointer"), Some(pointer))];
    subscriber.event(&Event::new(&METADATA, &fields.value_set(&values)));
}

/// Handles the events of a subscriber.
trait EventHandler: 'static {
    fn interest() -> Interest {
        Interest::always()
    }

    fn max_level() -> LevelFilter {
        LevelFilter::TRACE
    }

    fn handle_event(event: &Event<'_>);
}

struct EventSubscriber<H>(PhantomData<fn(H)>);

impl<H: EventHandler> Subscriber for EventSubscriber<H> {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        H::interest()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(H::max_level())
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        !H::interest().is_never()
    }

    fn event(&self, event: &Event<'_>) {
        H::handle_event(event);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct FilteredHandler;

impl EventHandler for FilteredHandler {
    fn interest() -> Interest {
        Interest::never()
    }

    /// Never called. The hit count proves it.
    fn handle_event(_: &Event<'_>) {
        count_hit();
    }
}

struct EmptyHandler;

impl EventHandler for EmptyHandler {
    fn handle_event(_: &Event<'_>) {}
}

struct CountingHandler;

impl EventHandler for CountingHandler {
    fn max_level() -> LevelFilter {
        if PASSES.load(Ordering::Relaxed) { LevelFilter::TRACE } else { LevelFilter::OFF }
    }

    fn handle_event(_: &Event<'_>) {
        count_hit();
    }
}

/// Visits the fields' values and formats none.
struct FieldsHandler;

impl EventHandler for FieldsHandler {
    fn handle_event(event: &Event<'_>) {
        event.record(&mut FieldsHandler);
    }
}

impl Visit for FieldsHandler {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        std::hint::black_box(value);
    }

    fn record_i64(&mut self, _: &Field, value: i64) {
        std::hint::black_box(value);
    }
}

/// Source of the event that prepares the sink.
struct PreparationCallsite;

static METADATA: Metadata<'static> = Metadata::new(
    "preparation",
    "cyclescope::marker",
    Level::DEBUG,
    None,
    None,
    None,
    FieldSet::new(&["number", "pointer"], Identifier(&PreparationCallsite)),
    Kind::EVENT,
);

impl Callsite for PreparationCallsite {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        &METADATA
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tracing::field::debug;

    /// A file that can be read during writing.
    struct Copied(Arc<Mutex<LogMemory>>);

    impl Write for Copied {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_sink_writes_level_target_and_fields() {
        let memory = Arc::new(new_memory());
        let written = memory.clone();
        let sink = formatting_subscriber(move || Copied(memory.clone()));
        send_event(&sink, &debug(std::ptr::null::<u8>()));
        let expected = "DEBUG cyclescope::marker: number=1 pointer=0x0\n";
        assert_eq!(written.lock().unwrap().as_text().trim_start(), expected);
    }
}
