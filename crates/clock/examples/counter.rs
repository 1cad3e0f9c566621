//! Counts instructions of a loop, or nanoseconds where this machine shows no counters.

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    use cyclescope_clock::EventCounter;

    let (what, counter) = match EventCounter::open(EventCounter::HARDWARE, 1) {
        Ok(counter) => ("instructions", counter),
        Err(error) => {
            println!("no instructions: {error}");
            ("ns of the thread", EventCounter::open(EventCounter::SOFTWARE, 1)?)
        }
    };
    let before = counter.read()?;
    let sum = (0..100_000u64).fold(0, |sum, number| cyclescope_clock::hide(sum ^ number));
    cyclescope_clock::keep(sum);
    let counted = counter.read()?.since(before);
    let moved = if counted.has_moved { ", on two CPUs" } else { "" };
    println!("{} {what}{moved}", counted.count);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("perf events are Linux's");
}
