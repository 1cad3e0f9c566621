//! How many of something a core does in each core cycle, how many cycles one takes, and what events cost, as data.

use super::program::ProgramVariant;
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature;

/// A test of rates, or of what is one by them: the core cycles of a step.
#[derive(Debug)]
pub(crate) struct RatesSpec {
    /// What is done.
    pub rows: &'static [TestRow],
    /// Of what a rate is: `PerCycle` or `BytesPerCycle`; `CoreCycles` where what a step takes is asked.
    pub unit: Unit,
    /// Bytes of memory for each of a row's `n`; a row that needs more than may be used has no number.
    pub bytes_per_n: usize,
    /// Share of the larger number by which two may differ that are the same.
    pub tolerance_share: f64,
    /// Whether one program alone may do more than the others, as where some cores pack its instructions. Where not, the largest rate of all
    /// is one that two reach, or there is no number.
    pub allow_outlier: bool,
    /// The test of a structure, and entries that its programs take: where it has fewer, or as many as that is not known, there is no
    /// number.
    pub required_entries: Option<(&'static str, usize)>,
}

impl RatesSpec {
    /// A test of rates whose programs need little memory.
    pub(crate) const fn new(unit: Unit, rows: &'static [TestRow]) -> RatesSpec {
        RatesSpec { rows, unit, bytes_per_n: 0, tolerance_share: 0.05, allow_outlier: false, required_entries: None }
    }
}

/// A test of what events cost.
#[derive(Debug)]
pub(crate) struct ContrastSpec {
    /// The events, each with unlike programs in which it happens, less one in which it does not: its control. A row's programs have
    /// to agree.
    pub rows: &'static [TestRow],
    /// Core cycles of an event below which there is none, and by which programs that agree may differ.
    pub tolerance: f64,
    /// Share by which programs may differ that agree.
    pub tolerance_share: f64,
}

/// One rate, or one event.
#[derive(Debug)]
pub(crate) struct TestRow {
    /// The rest of its key, behind the test's name; empty where a test has one row alone.
    pub name: &'static str,
    /// What its programs are made for: bytes of a load, of an instruction, of memory, between two addresses, or steps of an iteration.
    pub n: usize,
    /// What a step does, in the test's unit without `per cycle`; or how many events it has.
    pub amount_per_step: f64,
    /// Unlike programs that do the same. The rate is the largest one that two of them reach; what an event costs is in all of them.
    pub variants: &'static [ProgramVariant],
    /// The features that all of them need beside those of every x86-64.
    pub required_features: &'static [CpuidFeature],
    /// The test whose largest number is told beside, by which it is bounded.
    pub bounding_test: Option<&'static str>,
    /// Whether some of an event's programs may not show it, as something else limits them: two that do are enough.
    pub may_be_hidden: bool,
    /// Whether it depends on the place of the code or of the data: all programs have to show it, and the interval is what they and their layouts show.
    pub varies_by_place: bool,
}

impl TestRow {
    /// The key of its record.
    pub(crate) fn record_key(&self, test: &str) -> String {
        match self.name {
            "" => test.to_string(),
            name => format!("{test}.{name}"),
        }
    }

    /// A row whose programs do one of what is counted in a step.
    pub(crate) const fn new(name: &'static str, variants: &'static [ProgramVariant]) -> TestRow {
        TestRow::for_n(name, 1, variants)
    }

    /// The same for programs that are made for a count.
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
        }
    }

    /// The same row whose programs do this much in a step.
    pub(crate) const fn amount(self, amount_per_step: f64) -> TestRow {
        TestRow { amount_per_step, ..self }
    }

    /// The same row beside the largest number of another test.
    pub(crate) const fn bounded_by(self, test: &'static str) -> TestRow {
        TestRow { bounding_test: Some(test), ..self }
    }

    /// The same row of an event that not all of its programs show.
    pub(crate) const fn allow_hidden(self) -> TestRow {
        TestRow { may_be_hidden: true, ..self }
    }

    /// The same row of what depends on the place of code or data.
    pub(crate) const fn varying_by_place(self) -> TestRow {
        TestRow { varies_by_place: true, ..self }
    }

    /// The same row where this CPU has these features.
    pub(crate) const fn requiring(self, needs: &'static [CpuidFeature]) -> TestRow {
        TestRow { required_features: needs, ..self }
    }

    /// Its programs for a CPU with these features.
    pub(crate) fn runnable_variants(
        &self,
        has: impl Fn(&CpuidFeature) -> bool,
    ) -> impl Iterator<Item = &'static ProgramVariant> {
        let row = self.required_features.iter().all(&has);
        self.variants.iter().filter(move |way| row && way.is_runnable(&has))
    }
}
