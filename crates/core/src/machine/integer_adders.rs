//! Integer adders by design: what a burst of independent additions reaches while nothing else uses the core.

use serde::{Deserialize, Serialize};

/// Integer adders of a design.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "RecordedAdders")]
pub struct IntegerAdders {
    /// The most independent additions per cycle.
    pub count: u32,
    /// The share of them that a burst of additions uses at least on an unshared core. Fewer show that another thread
    /// uses the core.
    pub least_share: f64,
}

impl IntegerAdders {
    /// The share for all other designs. Five adders of Raptor Cove added 4.1 of 4.8 numbers per cycle alone, and six of
    /// Zen 5 4.6 of 5.8, since a µop's adder is chosen before it is known which one will be free.
    pub const LEAST_SHARE_USUAL: f64 = 0.7;

    /// Adders of a core of this name; `None` if uncertain.
    pub(crate) fn of_design(name: &str) -> Option<IntegerAdders> {
        let (_, count) = ADDERS_BY_DESIGN.iter().find(|(design, _)| *design == name)?;
        let share = LEAST_SHARES.iter().find(|(design, _)| *design == name);
        let least_share = share.map_or(IntegerAdders::LEAST_SHARE_USUAL, |(_, share)| *share);
        Some(IntegerAdders { count: *count, least_share })
    }

    /// Adders with the usual share.
    pub const fn with_usual_share(count: u32) -> IntegerAdders {
        IntegerAdders { count, least_share: IntegerAdders::LEAST_SHARE_USUAL }
    }
}

/// Shares of designs that use their adders better than usual. Alone, Zen 3 added 3.6 to 3.9 numbers per
/// cycle. Beside a busy sibling it still added 2.2 to 3.4. Zen 4 has the same integer schedulers, one for
/// each adder (AMD, Software Optimization Guide, 57647). Its limit was not measured, and leaves more room.
const LEAST_SHARES: &[(&str, f64)] = &[("Zen 3", 0.9), ("Zen 4", 0.85)];

/// The form in records. A plain number has the usual share.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedAdders {
    Count(u32),
    WithShare { count: u32, least_share: f64 },
}

impl From<RecordedAdders> for IntegerAdders {
    fn from(recorded: RecordedAdders) -> IntegerAdders {
        match recorded {
            RecordedAdders::Count(count) => IntegerAdders::with_usual_share(count),
            RecordedAdders::WithShare { count, least_share } => IntegerAdders { count, least_share },
        }
    }
}

/// Integer adders by core name: the most independent additions per cycle (Agner Fog, "The
/// microarchitecture of Intel, AMD, and VIA CPUs"; vendors' optimisation manuals).
const ADDERS_BY_DESIGN: &[(&str, u32)] = &[
    ("Nehalem", 3),
    ("Westmere", 3),
    ("Sandy Bridge", 3),
    ("Ivy Bridge", 3),
    ("Haswell", 4),
    ("Broadwell", 4),
    ("Skylake", 4),
    ("Palm Cove", 4),
    ("Sunny Cove", 4),
    ("Cypress Cove", 4),
    ("Willow Cove", 4),
    ("Golden Cove", 5),
    ("Raptor Cove", 5),
    ("Redwood Cove", 5),
    ("K8", 3),
    ("K10", 3),
    ("Bulldozer", 2),
    ("Piledriver", 2),
    ("Steamroller", 2),
    ("Excavator", 2),
    ("Jaguar", 2),
    ("Zen", 4),
    ("Zen+", 4),
    ("Zen 2", 4),
    ("Zen 3", 4),
    ("Zen 4", 4),
    ("Zen 5", 6),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_with_a_plain_number_have_the_usual_share() {
        let read = |text| serde_json::from_str::<IntegerAdders>(text).unwrap();
        assert_eq!(read("5"), IntegerAdders::with_usual_share(5));
        let zen_3 = IntegerAdders::of_design("Zen 3").unwrap();
        assert!(zen_3.count == 4 && zen_3.least_share > IntegerAdders::LEAST_SHARE_USUAL);
        assert_eq!(read(&serde_json::to_string(&zen_3).unwrap()), zen_3);
        assert_eq!(IntegerAdders::of_design("Raptor Cove"), Some(IntegerAdders::with_usual_share(5)));
    }
}
