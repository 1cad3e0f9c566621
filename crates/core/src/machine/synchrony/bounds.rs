//! What exchanges prove about two counters. No statistics: each exchange gives two inequalities.
//!
//! An exchange is a reading of A, then one of B, then one of A again; each reading causes the next.
//! So B's counter had not yet passed its own reading at A's first reading, and had passed it at A's
//! second. B's lead over A is therefore below one point at the first reading's time, and above
//! another at the second's.
//!
//! If both counters run at steady rates, the lead is a line. All lines that satisfy every exchange
//! are the possible leads (A. Duda, G. Harrus, Y. Haddad and G. Bernard, "Estimating global time in
//! distributed systems", ICDCS 1987). Only the hulls of the points matter.
//!
//! A reading is rounded down to the counter's step, so the counter is up to one step ahead of it.
//! The phase of the step may differ between the two CPUs. Readings of a stepping counter were also
//! seen one tick too high ([`super::super::tsc_step`]).

use serde::{Deserialize, Serialize};

use crate::machine::fact::Fact;
use crate::statistics::Interval;

/// One exchange; the readings are in order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TscExchange {
    /// A's TSC before it sends the message.
    pub sent: u64,
    /// B's TSC after it receives the message and before it answers.
    pub reflected: u64,
    /// A's TSC after it receives the answer.
    pub returned: u64,
}

/// What a set of exchanges proves about the TSC of CPU B relative to that of CPU A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TscComparison {
    /// Ticks by which B's TSC is ahead of A's: a hard bound with its middle, if the lead was
    /// constant. Unknown if no constant fits all exchanges.
    pub offset_ticks: Fact<Interval>,
    /// Ticks by which the lead moved at least; 0 if one constant fits all exchanges.
    pub moved_ticks: f64,
    /// Parts per million by which B's TSC is faster: a hard bound with its middle, if the rates
    /// were steady.
    pub drift_ppm: Fact<Interval>,
    /// Duration of an exchange as seen by A.
    pub round_trip_ticks: RoundTrip,
    /// Number of exchanges.
    pub exchanges: usize,
    /// Exchanges in which a later reading was smaller.
    pub backwards: BackwardsTime,
    /// A's ticks from the first exchange to the last.
    pub span_ticks: u64,
    /// The lead in each block of exchanges.
    pub blocks: Vec<BlockOffset>,
}

/// Durations of exchanges, in ticks of A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Fastest exchange.
    pub least: u64,
    /// Median exchange.
    pub median: u64,
}

/// Time that ran backwards from one CPU to the other. Linux makes the same check when a CPU starts
/// (arch/x86/kernel/tsc_sync.c, `check_tsc_warp`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackwardsTime {
    /// Exchanges with a reading smaller than one that caused it.
    pub exchanges: usize,
    /// Largest step backwards, in ticks.
    pub most_ticks: u64,
}

/// The lead in one block, which lasts about a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BlockOffset {
    /// Middle of the block, in A's ticks since the first exchange.
    pub at_ticks: f64,
    /// Ticks by which B's TSC is ahead of A's, at least.
    pub low: f64,
    /// Ticks at most. Less than `low` if the lead moved within the block.
    pub high: f64,
}

impl TscComparison {
    /// Whether no later reading was smaller than an earlier one in [`TscComparison::exchanges`]
    /// exchanges. This is no proof that time can never run backwards.
    pub(crate) fn is_monotonic(&self) -> bool {
        self.backwards.exchanges == 0
    }

    /// Whether both TSCs may count the same at the same moment: the bound of the offset contains 0.
    /// This does not imply [`TscComparison::is_monotonic`], because the bound is several hundred
    /// ticks wide.
    #[cfg(test)]
    pub(crate) fn may_be_equal(&self) -> bool {
        self.offset_ticks.known().is_some_and(|offset| offset.contains(0.0))
    }
}

/// How far the counter may be from its reading, in ticks.
#[derive(Debug, Clone, Copy)]
struct ReadingSlack {
    /// Below the reading.
    early: f64,
    /// Above it.
    late: f64,
}

/// Steps from this size on were seen with readings one tick too high.
const OFF_BY_ONE_FROM: f64 = 4.0;

impl ReadingSlack {
    fn from_step(step: f64) -> ReadingSlack {
        let early = if step >= OFF_BY_ONE_FROM { 1.0 } else { 0.0 };
        // A fractional step is rounded down to whole ticks after the rounding to a step.
        let cut = if step.fract() == 0.0 { 0.0 } else { 1.0 };
        ReadingSlack { early, late: step.max(1.0) + cut }
    }
}

/// A's time and B's lead, both relative to the first exchange.
type LeadPoint = (f64, f64);

/// Points that the lead must lie below, and above.
#[derive(Debug, Default)]
struct LeadLimits {
    above: Vec<LeadPoint>,
    below: Vec<LeadPoint>,
}

/// Derives what blocks of exchanges prove. `step` is that of the readings, in ticks.
pub(crate) fn compare_exchanges(blocks: &[Vec<TscExchange>], step: f64) -> Fact<TscComparison> {
    let Some(first) = blocks.iter().flatten().next() else { return Fact::unknown("no exchange was made") };
    let lead = first.reflected.wrapping_sub(first.sent) as i64 as f64;
    let slack = ReadingSlack::from_step(step);
    let limits: Vec<LeadLimits> = blocks
        .iter()
        .filter(|block| !block.is_empty())
        .map(|block| LeadLimits::from_exchanges(block, first, slack).reduce_to_hulls())
        .collect();
    let blocks: Vec<&TscExchange> = blocks.iter().flatten().collect();
    let all = LeadLimits::join_limits(&limits).reduce_to_hulls();
    let [low, high] = all.constant_bounds();
    Fact::Known(TscComparison {
        offset_ticks: offset_interval([low + lead, high + lead]),
        moved_ticks: (low - high).max(0.0),
        drift_ppm: drift_interval(&all),
        round_trip_ticks: summarize_round_trips(&blocks),
        exchanges: blocks.len(),
        backwards: count_backwards(&blocks),
        span_ticks: blocks[blocks.len() - 1].returned.wrapping_sub(first.sent),
        blocks: limits.iter().map(|limits| limits.block_offset(lead)).collect(),
    })
}

