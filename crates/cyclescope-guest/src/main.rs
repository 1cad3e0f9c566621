//! What the kernel module's tests run in their emulated machines, beside the `cyclescope` command:
//!
//! ```text
//! cyclescope-guest exact               raw ticks of known code, for machines that count instructions
//! cyclescope-guest row COUNT           bad stacks one after another
//! cyclescope-guest runs COUNT OPENS    runs, and devices opened and closed, for what they leave behind
//! cyclescope-guest fuzz COUNT SEED     random code
//! ```

mod draw;
mod exact;
mod fuzz;
mod memory;
mod ring0;

use std::error::Error;
use std::process::ExitCode;

/// A command's end, and why it failed.
type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    let outcome = match words.first().map(String::as_str) {
        Some("exact") => exact::exact(),
        Some("row") => ring0::row(number(1)),
        Some("runs") => ring0::runs(number(1), number(2)),
        Some("fuzz") => fuzz::fuzz(number(1), number(2)),
        _ => Err("usage: cyclescope-guest exact|row|runs|fuzz NUMBER...".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
