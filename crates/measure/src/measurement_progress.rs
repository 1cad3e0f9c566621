//! Progress of a measurement, for display.

/// Progress before another layout begins. More layouts than foreseen may follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementProgress {
    /// Finished layouts.
    pub done: usize,
    /// Foreseen layouts.
    pub total: usize,
    /// Estimated seconds per layout, from a rough cost of the code and an assumed core clock.
    pub layout_s: f64,
}

impl MeasurementProgress {
    /// Estimated seconds of all layouts.
    pub fn total_seconds(&self) -> f64 {
        self.total as f64 * self.layout_s
    }
}
