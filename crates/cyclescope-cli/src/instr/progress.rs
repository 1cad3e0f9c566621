//! A bar on standard error while a survey runs, with the time that is left.

use crate::interrupt;
use cyclescope::study::instr::survey::Progress as Standing;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar; it draws nothing where standard error is no terminal.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar at its start.
    pub fn new() -> Progress {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{bar:24} {percent:>3} %  {eta:>4} left  {wide_msg}");
        bar.set_style(style.expect("the template is a constant"));
        bar.set_message("links");
        interrupt::drawing(!bar.is_hidden());
        Progress(bar)
    }

    /// So many measurements were made before, which take no time now.
    pub fn begin(&self, known: usize, total: usize) {
        self.0.set_length(total as u64);
        self.0.set_position(known as u64);
        self.0.reset_eta();
    }

    /// So much is done, with so many forms complete.
    pub fn tell(&self, standing: Standing, complete: usize, forms: usize) {
        self.0.set_position(standing.done as u64);
        let passes = standing.total / forms.max(1);
        let times = if passes > 1 { format!(", each {passes} times") } else { String::new() };
        self.0.set_message(format!("{complete} of {forms} forms complete{times}"));
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
