//! The µops of a form that has more than one, or an odd rate: hypotheses against mixes.
//!
//! A form is timed beside as many copies of a class as keep its ports busy. A hypothesis is a list
//! of µops, each with the ports of a class. Its best assignment gives a time for each mix. A mix that
//! is faster disproves the hypothesis. A slower one counts against it.

use crate::port_labels::{PortBits, best_cycles};
use crate::union_bounds::{SLOT_SHARE, SLOW_SHARE, TIME_SHARE};

/// Upper limit of µops in a hypothesis.
pub const UOPS_MOST: usize = 5;
/// Upper limit of mixes that a candidate leaves unexplained.
const UNEXPLAINED_MOST: usize = 3;
/// Upper limit of candidates of one length.
const CANDIDATES_MOST: usize = 12;
/// Core cycles that a class would take alone in a mix.
pub const BLOCKED_CYCLES: usize = 4;

/// A form beside a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockedMix {
    /// The ports of the class; none for the form alone.
    pub blocked: PortBits,
    /// µops of the class.
    pub blockers: f64,
    /// Copies of the form.
    pub copies: f64,
    /// Lower end of the time's interval, in core cycles.
    pub low: f64,
    /// Upper end of the time's interval.
    pub high: f64,
}

/// What the mixes say about the µops of a form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UopFit {
    /// The hypotheses that explain all mixes.
    pub solutions: Vec<Vec<PortBits>>,
    /// The one that no mix disproves and that leaves the least unexplained, and how much: the largest
    /// share.
    pub nearest: Option<(Vec<PortBits>, f64)>,
    /// Mixes that are slower than the solutions allow, as are their twins (`twin_mixes`).
    pub twins: usize,
    /// Mixes beside classes that have no time.
    pub missing: usize,
    /// Whether the form is slow beside a class without a map: it uses more than the solutions say.
    pub is_slow_beside_odd: bool,
}

/// Supposed µops that explain some mixes of a form, and are too fast for the others.
#[derive(Debug, Clone, PartialEq)]
pub struct UopCandidate {
    /// The µops.
    pub uops: Vec<PortBits>,
    /// The indices of the other mixes, of those beside a class.
    pub unexplained: Vec<usize>,
}

/// Copies of a form of this many slots and core cycles beside a class of these ports: as many as the
/// slots leave room for.
pub fn count_copies(ports: u32, slots: f64, cycles: f64, width: f64) -> usize {
    let spare = (width - f64::from(ports)) * BLOCKED_CYCLES as f64 / slots;
    spare.min(BLOCKED_CYCLES as f64 / cycles).floor().max(1.0) as usize
}

/// Finds the µops of a form of this many slots, each with one of these sets of ports.
pub fn fit_uops(mixes: &[BlockedMix], sets: &[PortBits], slots: f64, width: f64) -> UopFit {
    let mut fit = UopFit::default();
    for size in list_sizes(slots) {
        let mut uops = Vec::new();
        list_multisets(sets, size, &mut uops, &mut |uops| {
            let Some(excess) = find_excess(mixes, uops, slots, width) else { return };
            if excess <= SLOW_SHARE {
                fit.solutions.push(uops.to_vec());
            }
            if fit.nearest.as_ref().is_none_or(|nearest| excess < nearest.1) {
                fit.nearest = Some((uops.to_vec(), excess));
            }
        });
        if !fit.solutions.is_empty() {
            break;
        }
    }
    fit
}

/// Numbers of µops that a form of this many slots may have, the likeliest first: as many as slots, or more, if a
/// slot holds two, or fewer, if one needs no port.
fn list_sizes(slots: f64) -> Vec<usize> {
    let usual = slots.round() as usize;
    let mut sizes: Vec<usize> = (0..=(usual + 1).min(UOPS_MOST)).collect();
    sizes.sort_by_key(|size| (size.abs_diff(usual), *size < usual));
    sizes
}

