//! A measured quantity, in the form for records.

use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use serde::{Deserialize, Serialize};

/// A measured quantity with its interval. A part that is unknown or infinite is null.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// The value; null if it was refused.
    pub value: Option<f64>,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// The unit: `core_cycles`, `tsc_ticks` or `ns`.
    pub unit: Unit,
}

impl Quantity {
    /// A quantity with a known value.
    pub fn new(interval: Interval, unit: Unit) -> Quantity {
        let finite = |value: f64| value.is_finite().then_some(value);
        Quantity { value: finite(interval.value), low: finite(interval.low), high: finite(interval.high), unit }
    }

    /// A quantity that cannot be negative. An interval that reaches below zero is cut there, and is
    /// as wide above the value as it was below.
    pub fn at_least_zero(self) -> Quantity {
        let (Some(value), Some(low), Some(high)) = (self.value, self.low, self.high) else { return self };
        if low >= 0.0 {
            return self;
        }
        let high = if value < 0.0 { high.max(-low) } else { high };
        Quantity { value: Some(value.max(0.0)), low: Some(0.0), high: Some(high), ..self }
    }

    /// The quantity of one of this number of equal parts.
    pub fn divide(self, parts: f64) -> Quantity {
        let part = |whole: Option<f64>| whole.map(|whole| whole / parts);
        Quantity { value: part(self.value), low: part(self.low), high: part(self.high), unit: self.unit }
    }

    /// A quantity that was refused or does not apply.
    pub fn refused(unit: Unit) -> Quantity {
        Quantity { value: None, low: None, high: None, unit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinities_become_null() {
        let wide = Interval { value: 1.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let json = serde_json::to_string(&Quantity::new(wide, Unit::CoreCycles)).unwrap();
        assert_eq!(json, r#"{"value":1.0,"low":null,"high":null,"unit":"core_cycles"}"#);
    }
}
