//! Published evaluations, to set ours beside.

/// One published row. What its source does not give is none.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Published {
    /// The place in the document.
    pub source: &'static str,
    /// The same in a word.
    pub short: &'static str,
    /// The machine, as far as the source tells.
    pub machine: &'static str,
    /// The name of the timing method here.
    pub method: &'static str,
    /// The step of its TSC in ticks.
    pub step: f64,
    /// The minimum over all samples, in ticks.
    pub overhead_min: u64,
    /// The mean of the variances, in ticks².
    pub total_variance: f64,
    /// The largest deviation from a minimum, in ticks.
    pub max_deviation: Option<u64>,
    /// In ticks⁴.
    pub variance_of_variances: Option<u64>,
    /// In ticks².
    pub variance_of_minima: Option<u64>,
    /// How often a minimum was below the one before.
    pub spurious_minima: Option<u64>,
    /// What the source concludes.
    pub ergodic: Option<bool>,
}

const PAPER: &str = "Intel 324264-001";
const PAPER_MACHINE: &str = "Intel Core i7, ring 0, no frequency scaling";

/// The rows, in the order of the documents.
pub const PUBLISHED: &[Published] = &[
    Published {
        source: PAPER,
        short: "paper",
        machine: PAPER_MACHINE,
        method: "cpuid-rdtsc",
        step: 4.0,
        overhead_min: 452,
        total_variance: 48.0,
        max_deviation: Some(636),
        variance_of_variances: Some(2306),
        variance_of_minima: Some(118),
        spurious_minima: Some(262),
        ergodic: Some(false),
    },
    Published {
        source: PAPER,
        short: "paper",
        machine: PAPER_MACHINE,
        method: "cpuid-rdtsc-rdtscp-cpuid",
        step: 4.0,
        overhead_min: 44,
        total_variance: 2.0,
        max_deviation: Some(104),
        variance_of_variances: Some(0),
        variance_of_minima: Some(0),
        spurious_minima: Some(0),
        ergodic: Some(true),
    },
    Published {
        source: PAPER,
        short: "paper",
        machine: PAPER_MACHINE,
        method: "cpuid-rdtsc-cr0-rdtsc",
        step: 4.0,
        overhead_min: 208,
        total_variance: 3.0,
        max_deviation: Some(176),
        variance_of_variances: Some(0),
        variance_of_minima: Some(0),
        spurious_minima: Some(0),
        ergodic: Some(true),
    },
    Published {
        source: "Notes on using rdtsc(p)",
        short: "notes",
        machine: "AMD Ryzen 7 7840H, user mode, clock fixed at 3.8 GHz",
        method: "rdtscp-lfence",
        step: 38.0,
        overhead_min: 76,
        total_variance: 17.120064,
        max_deviation: None,
        variance_of_variances: None,
        variance_of_minima: None,
        spurious_minima: None,
        ergodic: None,
    },
];
