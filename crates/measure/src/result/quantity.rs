//! A measured quantity, in the form for records.

use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use serde::{Deserialize, Serialize};

/// A measured quantity with its interval. A part that is unknown or infinite is null. One that is
/// read from a file has its value in its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenQuantity")]
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

/// A quantity as a file has it.
#[derive(Deserialize)]
struct WrittenQuantity {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    unit: Unit,
}

impl TryFrom<WrittenQuantity> for Quantity {
    type Error = &'static str;

    fn try_from(WrittenQuantity { value, low, high, unit }: WrittenQuantity) -> Result<Quantity, &'static str> {
        Quantity::from_parts([value, low, high], unit)
    }
}

impl Quantity {
    /// A quantity with a known value.
    pub fn new(interval: Interval, unit: Unit) -> Quantity {
        let finite = |value: f64| value.is_finite().then_some(value);
        Quantity { value: finite(interval.value), low: finite(interval.low), high: finite(interval.high), unit }
    }

    /// A quantity of a value and the ends of its interval, in this order.
    ///
    /// # Errors
    ///
    /// If the value is missing or outside the interval.
    pub(super) fn from_parts([value, low, high]: [Option<f64>; 3], unit: Unit) -> Result<Quantity, &'static str> {
        match value {
            None if low.is_some() || high.is_some() => Err("an interval has no value"),
            Some(value) if low.is_some_and(|low| low > value) || high.is_some_and(|high| high < value) => {
                Err("a value is outside its interval")
            }
            _ => Ok(Quantity { value, low, high, unit }),
        }
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

    /// Whether it counts this unit and is not negative.
    pub fn is_cost_in(&self, unit: Unit) -> bool {
        self.unit == unit && self.value.is_none_or(|value| value >= 0.0)
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
    fn only_quantities_with_their_value_in_the_interval_are_read() {
        let read = |value: &str, low: &str, high: &str| {
            let text = format!(r#"{{"value":{value},"low":{low},"high":{high},"unit":"ns"}}"#);
            serde_json::from_str::<Quantity>(&text).is_ok()
        };
        for [value, low, high] in [["1", "1", "1"], ["1", "null", "2"], ["1", "null", "null"], ["null"; 3]] {
            assert!(read(value, low, high), "{value} {low} {high}");
        }
        for [value, low, high] in
            [["1", "2", "0"], ["3", "1", "2"], ["1", "2", "null"], ["null", "1", "2"], ["1e400", "null", "null"]]
        {
            assert!(!read(value, low, high), "{value} {low} {high}");
        }
    }

    #[test]
    fn infinities_become_null() {
        let wide = Interval { value: 1.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        let json = serde_json::to_string(&Quantity::new(wide, Unit::CoreCycles)).unwrap();
        assert_eq!(json, r#"{"value":1.0,"low":null,"high":null,"unit":"core_cycles"}"#);
    }
}
