//! Checks the ranges of a plan's numbers: a plan read from a file may contain any number.

use super::Plan;

/// Largest number of iterations.
const ITERATIONS_MOST: u64 = 1 << 40;
/// Largest number of bytes of code. Bodies have to fit an arena of some megabytes.
pub const CODE_MOST: usize = 64 << 20;
/// Most rounds of a layout. The command line accepts up to 100 000.
const ROUNDS_MOST: u32 = 1 << 17;
/// Most layouts.
const LAYOUTS_MOST: usize = 1 << 14;
/// Seconds.
const A_YEAR: u64 = 366 * 86_400;

impl Plan {
    /// Returns the first field that is out of range.
    pub fn find_unsound_field(&self) -> Option<&'static str> {
        let positive = |value: f64| value > 0.0 && value < 1e9;
        let checks = [
            ("confidence", (1e-6..1.0).contains(&self.confidence)),
            ("loop_count", self.loop_count.is_none_or(|count| (1..=ITERATIONS_MOST).contains(&count))),
            ("unit", self.unit.is_none_or(|copies| (1..=CODE_MOST).contains(&copies))),
            ("imul_latency", self.imul_latency.is_none_or(positive)),
            ("step", positive(self.step)),
            (
                "adders",
                self.adders
                    .is_none_or(|adders| (1..=64).contains(&adders.count) && (0.0..=1.0).contains(&adders.least_share)),
            ),
            ("memory", self.memory.as_ref().is_none_or(|memory| memory.check().is_ok())),
            ("rounds", (1..=ROUNDS_MOST).contains(&self.rounds)),
            ("warm_up", self.warm_up.is_none_or(|rounds| rounds <= ROUNDS_MOST)),
            ("rounds_least", (1..=ROUNDS_MOST).contains(&self.rounds_least)),
            ("layouts", (1..=LAYOUTS_MOST).contains(&self.layouts)),
            ("layouts_most", self.layouts_most <= LAYOUTS_MOST),
            ("budget", self.budget.as_secs() < A_YEAR),
        ];
        checks.into_iter().find(|(_, sound)| !sound).map(|(name, _)| name)
    }
}
