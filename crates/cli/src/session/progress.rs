//! A bar on standard error while something takes long, with the time that is left.

use crate::output::charset::spell_for_locale;
use crate::output::terminal::escape_controls;
use crate::process::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;

const UNTIMED_TEMPLATE: &str = "{bar:24} {percent:>3} %  {wide_msg}";
const TIMED_TEMPLATE: &str = "{bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}";

/// The bar; it draws nothing where standard error is no terminal.
pub struct ProgressDisplay {
    bar: ProgressBar,
    /// The work that was done before.
    before: u64,
    /// Whether the time that is left is known.
    timed: Cell<bool>,
}

impl ProgressDisplay {
    /// A bar of work of which a part was done before.
    pub fn new(done: u64, total: u64) -> ProgressDisplay {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        bar.set_style(bar_style(UNTIMED_TEMPLATE));
        bar.set_length(total);
        bar.set_position(done);
        bar.reset_eta();
        interrupt::set_progress_drawn(!bar.is_hidden());
        ProgressDisplay { bar, before: done, timed: Cell::new(false) }
    }

    /// Shows the work that is done.
    pub fn show(&self, done: u64, total: u64, message: String) {
        self.bar.set_message(escape_controls(&message).replace('\n', " "));
        self.bar.set_length(total);
        self.bar.set_position(done);
        // Before anything is done, and where the work begins anew, nothing is known of the time.
        let timed = done > self.before;
        if self.timed.replace(timed) != timed {
            self.bar.set_style(bar_style(if timed { TIMED_TEMPLATE } else { UNTIMED_TEMPLATE }));
        }
        if !timed {
            self.bar.reset_eta();
        }
    }

    /// Removes the bar while something is printed.
    pub fn suspend_bar<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Ends it.
    fn clear_bar(&self) {
        self.bar.finish_and_clear();
        interrupt::set_progress_drawn(false);
    }
}

/// How the bar looks. Blocks are drawn where the locale has them.
fn bar_style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the templates are constants");
    if spell_for_locale("±") == "±" { style } else { style.progress_chars("#-") }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.clear_bar();
    }
}
