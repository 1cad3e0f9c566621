//! What calls of a function executed, and whether they differ.

use super::finding::UnsteadyState;
use super::remedy::advise_preparation;
use cyclescope_code::program::DivisionCount;
use cyclescope_core::statistics::median;

/// Calls differ if this share of their instructions does. A library's allocator takes another way
/// in the first call than in later ones, and costs a small share of what uses it.
const OTHER_SHARE: f64 = 0.01;
/// The function is not steady if more than this share of its later calls differ. A random number
/// generator takes a longer way in every fifteenth call or so.
const OTHER_CALLS_SHARE: f64 = 0.25;
/// Quotients differ if they are shorter by more than this number of bits in the mean. Dividers take
/// about a cycle for two to four bits.
const OTHER_QUOTIENT_BITS: u64 = 4;
/// Other instructions in the time of a division: more than ten cycles, at some three a cycle. So a
/// number of divisions matters before the number of instructions does.
const DIVISION_INSTRUCTIONS: u64 = 32;
/// Floating-point divisions and square roots end earlier if more than this share of them have short
/// results that they had not in the first call.
const SHORT_RESULTS_SHARE: f64 = 0.25;
/// Early calls that are compared at once.
pub(super) const EARLY_CALLS: usize = 8;
/// Growth goes on if later calls add at least this share of the instructions per call that earlier
/// ones add. Of a search tree, whose depth grows with the logarithm of its size, they add less.
const LASTING_GROWTH_SHARE: f64 = 0.25;
/// The same if later calls take too long to be counted: the share of its instructions by which the
/// last early call exceeds the second one.
const EARLY_GROWTH_SHARE: f64 = 0.25;

/// What a later call executed, compared with the first one.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallCounts {
    /// Number of the call after a fresh start, from 1.
    pub(super) call: u64,
    /// Instructions that one of both executed and the other did not.
    pub(super) unlike: u64,
    /// Instructions of the first call, and of this one.
    pub(super) first: u64,
    pub(super) own: u64,
    /// The counter that differs most.
    pub(super) counter: u64,
    /// Divisions of the first call, and of this one.
    pub(super) divisions: [DivisionCount; 2],
    /// Floating-point divisions and square roots of both, with their short results.
    pub(super) float_divisions: [DivisionCount; 2],
    /// Whether there were denormal numbers in the first call, and in this one.
    pub(super) denormal: [bool; 2],
}

impl CallCounts {
    pub(super) fn is_other(&self) -> bool {
        self.unlike as f64 > OTHER_SHARE * self.first.max(self.own) as f64
    }

    /// Whether quotients are shorter than in the first call. Longer ones are no alarm: a generator
    /// of random numbers begins with a small one.
    fn has_shorter_quotients(&self) -> bool {
        let [first, own] = self.divisions;
        let fewer = first.bits.saturating_sub(own.bits);
        fewer > OTHER_QUOTIENT_BITS * first.divisions && fewer as f64 > OTHER_SHARE * self.first as f64
    }

    /// Whether the number of divisions differs by a share of the time that [`OTHER_SHARE`] of the
    /// instructions take.
    fn has_other_divisions(&self) -> bool {
        let [first, own] = [0, 1].map(|call| self.divisions[call].divisions + self.float_divisions[call].divisions);
        (DIVISION_INSTRUCTIONS * first.abs_diff(own)) as f64 > OTHER_SHARE * self.first.max(self.own) as f64
    }

    /// Whether more floating-point divisions and square roots have short results than in the first
    /// call. Fewer are no alarm: an iteration begins with a short number.
    fn has_shorter_results(&self) -> bool {
        let [first, own] = self.float_divisions;
        let more = own.bits.saturating_sub(first.bits);
        more as f64 > SHORT_RESULTS_SHARE * own.divisions as f64
            && (DIVISION_INSTRUCTIONS * more) as f64 > OTHER_SHARE * self.first as f64
    }

    fn has_other_denormals(&self) -> bool {
        self.denormal[0] != self.denormal[1]
    }
}

/// The calls that differ from the first one, if they are more than a function may have.
pub(super) fn find_others(calls: &[CallCounts], is_other: impl Fn(&CallCounts) -> bool) -> Option<Vec<&CallCounts>> {
    let others: Vec<&CallCounts> = calls.iter().filter(|counts| is_other(counts)).collect();
    (others.len() as f64 > OTHER_CALLS_SHARE * calls.len() as f64).then_some(others)
}

