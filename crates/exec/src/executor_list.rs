//! The list of executors.

use super::offer::ExecutorOffer;
use super::{kernel, user};

/// All executors. `--executor`, its help, `doctor` and records take their names from here.
pub const EXECUTOR_OFFERS: &[ExecutorOffer] = &[user::USER_OFFER, kernel::KERNEL_OFFER];

/// The default executor.
pub const DEFAULT_OFFER: &ExecutorOffer = &user::USER_OFFER;

impl ExecutorOffer {
    /// Finds an executor by its name.
    pub fn find_by_name(name: &str) -> Option<&'static ExecutorOffer> {
        EXECUTOR_OFFERS.iter().find(|offer| offer.name == name)
    }

    /// Whether this is the default executor.
    pub fn is_default(&self) -> bool {
        self.name == DEFAULT_OFFER.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenOptions;
    use cyclescope_core::machine::Machine;

    #[test]
    fn offers_have_distinct_names_and_are_found() {
        for (index, offer) in EXECUTOR_OFFERS.iter().enumerate() {
            assert!(EXECUTOR_OFFERS[..index].iter().all(|other| other.name != offer.name), "{}", offer.name);
            assert_eq!(ExecutorOffer::find_by_name(offer.name).map(|found| found.about), Some(offer.about));
            assert_eq!((offer.capabilities)(&Machine::detect()).executor, offer.name);
        }
        assert!(ExecutorOffer::find_by_name("nowhere").is_none() && DEFAULT_OFFER.is_default());
        assert_eq!(EXECUTOR_OFFERS.iter().filter(|offer| offer.is_default()).count(), 1);
    }

    #[test]
    fn the_default_executor_has_the_capabilities_of_its_offer() {
        let machine = Machine::detect();
        if let Err(refused) = (DEFAULT_OFFER.check)(&machine) {
            return cyclescope_skipped::report_skipped(refused);
        }
        let opened = (DEFAULT_OFFER.open)(&machine, &OpenOptions::default()).expect("a worker");
        assert_eq!(opened.capabilities(), &(DEFAULT_OFFER.capabilities)(&machine));
        assert_eq!((opened.machine(), opened.name()), (&machine, DEFAULT_OFFER.name));
    }
}
