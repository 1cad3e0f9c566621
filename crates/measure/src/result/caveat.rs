//! Caveats of a result: a closed list.

use crate::estimate::{CostEstimate, LayoutEstimate};
use crate::{Acquisition, CostMeasurement, Precision};
use cyclescope_core::statistics::{self, Interval, quartile_deviation, value_range};
use serde::{Deserialize, Serialize};

/// The kinds of caveat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// The interval is wider than requested.
    IntervalNotReached,
    /// The core clock's frequency changed, and the result with it.
    FrequencyMoved,
    /// The worker changed its CPU.
    Migrated,
    /// The cost differs between layouts of code and data.
    LayoutDependent,
    /// The layouts form two clusters.
    TwoModes,
    /// The code around what is measured runs at another speed because of it, and the difference is not its cost.
    OtherSpeed,
    /// The ruler's two chains do not have the ratio of their latencies, or APERF differs from the ruler.
    RulersDisagree,
    /// The cost is not proportional to the number of copies.
    Nonlinear,
    /// The number is an upper bound.
    UpperBound,
    /// Something else uses the core's execution units.
    SiblingBusy,
    /// The cost kept changing from round to round.
    NotRepeatable,
    /// A point of a sweep or list was measured twice, and the results differ by more than their intervals.
    PassesDisagree,
    /// A function could not be called often enough to train its predictors.
    NotTrained,
    /// The machine is emulated: its cycles are not those of a core.
    Emulated,
    /// Many rounds were disturbed.
    Noisy,
}

impl CaveatKind {
    /// The one thing to try, where the caveat's text does not say it.
    pub fn advice(self) -> Option<&'static str> {
        Some(match self {
            CaveatKind::IntervalNotReached => "give more time, such as --budget 2",
            CaveatKind::FrequencyMoved => "measure again, or fix the core clock: see `cyclescope doctor`",
            CaveatKind::Migrated | CaveatKind::OtherSpeed => "measure again",
            CaveatKind::LayoutDependent | CaveatKind::TwoModes => {
                "take the range as the result; aligned code and data of your own have one of these costs"
            }
            CaveatKind::Nonlinear => "give longer bodies with --unroll, or --loop",
            CaveatKind::UpperBound | CaveatKind::Emulated | CaveatKind::RulersDisagree => return None,
            CaveatKind::SiblingBusy => "take another core with --cpu, or stop what runs beside it",
            CaveatKind::NotRepeatable => "give more untimed rounds with --warm-up",
            CaveatKind::PassesDisagree => {
                "measure again with more time, such as --budget 1, or take the interval, which holds both"
            }
            CaveatKind::NotTrained => "let the function free what it takes, or prepare each call with --setup",
            CaveatKind::Noisy => "take a quieter CPU with --cpu",
        })
    }
}

/// A caveat and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveat {
    /// Kind of caveat.
    pub code: CaveatKind,
    /// Explanation with figures.
    pub text: String,
}

impl Caveat {
    /// The caveat of an emulated machine.
    pub fn emulated_machine() -> Caveat {
        let text = "the machine is emulated: its clock does not count the cycles of a core".to_string();
        Caveat { code: CaveatKind::Emulated, text }
    }
}

/// The ruler's chains disagree when their ratio is wrong by more than this share.
const RULER_SHARE: f64 = 0.01;
/// A disagreement below this share refuses no number: it is what plans aim at, and chains of 256 cycles, the shortest, are
/// off by 0.08 % where the instrument is off by its standard deviation.
const RULER_LEAST: f64 = 0.0025;
/// Confidence level at which the chains disagree: a false alarm refuses a good number.
const CERTAIN_CONFIDENCE: f64 = 0.999;
/// Every x86-64 core since 2003 adds three numbers a cycle or, in its small designs, two.
const WIDTH_LEAST: f64 = 1.5;
/// Fewer layouts than this share are no mode of the code but layouts that something disturbed.
const MODE_SHARE_LEAST: f64 = 0.05;
/// The cost is layout-dependent when its standard deviation over layouts, less what the noise of rounds adds to it, exceeds
/// this share and this many cycles.
const LAYOUT_SHARE: f64 = 0.03;
const LAYOUT_CYCLES: f64 = 0.02;
/// Copies that no core treats as few.
const COPIES_MANY: usize = 64;
/// A machine is noisy where more than this share of the rounds was dropped.
const DROPPED_SHARE: f64 = 0.2;

