//! Modes among a few dozen estimates: groups separated by gaps too wide for chance.

/// Fewest members of a mode: two equal values can be chance, and a single one is an outlier.
const FEWEST_MEMBERS: usize = 3;

/// Largest number of modes searched for.
const MOST_MODES: usize = 4;

/// Splits values into their modes, lowest first. Each mode holds the indices of its values in
/// ascending order.
///
/// The rule: cut the sorted values at their three widest gaps, else at two, else at one. Every
/// group must keep at least three members. The cuts are kept if each gap is wide compared with the
/// spread within groups:
///
/// ```text
///     gap / (s √(1/k + 1/l)) ≥ 4.7 + 40/n
/// ```
///
/// for adjacent groups with k and l members, n values in all, and s the pooled standard deviation
/// within groups, or `scale` if that is larger. Otherwise, or with fewer than six values, all
/// values form one group. An outlier joins the adjacent group.
///
/// `scale` is an insignificant spread, such as the standard error of the values. It prevents splits
/// at smaller gaps when values agree by accident. Zero if unknown.
///
/// The threshold is fitted to simulation, which the tests repeat. With `scale` zero, at most 1 of
/// 100 samples is split, for 8 to 64 values from a normal, uniform or exponential distribution.
///
/// Few values carry little evidence. To be split 95 times in 100, two groups of 8 values in all
/// must be 14 standard deviations apart; of 16 values, 10; of 32, 9; of 64, 7. No rule without a
/// known scale does much better: once in 100 samples, 8 uniform values look like two groups 8 of
/// their own deviations apart.
pub fn find_modes(values: &[f64], scale: f64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let sorted: Vec<f64> = order.iter().map(|index| values[*index]).collect();
    let cuts = (1..MOST_MODES)
        .rev()
        .filter_map(|count| widest_gaps(&sorted, count))
        .find(|cuts| are_modes(&split_at_cuts(&sorted, cuts), scale))
        .unwrap_or_default();
    split_at_cuts(&order, &cuts).into_iter().filter(|group| !group.is_empty()).map(<[usize]>::to_vec).collect()
}

/// Positions of the `count` widest gaps in ascending order, if every group keeps enough members.
fn widest_gaps(sorted: &[f64], count: usize) -> Option<Vec<usize>> {
    let last = sorted.len().checked_sub(FEWEST_MEMBERS)?;
    let mut gaps: Vec<usize> = (FEWEST_MEMBERS..=last).collect();
    gaps.sort_by(|a, b| gap_width(sorted, *b).total_cmp(&gap_width(sorted, *a)));
    let mut cuts: Vec<usize> = Vec::with_capacity(count);
    for gap in gaps {
        if cuts.len() < count && cuts.iter().all(|cut| cut.abs_diff(gap) >= FEWEST_MEMBERS) {
            cuts.push(gap);
        }
    }
    cuts.sort_unstable();
    (cuts.len() == count).then_some(cuts)
}

/// The gap before a value.
fn gap_width(sorted: &[f64], at: usize) -> f64 {
    sorted[at] - sorted[at - 1]
}

fn split_at_cuts<'a, T>(sorted: &'a [T], cuts: &[usize]) -> Vec<&'a [T]> {
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([sorted.len()]);
    starts.zip(ends).map(|(start, end)| &sorted[start..end]).collect()
}

