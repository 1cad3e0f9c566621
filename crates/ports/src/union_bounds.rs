//! How many ports some classes use together, from the times of their mixes.
//!
//! A core never beats the best assignment of µops to ports and often misses it. So a fast mix
//! proves a lower bound of the union, and a slow mix only suggests an upper one. The upper bound
//! counts if one number of ports explains the times of all ratios.

use crate::class_set::ClassSet;
use cyclescope_instr::mixes::mix_timer::MixTime;
use serde::{Deserialize, Serialize};

/// Systematic error of a time, as a share: the end of the loop, and the step of the clock.
pub const TIME_SHARE: f64 = 0.02;
/// A single mix proves a number of ports if its rate exceeds one port less by this share. A smaller
/// excess needs a second mix. Beside a busy sibling on Zen 3, one of seven mixes of a form with itself
/// was 2.4 % too fast.
const PROOF_SHARE: f64 = 0.05;
/// A mix is slow if it takes longer than free classes would by more than this share.
pub const SLOW_SHARE: f64 = 0.06;
/// A mix that the slots limit is slow if it takes longer than they need by more than this share: no
/// core fills all slots of all mixes (Zen 5: up to a tenth is lost).
pub const SLOT_SHARE: f64 = 0.12;
/// Classes spread their µops evenly if no mix beats that by more than this share.
const STEERED_SHARE: f64 = 0.05;

/// What the mixes of a core are judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixScale<'a> {
    /// Number of ports of each class.
    pub ports: &'a [u32],
    /// Slots that mixes fill in a cycle.
    pub width: f64,
    /// A mix that no number of ports explains says something if it takes longer by more than this share: at least
    /// [`SLOW_SHARE`].
    pub slow_share: f64,
}

/// The time of a mix of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct MixReading {
    /// Each class and its number of µops.
    pub counts: Vec<(usize, f64)>,
    /// Lower end of the time's interval, in core cycles.
    pub low: f64,
    /// Upper end of the time's interval.
    pub high: f64,
}

/// The usual error of times of one study, as a share: the median half width of their intervals.
pub fn find_usual_error(times: &[MixTime]) -> f64 {
    let mut shares: Vec<f64> = times.iter().map(|time| (time.high - time.low) / 2.0 / time.cycles).collect();
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).copied().unwrap_or(0.0)
}

/// The ends of a time's interval. Few layouts often give one that is far too wide, so one wider than
/// usual is cut to the usual error.
pub fn cut_interval(time: &MixTime, usual_error: f64) -> (f64, f64) {
    let MixTime { cycles, low, high, .. } = *time;
    let margin = usual_error * cycles;
    (low.max(cycles - margin), high.min(cycles + margin))
}

impl MixReading {
    /// The reading of a time: see [`cut_interval`].
    pub fn new(counts: Vec<(usize, f64)>, time: &MixTime, usual_error: f64) -> MixReading {
        let (low, high) = cut_interval(time, usual_error);
        MixReading { counts, low, high }
    }

    fn count_uops(&self) -> f64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Whether no reading with the same ratio is faster.
    pub(crate) fn is_fastest(&self, readings: &[MixReading]) -> bool {
        let is_alike = |other: &&MixReading| {
            let scale = self.count_uops() / other.count_uops();
            let pairs = self.counts.iter().zip(&other.counts);
            self.counts.len() == other.counts.len()
                && pairs.clone().all(|(own, other)| own.0 == other.0 && (own.1 - scale * other.1).abs() < 1e-6)
        };
        let rate = |reading: &MixReading| reading.count_uops() / reading.high;
        readings.iter().filter(is_alike).all(|other| rate(other) <= rate(self))
    }

    fn count_uops_of(&self, classes: ClassSet) -> f64 {
        self.counts.iter().filter(|(class, _)| classes.contains(*class)).map(|(_, count)| count).sum()
    }

