//! The markers that each executor can run: designs, their states, and loops.

use super::kernel;
use super::source::design::{self, SiteDesign};
use super::state::{self, MarkerState};
use cyclescope_core::error::Unavailable;

/// The markers of one executor.
#[derive(Debug, Clone, Copy)]
pub struct MarkerCatalog {
    /// Name of the executor.
    pub executor: &'static str,
    /// The designs, sorted by name.
    pub designs: &'static [SiteDesign],
    /// The possible states of a design.
    pub states: fn(&SiteDesign) -> Vec<MarkerState>,
    /// Names of the available loops; `None` if all loops, including custom ones, are available.
    pub contexts: Option<&'static [&'static str]>,
    /// The only timing method for reading these markers; `None` if any works.
    pub clock: Option<&'static str>,
}

/// One catalog per executor.
pub(crate) const ALL: &[MarkerCatalog] = &[
    MarkerCatalog {
        executor: cyclescope_exec::user::USER_OFFER.name,
        designs: design::ALL,
        states: state::list_states,
        contexts: None,
        clock: None,
    },
    MarkerCatalog {
        executor: cyclescope_exec::kernel::KERNEL_OFFER.name,
        designs: kernel::design::ALL,
        states: kernel::design::possible_states,
        contexts: Some(&["empty", "memcpy"]),
        clock: Some(kernel::CLOCK),
    },
];

impl MarkerCatalog {
    /// The catalog of an executor.
    pub fn for_executor(executor: &str) -> Result<&'static MarkerCatalog, Unavailable> {
        ALL.iter().find(|catalog| catalog.executor == executor).ok_or_else(|| Unavailable {
            what: format!("a marker on executor {executor}"),
            why: "it has no markers".to_string(),
            remedy: format!("choose another: {}", executor_names().join(", ")),
        })
    }

    /// Whether it offers the loop of this name.
    pub fn has_context(&self, name: &str) -> bool {
        self.contexts.is_none_or(|known| known.contains(&name))
    }
}

fn executor_names() -> Vec<&'static str> {
    ALL.iter().map(|catalog| catalog.executor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::clock::Clock;

    #[test]
    fn catalogs_name_existing_contexts() {
        for catalog in ALL {
            assert!(cyclescope_exec::ExecutorOffer::find_by_name(catalog.executor).is_some());
            assert!(catalog.clock.is_none_or(|name| Clock::find_named(name).is_some()));
            assert!(catalog.designs.iter().all(|design| !(catalog.states)(design).is_empty()));
        }
        let names = kernel::CONTEXTS.map(|(name, _)| name);
        assert_eq!(MarkerCatalog::for_executor("kernel").unwrap().contexts, Some(names.as_slice()));
        let refused = MarkerCatalog::for_executor("nowhere").unwrap_err();
        assert!(refused.remedy.ends_with("user, kernel"), "{refused:?}");
    }
}
