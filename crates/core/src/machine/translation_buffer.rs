//! The data TLBs of a core, from CPUID 18h or 02h (Intel) and 8000_0005h and 8000_0006h (AMD).
//!
//! Limits: only 4 KiB pages. Hypervisors change these leaves more often than others; all zeros
//! means unknown.

use super::cpuid_leaves::{CpuidLeaves, CpuidRegister, MOST_TRANSLATIONS};

/// A TLB as CPUID describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TranslationBuffer {
    /// Level, from 1.
    pub level: u32,
    /// Entries that loads use for 4 KiB pages.
    pub entries: u64,
}

/// Data TLBs of the CPU in the table, first level first; empty if CPUID reports none.
pub fn read_data_buffers(leaves: &CpuidLeaves) -> Vec<TranslationBuffer> {
    let sources = [read_subleaves(leaves), read_descriptors(leaves), read_amd_leaves(leaves)];
    let found = sources.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    // Nothing specifies how two buffers of one level work together.
    let alone = |buffer: &&TranslationBuffer| found.iter().filter(|other| other.level == buffer.level).count() == 1;
    found.iter().filter(alone).copied().collect()
}

/// Leaf 18h (SDM vol. 2A, CPUID): one TLB per subleaf.
fn read_subleaves(leaves: &CpuidLeaves) -> Vec<TranslationBuffer> {
    let parse_subleaf = |[_, ebx, ecx, edx]: [u32; 4]| {
        // For data, unified, or for loads only.
        let serves_loads = matches!(edx & 0x1F, 1 | 3 | 4);
        let entries = u64::from(ebx >> 16) * u64::from(ecx);
        (serves_loads && ebx & 1 == 1 && entries > 0).then_some(TranslationBuffer { level: edx >> 5 & 7, entries })
    };
    let mut found: Vec<TranslationBuffer> =
        (0..MOST_TRANSLATIONS).map_while(|subleaf| leaves.find_leaf(0x18, subleaf)).filter_map(parse_subleaf).collect();
    found.sort_by_key(|buffer| buffer.level);
    found
}

/// Leaf 02h descriptors of data TLBs for 4 KiB pages: byte, level, entries (SDM vol. 2A, CPUID,
/// table 3-12).
const DESCRIPTORS: &[(u8, u32, u64)] = &[
    (0x03, 1, 64),
    (0x57, 1, 16),
    (0x59, 1, 16),
    (0x5B, 1, 64),
    (0x5C, 1, 128),
    (0x5D, 1, 256),
    (0x64, 1, 512),
    (0x6A, 1, 64),
    (0xA0, 1, 32),
    (0xB3, 1, 128),
    (0xB4, 1, 256),
    (0xBA, 1, 64),
    (0xC2, 1, 16),
    (0x6B, 2, 256),
    (0xC1, 2, 1024),
    (0xC3, 2, 1536),
    (0xCA, 2, 512),
];

fn read_descriptors(leaves: &CpuidLeaves) -> Vec<TranslationBuffer> {
    let registers = leaves.find_leaf(2, 0).unwrap_or_default();
    // A register with its highest bit set has no descriptors. The lowest byte of EAX is a count.
    let descriptors = registers.iter().filter(|register| **register >> 31 == 0);
    let bytes: Vec<u8> = descriptors.flat_map(|register| register.to_le_bytes()).collect();
    let rows = DESCRIPTORS.iter().filter(|(byte, ..)| bytes.contains(byte));
    rows.map(|(_, level, entries)| TranslationBuffer { level: *level, entries: *entries }).collect()
}

/// The factor of the second level's entries in 8000_0006h if 8000_0021h EAX bit 14 is set, L2TlbSizeX32
/// (PPR for family 1Ah).
const SECOND_LEVEL_FACTOR: u64 = 32;
/// The first family with that factor. Hypervisors hide the bit and pass the entries on.
const FACTOR_FAMILY: u32 = 0x1A;

