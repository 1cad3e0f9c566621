//! A reading of a region in two words, and its conversion to core cycles.

use crate::calibration::Scale;
use crate::unit::{CoreCycles, Ticks};

/// Words of a reading.
pub(crate) const WORDS: usize = 2;

/// A reading, which fits two words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RegionReading {
    pub region: u32,
    /// Executions that ended within it, and those of them that were in no other one in it.
    pub within: u32,
    pub direct: u32,
    pub ticks: u64,
    /// Ticks of the direct ones.
    pub nested: u64,
}

impl RegionReading {
    /// Packs the reading; `None` if a field is too large.
    #[inline(always)]
    pub(crate) fn packed(self) -> Option<[u64; WORDS]> {
        let RegionReading { region, within, direct, ticks, nested } = self;
        let fits = (region | within | direct) <= 0xffff && (ticks | nested) <= 0xffff_ffff;
        let first = u64::from(region) << 48 | u64::from(within) << 32 | ticks;
        fits.then_some([first, u64::from(direct) << 32 | nested])
    }

    pub(crate) fn from_packed([first, second]: [u64; WORDS]) -> RegionReading {
        let part = |from: u32, bits: u32| first >> from & ((1 << bits) - 1);
        RegionReading {
            region: part(48, 16) as u32,
            within: part(32, 16) as u32,
            direct: (second >> 32) as u32,
            ticks: part(0, 32),
            nested: second & 0xffff_ffff,
        }
    }
}

/// A reading of the ruler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RulerReading {
    pub scale: Scale,
    /// What an execution adds to one around it.
    pub overhead: CoreCycles,
}

impl RulerReading {
    /// The cycles of an execution that ended between this reading of the ruler and `later`: with
    /// the executions in it, and without.
    pub(crate) fn convert(&self, later: &RulerReading, reading: &RegionReading) -> [CoreCycles; 2] {
        let cycles = |ticks: u64| self.scale.cycles_to(&later.scale, Ticks(ticks as f64)).0;
        let overhead = (self.overhead.0 + later.overhead.0) / 2.0;
        // The ticks of a nested execution contain its pair, and not the rest of the overhead.
        let pair = -cycles(0);
        let around = f64::from(reading.direct) * (overhead - pair);
        let all = cycles(reading.ticks) - f64::from(reading.within) * overhead;
        [CoreCycles(all), CoreCycles(cycles(reading.ticks.saturating_sub(reading.nested)) - around)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_fits_its_words_or_is_not_packed() {
        let most =
            RegionReading { region: 0xffff, within: 0xffff, direct: 0xffff, ticks: 0xffff_ffff, nested: 0xffff_ffff };
        let some = RegionReading { region: 1, within: 700, direct: 3, ticks: 5_000, nested: 4_000 };
        for reading in [most, some] {
            assert_eq!(reading.packed().map(RegionReading::from_packed), Some(reading));
        }
        for wide in [
            RegionReading { region: 0x1_0000, ..some },
            RegionReading { within: 0x1_0000, ..some },
            RegionReading { direct: 0x1_0000, ..some },
            RegionReading { ticks: 1 << 32, ..some },
            RegionReading { nested: 1 << 32, ..some },
        ] {
            assert_eq!(wide.packed(), None, "{wide:?}");
        }
    }
}