/// The lists of µops that no mix disproves and that explain the form alone, the likeliest length first. Of each
/// length, those that leave few mixes beside a class unexplained, the fewest first. `mixes` begins with the form alone.
pub fn list_candidates(mixes: &[BlockedMix], sets: &[PortBits], slots: f64, width: f64) -> Vec<UopCandidate> {
    let Some((alone, others)) = mixes.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    for size in list_sizes(slots).into_iter().filter(|size| *size > 0) {
        let mut own = Vec::new();
        list_multisets(sets, size, &mut Vec::new(), &mut |uops| {
            let excess = |mix: &BlockedMix| find_excess(std::slice::from_ref(mix), uops, slots, width);
            if !excess(alone).is_some_and(|excess| excess <= SLOW_SHARE) {
                return;
            }
            let Some(excesses) = others.iter().map(excess).collect::<Option<Vec<f64>>>() else { return };
            let slow = excesses.iter().enumerate().filter(|(_, excess)| **excess > SLOW_SHARE);
            own.push(UopCandidate { uops: uops.to_vec(), unexplained: slow.map(|(at, _)| at).collect() });
        });
        own.sort_by_key(|candidate| candidate.unexplained.len());
        let fewest = own.first().map_or(0, |candidate| candidate.unexplained.len());
        own.retain(|candidate| candidate.unexplained.len() <= (fewest + 1).min(UNEXPLAINED_MOST));
        own.truncate(CANDIDATES_MOST);
        all.extend(own);
    }
    all
}

/// Calls `take` with each multiset of this size.
fn list_multisets(sets: &[PortBits], size: usize, chosen: &mut Vec<PortBits>, take: &mut dyn FnMut(&[PortBits])) {
    if size == 0 {
        return take(chosen);
    }
    for (index, set) in sets.iter().enumerate() {
        chosen.push(*set);
        list_multisets(&sets[index..], size - 1, chosen, take);
        chosen.pop();
    }
}

/// The largest share by which a mix is slower than the best assignment of these µops. `None` if a mix
/// is faster.
fn find_excess(mixes: &[BlockedMix], uops: &[PortBits], slots: f64, width: f64) -> Option<f64> {
    let mut most = 0.0_f64;
    for mix in mixes {
        let own = uops.iter().map(|ports| (*ports, mix.copies));
        let all: Vec<(PortBits, f64)> = own.chain((mix.blocked != 0).then_some((mix.blocked, mix.blockers))).collect();
        let ports = best_cycles(&all);
        let dispatch = (mix.blockers + slots * mix.copies) / width;
        let best = ports.max(dispatch);
        if mix.high < best * (1.0 - TIME_SHARE) {
            return None;
        }
        most = most.max(mix.low / ports.max(dispatch * (1.0 + SLOT_SHARE)) - 1.0);
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: f64 = 6.0;
    const SETS: [PortBits; 4] = [0b1111, 0b0010, 0b11_0000, 0b110_0000];

    /// Mixes of a form with these µops beside each set, and alone.
    fn time(uops: &[PortBits], slots: f64, factor: f64) -> Vec<BlockedMix> {
        let alone = best_cycles(&uops.iter().map(|ports| (*ports, 1.0)).collect::<Vec<_>>()).max(slots / WIDTH);
        [0].iter()
            .chain(&SETS)
            .map(|blocked: &PortBits| {
                let ports = blocked.count_ones();
                let copies = count_copies(ports, slots, alone, WIDTH) as f64;
                let blockers = f64::from(ports) * BLOCKED_CYCLES as f64;
                let mut all: Vec<(PortBits, f64)> = uops.iter().map(|ports| (*ports, copies)).collect();
                all.extend((*blocked != 0).then_some((*blocked, blockers)));
                let cycles = factor * best_cycles(&all).max((blockers + slots * copies) / WIDTH);
                BlockedMix { blocked: *blocked, blockers, copies, low: cycles * 0.998, high: cycles * 1.002 }
            })
            .collect()
    }

    #[test]
    fn uops_follow_from_mixes_with_each_class() {
        for uops in [vec![0b0010, 0b1111], vec![0b11_0000], vec![0b11_0000, 0b11_0000], vec![0b0010, 0b110_0000]] {
            let slots = uops.len() as f64;
            let fit = fit_uops(&time(&uops, slots, 1.0), &SETS, slots, WIDTH);
            let mut own = uops.clone();
            own.sort_unstable();
            let found: Vec<Vec<PortBits>> = fit
                .solutions
                .iter()
                .map(|uops| {
                    let mut uops = uops.clone();
                    uops.sort_unstable();
                    uops
                })
                .collect();
            assert_eq!(found, [own], "{uops:?}");
        }
    }

    #[test]
    fn what_no_port_explains_is_said_to_be_near() {
        let fit = fit_uops(&time(&[0b11_0000], 1.0, 1.3), &SETS, 1.0, WIDTH);
        assert!(fit.solutions.is_empty());
        let (_, excess) = fit.nearest.unwrap();
        assert!((0.2..0.35).contains(&excess), "{excess}");
    }
}
