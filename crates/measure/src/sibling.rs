//! How a measurement reacts to a busy sibling, the other hardware thread of its core: which
//! replicates it keeps, when it measures again, how long it waits, and when it gives up. The
//! ruler's [`UnsharedWidth`] detects the sibling.
//!
//! Only this file pauses a measurement (see `tests/structure`). Measurements differ in the
//! parameters of a [`SiblingPolicy`], each with its reason.
//!
//! Each study has its own replicates, so each decides for itself when a number has the caveat
//! `sibling_busy`, and what it measures again:
//!
//! - `run`: if most layouts were shared and too few others remain, or if the median width is below
//!   that of any core (`check_sibling` in `result/caveat.rs`). Measures all layouts again after a
//!   pause (`ALL_LAYOUTS_RETRY_POLICY` in `adaptive_loop.rs`).
//! - `evaluate`: if at least one ensemble was shared (`list_caveats` in `evaluate/src/record.rs`).
//!   Ensembles are not measured again.
//! - `marker`: if more than a fifth of a row's visits were shared (`marker/src/caveats.rs`). These
//!   never count, and visits are added until enough others do (`SHARED_VISITS_POLICY`).
//! - `instr`: if all readings of a program were shared, in every pass (`shared_core_caveat` in
//!   `instr/src/rows/row_analysis.rs`). Measures cycles of links, layouts and forms again
//!   (`CONTROL_RETRY_POLICY`, `LAYOUT_RETRY_POLICY`, `FORM_RETRY_POLICY`), and waits for its fillers and for
//!   forms and mixes that have no other reading ([`SiblingWait`]). Mixes without one are refused.
//! - `uarch`: if more than a tenth of a test's layouts were shared, also the second time
//!   (`BusyShare` in `uarch/src/conditions.rs`). Measures the test again once, and parts of it
//!   more often (the policies in `conditions.rs`, `overlap.rs`, `cost.rs`, `level_curves.rs`).

use crate::ruler::UnsharedWidth;
use cyclescope_exec::Executor;
use std::time::Duration;

/// Policy for replicates (rounds, layouts, visits, ensembles) that ran with a busy sibling.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SiblingPolicy {
    /// Fewest unshared replicates needed to leave out the shared ones.
    pub least: usize,
    /// Smallest share of unshared replicates needed to leave out the shared ones.
    pub least_share: f64,
    /// Most retries.
    pub retries: u32,
    /// No retry begins if more than this share of the replicates was shared: the sibling does not
    /// rest.
    pub resting_share: f64,
    /// The pause before each retry.
    pub pause: Duration,
}

/// Replicates that remain after those with a busy sibling are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptReplicates<T> {
    /// The unshared replicates, or all if too few were unshared.
    pub used: Vec<T>,
    /// Whether most of `used` ran with a busy sibling.
    pub shared: bool,
    /// Number of shared replicates.
    pub shared_count: usize,
}

impl SiblingPolicy {
    /// Leaves out shared replicates if at least four others remain, and these are at least a
    /// quarter of all: enough for an interval. Never measures again.
    pub const USUAL: SiblingPolicy =
        SiblingPolicy { least: 4, least_share: 0.25, retries: 0, resting_share: 1.0, pause: Duration::ZERO };

    /// Whether there are enough unshared replicates to leave out the others.
    pub fn is_enough(&self, alone: usize, all: usize) -> bool {
        alone >= self.least && alone as f64 >= self.least_share * all as f64
    }

    /// Leaves out shared replicates if enough others remain. `width` returns a replicate's width
    /// and its standard error.
    pub fn keep_unshared<T>(
        &self,
        all: Vec<T>,
        quiet: UnsharedWidth,
        width: impl Fn(&T) -> (f64, f64),
    ) -> KeptReplicates<T> {
        let is_alone = |replicate: &T| {
            let (width, error) = width(replicate);
            quiet.is_alone(width, error)
        };
        let (alone, total) = (all.iter().filter(|replicate| is_alone(replicate)).count(), all.len());
        let enough = self.is_enough(alone, total);
        let used = if enough { all.into_iter().filter(is_alone).collect() } else { all };
        KeptReplicates { used, shared: !enough && 2 * alone < total, shared_count: total - alone }
    }