/// Compares the numbers of calls that execute the same instructions.
pub(super) fn judge_numbers(calls: &[CallCounts]) -> Option<UnsteadyState> {
    let denormal = || {
        let CallCounts { call, denormal: [first, _], .. } =
            *find_others(calls, CallCounts::has_other_denormals)?.pop()?;
        Some(match first {
            true => format!("numbers are denormal in the first call after a fresh start, and not in call {call}"),
            false => format!("numbers are denormal in call {call} after a fresh start, and not in the first one"),
        })
    };
    let shorter = || {
        let CallCounts { call, divisions, .. } = *find_others(calls, CallCounts::has_shorter_quotients)?.pop()?;
        let [first, own] = divisions.map(|count| count.bits as f64 / count.divisions.max(1) as f64 + 1.0);
        Some(format!(
            "the quotients of integer divisions have {first:.0} bits in the first call after a fresh start and \
             {own:.0} in call {call}"
        ))
    };
    let divided = || {
        let shown = find_others(calls, CallCounts::has_other_divisions)?.pop()?;
        let [first, own] = [0, 1].map(|at| shown.divisions[at].divisions + shown.float_divisions[at].divisions);
        let call = shown.call;
        Some(format!(
            "the first call after a fresh start executes {first} divisions and square roots, and call {call} executes \
             {own}"
        ))
    };
    let short = || {
        let CallCounts { call, float_divisions: [first, own], .. } =
            *find_others(calls, CallCounts::has_shorter_results)?.pop()?;
        Some(format!(
            "{} floating-point divisions and square roots have short results in the first call after a fresh start, \
             and {} in call {call}",
            first.bits, own.bits
        ))
    };
    Some(UnsteadyState {
        text: denormal().or_else(shorter).or_else(divided).or_else(short)?,
        remedy: advise_preparation("that of further calls"),
        ..UnsteadyState::default()
    })
}

/// Decides whether instructions grow with each call, from groups of calls, the earliest first. An
/// allocator needs more for some calls than for others, so groups are compared by their medians.
pub(super) fn judge_growth(groups: &[Vec<CallCounts>]) -> Option<UnsteadyState> {
    let (latest, before) = groups.split_last()?;
    let (second, last) = (groups.first()?.first()?, latest.last()?);
    let grows = if before.is_empty() {
        latest.len() >= EARLY_CALLS
            && latest.windows(2).all(|pair| pair[1].own > pair[0].own)
            && (last.own - second.own) as f64 > EARLY_GROWTH_SHARE * last.own as f64
    } else {
        let point = |group: &Vec<CallCounts>| {
            let of_group = |number: fn(&CallCounts) -> u64| {
                median(&mut group.iter().map(|counts| number(counts) as f64).collect::<Vec<f64>>())
            };
            (of_group(|counts| counts.call), of_group(|counts| counts.own))
        };
        let points: Vec<(f64, f64)> = groups.iter().map(point).collect();
        let slopes: Vec<f64> =
            points.windows(2).map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0)).collect();
        let most_before = before.iter().flatten().map(|counts| counts.own).max();
        latest.iter().map(|counts| counts.own).min() > most_before
            && slopes[0] > 0.0
            && slopes.iter().all(|slope| *slope >= LASTING_GROWTH_SHARE * slopes[0])
    };
    let shown = groups.iter().filter_map(|group| group.last());
    let shown: Vec<String> =
        [second].into_iter().chain(shown).map(|CallCounts { call, own, .. }| format!("{own} in call {call}")).collect();
    grows.then(|| UnsteadyState {
        text: format!(
            "calls execute more and more instructions: {} after a fresh start, so a call has no cost",
            shown.join(", ")
        ),
        remedy: "let the function free or reset what each call adds, or prepare each call with --setup NAME, a \
                 function of the same file that does so"
            .to_string(),
        is_refused: true,
        grows: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups of calls that execute these numbers of instructions.
    fn groups(instructions: fn(u64) -> u64, firsts: &[u64]) -> Vec<Vec<CallCounts>> {
        let none = DivisionCount { divisions: 0, bits: 0 };
        let counts = |call| CallCounts {
            call,
            unlike: 0,
            first: instructions(1),
            own: instructions(call),
            counter: 0,
            divisions: [none; 2],
            float_divisions: [none; 2],
            denormal: [false; 2],
        };
        let number = |first: u64| if first == 2 { EARLY_CALLS as u64 } else { 4 };
        firsts.iter().map(|first| (*first..first + number(*first)).map(counts).collect()).collect()
    }

    #[test]
    fn growth_lasts_and_does_not_slow_down() {
        let all = [2, 34, 1002];
        let list: fn(u64) -> u64 = |call| 50 + 5 * call;
        // An allocator's slow way in the fifth call.
        let allocated: fn(u64) -> u64 = |call| 200 + 5 * call + if call == 5 { 400 } else { 0 };
        let square: fn(u64) -> u64 = |call| 10 * call * call;
        for grows in [list, allocated, square] {
            let state = judge_growth(&groups(grows, &all)).expect("it grows");
            assert!(state.is_refused && state.grows && state.text.contains("in call 1005"), "{}", state.text);
        }
        let tree: fn(u64) -> u64 = |call| 50 + 20 * u64::from(call.ilog2());
        let full: fn(u64) -> u64 = |call| 50 + 5 * call.min(40);
        let first_only: fn(u64) -> u64 = |call| if call == 1 { 1000 } else { 100 };
        let shrinking: fn(u64) -> u64 = |call| 10_000 - call;
        for stays in [tree, full, first_only, shrinking] {
            assert_eq!(judge_growth(&groups(stays, &all)), None);
        }
        // Calls that take too long for late ones.
        assert!(judge_growth(&groups(list, &[2])).is_some() && judge_growth(&groups(allocated, &[2])).is_none());
    }
}