/// Whether a result with these caveats does not meet the request.
pub fn fall_short(caveats: &[Caveat]) -> bool {
    let short = [
        CaveatKind::Nonlinear,
        CaveatKind::IntervalNotReached,
        CaveatKind::NotRepeatable,
        CaveatKind::RulersDisagree,
        CaveatKind::SiblingBusy,
        CaveatKind::Emulated,
    ];
    caveats.iter().any(|caveat| short.contains(&caveat.code))
}

/// The caveats of a measurement, for the requested precision.
pub fn find_caveats(measurement: &CostMeasurement, asked: Precision) -> Vec<Caveat> {
    let Some(estimate) = &measurement.estimate else {
        let text = "fewer than two layouts had undisturbed rounds".to_string();
        return vec![Caveat { code: CaveatKind::Noisy, text }];
    };
    let found = [
        check_linearity(measurement, estimate),
        check_repeatability(measurement, estimate),
        check_training(measurement),
        check_interval(&estimate.cost, asked),
        check_modes(estimate),
        check_layout_spread(measurement, estimate),
        check_rulers(estimate),
        check_sibling(estimate),
        check_frequency(estimate),
        check_dropped_rounds(estimate),
    ];
    found.into_iter().flatten().collect()
}

fn new_caveat(code: CaveatKind, text: String) -> Option<Caveat> {
    Some(Caveat { code, text })
}

fn check_linearity(measurement: &CostMeasurement, estimate: &CostEstimate) -> Option<Caveat> {
    if measurement.linear {
        return None;
    }
    let text = format!(
        "the cost is not proportional to the number of copies: from 2u to 4u copies each takes {:+.3} core \
         cycles against u to 2u, with u = {}",
        estimate.bend.value, measurement.acquisition.units[0]
    );
    new_caveat(CaveatKind::Nonlinear, text)
}

fn check_repeatability(measurement: &CostMeasurement, estimate: &CostEstimate) -> Option<Caveat> {
    if measurement.settled {
        return None;
    }
    let text = format!(
        "the cost was still moving after {} untimed rounds: {:+.3} core cycles from the first half of the \
         rounds to the second",
        measurement.acquisition.warm_up, estimate.trend.value
    );
    new_caveat(CaveatKind::NotRepeatable, text)
}

fn check_training(measurement: &CostMeasurement) -> Option<Caveat> {
    let error = measurement.untrainable.as_ref()?;
    new_caveat(
        CaveatKind::NotTrained,
        format!("called many times more, the function fails ({error}); this is its cost before"),
    )
}

/// A caveat where the interval is wider than requested.
pub fn check_interval(cost: &Interval, asked: Precision) -> Option<Caveat> {
    if asked.is_met_by(cost) {
        return None;
    }
    let text = format!(
        "the interval's half width is {:.4} core cycles, {:.2} % of the cost",
        cost.half_width(),
        100.0 * cost.half_width() / cost.value.abs()
    );
    new_caveat(CaveatKind::IntervalNotReached, text)
}

/// Two clusters of layouts are a caveat where the mean over all layouts is another result than the larger cluster, by
/// more than the interval covers.
fn check_modes(estimate: &CostEstimate) -> Option<Caveat> {
    if estimate.modes.len() != 2 || !modes_matter(estimate) {
        return None;
    }
    let mode = |index: usize| {
        let mode = &estimate.modes[index];
        format!("{:.3} in {:.0} %", mode.cost.value, 100.0 * mode.share)
    };
    new_caveat(CaveatKind::TwoModes, format!("the layouts form two clusters: {}, {}", mode(0), mode(1)))
}

fn modes_matter(estimate: &CostEstimate) -> bool {
    let costs: Vec<f64> = estimate.layouts.iter().map(|layout| layout.cost).collect();
    let moved = statistics::mean(&costs) - estimate.cost.value;
    let is_mode = estimate.modes.get(1).is_some_and(|mode| mode.share >= MODE_SHARE_LEAST);
    is_mode && moved.abs() > estimate.cost.half_width()
}

/// Rounds differ too, so the spread of layouts counts where the noise of rounds does not explain it: the change from one
/// half of a layout's rounds to the other has twice the standard deviation that this noise gives the layout's cost.
fn check_layout_spread(measurement: &CostMeasurement, estimate: &CostEstimate) -> Option<Caveat> {
    let of = |figure: &dyn Fn(&LayoutEstimate) -> f64| estimate.layouts.iter().map(figure).collect::<Vec<_>>();
    let mut costs = of(&|layout| layout.cost);
    let noise = quartile_deviation(&mut of(&|layout| layout.trend)) / 2.0;
    let (spread, chance) = (quartile_deviation(&mut costs), chance_variance_ratio(costs.len()).sqrt());
    // What the rounds' noise adds to the spread is no difference between layouts.
    let own = (spread * spread - noise * noise).max(0.0).sqrt();
    let small = own <= LAYOUT_CYCLES.max(LAYOUT_SHARE * estimate.cost.value.abs());
    if (small || spread <= chance * noise) && !modes_matter(estimate) {
        return None;
    }
    let [low, high] = value_range(costs.iter().copied());
    let few = few_copies(measurement).map_or(String::new(), |copies| {
        format!(
            "; a loop of about {copies} copies may cost more or less for each than one of many, such as --unroll {COPIES_MANY} \
             with a smaller --loop"
        )
    });
    let text = format!("the cost differs between layouts of code and data: {low:.3} to {high:.3} core cycles{few}");
    new_caveat(CaveatKind::LayoutDependent, text)
}

