//! How many of something a core does in each core cycle, how many cycles one takes, and what events cost, as data.

use super::walk::{Steps, Walk};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature;

/// A test of rates, or of what is one by them: the core cycles of a step.
#[derive(Debug)]
pub(crate) struct Rates {
    /// What is done.
    pub rows: &'static [Row],
    /// Of what a rate is: `PerCycle` or `BytesPerCycle`; `CoreCycles` where what a step takes is asked.
    pub unit: Unit,
    /// Bytes of memory for each of a row's `n`; a row that needs more than may be used has no number.
    pub bytes: usize,
    /// Share of the larger number by which two may differ that are the same.
    pub apart: f64,
    /// Whether one program alone may do more than the others, as where some cores pack its instructions. Where not, the largest rate of all
    /// is one that two reach, or there is no number.
    pub alone: bool,
    /// The test of a structure, and entries that its programs take: where it has fewer, or as many as that is not known, there is no
    /// number.
    pub within: Option<(&'static str, usize)>,
}

/// A test of what events cost.
#[derive(Debug)]
pub(crate) struct Contrast {
    /// The events, each with unlike programs in which it happens, less one in which it does not: its control. A row's programs have
    /// to agree.
    pub rows: &'static [Row],
    /// Core cycles of an event below which there is none, and by which programs that agree may differ.
    pub apart: f64,
    /// Share by which programs may differ that agree.
    pub apart_share: f64,
}

/// One rate, or one event.
#[derive(Debug)]
pub(crate) struct Row {
    /// The rest of its key, behind the test's name; empty where a test has one row alone.
    pub name: &'static str,
    /// What its programs are made for: bytes of a load, of an instruction, of memory, between two addresses, or steps of an iteration.
    pub n: usize,
    /// What a step does, in the test's unit without `per cycle`; or how many events it has.
    pub each: f64,
    /// Unlike programs that do the same. The rate is the largest one that two of them reach; what an event costs is in all of them.
    pub ways: &'static [Way],
    /// The features that all of them need beside those of every x86-64.
    pub needs: &'static [CpuidFeature],
    /// The test whose largest number is told beside, by which it is bounded.
    pub bound: Option<&'static str>,
    /// Whether some of an event's programs may not show it, as something else limits them: two that do are enough.
    pub hidden: bool,
    /// Whether it depends on the place of the code or of the data: all programs have to show it, and the interval is what they and their layouts show.
    pub varies: bool,
}

impl Row {
    /// The key of its record.
    pub(crate) fn key(&self, test: &str) -> String {
        match self.name {
            "" => test.to_string(),
            name => format!("{test}.{name}"),
        }
    }

    /// A row.
    pub(crate) const fn new(name: &'static str, n: usize, each: f64, ways: &'static [Way]) -> Row {
        Row { name, n, each, ways, needs: &[], bound: None, hidden: false, varies: false }
    }

    /// The same row beside the largest number of another test.
    pub(crate) const fn bounded(self, test: &'static str) -> Row {
        Row { bound: Some(test), ..self }
    }

    /// The same row of an event that not all of its programs show.
    pub(crate) const fn hidden(self) -> Row {
        Row { hidden: true, ..self }
    }

    /// The same row of what depends on the place of code or data.
    pub(crate) const fn varying(self) -> Row {
        Row { varies: true, ..self }
    }

    /// The same row where this CPU has these features.
    pub(crate) const fn needing(self, needs: &'static [CpuidFeature]) -> Row {
        Row { needs, ..self }
    }

    /// Its programs for a CPU with these features.
    pub(crate) fn fitting(&self, has: impl Fn(&CpuidFeature) -> bool) -> impl Iterator<Item = &'static Way> {
        let row = self.needs.iter().all(&has);
        self.ways.iter().filter(move |way| row && way.fits(&has))
    }
}

/// A program that does it.
#[derive(Debug)]
pub(crate) struct Way {
    /// The program by the row's `n`.
    pub walk: Walk,
    /// The features that it needs beside those of every x86-64.
    pub needs: &'static [CpuidFeature],
    /// A feature with which others do it better.
    pub unless: Option<CpuidFeature>,
}

impl Way {
    /// A program with an event that every CPU can run, less its control.
    pub(crate) const fn less(
        name: &'static str,
        program: fn(usize) -> Steps,
        control: fn(usize) -> Steps,
    ) -> Way {
        Way { walk: Walk { name, program, without: Some(control) }, needs: &[], unless: None }
    }

    /// A program that every CPU can run.
    pub(crate) const fn plain(name: &'static str, program: fn(usize) -> Steps) -> Way {
        Way { walk: Walk { name, program, without: None }, needs: &[], unless: None }
    }

    /// The same program where this CPU has that feature alone.
    pub(crate) const fn needing(self, needs: &'static [CpuidFeature]) -> Way {
        Way { needs, ..self }
    }

    /// The same program where this CPU has not that feature.
    pub(crate) const fn unless(self, feature: CpuidFeature) -> Way {
        Way { unless: Some(feature), ..self }
    }

    /// Whether it is for a CPU with these features.
    fn fits(&self, has: impl Fn(&CpuidFeature) -> bool) -> bool {
        self.needs.iter().all(&has) && !self.unless.as_ref().is_some_and(&has)
    }
}
