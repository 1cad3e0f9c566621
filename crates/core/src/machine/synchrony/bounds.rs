//! From exchanges to what they prove about two counters. No statistics: each exchange is two inequalities.
//!
//! An exchange is a reading of A, then one of B, then one of A again, each caused by the one before. So at
//! A's first reading B's counter had not yet passed its own reading, and at A's second one it had: the line
//! that gives B's lead over A is below a point at the first reading's time and above one at the second's.
//! The lines that do so for every exchange are all that the two counters can be, as long as both run at
//! steady rates (A. Duda, G. Harrus, Y. Haddad and G. Bernard, "Estimating global time in distributed
//! systems", ICDCS 1987). Only the hulls of the points matter.
//!
//! A reading is floored to the counter's step, so that the counter is up to one step ahead of it; the phase of
//! the step may differ between the two CPUs. Reads of a stepping counter were also seen one tick too high
//! ([`super::super::tsc_step`]).

use serde::{Deserialize, Serialize};

use crate::machine::fact::Fact;
use crate::statistics::Interval;

/// One exchange, in the order in which its readings happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// A's TSC before it sent the message.
    pub sent: u64,
    /// B's TSC after it got the message and before it answered.
    pub reflected: u64,
    /// A's TSC after it got the answer.
    pub returned: u64,
}

/// What a number of exchanges proves about the TSC of CPU B relative to that of CPU A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// By how many ticks B's TSC is ahead of A's: a hard bound with its middle, if the lead was one and the
    /// same in all exchanges. Unknown where no constant fits them.
    pub offset_ticks: Fact<Interval>,
    /// By how many ticks the lead moved at least; 0 where one constant fits all exchanges.
    pub moved_ticks: f64,
    /// By how many parts per million B's TSC is faster: a hard bound with its middle, if the rates were steady.
    pub drift_ppm: Fact<Interval>,
    /// How long an exchange took A.
    pub round_trip_ticks: RoundTrip,
    /// How many exchanges there were.
    pub exchanges: usize,
    /// Those in which a later reading was smaller.
    pub backwards: Backwards,
    /// A's ticks from the first exchange to the last.
    pub span_ticks: u64,
    /// The lead in each block of exchanges.
    pub blocks: Vec<BlockOffset>,
}

/// How long exchanges took, in ticks of A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// The fastest.
    pub least: u64,
    /// The median.
    pub median: u64,
}

/// Time seen to run backwards from one CPU to the other, as Linux looks for it when a CPU starts
/// (arch/x86/kernel/tsc_sync.c, `check_tsc_warp`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Backwards {
    /// Exchanges in which a reading was smaller than one that had caused it.
    pub exchanges: usize,
    /// By how many ticks at most.
    pub most_ticks: u64,
}

/// The lead in one block, which lasts about a millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BlockOffset {
    /// The block's middle, in A's ticks since the first exchange.
    pub at_ticks: f64,
    /// By how many ticks B's TSC is at least ahead of A's.
    pub low: f64,
    /// By how many ticks at most. Below `low` where the lead moved within the block.
    pub high: f64,
}

impl Comparison {
    /// No later reading was smaller than an earlier one, in [`Comparison::exchanges`] exchanges. That none was
    /// seen is no proof that none can be.
    pub(crate) fn monotonic(&self) -> bool {
        self.backwards.exchanges == 0
    }

    /// Nothing contradicts that both TSCs count the same at the same moment: the bound of the offset contains 0.
    /// That says nothing about [`Comparison::monotonic`], for the bound is some hundred ticks wide.
    #[cfg(test)]
    pub(crate) fn may_be_equal(&self) -> bool {
        self.offset_ticks.known().is_some_and(|offset| offset.contains(0.0))
    }
}

/// How far the counter may be from its reading, in ticks.
#[derive(Debug, Clone, Copy)]
struct Slack {
    /// Below the reading.
    early: f64,
    /// Above it.
    late: f64,
}

/// Steps from here on were seen with readings that are one tick too high.
const OFF_BY_ONE_FROM: f64 = 4.0;

impl Slack {
    fn of(step: f64) -> Slack {
        let early = if step >= OFF_BY_ONE_FROM { 1.0 } else { 0.0 };
        // A step that is no whole number is cut to whole ticks after it was floored.
        let cut = if step.fract() == 0.0 { 0.0 } else { 1.0 };
        Slack { early, late: step.max(1.0) + cut }
    }
}

/// A's time and the lead of B, both less those at the first exchange.
type Point = (f64, f64);

/// What the lead must lie below, and above.
#[derive(Debug, Default)]
struct Limits {
    above: Vec<Point>,
    below: Vec<Point>,
}

