//! A figure of the core as a vendor's guide states it: one or more numbers of the study in a line.

use super::figure::FigureText;
use super::record::UarchLine;
use cyclescope::record::Quantity;
use cyclescope::study::uarch::VerdictKind;

/// Intervals whose width is at most this share of the number are not shown.
const NARROW_SHARE: f64 = 0.1;

/// A figure: its name, and the numbers in it.
#[derive(Debug, Clone, Copy)]
pub struct CoreFigure {
    /// Its name.
    pub name: &'static str,
    /// Its numbers, from left to right.
    pub parts: &'static [FigurePart],
}

/// A number of a figure.
#[derive(Debug, Clone, Copy)]
pub struct FigurePart {
    /// The keys (`what`) of its records. The largest found number counts.
    pub keys: &'static [&'static str],
    /// The unit in the figure; empty if the figure's name says it. `None`: the unit of the record.
    pub unit: Option<&'static str>,
}

/// A figure in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureWords {
    /// The numbers, or the verdicts of missing ones.
    pub text: String,
    /// Whether at least one number was found.
    pub is_found: bool,
    /// CPUID's figures that contradict it, and other reservations.
    pub remark: String,
}

impl CoreFigure {
    /// A figure of these numbers.
    pub const fn new(name: &'static str, parts: &'static [FigurePart]) -> CoreFigure {
        CoreFigure { name, parts }
    }

    /// Describes the figure; `None` if no record belongs to it.
    pub fn describe(&self, records: &[UarchLine]) -> Option<FigureWords> {
        let chosen: Vec<(&FigurePart, &UarchLine)> =
            self.parts.iter().filter_map(|part| Some((part, part.choose_record(records)?))).collect();
        let is_found = chosen.iter().any(|(_, record)| record.is_found());
        // Without a number, the name of a figure of one number says what is missing.
        let describe = |(part, record): &(&FigurePart, &UarchLine)| match self.parts.len() == 1 && !is_found {
            true => record.describe_verdict(),
            false => part.describe(record),
        };
        let texts: Vec<String> = chosen.iter().map(describe).collect();
        let remarks = chosen.iter().flat_map(|(_, record)| describe_reservations(record)).collect::<Vec<_>>();
        (!chosen.is_empty()).then(|| FigureWords { text: texts.join(", "), is_found, remark: remarks.join("; ") })
    }
}

impl FigurePart {
    /// A number in the unit of its record.
    pub const fn new(keys: &'static [&'static str]) -> FigurePart {
        FigurePart { keys, unit: None }
    }

    /// A number in this unit; empty if the figure's name says it.
    pub const fn in_unit(keys: &'static [&'static str], unit: &'static str) -> FigurePart {
        FigurePart { keys, unit: Some(unit) }
    }

    /// The record with the largest number, or else the first without one.
    fn choose_record<'a>(&self, records: &'a [UarchLine]) -> Option<&'a UarchLine> {
        let own = || self.keys.iter().filter_map(|key| records.iter().find(|record| record.what == *key));
        let found = own().filter(|record| record.is_found());
        let value = |record: &UarchLine| record.value.value.unwrap_or_default();
        found.max_by(|one, other| value(one).total_cmp(&value(other))).or_else(|| own().next())
    }

    fn describe(&self, record: &UarchLine) -> String {
        let join = |words: [&str; 3]| words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let Some(value) = record.value.value.filter(|_| record.is_found()) else {
            return join([self.unit.unwrap_or_default(), &record.describe_verdict(), ""]);
        };
        let scale = record.value.best_scale();
        let unit = self.unit.map_or_else(|| scale.name.replace("core cycles", "cycles"), str::to_string);
        let interval = record.value.format_interval(&scale).filter(|_| !is_narrow(&record.value));
        let interval = interval.map_or(String::new(), |interval| format!("({interval})"));
        join([&scale.format_number(value), &unit, &interval])
    }
}

/// Whether the interval tells no more than the number.
fn is_narrow(quantity: &Quantity) -> bool {
    let width = quantity.low.zip(quantity.high).map(|(low, high)| high - low);
    width.zip(quantity.value).is_none_or(|(width, value)| width <= NARROW_SHARE * value.abs())
}

/// What CPUID says otherwise, and whether the sibling was busy.
fn describe_reservations(record: &UarchLine) -> Vec<String> {
    let told = record.cpuid_contradiction().filter(|_| record.verdict == VerdictKind::Found);
    let told = told.and_then(|told| told.format_with_unit()).map(|told| format!("CPUID: {told}"));
    told.into_iter().chain(record.is_shared().then(|| "sibling busy".to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::simulated_line;
    use super::*;

    const CACHE: CoreFigure = CoreFigure {
        name: "first data cache",
        parts: &[
            FigurePart::new(&["data_caches.1.size"]),
            FigurePart::in_unit(&["l1d_ways"], "ways"),
            FigurePart::in_unit(&["load_rate.8_bytes", "load_rate.16_bytes"], "loads a cycle"),
        ],
    };

    #[test]
    fn a_figure_joins_its_numbers() {
        let mut size = simulated_line("d", "data_caches.1.size", "found", Some([49152.0, 48000.0, 50000.0]), "bytes");
        size["cpuid"] = 32768.into();
        let lines = [
            size,
            simulated_line("w", "l1d_ways", "unclear", None, "count"),
            simulated_line("l", "load_rate.8_bytes", "found", Some([3.98, 3.0, 4.5]), "per_cycle"),
            simulated_line("l", "load_rate.16_bytes", "found", Some([2.0, 2.0, 2.0]), "per_cycle"),
        ];
        let words = CACHE.describe(&UarchLine::from_lines(&lines)).unwrap();
        assert_eq!(words.text, "48 KiB, ways unclear, 3.98 loads a cycle (3 to 4.5)");
        assert_eq!((words.is_found, words.remark.as_str()), (true, "CPUID: 32 KiB"));
        assert_eq!(CACHE.describe(&[]), None);
        let missing = CACHE.describe(&UarchLine::from_lines(&lines[1..2])).unwrap();
        assert_eq!((missing.text.as_str(), missing.is_found), ("ways unclear", false));
        const WAYS: CoreFigure = CoreFigure::new("ways", &[FigurePart::in_unit(&["l1d_ways"], "ways")]);
        assert_eq!(WAYS.describe(&UarchLine::from_lines(&lines[1..2])).unwrap().text, "unclear");
    }
}
