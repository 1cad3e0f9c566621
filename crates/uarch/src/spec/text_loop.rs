//! Programs of instructions that are repeated, as text.

use super::data_moves::loop_in_pages;
use super::program_family::{StepLoop, assemble};
use cyclescope_code::program::memory::PAGE_BYTES;

/// Times that an iteration has the text.
const COPIES_PER_ITERATION: usize = 32;
/// Pages to whose begin R14 points.
const PAGES: u64 = 18;

/// Iterations of the shorter call of a program whose steps take some hundred cycles: an undisturbed call has to be short.
pub(crate) const ITERATIONS_SLOW: u64 = 8;
/// The place of the stack in them: at the end of the last one.
const STACK: u64 = PAGES * PAGE_BYTES;

/// A loop over a text. R12 is zero, RSP points to the end of the pages, and the text before it runs once, untimed.
pub(crate) fn repeat_text(before: &str, text: &str) -> StepLoop {
    let init = assemble(&format!("xor r12d, r12d; lea rsp, [r14 + {STACK}]; {before}"));
    StepLoop { init, ..loop_in_pages(assemble(text).repeat(COPIES_PER_ITERATION), COPIES_PER_ITERATION, PAGES) }
}

/// A program of a text that is repeated, or one less another one, its control.
macro_rules! variant {
    ($text:expr) => {
        variant!("", $text)
    };
    ($text:expr, less $control:expr) => {
        variant!("", $text, less $control)
    };
    ($before:expr, $text:expr) => {
        ProgramVariant::new($text, |_| repeat_text($before, $text))
    };
    ($before:expr, $text:expr, less $control:expr) => {
        ProgramVariant::with_control(
            concat!($text, ", less ", $control),
            |_| repeat_text($before, $text),
            |_| repeat_text($before, $control),
        )
    };
}

pub(crate) use variant;
