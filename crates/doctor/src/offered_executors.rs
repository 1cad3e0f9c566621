//! Lists the executors, and whether they can be used on this machine.

use cyclescope_core::machine::Machine;
use serde::Serialize;

/// An executor, available or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfferedExecutor {
    /// Its name, as `--executor` takes it.
    pub executor: &'static str,
    /// Short description.
    pub about: &'static str,
    /// Whether it can be used here.
    pub available: bool,
    /// Reason why it can't be used.
    pub why_not: Option<String>,
    /// Remedy for the user.
    pub remedy: Option<String>,
}

/// Lists all executors, without running code on them.
pub(super) fn list_executors(machine: &Machine) -> Vec<OfferedExecutor> {
    let one = |offer: &cyclescope_exec::ExecutorOffer| {
        let refused = (offer.check)(machine).err();
        OfferedExecutor {
            executor: offer.name,
            about: offer.about,
            available: refused.is_none(),
            remedy: refused.as_ref().map(|refused| refused.remedy.clone()).filter(|text| !text.is_empty()),
            why_not: refused.map(|refused| refused.why),
        }
    };
    cyclescope_exec::EXECUTOR_OFFERS.iter().map(one).collect()
}
