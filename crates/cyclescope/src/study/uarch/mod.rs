//! How big everything in this core is: `uarch`.
//!
//! Sizes of structures are found without counters: two chains of slow instructions run at once as long as the core can hold
//! what is between them ([`overlap`]). The search for the count at which that ends ([`search`], [`knee`]) and what it proves
//! ([`trial`], [`verdict`]) are the same for all tests; a test is data ([`mod@test`]), one file each, and a line in a list.

mod knee;
mod overlap;
mod record;
mod search;
mod study;
mod test;
#[cfg(test)]
mod tests;
mod trial;
mod verdict;
mod window;

pub(in crate::study) use study::INFO;