/// Whether entries of the second level are counted in multiples of [`SECOND_LEVEL_FACTOR`].
fn counts_multiples(leaves: &CpuidLeaves) -> bool {
    let [version, ..] = leaves.find_leaf(1, 0).unwrap_or_default();
    // The extended family counts only behind a full base family (APM vol. 3, 0000_0001h).
    let family = (version >> 8 & 0xF) + if version >> 8 & 0xF == 0xF { version >> 20 & 0xFF } else { 0 };
    leaves.has_bit(0x8000_0021, 0, CpuidRegister::Eax, 14) || family >= FACTOR_FAMILY
}

/// Leaves 8000_0005h and 8000_0006h (APM vol. 3): EBX holds the entries for 4 KiB pages.
fn read_amd_leaves(leaves: &CpuidLeaves) -> Vec<TranslationBuffer> {
    let [_, first, ..] = leaves.find_leaf(0x8000_0005, 0).unwrap_or_default();
    let [_, second, ..] = leaves.find_leaf(0x8000_0006, 0).unwrap_or_default();
    // Zero ways: there is no second level.
    let second = if second >> 28 == 0 { 0 } else { second >> 16 & 0xFFF };
    let factor = if counts_multiples(leaves) { SECOND_LEVEL_FACTOR } else { 1 };
    let levels = [(1, u64::from(first >> 16 & 0xFF)), (2, factor * u64::from(second))];
    let present = levels.into_iter().filter(|(_, entries)| *entries > 0);
    present.map(|(level, entries)| TranslationBuffer { level, entries }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_table(rows: &[(u32, u32, [u32; 4])]) -> Vec<(u32, u64)> {
        read_data_buffers(&CpuidLeaves::from_table(rows)).iter().map(|buffer| (buffer.level, buffer.entries)).collect()
    }

    #[test]
    fn subleaves_count_only_loads_of_small_pages() {
        let subleaves = [
            (0x18, 0, [3, 0, 0, 0]),
            // Unified with small and large pages; stores only; loads only; instructions.
            (0x18, 1, [0, 0x0008_0003, 256, 0x4043]),
            (0x18, 2, [0, 0x0010_0001, 1, 0x25]),
            (0x18, 3, [0, 0x0006_0001, 16, 0x4024]),
            (0x18, 4, [0, 0x0008_0001, 32, 0x4022]),
        ];
        assert_eq!(read_table(&subleaves), [(1, 96), (2, 2048)]);
    }

    #[test]
    fn two_buffers_of_one_level_are_ignored() {
        let subleaves = [
            (0x18, 0, [3, 0, 0, 0]),
            (0x18, 1, [0, 0x0008_0003, 128, 0x4043]),
            (0x18, 2, [0, 0x0008_0009, 128, 0x4043]),
            (0x18, 3, [0, 0x0006_0001, 16, 0x4024]),
        ];
        assert_eq!(read_table(&subleaves), [(1, 96)]);
    }

    #[test]
    fn descriptors_are_read_from_register_bytes() {
        assert_eq!(read_table(&[(2, 0, [0x7603_6301, 0x00F0_B5FF, 0, 0x00C3_0000])]), [(1, 64), (2, 1536)]);
        assert_eq!(read_table(&[(2, 0, [0x00FE_FF01, 0xF0, 0, 0x80C3_0000])]), []);
    }

    #[test]
    fn amd_leaves_give_both_levels() {
        let amd = [(0x8000_0005, 0, [0, 0xFF48_FF40, 0, 0]), (0x8000_0006, 0, [0, 0x6C00_6400, 0, 0])];
        assert_eq!(read_table(&amd), [(1, 72), (2, 3072)]);
        assert_eq!(read_table(&[(0x8000_0006, 0, [0, 0x0800_0000, 0, 0])]), []);
        // Zen 5 counts the second level in multiples of 32, which its hypervisors may not tell.
        for told in [(0x8000_0021, 0, [1 << 14, 0, 0, 0]), (1, 0, [0x00B0_0F21, 0, 0, 0])] {
            let entries = [(0x8000_0005, 0, [0, 0xFF60_FF40, 0, 0]), (0x8000_0006, 0, [0, 0x6080_4040, 0, 0])];
            assert_eq!(read_table(&[&entries[..], &[told]].concat()), [(1, 96), (2, 4096)]);
        }
    }
}
