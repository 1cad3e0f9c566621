//! Formats a number of the core with its unit: entries, KiB, MiB, core cycles.

use cyclescope::record::Quantity;
use cyclescope::unit::Unit;

/// A display unit, and its size in the record's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureScale {
    /// Name of the display unit.
    pub name: String,
    size: f64,
}

impl FigureScale {
    /// The most readable scale for a number of this unit and size.
    pub fn for_number(unit: Unit, number: f64) -> FigureScale {
        let named = |name: &str, size: f64| FigureScale { name: name.to_string(), size };
        match unit {
            Unit::Bytes if number.abs() >= 1_048_576.0 => named("MiB", 1_048_576.0),
            Unit::Bytes if number.abs() >= 1024.0 => named("KiB", 1024.0),
            Unit::Count => named("entries", 1.0),
            Unit::Share => named("%", 0.01),
            Unit::Nanos => named("ns", 1.0),
            unit => named(&unit_words(unit), 1.0),
        }
    }

    /// Formats a number in this scale: all digits of a whole number, else at most two after the
    /// point.
    pub fn format_number(&self, number: f64) -> String {
        // Entries are whole; a fraction comes from measurement error.
        let number = if self.name == "entries" { number.round() } else { number / self.size };
        match number.abs() {
            size if size >= 1e9 => format!("{number:.2e}"),
            size if size.fract() == 0.0 || size >= 1000.0 => format!("{number:.0}"),
            size if size >= 100.0 => format!("{number:.1}"),
            _ => format!("{number:.2}").trim_end_matches('0').trim_end_matches('.').to_string(),
        }
    }
}

/// The name of a unit in records, as words.
fn unit_words(unit: Unit) -> String {
    serde_json::to_value(unit).map_or(String::new(), |name| name.as_str().unwrap_or_default().replace('_', " "))
}

/// The text of a number with its interval.
pub trait FigureText {
    /// The most readable scale for the number.
    fn best_scale(&self) -> FigureScale;

    /// The number with its unit; `None` if it is unknown.
    fn format_with_unit(&self) -> Option<String>;

    /// The ends of the interval in a scale; `None` if both look the same or one is unknown.
    fn format_interval(&self, scale: &FigureScale) -> Option<String>;

    /// Whether a number lies in the interval, or equals the value if there is no interval.
    fn contains(&self, number: f64) -> bool;
}

impl FigureText for Quantity {
    fn best_scale(&self) -> FigureScale {
        FigureScale::for_number(self.unit, self.value.unwrap_or_default())
    }

    fn format_with_unit(&self) -> Option<String> {
        let scale = self.best_scale();
        self.value.map(|value| format!("{} {}", scale.format_number(value), scale.name))
    }

    fn format_interval(&self, scale: &FigureScale) -> Option<String> {
        let (low, high) = (scale.format_number(self.low?), scale.format_number(self.high?));
        (low != high).then(|| format!("{low} to {high}"))
    }

    fn contains(&self, number: f64) -> bool {
        let Some(value) = self.value else { return false };
        let (low, high) = (self.low.unwrap_or(value), self.high.unwrap_or(value));
        low.min(value) <= number && number <= high.max(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(value: f64, low: f64, high: f64, unit: &str) -> Quantity {
        let unit = serde_json::from_value(unit.into()).expect("a unit");
        Quantity { value: Some(value), low: Some(low), high: Some(high), unit }
    }

    #[test]
    fn numbers_use_the_most_readable_unit() {
        let text = |value: f64, unit: &str| figure(value, value, value, unit).format_with_unit().unwrap();
        assert_eq!(text(498.0, "count"), "498 entries");
        assert_eq!(text(442.9, "count"), "443 entries");
        assert_eq!(text(49152.0, "bytes"), "48 KiB");
        assert_eq!(text(1310720.0, "bytes"), "1.25 MiB");
        assert_eq!(text(960.0, "bytes"), "960 bytes");
        assert_eq!(text(2.996, "per_cycle"), "3 per cycle");
        assert_eq!(text(41.36, "bytes_per_cycle"), "41.36 bytes per cycle");
        assert_eq!(text(4.987, "core_cycles"), "4.99 core cycles");
        assert_eq!(text(4.999, "core_cycles"), "5 core cycles");
        assert_eq!(text(1e300, "count"), "1.00e300 entries");
    }

    #[test]
    fn interval_uses_the_unit_of_its_number() {
        let l2 = figure(1_048_576.0, 1_015_808.0, 1_081_344.0, "bytes");
        assert_eq!(l2.format_interval(&l2.best_scale()).as_deref(), Some("0.97 to 1.03"));
        let sharp = figure(192.0, 192.0, 192.0, "count");
        assert_eq!(sharp.format_interval(&sharp.best_scale()), None);
        assert!(sharp.contains(192.0) && !sharp.contains(193.0) && l2.contains(1_048_576.0));
        let refused = Quantity::refused(Unit::Count);
        assert_eq!((refused.format_with_unit(), refused.contains(0.0)), (None, false));
    }
}
