//! Processor vendors and core types of hybrid processors.

use serde::Serialize;

/// Who designed the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    /// Intel.
    Intel,
    /// AMD.
    Amd,
    /// Hygon, whose cores derive from AMD's Zen.
    Hygon,
    /// Zhaoxin and its predecessor Centaur (VIA).
    Zhaoxin,
    /// Any other vendor, or CPUID is hidden.
    Other,
}

impl Vendor {
    pub(super) fn from_text(text: &str) -> Vendor {
        match text {
            "GenuineIntel" => Vendor::Intel,
            "AuthenticAMD" => Vendor::Amd,
            "HygonGenuine" => Vendor::Hygon,
            "  Shanghai  " | "CentaurHauls" => Vendor::Zhaoxin,
            _ => Vendor::Other,
        }
    }
}

/// Kind of core on a hybrid processor (Intel SDM vol. 2A, CPUID 1Ah, EAX bits 31:24).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CoreType {
    /// A Core (P) core, type 40h.
    Performance,
    /// An Atom (E) core, type 20h.
    Efficient,
}
