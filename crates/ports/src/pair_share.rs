//! Whether two forms get into each other's way, from the times of their mixes.

use crate::class_set::ClassSet;
use crate::union_bounds::{
    MixReading, MixScale, SLOT_SHARE, SLOW_SHARE, TIME_SHARE, UnionBounds, UnionStanding, find_usual_error,
};
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::MixTime;
use serde::{Deserialize, Serialize};

/// What two forms share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairShare {
    /// No port.
    Disjoint,
    /// Some ports, or another resource.
    Overlap,
    /// All ports of one of them.
    Contained,
    /// All ports of both.
    Equal,
    /// Time cannot tell.
    Untold,
}

/// A form of a pair, alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairForm {
    /// Core cycles of a copy.
    pub cycles: f64,
    /// Dispatch slots of a copy. `None` if they are not known.
    pub slots: Option<f64>,
    /// Number of ports, if it has one µop and its rate is a whole number.
    pub ports: Option<u32>,
}

/// A timed mix of both.
#[derive(Debug, Clone, PartialEq)]
pub struct PairMix {
    /// Copies of each form.
    pub counts: [usize; 2],
    /// Their time.
    pub time: MixTime,
}

/// What the mixes say.
#[derive(Debug, Clone, PartialEq)]
pub struct PairVerdict {
    /// What they share.
    pub share: PairShare,
    /// Bounds of the number of ports that both use together, if each has one µop.
    pub union: Option<(u32, u32)>,
    /// The reason, with the mix that decided it.
    pub why: String,
}

/// Core cycles that each form would take alone, as multiples of a unit.
const CYCLES: [[usize; 2]; 7] = [[4, 4], [4, 1], [1, 4], [4, 2], [2, 4], [4, 3], [3, 4]];
/// Upper limit of copies in a mix.
const COPIES_MOST: usize = 200;
/// Two forms are balanced if the times that they take alone differ by less than this share.
const BALANCED_SHARE: f64 = 0.3;

/// Numbers of copies to mix.
pub fn plan_pair_counts(forms: [PairForm; 2]) -> Vec<[usize; 2]> {
    let unit = forms.iter().map(|form| form.cycles).fold(1.0, f64::max);
    let count = |form: &PairForm, cycles: usize| match form.ports {
        Some(ports) if unit <= 1.0 => cycles * ports as usize,
        _ => ((cycles as f64 * unit / form.cycles).round() as usize).max(1),
    };
    let mut all: Vec<[usize; 2]> =
        CYCLES.iter().map(|cycles| [count(&forms[0], cycles[0]), count(&forms[1], cycles[1])]).collect();
    all.retain(|counts| counts[0] + counts[1] <= COPIES_MOST);
    if all.is_empty() {
        // One copy of a slow form beside as many of the other as fit.
        all.push([count(&forms[0], 1), count(&forms[1], 1)].map(|count| count.min(COPIES_MOST / 2)));
    }
    all.dedup();
    all
}

/// The mix of these copies of the forms with these indices.
pub fn build_pair_mix(forms: [usize; 2], counts: [usize; 2]) -> Mix {
    Mix::new([0, 1].map(|at| (forms[at], counts[at])))
}

impl PairMix {
    /// Core cycles of the slower of both alone.
    pub fn alone(&self, forms: [PairForm; 2]) -> f64 {
        self.list_alone(forms).into_iter().fold(0.0, f64::max)
    }

    fn list_alone(&self, forms: [PairForm; 2]) -> [f64; 2] {
        [0, 1].map(|at| self.counts[at] as f64 * forms[at].cycles)
    }

    /// Core cycles that their slots take. `None` if the slots of one are not known.
    pub fn slot_cycles(&self, forms: [PairForm; 2], width: f64) -> Option<f64> {
        let slots = |at: usize| Some(self.counts[at] as f64 * forms[at].slots?);
        Some((slots(0)? + slots(1)?) / width)
    }

    fn is_balanced(&self, forms: [PairForm; 2]) -> bool {
        let [one, other] = self.list_alone(forms);
        one.min(other) >= (1.0 - BALANCED_SHARE) * one.max(other)
    }
}

