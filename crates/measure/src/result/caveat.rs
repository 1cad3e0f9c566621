//! Caveats of a result: the complete list, their checks and their advice.

use crate::estimate::{CostEstimate, LayoutEstimate, call};
use crate::steadiness::UnsteadyState;
use crate::{Acquisition, CostMeasurement, Precision};
use cyclescope_core::statistics::{self, Interval, quartile_deviation, value_range};
use serde::{Deserialize, Serialize};

/// The kinds of caveat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaveatKind {
    /// The interval is wider than requested.
    IntervalNotReached,
    /// The core clock's frequency changed and affected the result.
    FrequencyMoved,
    /// The worker moved to another CPU.
    Migrated,
    /// The cost differs between layouts of code and data.
    LayoutDependent,
    /// The layouts form two clusters.
    TwoModes,
    /// The measured code changes the speed of the code around it. The difference is not its cost.
    OtherSpeed,
    /// The ratio of the ruler's two chains is not that of their latencies, or APERF differs from
    /// the ruler.
    RulersDisagree,
    /// A counted event contradicts the result.
    CountersDisagree,
    /// The cost is not proportional to the number of copies.
    Nonlinear,
    /// The number is an upper bound.
    UpperBound,
    /// The decoders limit the copies, or may limit them: in a loop they cost less.
    FrontEnd,
    /// Something else uses the core's execution units.
    SiblingBusy,
    /// The cost kept changing from round to round.
    NotRepeatable,
    /// Later copies do other work than the first one, which uses up some state.
    NotSteady,
    /// A point of a sweep or list was measured twice, and the results differ by more than their
    /// intervals.
    PassesDisagree,
    /// A function could not be called often enough to train its predictors.
    NotTrained,
    /// A function returned too soon to have worked on the data that it got.
    ReturnedAtOnce,
    /// The machine is emulated: its cycles are not those of a real core.
    Emulated,
    /// Other programs ran during many calls.
    Interrupted,
    /// Many rounds were disturbed.
    Noisy,
}

