//! Which executors there are, and whether they can be used here.

use cyclescope_core::machine::Machine;
use serde::Serialize;

/// An executor on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OfferedExecutor {
    /// Its name, as `--executor` takes it.
    pub executor: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether it can be used here.
    pub available: bool,
    /// Why it can't.
    pub why_not: Option<String>,
    /// What the user can do about that.
    pub remedy: Option<String>,
}

/// All executors on offer. No code runs on them.
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
