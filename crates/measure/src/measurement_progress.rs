//! How far a measurement has come, for whoever waits for it.

/// The layouts of a measurement, before another one begins. More may follow where they do not suffice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementProgress {
    /// Layouts that are done.
    pub done: usize,
    /// Layouts foreseen.
    pub total: usize,
    /// Seconds that a layout takes, from a rough cost of the code and an assumed core clock.
    pub layout_s: f64,
}

impl MeasurementProgress {
    /// Seconds that all layouts take.
    pub fn total_seconds(&self) -> f64 {
        self.total as f64 * self.layout_s
    }
}
