//! Published evaluations, to set ours beside.

/// One published row. What its source does not give is none.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PublishedPairs {
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

/// A published staircase: totals of a body that grows by an iteration at a time.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PublishedStairs {
    /// The place in the document.
    pub source: &'static str,
    /// The machine, as far as the source tells.
    pub machine: &'static str,
    /// The name of the timing method here.
    pub method: &'static str,
    /// The step of its TSC in ticks.
    pub step: f64,
    /// Readings of each length.
    pub readings: u32,
    /// The mean of the variances, in ticks².
    pub total_variance: u64,
    /// The largest deviation from a minimum, in ticks.
    pub maximum_deviation: u64,
    /// In ticks⁴.
    pub variance_of_variances: u64,
    /// In ticks².
    pub variance_of_minima: u64,
    /// How often a minimum was below the one before.
    pub spurious_minima: u64,
    /// The least readings of the first length and the last, in ticks.
    pub minima: [u64; 2],
    /// What the source calls its resolution, in its words.
    pub resolution: &'static str,
    /// By how many iterations the loop grows until the minimum moves, where the source says so.
    pub length_per_change: Option<f64>,
}

const PAPER: &str = "Intel 324264-001";
const PAPER_MACHINE: &str = "Intel Core i7, ring 0, no frequency scaling";

/// The rows, in the order of the documents.
pub const PUBLISHED_PAIRS: &[PublishedPairs] = &[
    PublishedPairs {
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
    PublishedPairs {
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
    PublishedPairs {
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
    PublishedPairs {
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

/// The staircases, each of 0 to 999 iterations.
pub const PUBLISHED_STAIRS: &[PublishedStairs] = &[
    PublishedStairs {
        source: "Intel 324264-001, 3.3.1",
        machine: PAPER_MACHINE,
        method: "cpuid-rdtsc-rdtscp-cpuid",
        step: 4.0,
        readings: 100_000,
        total_variance: 1,
        maximum_deviation: 176,
        variance_of_variances: 2,
        variance_of_minima: 335_926,
        spurious_minima: 0,
        minima: [44, 2048],
        resolution: "two assembly instructions",
        length_per_change: Some(2.0),
    },
    PublishedStairs {
        source: "Intel 324264-001, 3.3.2",
        machine: PAPER_MACHINE,
        method: "cpuid-rdtsc-cr0-rdtsc",
        step: 4.0,
        readings: 100_000,
        total_variance: 1,
        maximum_deviation: 220,
        variance_of_variances: 2,
        variance_of_minima: 335_757,
        spurious_minima: 0,
        minima: [208, 2224],
        resolution: "as good as the previous ones",
        length_per_change: None,
    },
];
