//! Modes: clusters of replicates with different costs. Their mean is a cost that never occurs.

use cyclescope_core::statistics::{Interval, find_modes};
use serde::Serialize;

/// A cluster of replicates (layouts, or visits to a placement) with one cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostMode {
    /// Core cycles per copy.
    pub cost: Interval,
    /// Share of the replicates in this mode.
    pub share: f64,
}

/// A smaller gap, as a share of the cost, does not separate learnt from unlearnt replicates. The
/// trained costs of a binary search spread by 4 %. Late learning of predictors saves 6 to 28 % of a
/// function (Zen 5).
const LEARNT_GAP: f64 = 0.05;
/// Fewest replicates that learnt, and their smallest share of all. Under background load a third of
/// the layouts of a loop had learnt its exit (Zen 5).
const LEARNT_LEAST: usize = 2;
const LEARNT_SHARE: f64 = 0.3;

/// Replicates, grouped by mode.
#[derive(Debug, Clone, PartialEq)]
pub struct CostModes {
    /// Indices of the replicates in each mode; modes are in ascending order of cost.
    groups: Vec<Vec<usize>>,
    count: usize,
}

impl CostModes {
    /// Finds the modes of these costs. A spread below `scale` within a mode is ignored: see
    /// [`find_modes`].
    pub fn from_costs(costs: &[f64], scale: f64) -> CostModes {
        CostModes { groups: find_modes(costs, scale), count: costs.len() }
    }

    /// Groups replicates with trained predictors. A gap in the costs separates those that learnt
    /// from the others.
    pub(crate) fn from_trained_costs(costs: &[f64]) -> CostModes {
        let mut order: Vec<usize> = (0..costs.len()).collect();
        order.sort_by(|a, b| costs[*a].total_cmp(&costs[*b]));
        let near = |a: &usize, b: &usize| costs[*b] - costs[*a] <= LEARNT_GAP * costs[*b].abs();
        let groups = order.chunk_by(near).map(<[usize]>::to_vec).collect();
        CostModes { groups, count: costs.len() }
    }

    /// The mode with the most replicates, and the cheaper of two equal ones; `None` without
    /// replicates.
    pub fn largest_mode(&self) -> Option<&[usize]> {
        self.groups.iter().rev().max_by_key(|group| group.len()).map(Vec::as_slice)
    }

    /// The cheapest mode that is not rare: the replicates whose trained predictors have learnt.
    pub(crate) fn learnt_mode(&self) -> Option<&[usize]> {
        let frequent =
            |group: &&Vec<usize>| group.len() >= LEARNT_LEAST && group.len() as f64 >= LEARNT_SHARE * self.count as f64;
        self.groups.iter().find(frequent).map(Vec::as_slice)
    }

    /// The replicates of all modes with at least this share of the replicates.
    pub(crate) fn frequent_replicates(&self, share: f64) -> Vec<usize> {
        let frequent = |group: &&Vec<usize>| group.len() as f64 >= share * self.count as f64;
        self.groups.iter().filter(frequent).flatten().copied().collect()
    }

    /// The modes that may be as frequent as the largest: the numbers of replicates differ by at
    /// most two standard deviations of a fair coin. The largest mode is included.
    pub fn rival_modes(&self) -> impl Iterator<Item = &[usize]> {
        const DEVIATIONS: f64 = 2.0;
        let most = self.largest_mode().map_or(0, <[usize]>::len) as f64;
        let rivals = self.groups.iter().filter(move |group| {
            let count = group.len() as f64;
            most - count <= DEVIATIONS * (most + count).sqrt()
        });
        rivals.map(Vec::as_slice)
    }

    /// The modes that have an interval, if there are several modes; empty if replicates agree.
    pub fn list_modes(&self, interval: impl Fn(&[usize]) -> Option<Interval>) -> Vec<CostMode> {
        if self.groups.len() < 2 {
            return Vec::new();
        }
        let share = |group: &[usize]| group.len() as f64 / self.count as f64;
        let mode = |group: &Vec<usize>| Some(CostMode { cost: interval(group)?, share: share(group) });
        self.groups.iter().filter(|group| group.len() > 1).filter_map(mode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: [f64; 12] = [2.0, 5.0, 2.0, 5.1, 2.1, 5.0, 2.0, 2.1, 2.0, 2.0, 2.1, 2.0];

    fn interval(group: &[usize]) -> Option<Interval> {
        Some(Interval::with_margin(group.iter().map(|index| COSTS[*index]).sum::<f64>() / group.len() as f64, 0.1))
    }

    #[test]
    fn the_largest_mode_is_found_and_all_are_listed() {
        let modes = CostModes::from_costs(&COSTS, 0.05);
        assert_eq!(modes.largest_mode().map(<[usize]>::len), Some(9));
        let listed = modes.list_modes(interval);
        assert_eq!(listed.iter().map(|mode| mode.share).collect::<Vec<_>>(), [0.75, 0.25]);
        assert!(listed[0].cost.contains(2.0) && listed[1].cost.contains(5.0));
        assert_eq!(CostModes::from_costs(&[], 0.1).largest_mode(), None);
    }

    #[test]
    fn learning_of_some_predictors_shows_as_a_gap() {
        let modes = CostModes::from_trained_costs(&[1975.0, 1551.0, 1599.0, 1565.0, 1611.0]);
        assert_eq!(modes.learnt_mode(), Some(&[1, 3, 2, 4][..]));
        // One of six may be luck, and a gradual increase does not show learning.
        assert_eq!(
            CostModes::from_trained_costs(&[525.0, 616.0, 617.0, 617.0, 618.0, 618.0])
                .learnt_mode()
                .map(<[usize]>::len),
            Some(5)
        );
        assert_eq!(CostModes::from_trained_costs(&[1740.0, 1930.0, 2100.0, 2240.0]).learnt_mode(), None);
        assert_eq!(
            CostModes::from_trained_costs(&[266.0, 276.0, 286.0, 297.0]).learnt_mode().map(<[usize]>::len),
            Some(4)
        );
        assert_eq!(CostModes::from_trained_costs(&[1.0, 2.0]).learnt_mode(), None);
    }

    #[test]
    fn modes_that_may_be_equally_frequent_are_rivals() {
        assert_eq!(CostModes::from_costs(&COSTS, 0.05).rival_modes().count(), 2);
        let mut many = COSTS.repeat(8);
        many.iter_mut().skip(24).for_each(|cost| *cost = 2.0);
        let modes = CostModes::from_costs(&many, 0.05);
        assert_eq!(
            (modes.rival_modes().count(), modes.list_modes(|_| Some(Interval::with_margin(0.0, 0.0))).len()),
            (1, 2)
        );
    }
}