    /// Core cycles if no class shared a port with another one: by the slowest class alone, or by the
    /// dispatch slots.
    pub fn free_cycles(&self, ports: &[u32], width: f64) -> f64 {
        let alone = self.counts.iter().map(|(class, count)| count / f64::from(ports[*class]));
        alone.fold(self.count_uops() / width, f64::max)
    }

    /// How much longer the fullest of these mixes takes than if no class shared a port, as a share.
    pub fn find_excess(readings: &[MixReading], ports: &[u32], width: f64) -> Option<f64> {
        let rate = |reading: &MixReading| reading.count_uops() / reading.free_cycles(ports, width);
        let fastest = readings.iter().filter(|reading| reading.is_fastest(readings));
        let fullest = fastest.max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
        Some(fullest.low / fullest.free_cycles(ports, width) - 1.0)
    }

    /// Core cycles if all classes had a port in common and µops were spread evenly.
    fn even_cycles(&self, ports: &[u32]) -> f64 {
        self.counts.iter().map(|(class, count)| count / f64::from(ports[*class])).sum()
    }

    /// Whether the mix is slow, and yet faster than an even spread of µops over shared ports: the
    /// core steers them to ports with less work.
    pub fn shows_steering(&self, ports: &[u32], width: f64) -> bool {
        let (free, even) = (self.free_cycles(ports, width), self.even_cycles(ports));
        self.low > free * (1.0 + SLOW_SHARE) && self.high < even * (1.0 - STEERED_SHARE)
    }
}

/// How well the upper bound of a union is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnionStanding {
    /// Fast mixes prove that no port is shared.
    Free,
    /// One number of ports explains the times of all mixes.
    Fits,
    /// Fast mixes prove that no port is shared, and yet others are slow: something else is shared.
    NoPort,
    /// Mixes are slow, and no number of ports explains them all: the core assigns µops badly, or
    /// something else is shared.
    Misassigned,
    /// Dispatch slots limit the mixes, so that time cannot tell.
    Hidden,
    /// Mixes are slow, but so are some of classes that share no port, as fast mixes prove.
    Unclear,
}

/// Bounds of the number of ports that some classes use together.
#[derive(Debug, Clone, PartialEq)]
pub struct UnionBounds {
    /// The classes.
    pub classes: ClassSet,
    /// Lower bound, proved.
    pub lower: u32,
    /// Upper bound: suggested, or the sum of all.
    pub upper: u32,
    /// Standing of the upper bound.
    pub standing: UnionStanding,
}

impl UnionBounds {
    /// Judges the mixes of these classes. `least` is the lower bound that is known already, from the unions of fewer
    /// classes, and `most` the upper one.
    pub fn judge(classes: ClassSet, readings: &[MixReading], scale: MixScale, limits: (u32, u32)) -> UnionBounds {
        UnionBounds::judge_beyond(classes, readings, scale, limits, &[])
    }

