//! Which markers an executor can run: designs, their states, and loops to put them in.

use super::kernel;
use super::source::design::{self, Design};
use super::state::{self, State};
use cyclescope_core::error::Unavailable;

/// The markers of one executor.
#[derive(Debug, Clone, Copy)]
pub struct Catalog {
    /// The executor's name.
    pub executor: &'static str,
    /// The designs, sorted by name.
    pub designs: &'static [Design],
    /// The states that a design can be in.
    pub states: fn(&Design) -> Vec<State>,
    /// The loops that there are by their contexts' names; `None` where there are all of them, and the user's own.
    pub contexts: Option<&'static [&'static str]>,
    /// The one timing method that markers are read with; `None` where any will do.
    pub clock: Option<&'static str>,
}

/// The catalogs.
pub(crate) const ALL: &[Catalog] = &[
    Catalog {
        executor: cyclescope_exec::user::OFFER.name,
        designs: design::ALL,
        states: state::states,
        contexts: None,
        clock: None,
    },
    Catalog {
        executor: cyclescope_exec::kernel::OFFER.name,
        designs: kernel::design::ALL,
        states: kernel::design::possible,
        contexts: Some(&["empty", "memcpy"]),
        clock: Some(kernel::CLOCK),
    },
];

impl Catalog {
    /// That of an executor.
    pub fn of(executor: &str) -> Result<&'static Catalog, Unavailable> {
        ALL.iter().find(|catalog| catalog.executor == executor).ok_or_else(|| Unavailable {
            what: format!("a marker on executor {executor}"),
            why: "no markers are made for it".to_string(),
            remedy: format!("choose another: {}", names().join(", ")),
        })
    }

    /// Whether there is a loop of this context.
    pub fn has_context(&self, name: &str) -> bool {
        self.contexts.is_none_or(|known| known.contains(&name))
    }
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|catalog| catalog.executor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::clock::Clock;

    #[test]
    fn catalogs_name_what_there_is() {
        for catalog in ALL {
            assert!(cyclescope_exec::Offer::named(catalog.executor).is_some());
            assert!(catalog.clock.is_none_or(|name| Clock::named(name).is_some()));
            assert!(catalog.designs.iter().all(|design| !(catalog.states)(design).is_empty()));
        }
        let known = kernel::CONTEXTS.map(|(name, _)| name);
        assert_eq!(Catalog::of("kernel").unwrap().contexts, Some(known.as_slice()));
        let refused = Catalog::of("nowhere").unwrap_err();
        assert!(refused.remedy.ends_with("user, kernel"), "{refused:?}");
    }
}
