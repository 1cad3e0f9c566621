//! The figures that a region's readings come to.

use crate::execution_sampling::SamplingRole;
use crate::histogram::Histogram;
use crate::region_reading::RegionReading;
use crate::unit::CoreCycles;
use std::string::String;

/// Figures of a region.
#[derive(Debug, Clone, Default)]
pub(crate) struct RegionFigures {
    pub name: String,
    pub cycles: Histogram,
    /// The same of executions in which none was timed. They are not in `cycles`.
    pub alone: Histogram,
    /// Executions that were not timed, or whose time counts for nothing.
    pub untimed: u64,
    /// Cycles outside the executions of regions in it; `None` if there were none.
    pub own: Option<Histogram>,
    /// Timed executions that ended in it, and those of them that were in no other one in it.
    pub within: u64,
    pub direct: u64,
    /// Untimed executions that ended in those of `cycles` and of `alone`.
    pub untimed_within: u64,
    pub within_alone: u64,
    /// Executions around others for which the choice was made further out. Those of `alone` then are
    /// no sample of all.
    pub inner_parents: u64,
    /// Executions between differing readings of the ruler.
    pub moved: u64,
    /// Executions that began on one CPU and ended on another.
    pub migrated: u64,
    /// Sum of the ruler's spread over executions.
    pub spread: f64,
    /// Sum of the squares of the numbers of executions between two readings of the ruler. Their
    /// errors are the same.
    pub together: f64,
}

impl RegionFigures {
    /// Adds a reading, with its core cycles, and those of them outside the executions in it.
    pub(crate) fn add(&mut self, reading: &RegionReading, [all, own]: [CoreCycles; 2]) {
        if reading.role == SamplingRole::First {
            self.untimed += 1;
            return;
        }
        if reading.role == SamplingRole::Alone {
            self.alone.add(all.0);
            self.within_alone += u64::from(reading.untimed) + u64::from(reading.within);
            return;
        }
        if reading.direct > 0 {
            self.own.get_or_insert_with(|| self.cycles.clone());
            self.inner_parents += u64::from(reading.role == SamplingRole::Inner);
        }
        if let Some(histogram) = &mut self.own {
            histogram.add(own.0);
        }
        self.cycles.add(all.0);
        self.within += u64::from(reading.within);
        self.direct += u64::from(reading.direct);
        self.untimed_within += u64::from(reading.untimed);
    }

    /// Executions whose cycles are known, and all.
    pub(crate) fn timed(&self) -> u64 {
        self.cycles.count + self.alone.count
    }

    pub(crate) fn count(&self) -> u64 {
        self.timed() + self.untimed
    }
}
