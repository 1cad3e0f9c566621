//! Simulated records for tests.

use cyclescope::caveat::{Caveat, CaveatKind};
use cyclescope::record::Quantity;
use cyclescope::statistics::Interval;
use cyclescope::study::marker::anatomy::CacheLines;
use cyclescope::study::marker::record::{CodeRecord, LoopTimes, MarkerRecord, PlacementRecord, StateStep};
use cyclescope::study::marker::source::design;
use cyclescope::unit::Unit;

/// A marker in an empty loop with the same cost at all placements.
pub fn simulated_record(design: &str, state: &str, cost: f64, over: Option<&'static str>) -> MarkerRecord {
    let cycles = |value: f64| Quantity::new(Interval::with_margin(value, 0.01), Unit::CoreCycles);
    let placement = |at: usize| PlacementRecord {
        offset: 4 * at,
        cost: cycles(cost),
        base: Some(1.0),
        modes: Vec::new(),
        visits: 96,
    };
    let text = "at 2 of 16 placements the half width is above what was asked for".to_string();
    MarkerRecord {
        design: design::ALL.iter().find(|one| one.name == design).expect("a design").name,
        state: state.to_string(),
        guard: "none".to_string(),
        context: "empty".to_string(),
        bits: cyclescope::asm::CodeMode::default(),
        cost: cycles(cost),
        step: StateStep { over, cost: cycles(cost) },
        base: cycles(1.0),
        site: cycles(1.0 + cost),
        other_speed: None,
        timed: LoopTimes { loops: 100_000, base: 100_000.0, site: 100_000.0 * (1.0 + cost) },
        working_set: None,
        best: Some(-0.1),
        worst: Some(0.1),
        placements: (0..16).map(placement).collect(),
        code: CodeRecord {
            likely_bytes: 6,
            unlikely_bytes: 51,
            function_likely_bytes: 9,
            function_unlikely_bytes: -2,
            cache_lines: CacheLines { base: 1, likely: 1, both: 2 },
            assembly: Vec::new(),
            base_assembly: Vec::new(),
        },
        calls: None,
        counters: Vec::new(),
        counter_passes: None,
        compiler: "a compiler".to_string(),
        executor: "user",
        clock: "rdtscp",
        confidence: 0.95,
        visits: 16 * 96,
        add_link: Some(1.0),
        cpu: 1,
        cpu_model: "a machine".to_string(),
        seed: 7,
        caveats: vec![Caveat { code: CaveatKind::IntervalNotReached, text }],
        repro: "cyclescope marker --seed 7".to_string(),
    }
}
