//! The plan by which simulated machines are measured.

use crate::clock::Clock;
use crate::measure::{Plan, Precision};
use std::time::Duration;

/// A plan of eight layouts of twelve rounds.
pub(super) fn plan() -> Plan {
    Plan {
        clock: Clock::named("rdtscp-lfence").expect("it is a timing method"),
        step: 1.0,
        imul_latency: None,
        adders: None,
        avx: false,
        unit: None,
        loop_count: None,
        lengthen: Default::default(),
        memory: None,
        cold: Default::default(),
        warm_up: None,
        rounds: 12,
        rounds_least: 12,
        layouts: 8,
        layouts_most: 8,
        precision: Precision { cycles: 1.0, share: 1.0, cap: None },
        confidence: 0.95,
        budget: Duration::from_secs(1),
        seed: 3,
    }
}
