//! A reading of a region in two words, and its conversion to core cycles.

use crate::calibration::Scale;
use crate::execution_sampling::SamplingRole;
use crate::unit::{CoreCycles, Ticks};

/// Words of a reading.
pub(crate) const WORDS: usize = 2;

/// The largest number of a region that a reading has room for.
pub(crate) const LAST_REGION: u32 = (1 << (16 - SamplingRole::BITS)) - 1;

/// A reading, which fits two words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RegionReading {
    pub region: u32,
    pub role: SamplingRole,
    /// Executions that were not timed and ended within it.
    pub untimed: u32,
    /// Timed executions that ended within it, and those of them that were in no other one in it.
    pub within: u32,
    pub direct: u32,
    pub ticks: u64,
    /// Ticks of the direct ones.
    pub nested: u64,
}

impl RegionReading {
    /// Packs the reading; `None` if a field is too large. One with untimed executions has no others.
    #[inline(always)]
    pub(crate) fn packed(self) -> Option<[u64; WORDS]> {
        let RegionReading { region, role, untimed, within, direct, ticks, nested } = self;
        let is_chosen = role.is_chosen();
        let fits = region <= LAST_REGION && (untimed | within | direct) <= 0xffff && (ticks | nested) <= 0xffff_ffff;
        let fits = fits && if is_chosen { within == 0 } else { untimed == 0 };
        let inner = if is_chosen { untimed } else { direct };
        let region_and_role = u64::from(region) << SamplingRole::BITS | role as u64;
        fits.then_some([region_and_role << 48 | u64::from(within) << 32 | ticks, u64::from(inner) << 32 | nested])
    }

    pub(crate) fn from_packed([first, second]: [u64; WORDS]) -> RegionReading {
        let part = |from: u32, bits: u32| first >> from & ((1 << bits) - 1);
        let role = SamplingRole::from_bits(part(48, SamplingRole::BITS));
        let inner = (second >> 32) as u32;
        let is_chosen = role.is_chosen();
        RegionReading {
            region: part(48 + SamplingRole::BITS, 16 - SamplingRole::BITS) as u32,
            role,
            untimed: if is_chosen { inner } else { 0 },
            within: part(32, 16) as u32,
            direct: if is_chosen { 0 } else { inner },
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
        let role = SamplingRole::Around;
        let most = RegionReading {
            region: LAST_REGION,
            role,
            untimed: 0,
            within: 0xffff,
            direct: 0xffff,
            ticks: 0xffff_ffff,
            nested: 0xffff_ffff,
        };
        let some = RegionReading { region: 1, role, untimed: 0, within: 700, direct: 3, ticks: 5_000, nested: 4_000 };
        let inner = RegionReading { role: SamplingRole::Inner, ..some };
        let alone = RegionReading { role: SamplingRole::Alone, untimed: 700, within: 0, direct: 0, nested: 0, ..some };
        let first = RegionReading { role: SamplingRole::First, ..alone };
        for reading in [most, some, inner, alone, first] {
            assert_eq!(reading.packed().map(RegionReading::from_packed), Some(reading));
        }
        for wide in [
            RegionReading { region: LAST_REGION + 1, ..some },
            RegionReading { untimed: 1, ..some },
            RegionReading { within: 1, ..alone },
            RegionReading { untimed: 0x1_0000, ..alone },
            RegionReading { within: 0x1_0000, ..some },
            RegionReading { direct: 0x1_0000, ..some },
            RegionReading { ticks: 1 << 32, ..some },
            RegionReading { nested: 1 << 32, ..some },
        ] {
            assert_eq!(wide.packed(), None, "{wide:?}");
        }
    }
}
