//! Features as recorded in evidence, so that another machine's study can be replayed.

use super::{CpuFeatures, LfenceOrder, feature_name};
use crate::error::intern_text;
use crate::machine::fact::Fact;
use iced_x86::CpuidFeature;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Features in serializable form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedFeatures {
    /// Unusable features by name, with the reason; all others are usable.
    refused: BTreeMap<String, String>,
    xcr0: u64,
    lfence: Fact<LfenceOrder>,
    cet: bool,
    invariant_tsc: bool,
    amx_exists: bool,
}

impl From<&CpuFeatures> for SavedFeatures {
    fn from(features: &CpuFeatures) -> SavedFeatures {
        let refused = CpuidFeature::values()
            .filter_map(|feature| Some((feature_name(feature), features.why_not(feature)?.to_string())));
        SavedFeatures {
            refused: refused.collect(),
            xcr0: features.xcr0,
            lfence: features.lfence.clone(),
            cet: features.cet,
            invariant_tsc: features.invariant_tsc,
            amx_exists: features.amx_exists,
        }
    }
}

impl From<&SavedFeatures> for CpuFeatures {
    fn from(saved: &SavedFeatures) -> CpuFeatures {
        let support = CpuidFeature::values()
            .map(|feature| saved.refused.get(&feature_name(feature)).map_or(Ok(()), |why| Err(intern_text(why))));
        CpuFeatures {
            support: support.collect(),
            xcr0: saved.xcr0,
            lfence: saved.lfence.clone(),
            cet: saved.cet,
            invariant_tsc: saved.invariant_tsc,
            amx_exists: saved.amx_exists,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn features_survive_serialization() {
        let features = Machine::detect().features;
        let text = serde_json::to_string(&SavedFeatures::from(&features)).unwrap();
        let saved: SavedFeatures = serde_json::from_str(&text).unwrap();
        assert_eq!(CpuFeatures::from(&saved), features);
    }
}
