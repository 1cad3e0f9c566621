//! A progress bar on standard error for long work, with the remaining time.

use crate::output::charset::spell_for_locale;
use crate::output::terminal::escape_controls;
use crate::process::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;

const UNTIMED_TEMPLATE: &str = "{bar:24} {percent:>3} %  {wide_msg}";
const TIMED_TEMPLATE: &str = "{bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}";

/// The progress bar. It draws nothing if standard error isn't a terminal.
pub struct ProgressDisplay {
    bar: ProgressBar,
    /// Work that was done before the bar began.
    before: u64,
    /// Whether the remaining time is known.
    timed: Cell<bool>,
}

impl ProgressDisplay {
    /// Creates a bar for work that is partly done.
    pub fn new(done: u64, total: u64) -> ProgressDisplay {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        bar.set_style(bar_style(UNTIMED_TEMPLATE));
        bar.set_length(total);
        bar.set_position(done);
        bar.reset_eta();
        interrupt::set_progress_drawn(!bar.is_hidden());
        ProgressDisplay { bar, before: done, timed: Cell::new(false) }
    }

    /// Shows how much work is done.
    pub fn show(&self, done: u64, total: u64, message: String) {
        self.bar.set_message(escape_controls(&message).replace('\n', " "));
        self.bar.set_length(total);
        self.bar.set_position(done);
        // The remaining time is unknown before the first progress, and after a restart.
        let timed = done > self.before;
        if self.timed.replace(timed) != timed {
            self.bar.set_style(bar_style(if timed { TIMED_TEMPLATE } else { UNTIMED_TEMPLATE }));
        }
        if !timed {
            self.bar.reset_eta();
        }
    }

    /// Hides the bar while something is printed.
    pub fn suspend_bar<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the bar.
    fn clear_bar(&self) {
        self.bar.finish_and_clear();
        interrupt::set_progress_drawn(false);
    }
}

/// The bar's style: block characters if the locale has them.
fn bar_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the templates are constants");
    if spell_for_locale("±") == "±" { style } else { style.progress_chars("#-") }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.clear_bar();
    }
}