/// Copies in the loop of the shortest body where they are few: prefetchers follow the loads of few instructions and not those of
/// many (a ring of 64 pages took 14.6, 17.6 or 20 core cycles a node with 5 to 20 copies, and 14.0 with 16 or more: Zen 5).
fn few_copies(measurement: &CostMeasurement) -> Option<usize> {
    let Acquisition { shape, units, .. } = &*measurement.acquisition;
    units.first().copied().filter(|copies| shape.loop_count > 1 && *copies < COPIES_MANY)
}

/// The ratio of two variances of `deviation` over this many values that chance exceeds once in a hundred, where the
/// true ones are equal. The interquartile range of a normal distribution knows the variance as well as 37 % of the values
/// would, so the logarithm of each has the variance 2/0.37 over their number.
fn chance_variance_ratio(values: usize) -> f64 {
    const ONCE_IN_A_HUNDRED: f64 = 2.33;
    (ONCE_IN_A_HUNDRED * (2.0 * 2.0 / 0.37 / values as f64).sqrt()).exp()
}

fn check_rulers(estimate: &CostEstimate) -> Option<Caveat> {
    if !has_ruler_conflict(estimate) {
        return None;
    }
    let value = estimate.add_link.value;
    let text = format!(
        "an add takes {value:.4} cycles by the imul ruler and should take 1, so that the cost may be wrong by as \
         much: try the default clock, or run it again"
    );
    new_caveat(CaveatKind::RulersDisagree, text)
}

/// Whether the ruler's chains disagree by much, or certainly by more than the cost's interval covers, as shares: one of them is
/// read wrongly then, and the cost with it.
pub fn has_ruler_conflict(estimate: &CostEstimate) -> bool {
    let links: Vec<f64> = estimate.layouts.iter().map(|layout| layout.add_link).collect();
    let Some(link) = statistics::t_interval(&links, CERTAIN_CONFIDENCE) else { return false };
    let certain = (link.low - 1.0).max(1.0 - link.high);
    let covered = (estimate.cost.half_width() / estimate.cost.value).abs();
    let Interval { low, high, .. } = estimate.add_link;
    low > 1.0 + RULER_SHARE || high < 1.0 - RULER_SHARE || certain > covered.max(RULER_LEAST)
}

fn check_sibling(estimate: &CostEstimate) -> Option<Caveat> {
    let [_, median, best] = estimate.width;
    if !estimate.shared && median >= WIDTH_LEAST {
        return None;
    }
    let text = format!(
        "the core adds {median:.1} numbers a cycle, at its best {best:.1}: something else uses its execution units"
    );
    new_caveat(CaveatKind::SiblingBusy, text)
}

/// A change of frequency alone is no caveat, since the ruler follows it. It is one where the cost at one frequency is
/// another than the cost from all rounds, by more than the interval covers.
fn check_frequency(estimate: &CostEstimate) -> Option<Caveat> {
    let [low, mean, high] = estimate.rate;
    let Some(changing) = estimate.changing else {
        let text = "the core clock changed in so many rounds that the ruler could not follow it".to_string();
        return new_caveat(CaveatKind::FrequencyMoved, text);
    };
    let certain = changing.low > 0.0 || changing.high < 0.0;
    if !certain || changing.value.abs() <= estimate.cost.half_width() {
        return None;
    }
    let text = format!(
        "the core clock changed within rounds, by {:.1} % between layouts, and these rounds change the cost by \
         {:+.3} core cycles",
        100.0 * (high - low) / mean,
        changing.value
    );
    new_caveat(CaveatKind::FrequencyMoved, text)
}

fn check_dropped_rounds(estimate: &CostEstimate) -> Option<Caveat> {
    let share = estimate.dropped as f64 / (estimate.kept + estimate.dropped) as f64;
    if share <= DROPPED_SHARE {
        return None;
    }
    new_caveat(CaveatKind::Noisy, format!("{:.0} % of the rounds were disturbed and dropped", 100.0 * share))
}
