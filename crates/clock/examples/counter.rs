//! Counts core cycles and instructions of a loop, or what the kernel counts where this machine shows
//! no counters.

#[cfg(target_os = "linux")]
fn main() -> Result<(), cyclescope_clock::CounterError> {
    use cyclescope_clock::{CountedEvent, EventCounters};

    let (what, counters) = match EventCounters::open([CountedEvent::CYCLES, CountedEvent::INSTRUCTIONS]) {
        Ok(counters) => (["core cycles", "instructions"], counters),
        Err(error) => {
            println!("no core cycles and instructions: {error}");
            let events = [CountedEvent::TASK_CLOCK, CountedEvent::PAGE_FAULTS];
            (["ns of the thread", "page faults"], EventCounters::open(events)?)
        }
    };
    let before = counters.read()?;
    let sum = (0..100_000u64).fold(0, |sum, number| cyclescope_clock::hide(sum ^ number));
    cyclescope_clock::keep(sum);
    let counted = counters.read()?.since(&before);
    let moved = if counted.has_moved { ", on two CPUs" } else { "" };
    for (what, count) in what.iter().zip(counted.counts) {
        println!("{count} {what}{moved}");
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("perf events are Linux's");
}
