//! Times mixes of the forms of one list, and each form alone.

use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTime};
use cyclescope_measure::study::StopReason;

/// Copies of a form that is timed alone.
const SINGLE_COPIES: usize = 12;

/// Times mixes of the forms of one list.
pub trait MixSource {
    /// The time of each mix, in their order.
    ///
    /// # Errors
    ///
    /// If the executor fails or the follower stops the study.
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason>;

    /// The same anew: something may have disturbed these mixes. A source that keeps times does not give one that it
    /// has given before.
    ///
    /// # Errors
    ///
    /// Those of [`MixSource::time_mixes`].
    fn time_again(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        self.time_mixes(mixes)
    }
}

/// Core cycles of each form alone, anew each time. `None` if a form can't be timed.
///
/// # Errors
///
/// Those of the source.
pub fn time_singles(source: &mut dyn MixSource, forms: &[usize]) -> Result<Vec<Option<MixTime>>, StopReason> {
    let mixes: Vec<Mix> = forms.iter().map(|form| Mix::new([(*form, SINGLE_COPIES)])).collect();
    let single = |outcome| {
        let MixOutcome::Timed(time) = outcome else { return None };
        let [cycles, low, high, worst] =
            [time.cycles, time.low, time.high, time.worst].map(|all| all / SINGLE_COPIES as f64);
        Some(MixTime { cycles, low, high, worst, ..time })
    };
    Ok(source.time_again(&mixes)?.into_iter().map(single).collect())
}

/// The times among these outcomes.
pub(crate) fn list_times(outcomes: &[MixOutcome]) -> Vec<MixTime> {
    let time = |outcome: &MixOutcome| match outcome {
        MixOutcome::Timed(time) => Some(*time),
        MixOutcome::Refused(_) => None,
    };
    outcomes.iter().filter_map(time).collect()
}
