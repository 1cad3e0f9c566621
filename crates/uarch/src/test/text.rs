//! Programs of instructions that are repeated, as text.

use super::moves::in_pages;
use super::walk::{Steps, code};
use cyclescope_code::program::memory::PAGE;

/// Times that an iteration has the text.
const TIMES: usize = 32;
/// Pages to whose begin R14 points.
const PAGES: u64 = 18;

/// Iterations of the shorter call of a program whose steps take some hundred cycles: an undisturbed call has to be short.
pub(crate) const ITERATIONS_SLOW: u64 = 8;
/// The place of the stack in them: at the end of the last one.
const STACK: u64 = PAGES * PAGE;

/// A loop over a text. R12 is zero, RSP points to the end of the pages, and the text before it runs once, untimed.
pub(crate) fn repeated(before: &str, text: &str) -> Steps {
    let init = code(&format!("xor r12d, r12d; lea rsp, [r14 + {STACK}]; {before}"));
    Steps { init, ..in_pages(code(text).repeat(TIMES), TIMES, PAGES) }
}

/// A program of a text that is repeated, or one less another one, its control.
macro_rules! way {
    ($text:expr) => {
        way!("", $text)
    };
    ($text:expr, less $control:expr) => {
        way!("", $text, less $control)
    };
    ($before:expr, $text:expr) => {
        Way::plain($text, |_| repeated($before, $text))
    };
    ($before:expr, $text:expr, less $control:expr) => {
        Way::less(
            concat!($text, ", less ", $control),
            |_| repeated($before, $text),
            |_| repeated($before, $control),
        )
    };
}

pub(crate) use way;
