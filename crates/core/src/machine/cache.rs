//! Cache sizes from CPUID 04h (Intel) and 8000_001Dh (AMD), which share one format.

use serde::Serialize;

use super::cpuid_leaves::CpuidLeaves;

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    Unified,
}

/// One cache as CPUID describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// Level, from 1.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Line size in bytes.
    pub line: u32,
    /// Associativity, in ways.
    pub ways: u32,
}

/// All caches of the CPU in the table (SDM vol. 2A, CPUID 04h; APM vol. 3, CPUID 8000_001Dh).
pub(crate) fn read_caches(leaves: &CpuidLeaves) -> Vec<Cache> {
    let list = |leaf: u32| -> Vec<Cache> {
        (0..).map_while(|subleaf| leaves.find_leaf(leaf, subleaf)).map_while(parse_cache).collect()
    };
    let amd = list(0x8000_001D);
    if amd.is_empty() { list(4) } else { amd }
}

fn parse_cache([eax, ebx, ecx, _]: [u32; 4]) -> Option<Cache> {
    let kind = match eax & 0x1F {
        1 => CacheKind::Data,
        2 => CacheKind::Instruction,
        3 => CacheKind::Unified,
        _ => return None,
    };
    let ways = (ebx >> 22) + 1;
    let partitions = (ebx >> 12 & 0x3FF) + 1;
    let line = (ebx & 0xFFF) + 1;
    let sets = u64::from(ecx) + 1;
    let bytes = u64::from(ways) * u64::from(partitions) * u64::from(line) * sets;
    Some(Cache { level: eax >> 5 & 7, kind, bytes, line, ways })
}

#[cfg(test)]
mod tests {
    use super::super::cpuid_leaves::tests::emerald_rapids_vm;
    use super::*;

    #[test]
    fn a_recorded_vm_gives_its_caches() {
        let sizes: Vec<_> = read_caches(&emerald_rapids_vm())
            .iter()
            .map(|cache| (cache.level, cache.kind, cache.bytes >> 10, cache.line))
            .collect();
        assert_eq!(
            sizes,
            [
                (1, CacheKind::Data, 48, 64),
                (1, CacheKind::Instruction, 32, 64),
                (2, CacheKind::Unified, 2048, 64),
                (3, CacheKind::Unified, 266_240, 64),
            ]
        );
    }

    #[test]
    fn without_the_leaf_there_are_no_caches() {
        assert!(read_caches(&CpuidLeaves::default()).is_empty());
    }
}