    /// Measures, and again while a result is wrong and retries are left. Returns the last result.
    pub fn retry_while<T, E>(
        self,
        is_wrong: impl Fn(&T) -> bool,
        mut measure: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let (mut retries, mut found) = (self.start_retries(), measure()?);
        while is_wrong(&found) && retries.use_retry() {
            found = measure()?;
        }
        Ok(found)
    }

    /// The retries of a new measurement.
    pub fn start_retries(self) -> Retries {
        Retries { policy: self, left: self.retries }
    }
}

/// The retries that a measurement has left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retries {
    policy: SiblingPolicy,
    left: u32,
}

impl Retries {
    /// Retries that allow none.
    pub const NONE: Retries = Retries { policy: SiblingPolicy::USUAL, left: 0 };

    /// Whether the measurement may run again. Uses up a retry.
    pub fn use_retry(&mut self) -> bool {
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }

    /// Like [`Retries::use_retry`], but only if at most [`SiblingPolicy::resting_share`] of the
    /// replicates was shared.
    pub fn retry_if_shared(&mut self, shared: f64) -> bool {
        shared <= self.policy.resting_share && self.use_retry()
    }

    /// Like [`Retries::retry_if_shared`], after a pause.
    pub fn pause_if_shared(&mut self, executor: &mut dyn Executor, shared: f64) -> bool {
        let may = self.retry_if_shared(shared);
        if may {
            executor.pause(self.policy.pause);
        }
        may
    }

    /// If a retry is left and the executor's time is before `until`: uses up a retry, pauses, and
    /// returns true.
    pub(crate) fn pause_before_retry(&mut self, executor: &mut dyn Executor, until: Duration) -> bool {
        // Without retries left the time is not read: each reading of it is an answer that a replay
        // expects in order.
        let may = self.left > 0 && executor.now() < until && self.use_retry();
        if may {
            executor.pause(self.policy.pause);
        }
        may
    }

    /// Whether this is the last try.
    pub fn is_last(&self) -> bool {
        self.left == 0
    }
}

/// How long many measurements together wait for a sibling that rests now and then. Siblings in clouds
/// were busy for up to a second at a time, and 60 % of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SiblingWait {
    /// What is left of the time.
    left: Duration,
    /// Time without a result since the last one.
    vain: Duration,
    /// When the present retry began.
    began: Option<Duration>,
}

/// The pause before a retry that waits.
const WAIT_PAUSE: Duration = Duration::from_millis(10);
/// A sibling that rests at no retry for this long does not rest at all.
const RESTLESS: Duration = Duration::from_secs(10);

impl SiblingWait {
    /// A wait of at most this time in all.
    pub fn new(most: Duration) -> SiblingWait {
        SiblingWait { left: most, vain: Duration::ZERO, began: None }
    }

    /// Whether a measurement that the sibling disturbed may run again; if so, after a pause. `gained` says
    /// whether this try had a result, be it for a part.
    pub fn pause_before_retry(&mut self, executor: &mut dyn Executor, gained: bool) -> bool {
        if self.left.is_zero() {
            return false;
        }
        let now = executor.now();
        let took = self.began.map_or(Duration::ZERO, |began| now.saturating_sub(began));
        self.left = self.left.saturating_sub(took);
        self.vain = if gained { Duration::ZERO } else { self.vain + took };
        let may = self.left > Duration::ZERO && self.vain < RESTLESS;
        self.began = may.then_some(now);
        if may {
            executor.pause(WAIT_PAUSE);
        }
        may
    }

    /// Leaves at least this much of the time, for a measurement that others depend on.
    pub fn leave_at_least(&mut self, least: Duration) {
        self.left = self.left.max(least);
    }

