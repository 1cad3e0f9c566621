//! The program that the kernel module's tests run in their emulated machines, in addition to the
//! `cyclescope` command.
//!
//! ```text
//! cyclescope-guest exact               raw ticks of known code, where instructions are counted
//! cyclescope-guest areas               contents of memory areas
//! cyclescope-guest row COUNT           a series of bad stacks
//! cyclescope-guest runs COUNT OPENS    runs, and devices opened and closed, to find leaks
//! cyclescope-guest fuzz COUNT SEED     random code
//! cyclescope-guest marker-counts       each marker calls its probe when it is on
//! cyclescope-guest marker-bytes        which bytes of each marker's code that changes
//! cyclescope-guest marker-lengths FILE the length of each marker, against another program's count
//! cyclescope-guest marker-study        results of the marker study
//! ```

mod areas;
mod command_result;
mod draw;
mod exact_ticks;
mod fuzz;
mod guarded_memory;
mod marker_study;
mod markers;
mod ring0;

use std::process::ExitCode;

const COMMANDS: &str = "exact|areas|row|runs|fuzz|marker-counts|marker-bytes|marker-lengths|marker-study";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(1);
    let outcome = match words.first().map(String::as_str) {
        Some("exact") => exact_ticks::check_exact_ticks(),
        Some("areas") => areas::check_areas(),
        Some("row") => ring0::check_bad_stacks(number(1)),
        Some("runs") => ring0::run_and_reopen(number(1), number(2)),
        Some("fuzz") => fuzz::fuzz_ring0(number(1), number(2)),
        Some("marker-counts") => markers::check_counts(),
        Some("marker-bytes") => markers::check_bytes(),
        Some("marker-lengths") => markers::check_lengths(words.get(1).map_or("", String::as_str)),
        Some("marker-study") => marker_study::check_marker_study(),
        _ => Err(format!("usage: cyclescope-guest {COMMANDS} ...").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
