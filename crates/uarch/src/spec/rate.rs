//! Tests of rates, of costs, and of the cost of events, in rows, as data.

use super::program::{ProgramFamily, ProgramVariant};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature;

/// A test of rates, or of the core cycles of a step.
#[derive(Debug)]
pub(crate) struct RatesSpec {
    /// The rates.
    pub rows: &'static [TestRow],
    /// The unit: `PerCycle` or `BytesPerCycle`, or `CoreCycles` for the cost of a step.
    pub unit: Unit,
    /// Bytes of memory per `n` of a row. A row that needs more memory than allowed has no number.
    pub bytes_per_n: usize,
    /// Share of the larger number by which two equal numbers may differ.
    pub tolerance_share: f64,
    /// Whether one program may be faster than all others, as some cores pack its instructions. If
    /// not, two programs have to reach the largest rate.
    pub allow_outlier: bool,
    /// If rows grow by their count, the record of the count up to which steps are as fast as any.
    pub full_rate_end: Option<&'static RateEnd>,
    /// The test of a structure, and the entries that the programs take. If the structure has fewer,
    /// there is no number.
    pub required_entries: Option<(&'static str, usize)>,
}

/// The largest count of a test's rows whose steps are as fast as those of smaller counts.
#[derive(Debug)]
pub(crate) struct RateEnd {
    /// The key of its record, behind the test's name.
    pub name: &'static str,
    /// What the number counts.
    pub definition: &'static str,
    /// The unit of the count.
    pub unit: Unit,
}

impl RatesSpec {
    /// A test of rates whose programs need little memory, with a tolerance of 5 %.
    pub(crate) const fn new(unit: Unit, rows: &'static [TestRow]) -> RatesSpec {
        RatesSpec {
            rows,
            unit,
            bytes_per_n: 0,
            tolerance_share: 0.05,
            allow_outlier: false,
            full_rate_end: None,
            required_entries: None,
        }
    }

    /// Whether the programs of a row need no more than this memory.
    pub(crate) fn has_room(&self, row: &TestRow, memory: u64) -> bool {
        (row.n * self.bytes_per_n) as u64 <= memory
    }
}

/// A test of what events cost.
#[derive(Debug)]
pub(crate) struct ContrastSpec {
    /// The events. A program has the event, its control does not. The programs of a row have to
    /// agree.
    pub rows: &'static [TestRow],
    /// Core cycles by which programs that agree may differ. A cheaper event counts as free.
    pub tolerance: f64,
    /// Share by which programs that agree may differ.
    pub tolerance_share: f64,
    /// If events are counted in slots of the core's width: the cost of one slot in the first, second
    /// and further programs of each row. Empty if they are counted in core cycles.
    pub slot_costs: &'static [ProgramFamily],
}

impl ContrastSpec {
    /// A test of events in core cycles.
    pub(crate) const fn new(rows: &'static [TestRow], tolerance: f64, tolerance_share: f64) -> ContrastSpec {
        ContrastSpec { rows, tolerance, tolerance_share, slot_costs: &[] }
    }

    /// The unit of its numbers.
    pub(crate) const fn unit(&self) -> Unit {
        if self.slot_costs.is_empty() { Unit::CoreCycles } else { Unit::Ratio }
    }
}

/// A rate, or an event.
#[derive(Debug)]
pub(crate) struct TestRow {
    /// The record's key behind the test's name; empty for the only row of a test.
    pub name: &'static str,
    /// The count for its programs: bytes of a load, an instruction or memory, a distance, or steps
    /// per iteration.
    pub n: usize,
    /// How much a step does, in the test's unit without `per cycle`, or its number of events.
    pub amount_per_step: f64,
    /// Different programs for the same. The rate is the largest one that two of them reach. An
    /// event costs the same in all of them.
    pub variants: &'static [ProgramVariant],
    /// CPU features that all programs need beyond x86-64.
    pub required_features: &'static [CpuidFeature],
    /// The test whose largest number bounds this one. Results show the share of it.
    pub bounding_test: Option<&'static str>,
    /// Whether other limits may hide the event in some programs. Two that show it are enough.
    pub may_be_hidden: bool,
    /// Whether it depends on the place of code or data. All programs have to show it, and the
    /// interval spans them and their layouts.
    pub varies_by_place: bool,
    /// Whether it depends on caches or memory that other CPUs use too. It is measured at several
    /// times of a run, and the interval spans them.
    pub uses_shared_memory: bool,
}

impl TestRow {
    /// The record's key.
    pub(crate) fn record_key(&self, test: &str) -> String {
        match self.name {
            "" => test.to_string(),
            name => format!("{test}.{name}"),
        }
    }

    /// A row whose programs do one item per step.
    pub(crate) const fn new(name: &'static str, variants: &'static [ProgramVariant]) -> TestRow {
        TestRow::for_n(name, 1, variants)
    }

    /// A row whose programs are made for a count.
    pub(crate) const fn for_n(name: &'static str, n: usize, variants: &'static [ProgramVariant]) -> TestRow {
        TestRow {
            name,
            n,
            amount_per_step: 1.0,
            variants,
            required_features: &[],
            bounding_test: None,
            may_be_hidden: false,
            varies_by_place: false,
            uses_shared_memory: false,
        }
    }

    /// Sets how much a step does.
    pub(crate) const fn amount(self, amount_per_step: f64) -> TestRow {
        TestRow { amount_per_step, ..self }
    }

    /// Shows the number as a share of another test's largest number.
    pub(crate) const fn bounded_by(self, test: &'static str) -> TestRow {
        TestRow { bounding_test: Some(test), ..self }
    }

    /// Allows programs that hide the event.
    pub(crate) const fn allow_hidden(self) -> TestRow {
        TestRow { may_be_hidden: true, ..self }
    }

    /// Allows results that depend on the place of code or data.
    pub(crate) const fn varying_by_place(self) -> TestRow {
        TestRow { varies_by_place: true, ..self }
    }

    /// Measures it at several times of a run: other CPUs use the same caches or memory.
    pub(crate) const fn in_shared_memory(self) -> TestRow {
        TestRow { uses_shared_memory: true, ..self }
    }

    /// Restricts it to CPUs with these features.
    pub(crate) const fn requiring(self, needs: &'static [CpuidFeature]) -> TestRow {
        TestRow { required_features: needs, ..self }
    }

    /// The programs that a CPU with these features can run.
    pub(crate) fn runnable_variants(
        &self,
        has: impl Fn(&CpuidFeature) -> bool,
    ) -> impl Iterator<Item = &'static ProgramVariant> {
        let row = self.required_features.iter().all(&has);
        self.variants.iter().filter(move |variant| row && variant.is_runnable(&has))
    }
}