    /// Ends the retries of a measurement that has its result: the time until the next one does not count.
    pub fn end_retries(&mut self) {
        if self.began.take().is_some() {
            self.vain = Duration::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ruler::LeastWidth;
    use cyclescope_sim::{Scenario, SimulatedExecutor};

    const WIDTHS: [f64; 12] = [4.1, 4.12, 2.1, 4.15, 4.13, 4.1, 2.2, 4.14, 4.12, 3.9, 4.11, 4.13];

    /// Applies the usual policy to these widths, each with its standard error.
    fn kept(widths: &[(f64, f64)], quiet: UnsharedWidth) -> KeptReplicates<(f64, f64)> {
        SiblingPolicy::USUAL.keep_unshared(widths.to_vec(), quiet, |width| *width)
    }

    #[test]
    fn rounds_with_a_busy_sibling_are_left_out() {
        let quiet = UnsharedWidth::from_widths(WIDTHS.map(|width| (width, 0.0)), None);
        let alone = kept(&WIDTHS.map(|width| (width, 0.005)), quiet);
        assert!(!alone.shared && alone.used.len() == 9 && alone.used.iter().all(|(width, _)| *width > 4.0));
        assert_eq!(alone.shared_count, 3);
        // Widths within their error stay.
        assert_eq!(kept(&WIDTHS.map(|width| (width, 0.02)), quiet).used.len(), 10);
    }

    #[test]
    fn a_core_that_is_nearly_always_shared_is_used_and_reported() {
        let widths = [vec![(2.1, 0.005); 30], vec![(4.1, 0.005); 3]].concat();
        let alone = kept(&widths, UnsharedWidth::from_widths([(4.1, 0.0)], None));
        assert!(alone.shared && alone.used.len() == 33);
    }

    #[test]
    fn a_permanently_busy_sibling_is_detected_on_a_known_design() {
        let widths = [(2.1, 0.0); 8];
        assert!(!kept(&widths, UnsharedWidth::from_widths(widths, None)).shared);
        assert!(kept(&widths, UnsharedWidth::from_widths(widths, Some(LeastWidth { least: 3.36 }))).shared);
        // Five adders that add 4.1 are not a shared core.
        assert!(UnsharedWidth::from_widths([(4.1, 0.0); 8], Some(LeastWidth { least: 3.36 })).is_alone(4.1, 0.0));
    }

    #[test]
    fn few_layouts_are_all_used() {
        let widths = [(4.0, 0.0), (2.0, 0.0), (4.0, 0.0)];
        let alone = kept(&widths, UnsharedWidth::from_widths(widths, None));
        assert!(!alone.shared && alone.used.len() == 3);
    }

    #[test]
    fn a_wrong_result_is_measured_again_while_retries_are_left() {
        let policy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };
        let found = [1, 2, 9].map(|right| {
            let mut times = 0;
            policy.retry_while(
                |found| *found < right,
                || {
                    times += 1;
                    Ok::<_, ()>(times)
                },
            )
        });
        assert_eq!(found, [Ok(1), Ok(2), Ok(3)]);
    }

    #[test]
    fn retries_end_by_number_by_time_and_for_a_sibling_that_never_rests() {
        let policy = SiblingPolicy { retries: 2, resting_share: 0.9, ..SiblingPolicy::USUAL };
        let mut retries = policy.start_retries();
        assert_eq!([0.95, 0.6, 0.6, 0.6].map(|shared| retries.retry_if_shared(shared)), [false, true, true, false]);
        assert!(retries.is_last() && SiblingPolicy::USUAL.start_retries().is_last());
        let (mut machine, mut retries) = (SimulatedExecutor::new(Scenario::default(), 1), policy.start_retries());
        assert_eq!(
            [0, 3600, 3600, 3600].map(|s| retries.pause_before_retry(&mut machine, Duration::from_secs(s))),
            [false, true, true, false]
        );
    }
    #[test]
    fn a_wait_ends_with_its_time_or_for_a_sibling_that_never_rests() {
        let mut machine = SimulatedExecutor::new(Scenario::default(), 1);
        let mut count = |most: u64, gained: bool| {
            let mut wait = SiblingWait::new(Duration::from_secs(most));
            let tries = (0..).take_while(|_| wait.pause_before_retry(&mut machine, gained)).count();
            (tries, wait)
        };
        let ((all, _), (vain, mut restless)) = (count(60, true), count(60, false));
        // 60 and 10 s in pauses of 10 ms.
        assert!((5_990..=6_001).contains(&all) && (998..=1_001).contains(&vain), "{all} {vain}");
        // It stays so until a measurement has its result at a retry.
        restless.leave_at_least(Duration::from_secs(60));
        assert!(!restless.pause_before_retry(&mut machine, false));
        let mut spent = SiblingWait::new(Duration::ZERO);
        assert!(!spent.pause_before_retry(&mut machine, false));
        spent.leave_at_least(Duration::from_secs(1));
        assert!(spent.pause_before_retry(&mut machine, false));
        let mut wait = SiblingWait::new(Duration::from_secs(60));
        assert!(wait.pause_before_retry(&mut machine, false));
        wait.end_retries();
        machine.pause(Duration::from_secs(3600));
        assert!(wait.pause_before_retry(&mut machine, false));
    }
}
