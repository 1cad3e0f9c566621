//! Computes the positions of values along an axis, its range, and its tick labels.
//!
//! A value's *place* is the value itself on a linear axis, and its decimal logarithm on a
//! logarithmic one. In places, both axes are linear. Ticks are at 1, 2 or 5 times a power of ten.
//! Labels have just enough decimals to distinguish the ticks.

use std::f64::consts::LN_10;

use super::chart::AxisScale;

/// Values further from zero have no place, and values nearer to zero than its inverse count as
/// zero. So differences and steps keep full precision.
const FARTHEST: f64 = 1e250;

/// Values closer together than this, relative to their size, count as equal. Their labels would
/// need more digits than they have.
const EQUAL: f64 = 1e-12;

/// Where an axis for values of either sign changes from linear to logarithmic.
const BEND: f64 = 0.1;

/// Range of an axis and its tick labels, in places.
#[derive(Debug)]
pub(super) struct AxisSpan {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Ticks with a label, from low to high.
    pub(super) ticks: Vec<AxisTick>,
    /// Places of the finer lines of a logarithmic axis.
    pub(super) minor: Vec<f64>,
}

/// One labelled line across the chart.
#[derive(Debug)]
pub(super) struct AxisTick {
    pub(super) at: f64,
    pub(super) label: String,
}

impl AxisScale {
    /// The place of a value, if it has one.
    pub(super) fn to_place(self, value: f64) -> Option<f64> {
        // NaN fails every comparison.
        let size = value.abs();
        match self {
            Self::Linear if size < 1.0 / FARTHEST => Some(0.0),
            Self::Linear => (size <= FARTHEST).then_some(value),
            Self::Log | Self::Binary => (1.0 / FARTHEST..=FARTHEST).contains(&value).then(|| value.log10()),
            Self::SignedLog => (size <= FARTHEST).then(|| (value / (2.0 * BEND)).asinh() / LN_10),
        }
    }
}

impl AxisSpan {
    /// The span that shows all `places`, with `room` (a share of their extent) at both ends and
    /// about `most` labels.
    pub(super) fn from_places(scale: AxisScale, places: impl Iterator<Item = f64>, room: f64, most: usize) -> Self {
        let (low, high) = find_bounds(scale, places, room);
        let (ticks, minor) = match scale {
            AxisScale::Linear => (linear_ticks(low, high, most), Vec::new()),
            AxisScale::Log => log_ticks(low, high, most),
            AxisScale::Binary => binary_ticks(low, high, most),
            AxisScale::SignedLog => signed_ticks(low, high, most),
        };
        Self { low, high, ticks, minor }
    }

    /// The label of the tick at this place, or an empty text.
    pub(super) fn label_at(&self, at: f64) -> String {
        self.ticks.iter().find(|tick| tick.at == at).map(|tick| tick.label.clone()).unwrap_or_default()
    }
}

