//! A bar on standard error while something takes long, with the time that is left.

use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar; it draws nothing where standard error is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar at its start.
    pub fn new(message: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}");
        bar.set_style(style.expect("the template is a constant"));
        bar.set_message(message.to_string());
        interrupt::drawing(!bar.is_hidden());
        Progress(bar)
    }

    /// Work that was done before, which takes no time now.
    pub fn begin(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.reset_eta();
    }

    /// Shows the work that is done.
    pub fn tell(&self, done: u64, total: u64, message: String) {
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.set_message(message);
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
