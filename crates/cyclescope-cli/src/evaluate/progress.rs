//! A bar on standard error while an evaluation runs, with the time that is left.

use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Parts of the bar.
const PARTS: u64 = 1000;

/// The bar; it draws nothing where standard error is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar at its start.
    pub fn new() -> Progress {
        let bar = ProgressBar::with_draw_target(Some(PARTS), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}");
        bar.set_style(style.expect("the template is a constant"));
        interrupt::drawing(!bar.is_hidden());
        Progress(bar)
    }

    /// So large a share is done, and this is being done.
    pub fn tell(&self, what: &str, clock: Option<&str>, share: f64) {
        let message = clock.map_or(what.to_string(), |clock| format!("{what}: {clock}"));
        self.0.set_message(message);
        self.0.set_position((share * PARTS as f64) as u64);
    }

    /// Removes the bar while something is printed.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Ends it.
    pub fn finish(&self) {
        self.0.finish_and_clear();
        interrupt::drawing(false);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
