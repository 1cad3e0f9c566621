//! What a test may use: the CPU's features, memory, and earlier passes over shared memory.

use super::shared_figures::{CostPass, ONE_TIME, SharedFigures};
use super::spec::{FillerSpec, TestRow, TestSpec};
use iced_x86::CpuidFeature;

/// The CPU's features and memory that a test needs.
pub(super) struct CpuResources<'a> {
    /// Whether the CPU has a feature.
    pub has: &'a dyn Fn(&CpuidFeature) -> bool,
    /// Bytes that the programs of a test may use.
    pub memory: u64,
    /// Earlier passes over figures of shared memory.
    pub shared: Option<&'a SharedFigures>,
}

impl CpuResources<'_> {
    /// The fillers of a test that the CPU can run.
    pub(super) fn runnable_fillers(&self, test: &'static TestSpec) -> Vec<&'static FillerSpec> {
        test.fillers().iter().filter(|filler| filler.required_features.iter().all(self.has)).collect()
    }

    /// Earlier passes over a row of a test.
    pub(super) fn passes_of(&self, test: &TestSpec, row: &TestRow) -> &[CostPass] {
        self.shared.map_or(&[], |shared| shared.passes_of(test, row))
    }

    /// What a row's number says about the times of its passes.
    pub(super) fn describe_times(&self, test: &TestSpec, row: &TestRow) -> Option<String> {
        let alone = row.uses_shared_memory && self.passes_of(test, row).is_empty();
        alone.then(|| ONE_TIME.to_string())
    }
}
