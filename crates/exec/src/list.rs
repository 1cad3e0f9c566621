//! The list of executors.

use super::offer::Offer;
use super::{kernel, user};

/// The executors that can be asked for: `--executor`, its help, `doctor` and records take their names from here.
pub const ALL: &[Offer] = &[user::OFFER, kernel::OFFER];

/// The default executor.
pub const DEFAULT: &Offer = &user::OFFER;

impl Offer {
    /// Finds an executor by its name.
    pub fn named(name: &str) -> Option<&'static Offer> {
        ALL.iter().find(|offer| offer.name == name)
    }

    /// Whether this is the default executor.
    pub fn is_default(&self) -> bool {
        self.name == DEFAULT.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenOptions;
    use cyclescope_core::machine::Machine;

    #[test]
    fn offers_are_found_by_names_that_differ() {
        for (index, offer) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != offer.name), "{}", offer.name);
            assert_eq!(Offer::named(offer.name).map(|found| found.about), Some(offer.about));
            assert_eq!((offer.capabilities)(&Machine::detect()).executor, offer.name);
        }
        assert!(Offer::named("nowhere").is_none() && DEFAULT.is_default());
        assert_eq!(ALL.iter().filter(|offer| offer.is_default()).count(), 1);
    }

    #[test]
    fn what_the_default_opens_says_what_was_said_before() {
        let machine = Machine::detect();
        if let Err(refused) = (DEFAULT.check)(&machine) {
            return cyclescope_skipped::skipped(refused);
        }
        let opened = (DEFAULT.open)(&machine, &OpenOptions::default()).expect("a worker");
        assert_eq!(opened.capabilities(), &(DEFAULT.capabilities)(&machine));
        assert_eq!((opened.machine(), opened.name()), (&machine, DEFAULT.name));
    }
}
