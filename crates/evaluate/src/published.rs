//! Published evaluations, to compare ours with.

/// One published row. `None` for figures that the source omits.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PublishedPairs {
    /// Document, and section if it has one.
    pub source: &'static str,
    /// The source in one word.
    pub short: &'static str,
    /// The machine, as described by the source.
    pub machine: &'static str,
    /// cyclescope's name of the timing method.
    pub method: &'static str,
    /// Step of the machine's TSC, in ticks.
    pub step: f64,
    /// The minimum over all samples, in ticks.
    pub overhead_min: u64,
    /// The mean of the variances, in ticks².
    pub total_variance: f64,
    /// The largest deviation from a minimum, in ticks.
    pub max_deviation: Option<u64>,
    /// The variance of variances, in ticks⁴.
    pub variance_of_variances: Option<u64>,
    /// The variance of minima, in ticks².
    pub variance_of_minima: Option<u64>,
    /// Number of minima below the preceding one.
    pub spurious_minima: Option<u64>,
    /// The source's conclusion: whether the method is ergodic.
    pub ergodic: Option<bool>,
}

/// A published staircase: totals of a body that grows by one iteration per step.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PublishedStairs {
    /// Document and section.
    pub source: &'static str,
    /// The machine, as described by the source.
    pub machine: &'static str,
    /// cyclescope's name of the timing method.
    pub method: &'static str,
    /// Step of the machine's TSC, in ticks.
    pub step: f64,
    /// Readings of each length.
    pub readings: u32,
    /// The mean of the variances, in ticks².
    pub total_variance: u64,
    /// The largest deviation from a minimum, in ticks.
    pub maximum_deviation: u64,
    /// The variance of variances, in ticks⁴.
    pub variance_of_variances: u64,
    /// The variance of minima, in ticks².
    pub variance_of_minima: u64,
    /// Number of minima below the preceding one.
    pub spurious_minima: u64,
    /// Shortest readings of the first and the last length, in ticks.
    pub minima: [u64; 2],
    /// The resolution in the source's words.
    pub resolution: &'static str,
    /// Iterations by which the loop grows until the minimum moves, if the source gives them.
    pub length_per_change: Option<f64>,
}

const PAPER: &str = "Intel 324264-001";
const PAPER_MACHINE: &str = "Intel Core i7, ring 0, no frequency scaling";

/// Published rows, in document order.
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

/// Published staircases, each of 0 to 999 iterations.
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