    /// The same beyond what the known unions of fewer classes explain.
    pub fn judge_beyond(
        classes: ClassSet,
        readings: &[MixReading],
        MixScale { ports, width, slow_share }: MixScale,
        (least, most): (u32, u32),
        known: &[&UnionBounds],
    ) -> UnionBounds {
        let explained = |reading: &MixReading| {
            let parts = known.iter().map(|bounds| reading.count_uops_of(bounds.classes) / f64::from(bounds.upper));
            parts.fold(reading.free_cycles(ports, width), f64::max)
        };
        let fastest: Vec<&MixReading> = readings.iter().filter(|reading| reading.is_fastest(readings)).collect();
        let lower = prove_ports(readings).max(least).min(most);
        let excess = |reading: &MixReading, union: u32| {
            let cycles = explained(reading).max(reading.count_uops() / f64::from(union));
            reading.low / cycles - 1.0
        };
        let fits = |union: &u32| fastest.iter().all(|reading| excess(reading, *union) <= TIME_SHARE);
        // Shared ports slow the mix most that would run at the highest rate without them.
        let free_rate = |reading: &MixReading| reading.count_uops() / explained(reading);
        let fullest = fastest.iter().max_by(|one, other| free_rate(one).total_cmp(&free_rate(other)));
        let is_any_slow = fullest.is_some_and(|reading| excess(reading, most) > SLOW_SHARE);
        // A sibling that takes a few slots slows mixes that need all. No number of ports explains these.
        let is_unexplained = |reading: &MixReading, share: f64| {
            let by_slots = reading.count_uops() / width * (1.0 + SLOT_SHARE);
            excess(reading, most) > share && reading.low > by_slots
        };
        let is_any_unexplained = |share: f64| fullest.is_some_and(|reading| is_unexplained(reading, share));
        let unexplained = fastest.iter().filter(|reading| is_unexplained(reading, slow_share)).count();
        // With one port less, the best assignment would often take no longer than the slots. Then only an even spread
        // of µops is as slow.
        let may_share =
            f64::from(most - 1) < width || !fullest.is_some_and(|reading| reading.shows_steering(ports, width));
        let (upper, standing) = match (lower..=most).rev().find(fits) {
            _ if lower == most && is_any_unexplained(slow_share) && unexplained > 1 => (most, UnionStanding::NoPort),
            _ if lower == most => (most, UnionStanding::Free),
            Some(upper) if upper < most && is_any_slow => (upper, UnionStanding::Fits),
            None if is_any_unexplained(slow_share) && may_share => (most - 1, UnionStanding::Misassigned),
            None if is_any_unexplained(SLOW_SHARE) && may_share => (most, UnionStanding::Unclear),
            _ => (most, UnionStanding::Hidden),
        };
        UnionBounds { classes, lower, upper, standing }
    }

    /// The same bounds without what an even spread of µops explains as well: only that some port is
    /// shared.
    pub fn without_fit(self, most: u32) -> UnionBounds {
        match self.standing {
            UnionStanding::Fits => UnionBounds { upper: most - 1, standing: UnionStanding::Misassigned, ..self },
            _ => self,
        }
    }

    /// Whether mixes are slow, and no number of ports explains that.
    pub fn is_unexplained(&self) -> bool {
        matches!(self.standing, UnionStanding::NoPort | UnionStanding::Misassigned)
    }

    /// Whether mixes suggest that a port is shared.
    pub fn is_shared(&self) -> bool {
        matches!(self.standing, UnionStanding::Fits | UnionStanding::Misassigned)
    }
}

