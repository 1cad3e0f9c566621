//! A bar on standard error while something takes long, with the time that is left.

use crate::charset::spelt;
use crate::interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar; it draws nothing where standard error is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar of work of which a part was done before.
    pub fn new(done: u64, total: u64) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}");
        let style = style.expect("the template is a constant");
        // Blocks are drawn where the locale has them.
        let blocks = spelt("±") == "±";
        bar.set_style(if blocks { style } else { style.progress_chars("#-") });
        bar.set_length(total);
        bar.set_position(done);
        bar.reset_eta();
        interrupt::drawing(!bar.is_hidden());
        Progress(bar)
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
    fn finish(&self) {
        self.0.finish_and_clear();
        interrupt::drawing(false);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