/// Works out what blocks of exchanges prove. `step` is that of the readings, in ticks.
pub(crate) fn compare(blocks: &[Vec<Exchange>], step: f64) -> Fact<Comparison> {
    let Some(first) = blocks.iter().flatten().next() else { return Fact::unknown("no exchange was made") };
    let lead = first.reflected.wrapping_sub(first.sent) as i64 as f64;
    let slack = Slack::of(step);
    let limits: Vec<Limits> = blocks
        .iter()
        .filter(|block| !block.is_empty())
        .map(|block| Limits::of(block, first, slack).hulls())
        .collect();
    let blocks: Vec<&Exchange> = blocks.iter().flatten().collect();
    let all = Limits::joined(&limits).hulls();
    let [low, high] = all.constant();
    Fact::Known(Comparison {
        offset_ticks: offset([low + lead, high + lead]),
        moved_ticks: (low - high).max(0.0),
        drift_ppm: drift(&all),
        round_trip_ticks: round_trip(&blocks),
        exchanges: blocks.len(),
        backwards: backwards(&blocks),
        span_ticks: blocks[blocks.len() - 1].returned.wrapping_sub(first.sent),
        blocks: limits.iter().map(|limits| limits.block(lead)).collect(),
    })
}

impl Limits {
    fn of(block: &[Exchange], first: &Exchange, slack: Slack) -> Limits {
        let since = |reading: u64, from: u64| reading.wrapping_sub(from) as i64 as f64;
        let mut limits = Limits::default();
        for exchange in block {
            let sent = since(exchange.sent, first.sent) - slack.early;
            let returned = since(exchange.returned, first.sent) + slack.late;
            let reflected = since(exchange.reflected, first.reflected);
            limits.above.push((sent, reflected + slack.late - sent));
            limits.below.push((returned, reflected - slack.early - returned));
        }
        limits
    }

    fn joined(parts: &[Limits]) -> Limits {
        let all = |of: fn(&Limits) -> &Vec<Point>| parts.iter().flat_map(of).copied().collect();
        Limits { above: all(|limits| &limits.above), below: all(|limits| &limits.below) }
    }

    /// Only the points that a line can touch.
    fn hulls(self) -> Limits {
        let mirrored = |points: Vec<Point>| points.into_iter().map(|(x, y)| (x, -y)).collect();
        Limits { above: lower_hull(self.above), below: mirrored(lower_hull(mirrored(self.below))) }
    }

    /// The least and the greatest constant; crossed where there is none.
    fn constant(&self) -> [f64; 2] {
        let low = self.below.iter().fold(f64::NEG_INFINITY, |low, point| low.max(point.1));
        [low, self.above.iter().fold(f64::INFINITY, |high, point| high.min(point.1))]
    }

    /// The least and the greatest slope of a line that fits; `None` where no line does.
    ///
    /// A line of a given slope fits where its highest start below all upper points is no lower than its lowest
    /// one above all lower points, hence where this is so for every pair of them.
    fn slopes(&self) -> Option<[f64; 2]> {
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

    fn block(&self, lead: f64) -> BlockOffset {
        let [low, high] = self.constant();
        let (first, last) = (self.above[0].0, self.below[self.below.len() - 1].0);
        BlockOffset { at_ticks: (first + last) / 2.0, low: low + lead, high: high + lead }
    }
}

/// The lower hull of points, by Andrew's monotone chain (Information Processing Letters 9, 1979).
fn lower_hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut hull: Vec<Point> = Vec::new();
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

fn middle([low, high]: [f64; 2]) -> Interval {
    Interval { value: low + (high - low) / 2.0, low, high }
}

fn offset([low, high]: [f64; 2]) -> Fact<Interval> {
    if low > high {
        let moved = low - high;
        return Fact::unknown(format!("the counters moved against each other by {moved:.0} ticks or more"));
    }
    Fact::Known(middle([low, high]))
}

fn drift(limits: &Limits) -> Fact<Interval> {
    match limits.slopes() {
        None => Fact::unknown("no steady rates explain the exchanges: a counter jumped, or changed its rate"),
        Some(slopes) if !slopes.iter().all(|slope| slope.is_finite()) => {
            Fact::unknown("there were too few exchanges")
        }
        Some(slopes) => Fact::Known(middle(slopes.map(|slope| slope * 1e6))),
    }
}

fn round_trip(exchanges: &[&Exchange]) -> RoundTrip {
    let length = |exchange: &&Exchange| exchange.returned.wrapping_sub(exchange.sent);
    let mut lengths: Vec<u64> = exchanges.iter().map(length).collect();
    lengths.sort_unstable();
    RoundTrip { least: lengths[0], median: lengths[lengths.len() / 2] }
}

fn backwards(exchanges: &[&Exchange]) -> Backwards {
    let mut found = Backwards::default();
    for exchange in exchanges {
        let there = exchange.sent.saturating_sub(exchange.reflected);
        let back = exchange.reflected.saturating_sub(exchange.returned);
        found.exchanges += usize::from(there.max(back) > 0);
        found.most_ticks = found.most_ticks.max(there).max(back);
    }
    found
}