/// The number of ports that these readings prove.
fn prove_ports(readings: &[MixReading]) -> u32 {
    let needed = |reading: &MixReading, error: f64| (reading.count_uops() / reading.high * (1.0 - error)).ceil() as u32;
    let single = readings.iter().map(|reading| needed(reading, PROOF_SHARE)).max();
    // Two tries of one mix do not confirm each other.
    let is_first = |at: &usize| readings[..*at].iter().all(|other| other.counts != readings[*at].counts);
    let most_needed = |at: usize| {
        let tries = readings.iter().filter(|other| other.counts == readings[at].counts);
        tries.map(|reading| needed(reading, TIME_SHARE)).max()
    };
    let mut confirmed: Vec<u32> = (0..readings.len()).filter(is_first).filter_map(most_needed).collect();
    confirmed.sort_unstable();
    single.max(confirmed.iter().rev().nth(1).copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: f64 = 8.0;

    fn pair(counts: [f64; 2], cycles: f64) -> MixReading {
        let counts = counts.into_iter().enumerate().collect();
        MixReading { counts, low: cycles * 0.998, high: cycles * 1.002 }
    }

    fn judge(ports: [u32; 2], readings: &[MixReading]) -> (u32, u32, UnionStanding) {
        judge_noisy(ports, readings, SLOW_SHARE)
    }

    fn judge_noisy(ports: [u32; 2], readings: &[MixReading], slow_share: f64) -> (u32, u32, UnionStanding) {
        let (least, most) = (ports[0].max(ports[1]), ports[0] + ports[1]);
        let classes = ClassSet::from_iter([0, 1]);
        let scale = MixScale { ports: &ports, width: WIDTH, slow_share };
        let bounds = UnionBounds::judge(classes, readings, scale, (least, most));
        (bounds.lower, bounds.upper, bounds.standing)
    }

    #[test]
    fn one_mix_that_is_a_little_too_fast_proves_nothing() {
        let [equal, few, many] = [pair([4.0, 4.0], 8.01), pair([4.0, 1.0], 4.98), pair([1.0, 4.0], 4.88)];
        let all = [equal, few, many];
        assert_eq!(judge([1, 1], &all), (1, 1, UnionStanding::Fits));
        let [_, _, many] = all;
        assert_eq!(judge([1, 1], &[pair([4.0, 1.0], 4.87), many]).0, 2, "a second one confirms it");
        let few = pair([4.0, 1.0], 4.87);
        assert_eq!(judge([1, 1], &[few.clone(), few]).0, 1, "another try of it does not");
        assert_eq!(judge([1, 1], &[pair([4.0, 1.0], 4.7)]).0, 2, "a clear one needs none");
    }

    #[test]
    fn fast_mixes_prove_and_slow_ones_suggest() {
        let both = [4.0, 4.0];
        assert_eq!(judge([2, 2], &[pair(both, 2.01)]), (4, 4, UnionStanding::Free));
        assert_eq!(judge([2, 2], &[pair(both, 2.68)]), (3, 3, UnionStanding::Fits));
        assert_eq!(judge([2, 2], &[pair(both, 4.02)]), (2, 2, UnionStanding::Fits));
        // Fast at one ratio proves three ports; the slow other one does not take it back.
        assert_eq!(judge([2, 2], &[pair(both, 2.68), pair([4.0, 2.0], 2.6)]).2, UnionStanding::Misassigned);
        let slower = judge([4, 1], &[pair([8.0, 2.0], 3.19)]);
        assert_eq!(slower, (4, 4, UnionStanding::Misassigned), "the best assignment takes 2.5");
    }

    #[test]
    fn what_no_ports_explain_has_to_be_slower_than_free_mixes_are() {
        let (few, both) = (pair([4.0, 2.0], 2.6), pair([4.0, 4.0], 2.35));
        let judge = |slow_share| judge_noisy([2, 2], &[both.clone(), few.clone()], slow_share).2;
        assert_eq!([judge(SLOW_SHARE), judge(0.25)], [UnionStanding::NoPort, UnionStanding::Free]);
        // Three ports are proved, and three explain too little.
        let slow = [pair([4.0, 4.0], 2.9)];
        let judge = |slow_share| judge_noisy([2, 2], &slow, slow_share).2;
        assert_eq!([judge(SLOW_SHARE), judge(0.5)], [UnionStanding::Misassigned, UnionStanding::Unclear]);
        // A core may lose a tenth of its slots.
        let full = [pair([24.0, 8.0], 4.3), pair([24.0, 7.0], 4.3)];
        assert_eq!(judge_noisy([6, 2], &full, SLOW_SHARE).2, UnionStanding::Free);
        let excess = MixReading::find_excess(&full, &[6, 2], WIDTH).unwrap();
        assert!((excess - 0.073).abs() < 0.002, "{excess}");
    }

    #[test]
    fn slots_hide_what_large_sets_share() {
        let eight = pair([10.0, 10.0], 20.0 / WIDTH);
        assert_eq!(judge([5, 5], &[eight]), (8, 10, UnionStanding::Hidden));
    }

    #[test]
    fn only_steered_mixes_differ_from_an_even_spread() {
        let steered = |ports: [u32; 2], reading: MixReading| reading.shows_steering(&ports, WIDTH);
        assert!(steered([2, 2], pair([4.0, 4.0], 2.67)) && steered([4, 1], pair([8.0, 2.0], 2.5)));
        assert!(!steered([2, 2], pair([4.0, 4.0], 4.0)) && !steered([4, 1], pair([8.0, 2.0], 4.0)));
        assert!(!steered([2, 2], pair([4.0, 4.0], 2.0)), "free");
    }
}