impl CaveatKind {
    /// Advises one remedy, unless the caveat's text contains it.
    pub fn advice(self) -> Option<&'static str> {
        Some(match self {
            CaveatKind::IntervalNotReached => "give more time, such as --budget 2",
            CaveatKind::FrequencyMoved => "measure again, or fix the core clock: see `cyclescope doctor`",
            CaveatKind::Migrated | CaveatKind::OtherSpeed => "measure again",
            CaveatKind::LayoutDependent | CaveatKind::TwoModes => {
                "take the range as the result; aligned code and data of your own have one of these costs"
            }
            CaveatKind::Nonlinear => {
                "choose --unroll and --loop: long bodies outgrow buffers, short ones fit the predictors"
            }
            CaveatKind::UpperBound
            | CaveatKind::FrontEnd
            | CaveatKind::Emulated
            | CaveatKind::RulersDisagree
            | CaveatKind::CountersDisagree
            | CaveatKind::NotSteady => {
                return None;
            }
            CaveatKind::SiblingBusy => "take another core with --cpu, or stop the background load",
            CaveatKind::NotRepeatable => "give more untimed rounds with --warm-up",
            CaveatKind::PassesDisagree => {
                "measure again with more time, such as --budget 1, or take the interval, which holds both"
            }
            CaveatKind::NotTrained => "let the function free what it takes, or prepare each call with --setup",
            CaveatKind::ReturnedAtOnce => {
                "check the arguments and their order, as in --call 'crc32(0, buffer, size)', and what the function returns"
            }
            CaveatKind::Interrupted => {
                "give shorter calls with a smaller --loop or --unroll, or take a quieter CPU with --cpu"
            }
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
    fn from_unsteady_state(state: &UnsteadyState) -> Caveat {
        Caveat { code: CaveatKind::NotSteady, text: format!("{}; {}", state.text, state.remedy) }
    }

    /// The caveat of an emulated machine.
    pub fn emulated_machine() -> Caveat {
        let text = "the machine is emulated: its clock does not count the cycles of a core".to_string();
        Caveat { code: CaveatKind::Emulated, text }
    }
}

/// The ruler's chains disagree if their ratio is wrong by more than this share.
const RULER_SHARE: f64 = 0.01;
/// A smaller disagreement refuses no number: plans aim at this share. The shortest chains, 256
/// cycles, are off by 0.08 % if the instrument is off by its standard deviation.
const RULER_LEAST: f64 = 0.0025;
/// Confidence level of a disagreement between the chains. A false alarm would refuse a good number.
const CERTAIN_CONFIDENCE: f64 = 0.999;
/// Additions per core cycle below which the core was shared, whatever its design. Every x86-64 core
/// since 2003 adds at least two numbers per cycle, and all but small designs add three.
const WIDTH_LEAST: f64 = 1.5;
/// A smaller share of layouts is not a mode of the code: something disturbed these layouts.
const MODE_SHARE_LEAST: f64 = 0.05;
/// The cost depends on the layout if its standard deviation over layouts, less the noise of rounds,
/// exceeds this share and this many cycles.
const LAYOUT_SHARE: f64 = 0.03;
const LAYOUT_CYCLES: f64 = 0.02;
/// A number of copies that every core treats as many.
const COPIES_MANY: usize = 64;
/// A machine is noisy if more than this share of the rounds was dropped.
const DROPPED_SHARE: f64 = 0.2;

/// Whether a result with these caveats falls short of the request.
pub fn fall_short(caveats: &[Caveat]) -> bool {
    let short = [
        CaveatKind::Nonlinear,
        CaveatKind::UpperBound,
        CaveatKind::IntervalNotReached,
        CaveatKind::NotRepeatable,
        CaveatKind::NotSteady,
        CaveatKind::RulersDisagree,
        CaveatKind::SiblingBusy,
        CaveatKind::Emulated,
    ];
    caveats.iter().any(|caveat| short.contains(&caveat.code))
}

/// Finds the caveats of a measurement for the requested precision.
pub fn find_caveats(measurement: &CostMeasurement, required: Precision) -> Vec<Caveat> {
    let unsteady = measurement.unsteady.iter().map(Caveat::from_unsteady_state);
    if measurement.is_refused_as_unsteady() {
        // The others describe a number that is not reported.
        return unsteady.collect();
    }
    let Some(estimate) = &measurement.estimate else {
        let layouts = &measurement.acquisition.layouts;
        let rounds = layouts.iter().map(|layout| layout.samples.rounds().len()).sum();
        if let Some(caveat) = check_interruptions(measurement.acquisition.interrupted_rounds(), rounds) {
            return vec![caveat];
        }
        let text = "fewer than two layouts had undisturbed rounds".to_string();
        return vec![Caveat { code: CaveatKind::Noisy, text }];
    };
    let found = [
        check_linearity(measurement, estimate),
        check_loop_slack(measurement, estimate),
        check_repeatability(measurement, estimate),
        check_training(measurement),
        check_interval(&estimate.cost, required),
        check_modes(estimate),
        check_layout_spread(measurement, estimate),
        check_rulers(estimate),
        check_sibling(estimate),
        check_frequency(estimate),
        check_interruptions(measurement.acquisition.interrupted_rounds(), estimate.kept + estimate.dropped),
        check_dropped_rounds(measurement, estimate),
    ];
    unsteady.chain(found.into_iter().flatten()).collect()
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

/// A body that takes few cycles can hide in the time of its loop: an iteration takes as long as the
/// loop's branch, however little the copies need.
fn check_loop_slack(measurement: &CostMeasurement, estimate: &CostEstimate) -> Option<Caveat> {
    let Acquisition { shape, units, layouts, .. } = &*measurement.acquisition;
    if !measurement.acquisition.may_hide_copies(&measurement.cost, estimate) {
        return None;
    }
    let [.., long] = call::snippet_calls(0);
    let per_copy = layouts.iter().map(|layout| {
        let mut durations: Vec<f64> = layout.samples.column(long).collect();
        let copies = layout.copies[0][2] as f64 * shape.loop_count as f64;
        statistics::median(&mut durations) / copies / estimate.rate[1]
    });
    let bound = per_copy.fold(f64::INFINITY, f64::min);
    let text = format!(
        "an iteration with {} copies is so short that the loop's own branch may hide them; a copy takes at most \
         {bound:.3} core cycles: give more copies with --unroll and --loop",
        4 * units[0]
    );
    new_caveat(CaveatKind::UpperBound, text)
}

fn check_repeatability(measurement: &CostMeasurement, estimate: &CostEstimate) -> Option<Caveat> {
    if measurement.settled {
        return None;
    }
    let text = format!(
        "the cost was still changing after {} untimed rounds: {:+.3} core cycles from the first half of the \
         rounds to the second",
        measurement.acquisition.warm_up, estimate.trend.value
    );
    new_caveat(CaveatKind::NotRepeatable, text)
}

fn check_training(measurement: &CostMeasurement) -> Option<Caveat> {
    let error = measurement.untrainable.as_ref()?;
    new_caveat(
        CaveatKind::NotTrained,
        format!("called many more times, the function fails ({error}); this is its cost before that"),
    )
}

/// Returns a caveat if the interval is wider than requested.
pub fn check_interval(cost: &Interval, required: Precision) -> Option<Caveat> {
    if required.is_met_by(cost) {
        return None;
    }
    let text = format!(
        "the interval's half width is {:.4} core cycles, {:.2} % of the cost",
        cost.half_width(),
        100.0 * cost.half_width() / cost.value.abs()
    );
    new_caveat(CaveatKind::IntervalNotReached, text)
}

/// Two clusters of layouts are a caveat only if the mean over all layouts differs from the larger
/// cluster by more than the interval covers.
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

/// Rounds differ too, so the spread of layouts counts only beyond the noise of rounds. The
/// difference between the halves of a layout's rounds has twice the standard deviation that this
/// noise gives the layout's cost.
fn check_layout_spread(measurement: &CostMeasurement, estimate: &CostEstimate) -> Option<Caveat> {
    let figures = |figure: &dyn Fn(&LayoutEstimate) -> f64| estimate.layouts.iter().map(figure).collect::<Vec<_>>();
    let mut costs = figures(&|layout| layout.cost);
    let noise = quartile_deviation(&mut figures(&|layout| layout.trend)) / 2.0;
    let (spread, chance) = (quartile_deviation(&mut costs), chance_variance_ratio(costs.len()).sqrt());
    // The noise of rounds widens the spread, but is not a difference between layouts.
    let own = (spread * spread - noise * noise).max(0.0).sqrt();
    let small = own <= LAYOUT_CYCLES.max(LAYOUT_SHARE * estimate.cost.value.abs());
    if (small || spread <= chance * noise) && !modes_matter(estimate) {
        return None;
    }
    let [low, high] = value_range(costs.iter().copied());
    let few = few_copies(measurement).map_or(String::new(), |copies| {
        format!(
            "; a loop of about {copies} copies may cost more or less per copy than a long one, \
             such as --unroll {COPIES_MANY} with a smaller --loop"
        )
    });
    let text = format!("the cost differs between layouts of code and data: {low:.3} to {high:.3} core cycles{few}");
    new_caveat(CaveatKind::LayoutDependent, text)
}

/// Copies in the loop of the shortest body if they are few. Prefetchers follow the loads of few
/// instructions, but not those of many. A ring of 64 pages took 14.6, 17.6 or 20 core cycles per
/// node with 5 to 20 copies, and 14.0 with 16 or more (Zen 5).
fn few_copies(measurement: &CostMeasurement) -> Option<usize> {
    let Acquisition { shape, units, loop_is_chosen, .. } = &*measurement.acquisition;
    let given_loop = shape.loop_count > 1 && !loop_is_chosen;
    units.first().copied().filter(|copies| given_loop && *copies < COPIES_MANY)
}

/// Ratio of two variances that chance exceeds once in a hundred, if the true variances are equal.
/// Each variance comes from the `deviation` of this number of values. The interquartile range of a
/// normal distribution knows the variance as well as 37 % of the values would. So the logarithm of
/// each variance has the variance 2/0.37 over their number.
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
        "an add takes {value:.4} cycles by the imul ruler and should take 1, so the cost may be wrong by as \
         much: try the default clock, or run it again"
    );
    new_caveat(CaveatKind::RulersDisagree, text)
}

/// Whether the ruler's chains disagree by much, or certainly by more than the cost's interval
/// covers, as shares. Then one chain is read wrongly, and so is the cost.
pub fn has_ruler_conflict(estimate: &CostEstimate) -> bool {
    let links: Vec<f64> = estimate.layouts.iter().map(|layout| layout.add_link).collect();
    let Some(link) = statistics::t_interval(&links, CERTAIN_CONFIDENCE) else { return false };
    let certain = (link.low - 1.0).max(1.0 - link.high);
    let covered = (estimate.cost.half_width() / estimate.cost.value).abs();
    let Interval { low, high, .. } = estimate.add_link;
    low > 1.0 + RULER_SHARE || high < 1.0 - RULER_SHARE || certain > covered.max(RULER_LEAST)
}

/// The core was shared if most layouts found a busy sibling, or if the median width is below that
/// of any design. Other studies decide differently: see [`sibling`](crate::sibling).
fn check_sibling(estimate: &CostEstimate) -> Option<Caveat> {
    let [_, median, best] = estimate.width;
    if !estimate.shared && median >= WIDTH_LEAST {
        return None;
    }
    let text = format!(
        "the core adds {median:.1} numbers per cycle, at best {best:.1}: something else uses its execution units"
    );
    new_caveat(CaveatKind::SiblingBusy, text)
}

/// A change of frequency alone is not a caveat, since the ruler follows it. It is one if the cost
/// at one frequency differs from the cost from all rounds by more than the interval covers.
fn check_frequency(estimate: &CostEstimate) -> Option<Caveat> {
    let [low, mean, high] = estimate.rate;
    let Some(changing) = estimate.changing else {
        let text = "the core clock changed in too many rounds for the ruler to follow it".to_string();
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

/// The rounds with an interrupted call are not used. Few of them are no news.
fn check_interruptions(interrupted: usize, rounds: usize) -> Option<Caveat> {
    if interrupted as f64 <= DROPPED_SHARE * rounds as f64 {
        return None;
    }
    let text = format!("other programs ran during calls of {interrupted} of {rounds} rounds, which were not used");
    new_caveat(CaveatKind::Interrupted, text)
}

fn check_dropped_rounds(measurement: &CostMeasurement, estimate: &CostEstimate) -> Option<Caveat> {
    // Interrupted rounds have their own caveat.
    let others = estimate.dropped.saturating_sub(measurement.acquisition.interrupted_rounds());
    let share = others as f64 / (estimate.kept + estimate.dropped) as f64;
    if share <= DROPPED_SHARE {
        return None;
    }
    let percent = 100.0 * share;
    let text = format!("{percent:.0} % of the rounds were not used: disturbed, or in a layout that is left out");
    new_caveat(CaveatKind::Noisy, text)
}