impl LeadLimits {
    fn from_exchanges(block: &[TscExchange], first: &TscExchange, slack: ReadingSlack) -> LeadLimits {
        let since = |reading: u64, from: u64| reading.wrapping_sub(from) as i64 as f64;
        let mut limits = LeadLimits::default();
        for exchange in block {
            let sent = since(exchange.sent, first.sent) - slack.early;
            let returned = since(exchange.returned, first.sent) + slack.late;
            let reflected = since(exchange.reflected, first.reflected);
            limits.above.push((sent, reflected + slack.late - sent));
            limits.below.push((returned, reflected - slack.early - returned));
        }
        limits
    }

    fn join_limits(parts: &[LeadLimits]) -> LeadLimits {
        let collect_points =
            |points_of: fn(&LeadLimits) -> &Vec<LeadPoint>| parts.iter().flat_map(points_of).copied().collect();
        LeadLimits { above: collect_points(|limits| &limits.above), below: collect_points(|limits| &limits.below) }
    }

    /// Keeps only the points that a line can touch.
    fn reduce_to_hulls(self) -> LeadLimits {
        let mirrored = |points: Vec<LeadPoint>| points.into_iter().map(|(x, y)| (x, -y)).collect();
        LeadLimits { above: lower_hull(self.above), below: mirrored(lower_hull(mirrored(self.below))) }
    }

    /// The least and the greatest constant; in reverse order if none fits.
    fn constant_bounds(&self) -> [f64; 2] {
        let low = self.below.iter().fold(f64::NEG_INFINITY, |low, point| low.max(point.1));
        [low, self.above.iter().fold(f64::INFINITY, |high, point| high.min(point.1))]
    }

    /// The least and the greatest slope of a line that fits; `None` if no line does.
    ///
    /// A line of a given slope has a highest start below all upper points, and a lowest start above
    /// all lower points. It fits if the former is not below the latter. That holds if it holds for
    /// every pair of an upper and a lower point.
    fn slope_bounds(&self) -> Option<[f64; 2]> {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for below in &self.below {
            for above in &self.above {
                let (run, rise) = (above.0 - below.0, above.1 - below.1);
                if run > 0.0 {
                    high = high.min(rise / run);
                } else if run < 0.0 {
                    low = low.max(rise / run);
                } else if rise < 0.0 {
                    return None;
                }
            }
        }
        (low <= high).then_some([low, high])
    }

    fn block_offset(&self, lead: f64) -> BlockOffset {
        let [low, high] = self.constant_bounds();
        let (first, last) = (self.above[0].0, self.below[self.below.len() - 1].0);
        BlockOffset { at_ticks: (first + last) / 2.0, low: low + lead, high: high + lead }
    }
}

/// The lower hull of points, by Andrew's monotone chain (Information Processing Letters 9, 1979).
fn lower_hull(mut points: Vec<LeadPoint>) -> Vec<LeadPoint> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<LeadPoint> = Vec::new();
    for point in points {
        while let [.., a, b] = hull[..] {
            if (b.0 - a.0) * (point.1 - a.1) > (b.1 - a.1) * (point.0 - a.0) {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

fn interval_of_bounds([low, high]: [f64; 2]) -> Interval {
    Interval { value: low + (high - low) / 2.0, low, high }
}

fn offset_interval([low, high]: [f64; 2]) -> Fact<Interval> {
    if low > high {
        let moved = low - high;
        return Fact::unknown(format!("the counters moved against each other by {moved:.0} ticks or more"));
    }
    Fact::Known(interval_of_bounds([low, high]))
}

fn drift_interval(limits: &LeadLimits) -> Fact<Interval> {
    match limits.slope_bounds() {
        None => Fact::unknown("no steady rates explain the exchanges: a counter jumped, or changed its rate"),
        Some(slopes) if !slopes.iter().all(|slope| slope.is_finite()) => Fact::unknown("there were too few exchanges"),
        Some(slopes) => Fact::Known(interval_of_bounds(slopes.map(|slope| slope * 1e6))),
    }
}

fn summarize_round_trips(exchanges: &[&TscExchange]) -> RoundTrip {
    let length = |exchange: &&TscExchange| exchange.returned.wrapping_sub(exchange.sent);
    let mut lengths: Vec<u64> = exchanges.iter().map(length).collect();
    lengths.sort_unstable();
    RoundTrip { least: lengths[0], median: lengths[lengths.len() / 2] }
}

fn count_backwards(exchanges: &[&TscExchange]) -> BackwardsTime {
    let mut found = BackwardsTime::default();
    for exchange in exchanges {
        let backwards_there = exchange.sent.saturating_sub(exchange.reflected);
        let backwards_back = exchange.reflected.saturating_sub(exchange.returned);
        found.exchanges += usize::from(backwards_there.max(backwards_back) > 0);
        found.most_ticks = found.most_ticks.max(backwards_there).max(backwards_back);
    }
    found
}