fn are_modes(groups: &[&[f64]], scale: f64) -> bool {
    let count: usize = groups.iter().map(|group| group.len()).sum();
    let squares = |group: &&[f64]| super::sample_variance(group) * (group.len() - 1) as f64;
    let pooled = groups.iter().map(squares).sum::<f64>() / (count - groups.len()) as f64;
    let spread = pooled.sqrt().max(scale);
    let threshold = 4.7 + 40.0 / count as f64;
    groups.windows(2).all(|pair| {
        let gap = pair[1][0] - pair[0][pair[0].len() - 1];
        let per_member = (1.0 / pair[0].len() as f64 + 1.0 / pair[1].len() as f64).sqrt();
        gap > 0.0 && gap >= threshold * spread * per_member
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    type Draw = fn(&mut Random) -> f64;

    /// Share of samples that are split.
    fn split_rate(samples: u32, mut draw: impl FnMut(&mut Random) -> Vec<f64>) -> f64 {
        let mut random = Random::new(11);
        let split = (0..samples).filter(|_| find_modes(&draw(&mut random), 0.0).len() > 1).count();
        split as f64 / f64::from(samples)
    }

    #[test]
    fn one_mode_is_rarely_split_by_chance() {
        let distributions: [(&str, Draw); 3] =
            [("normal", Random::normal), ("uniform", Random::uniform), ("exponential", Random::exponential)];
        for size in [6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64] {
            for (name, draw) in distributions {
                let rate = split_rate(10_000, |random| (0..size).map(|_| draw(random)).collect());
                println!("{size} {name}: {:.2} % split", 100.0 * rate);
                assert!(rate <= 0.01, "{rate} of {name} samples of {size} values");
            }
        }
    }

    /// Share of samples whose two normal groups, this many deviations apart, are found exactly.
    fn exact_rate(low: usize, high: usize, apart: f64) -> f64 {
        let mut random = Random::new(12);
        let exact = |random: &mut Random| {
            let shift = |index| if index < low { 0.0 } else { apart };
            let values: Vec<f64> = (0..low + high).map(|index| shift(index) + random.normal()).collect();
            let found = find_modes(&values, 0.0);
            found.len() == 2 && found[0].len() == low && found[0].iter().all(|index| *index < low)
        };
        (0..2000).filter(|_| exact(&mut random)).count() as f64 / 2000.0
    }

    #[test]
    fn distant_modes_are_found() {
        let cases =
            [(4, 4, 14.0), (3, 5, 14.0), (8, 8, 10.0), (3, 13, 10.0), (16, 16, 8.0), (3, 29, 9.0), (32, 32, 7.0)];
        for (low, high, apart) in cases {
            let rate = exact_rate(low, high, apart);
            println!("{low} + {high} values {apart} apart: {:.1} % found", 100.0 * rate);
            assert!(rate >= 0.95);
        }
    }

    #[test]
    fn three_modes_give_three_groups() {
        // Costs of one vector instruction with a load, per layout.
        let values = [0.501, 0.58, 0.66, 0.5, 0.581, 0.659, 0.5, 0.579, 0.661, 0.499, 0.58, 0.66];
        let found = find_modes(&values, 0.0);
        assert_eq!(found, [vec![9, 3, 6, 0], vec![7, 1, 10, 4], vec![5, 2, 11, 8]]);
    }

    #[test]
    fn groups_of_equal_values_split_only_beyond_the_scale() {
        let values = [1.0, 1.0, 1.0, 1.5, 1.5, 1.5];
        assert_eq!(find_modes(&values, 0.0), [vec![0, 1, 2], vec![3, 4, 5]]);
        assert_eq!(find_modes(&values, 0.5).len(), 1);
        assert_eq!(find_modes(&[1.0; 12], 0.0).len(), 1);
    }

    #[test]
    fn few_values_and_outliers_form_no_mode() {
        assert_eq!(find_modes(&[], 0.0), Vec::<Vec<usize>>::new());
        assert_eq!(find_modes(&[2.0, 1.0], 0.0), [vec![1, 0]]);
        assert_eq!(find_modes(&[1.0, 1.0, 1.0, 9.0, 9.0], 0.0).len(), 1);
        let mut values: Vec<f64> = (0..20).map(|k| f64::from(k % 5)).collect();
        values[7] = 1000.0;
        assert_eq!(find_modes(&values, 0.0).len(), 1);
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_group_and_groups_are_ordered(
            values in prop::collection::vec(prop::sample::select(vec![1.0, 1.01, 1.02, 2.0, 2.01, 7.0]), 0..40),
            scale in 0.0..0.1f64,
        ) {
            let found = find_modes(&values, scale);
            let flat: Vec<usize> = found.iter().flatten().copied().collect();
            let mut indices = flat.clone();
            indices.sort_unstable();
            prop_assert_eq!(indices, (0..values.len()).collect::<Vec<_>>());
            prop_assert!(flat.windows(2).all(|pair| values[pair[0]] <= values[pair[1]]));
            prop_assert!(found.len() <= MOST_MODES && (found.len() <= 1 || found.iter().all(|g| g.len() >= FEWEST_MEMBERS)));
        }

        #[test]
        fn scaling_all_values_keeps_the_groups(values in prop::collection::vec(0.0..100f64, 6..40), exponent in -8..8) {
            let factor = 2f64.powi(exponent);
            let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
            prop_assert_eq!(find_modes(&values, 0.1), find_modes(&scaled, 0.1 * factor));
        }
    }
}