fn find_bounds(scale: AxisScale, places: impl Iterator<Item = f64>, room: f64) -> (f64, f64) {
    let extremes = places.fold(None, |seen: Option<(f64, f64)>, place| {
        let (low, high) = seen.unwrap_or((place, place));
        Some((low.min(place), high.max(place)))
    });
    let Some((low, high)) = extremes else { return (0.0, 1.0) };
    let equal = match scale {
        AxisScale::Linear => EQUAL * low.abs().max(high.abs()),
        AxisScale::Log | AxisScale::Binary | AxisScale::SignedLog => EQUAL,
    };
    if high - low > equal {
        let room = room * (high - low);
        return (low - room, high + room);
    }
    let middle = low + (high - low) / 2.0;
    let reach = match scale {
        AxisScale::Linear if middle == 0.0 => 1.0,
        AxisScale::Linear => 10f64.powf(middle.abs().log10().floor() - 1.0),
        AxisScale::Log | AxisScale::Binary | AxisScale::SignedLog => 0.5,
    };
    (middle - reach, middle + reach)
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<AxisTick> {
    let least = (high - low) / most as f64;
    let power = least.log10().floor() as i32;
    let (digit, power) = [(1, power), (2, power), (5, power)]
        .into_iter()
        .find(|&(digit, power)| scale_by_power(digit, power) >= least)
        .unwrap_or((1, power + 1));
    let step = scale_by_power(digit, power);
    let values: Vec<f64> = ((low / step).ceil() as i64..=(high / step).floor() as i64)
        .map(|count| scale_by_power(count * digit, power))
        .collect();
    let largest = values.iter().fold(0f64, |largest, value| largest.max(value.abs()));
    let write = if (1e-3..1e7).contains(&largest) { format_fixed } else { format_scientific };
    values.into_iter().map(|at| AxisTick { at, label: write(at, power) }).collect()
}

/// Powers of ten, with twos and fives if there are few of them; linear ticks if even those are few.
fn log_ticks(low: f64, high: f64, most: usize) -> (Vec<AxisTick>, Vec<f64>) {
    let powers = (high.floor() - low.ceil() + 1.0) as usize;
    let labelled = match powers {
        0..=3 => log_places(&[1, 2, 5], 1, low, high),
        _ => log_places(&[1], powers.div_ceil(most), low, high),
    };
    let minor = match powers <= most {
        true => log_places(&[2, 3, 4, 5, 6, 7, 8, 9], 1, low, high),
        false => Vec::new(),
    };
    let minor = minor.into_iter().map(|(_, _, at)| at).collect();
    if labelled.len() >= 3 {
        let tick = |(digit, power, at)| AxisTick { at, label: power_label(digit, power) };
        return (labelled.into_iter().map(tick).collect(), minor);
    }
    let values = linear_ticks(10f64.powf(low), 10f64.powf(high), most.min(5));
    (values.into_iter().map(|tick| AxisTick { at: tick.at.log10(), ..tick }).collect(), minor)
}

/// Powers of two, with a letter for 2^10, 2^20 and 2^30; decimal ticks if they are few.
fn binary_ticks(low: f64, high: f64, most: usize) -> (Vec<AxisTick>, Vec<f64>) {
    let place = |power: i32| f64::from(power) * std::f64::consts::LOG10_2;
    let (first, last) = ((low / place(1)).ceil() as i32, (high / place(1)).floor() as i32);
    let every = ((last - first) / most.max(1) as i32 + 1).max(1);
    let labelled = (first..=last).filter(|power| power.rem_euclid(every) == 0);
    let ticks: Vec<AxisTick> =
        labelled.map(|power| AxisTick { at: place(power), label: binary_label(power) }).collect();
    if first < 0 || ticks.len() < 3 {
        return log_ticks(low, high, most);
    }
    let minor = if every == 1 { Vec::new() } else { (first..=last).map(place).collect() };
    (ticks, minor)
}

/// Formats 2^16 as `64K`.
fn binary_label(power: i32) -> String {
    let (letter, shift) =
        [("G", 30), ("M", 20), ("K", 10), ("", 0)].into_iter().find(|(_, shift)| power >= *shift).unwrap_or(("", 0));
    format!("{}{letter}", 2f64.powi(power - shift))
}

/// Zero and the powers of ten on both sides of it, with twos and fives if there is room; linear
/// ticks if there is little besides zero.
fn signed_ticks(low: f64, high: f64, most: usize) -> (Vec<AxisTick>, Vec<f64>) {
    let place = |value: f64| AxisScale::SignedLog.to_place(value).filter(|at| (low..=high).contains(at));
    let last = low.abs().max(high.abs()).ceil() as i32;
    let places = |digits: &'static [i64], every: usize| -> Vec<(f64, String)> {
        let powers = (BEND.log10() as i32..=last).filter(|power| power.rem_euclid(every as i32) == 0);
        let all = powers.flat_map(|power| digits.iter().map(move |&digit| (digit, power)));
        let signed = all.flat_map(|(digit, power)| {
            let (value, label) = (scale_by_power(digit, power), power_label(digit, power));
            [(-value, format!("−{label}")), (value, label)]
        });
        let zero = (0.0, "0".to_owned());
        let all = signed.chain([zero]).filter_map(|(value, label)| Some((place(value)?, label)));
        let mut found: Vec<_> = all.collect();
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        found
    };
    let room = |digits| places(digits, 1).len() <= most;
    let labelled = match [&[1, 2, 5][..], &[1, 3], &[1]].into_iter().find(|digits| room(digits)) {
        Some(digits) => places(digits, 1),
        None => places(&[1], places(&[1], 1).len().div_ceil(most)),
    };
    let minor = if room(&[1]) { places(&[2, 3, 4, 5, 6, 7, 8, 9], 1) } else { Vec::new() };
    let minor = minor.into_iter().map(|(at, _)| at).collect();
    if labelled.len() >= 3 {
        return (labelled.into_iter().map(|(at, label)| AxisTick { at, label }).collect(), minor);
    }
    let value = |at: f64| 2.0 * BEND * (at * LN_10).sinh();
    let ticks = linear_ticks(value(low), value(high), most.min(5)).into_iter();
    let ticks = ticks.filter_map(|tick| Some(AxisTick { at: place(tick.at)?, ..tick }));
    (ticks.collect(), minor)
}

/// The digits times the powers of ten that `every` divides, with their places, from `low` to
/// `high`.
fn log_places(digits: &[i64], every: usize, low: f64, high: f64) -> Vec<(i64, i32, f64)> {
    (low.floor() as i32..=high.floor() as i32)
        .filter(|power| power.rem_euclid(every as i32) == 0)
        .flat_map(|power| digits.iter().map(move |&digit| (digit, power)))
        .map(|(digit, power)| (digit, power, f64::from(power) + (digit as f64).log10()))
        .filter(|(_, _, at)| (low..=high).contains(at))
        .collect()
}

/// `count` times the `power` of ten. Dividing by a positive power keeps 3 × 10⁻¹ from becoming
/// 0.30000000000000004.
fn scale_by_power(count: i64, power: i32) -> f64 {
    if power < 0 { count as f64 / 10f64.powi(-power) } else { count as f64 * 10f64.powi(power) }
}

/// Formats a multiple of the `power` of ten with all digits: `-1 234.50`.
fn format_fixed(value: f64, power: i32) -> String {
    let text = format!("{:.*}", usize::try_from(-power).unwrap_or(0), value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut label = String::from(if value < 0.0 { "−" } else { "" });
    for (index, digit) in whole.char_indices() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            label.push('\u{2009}');
        }
        label.push(digit);
    }
    label + rest
}

/// Formats a multiple of the `power` of ten as `2.5×10⁷`.
fn format_scientific(value: f64, power: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent = value.abs().log10().floor() as i32;
    let text = format!("{:.*e}", usize::try_from(exponent - power).unwrap_or(0), value.abs());
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}{digits}×10{}", if value < 0.0 { "−" } else { "" }, to_superscript(exponent))
}

/// Formats a digit times a power of ten, for a tick of a logarithmic axis.
fn power_label(digit: i64, power: i32) -> String {
    match (power, digit) {
        (-3..=5, _) => format_fixed(scale_by_power(digit, power), power),
        (_, 1) => format!("10{}", to_superscript(&power.to_string())),
        _ => format!("{digit}×10{}", to_superscript(&power.to_string())),
    }
}

fn to_superscript(number: &str) -> String {
    let raised = |digit: char| match digit {
        '-' => '⁻',
        _ => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize],
    };
    number.chars().map(raised).collect()
}