/// Judges the mixes of two forms with these names on a core with this many slots per cycle.
pub fn judge_pair(forms: [PairForm; 2], names: [&str; 2], mixes: &[PairMix], width: f64) -> PairVerdict {
    match forms.map(|form| form.ports) {
        [Some(one), Some(other)] => judge_ports([one, other], forms, names, mixes, width),
        _ => judge_times(forms, names, mixes, width),
    }
}

/// A mix in words.
fn describe_mix(mix: &PairMix, names: [&str; 2]) -> String {
    let [one, other] = mix.counts;
    format!("{one} × `{}` and {other} × `{}` take {:.2} core cycles", names[0], names[1], mix.time.cycles)
}

/// Judges by the ports of forms of one µop.
fn judge_ports(ports: [u32; 2], forms: [PairForm; 2], names: [&str; 2], mixes: &[PairMix], width: f64) -> PairVerdict {
    let times: Vec<MixTime> = mixes.iter().map(|mix| mix.time).collect();
    let usual_error = find_usual_error(&times);
    let reading = |mix: &PairMix| {
        MixReading::new(vec![(0, mix.counts[0] as f64), (1, mix.counts[1] as f64)], &mix.time, usual_error)
    };
    let readings: Vec<MixReading> = mixes.iter().map(reading).collect();
    let (most_own, sum) = (ports[0].max(ports[1]), ports[0] + ports[1]);
    let classes: ClassSet = [0, 1].into_iter().collect();
    let scale = MixScale { ports: &ports, width: width / (1.0 + SLOT_SHARE), slow_share: SLOW_SHARE };
    let UnionBounds { lower, upper, standing, .. } = UnionBounds::judge(classes, &readings, scale, (most_own, sum));
    let rate = |mix: &&PairMix| mix.counts.iter().sum::<usize>() as f64 / mix.time.high;
    let fastest = mixes.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)));
    let slowness = |mix: &&PairMix| mix.time.low / mix.alone(forms).max(mix.slot_cycles(forms, width).unwrap_or(0.0));
    let slowest = mixes.iter().max_by(|one, other| slowness(one).total_cmp(&slowness(other)));
    let proof = fastest.map_or(String::new(), |mix| describe_mix(mix, names));
    let slow = slowest.map_or(String::new(), |mix| {
        format!("{}, {:.2} if they shared nothing", describe_mix(mix, names), mix.time.low / slowness(&mix))
    });
    let share = match standing {
        UnionStanding::Free | UnionStanding::NoPort => PairShare::Disjoint,
        UnionStanding::Hidden | UnionStanding::Unclear => PairShare::Untold,
        _ if lower == upper && upper == most_own && ports[0] == ports[1] => PairShare::Equal,
        _ if lower == upper && upper == most_own => PairShare::Contained,
        _ => PairShare::Overlap,
    };
    let why = match standing {
        UnionStanding::Free => format!("{proof}, so they use {lower} ports: this proves that they share none"),
        UnionStanding::NoPort => {
            format!("{proof}, which proves that they share no port; but {slow}: they share something else")
        }
        UnionStanding::Hidden => {
            format!("{proof}; the slots allow no more, so time cannot tell whether they share a port")
        }
        UnionStanding::Unclear => format!("{slow}; so are mixes that share no port"),
        UnionStanding::Fits => format!("{slow}; {} explain the times of all mixes", count_ports(lower, upper)),
        UnionStanding::Misassigned => format!(
            "{slow}; no number of ports explains all mixes, so the core assigns them badly or they share something \
             else; {proof}, which needs {lower} ports at least"
        ),
    };
    PairVerdict { share, union: Some((lower, upper)), why }
}

fn count_ports(lower: u32, upper: u32) -> String {
    match (lower, upper) {
        (1, 1) => "one port".to_string(),
        _ if lower == upper => format!("{lower} ports of both together"),
        _ => format!("{lower} to {upper} ports of both together"),
    }
}

