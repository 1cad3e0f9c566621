//! A form beside a class, and the port cycles that a copy of it takes on the ports of the class.

use crate::deciding_mix::MixLimits;
use crate::port_labels::{PortBits, best_cycles};
use crate::union_bounds::{SLOW_SHARE, TIME_SHARE};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::MixTime;
use cyclescope_measure::result::record::Quantity;

/// A timed mix of a form beside a class: the class is its first part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FittedMix {
    pub(crate) mix: Mix,
    pub(crate) time: MixTime,
    /// The ports of the class.
    pub(crate) blocked: PortBits,
    pub(crate) limits: MixLimits,
}

/// Two sums of the same parts in another order differ by less, as a share.
const ROUNDING: f64 = 1e-9;

/// The port cycles that a copy of a form of these µops takes on a set of ports, in core cycles.
///
/// Beside a class that uses exactly these ports, they are busy throughout if nothing else limits the mix:
/// the form takes what the class leaves. The interval adds to that of the time what a mix may differ from
/// the best assignment: it may be slower by [`SLOW_SHARE`] and seem faster by [`TIME_SHARE`]. Without such a
/// mix, the number of µops has no interval.
pub(crate) fn read_port_cycles(mixes: &[FittedMix], uops: &[PortBits], set: PortBits) -> Quantity {
    let count = uops.iter().filter(|own| **own & !set == 0).count() as f64;
    let beside = mixes.iter().filter(|fitted| fitted.blocked == set);
    let readings = beside.filter_map(|fitted| {
        let [blockers, copies] = [0, 1].map(|part: usize| fitted.mix.parts.get(part).map(|part| part.count as f64));
        let (blockers, copies) = (blockers?, copies?);
        let ports = f64::from(set.count_ones());
        let busy = (blockers + count * copies) / ports;
        let all: Vec<(PortBits, f64)> =
            uops.iter().map(|own| (*own, copies)).chain([(fitted.blocked, blockers)]).collect();
        let left = |cycles: f64| (cycles * ports - blockers) / copies;
        let time = &fitted.time;
        (busy * (1.0 + ROUNDING) >= best_cycles(&all).max(fitted.limits.slots)).then(|| Interval {
            value: left(time.cycles),
            low: left(time.low / (1.0 + SLOW_SHARE)),
            high: left(time.high * (1.0 + TIME_SHARE)),
        })
    });
    let width = |reading: &Interval| reading.high - reading.low;
    match readings.min_by(|a, b| width(a).total_cmp(&width(b))) {
        Some(reading) => Quantity::new(reading, Unit::CoreCycles).at_least_zero(),
        None => Quantity { value: Some(count), ..Quantity::refused(Unit::CoreCycles) },
    }
}