/// Judges by times alone, for forms of several µops.
fn judge_times(forms: [PairForm; 2], names: [&str; 2], mixes: &[PairMix], width: f64) -> PairVerdict {
    let slots = |mix: &PairMix| mix.slot_cycles(forms, width).unwrap_or(0.0);
    let is_free = |mix: &&PairMix| {
        let alone = mix.alone(forms);
        mix.is_balanced(forms) && mix.time.high <= alone * (1.0 + TIME_SHARE)
    };
    let slowness = |mix: &PairMix| mix.time.low / mix.alone(forms).max(slots(mix)) - 1.0;
    let slowest = mixes.iter().max_by(|one, other| slowness(one).total_cmp(&slowness(other)));
    let (share, why) = match (mixes.iter().find(is_free), slowest) {
        (Some(free), _) => {
            let proof = describe_mix(free, names);
            (PairShare::Disjoint, format!("{proof}, as long as the slower of both alone: this proves it"))
        }
        (None, Some(slow)) if slowness(slow) > SLOW_SHARE => {
            let text = format!(
                "{}, {:.2} if they shared nothing",
                describe_mix(slow, names),
                slow.alone(forms).max(slots(slow))
            );
            (PairShare::Overlap, text)
        }
        (None, Some(mix)) => {
            let text = format!("{}: no mix is slow, but none keeps the ports of both busy", describe_mix(mix, names));
            (PairShare::Untold, text)
        }
        (None, None) => (PairShare::Untold, "no mix of them has a time".to_string()),
    };
    PairVerdict { share, union: None, why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_instr::mixes::mix_order::MixOrder;

    const WIDTH: f64 = 8.0;

    fn simple(ports: u32) -> PairForm {
        PairForm { cycles: 1.0 / f64::from(ports), slots: Some(1.0), ports: Some(ports) }
    }

    /// The verdict if each mix takes what a closure says.
    fn judge(forms: [PairForm; 2], cycles: impl Fn([f64; 2]) -> f64) -> PairVerdict {
        let mix = |counts: [usize; 2]| {
            let cycles = cycles(counts.map(|count| count as f64));
            let time = MixTime {
                cycles,
                low: cycles * 0.999,
                high: cycles * 1.001,
                worst: cycles,
                order: MixOrder::Blocks,
                orders: 1,
            };
            PairMix { counts, time }
        };
        let mixes: Vec<PairMix> = plan_pair_counts(forms).into_iter().map(mix).collect();
        assert!(!mixes.is_empty());
        judge_pair(forms, ["a", "b"], &mixes, WIDTH)
    }

    #[test]
    fn each_share_has_its_mix() {
        let told = |ports: [u32; 2], union: u32| {
            judge(ports.map(simple), |[a, b]| {
                let alone = (a / f64::from(ports[0])).max(b / f64::from(ports[1]));
                alone.max((a + b) / f64::from(union)).max((a + b) / WIDTH)
            })
        };
        let shares = [([2, 2], 4), ([2, 2], 3), ([2, 2], 2), ([4, 1], 4), ([6, 3], 9)]
            .map(|(ports, union)| told(ports, union).share);
        use PairShare::*;
        assert_eq!(shares, [Disjoint, Overlap, Equal, Contained, Untold]);
        assert_eq!(told([2, 2], 3).union, Some((3, 3)));
        assert!(told([2, 2], 4).why.contains("proves"), "{}", told([2, 2], 4).why);
    }

    #[test]
    fn forms_of_several_uops_are_judged_by_time() {
        let divide = PairForm { cycles: 10.0, slots: Some(2.0), ports: None };
        let alone = |a: f64, b: f64| (10.0 * a).max(b / 6.0).max((2.0 * a + b) / WIDTH);
        let free = judge([divide, simple(6)], |[a, b]| alone(a, b));
        assert_eq!((free.share, free.union), (PairShare::Disjoint, None), "{}", free.why);
        let slow = judge([divide, simple(1)], |[a, b]| 10.0 * a + b);
        assert_eq!(slow.share, PairShare::Overlap, "{}", slow.why);
    }
}
