//! A CPU with every feature that any CPU has.

use cyclescope_core::machine::cpuid_leaves::CpuidLeaves;
use cyclescope_core::machine::fact::{Fact, SystemFiles};
use cyclescope_core::machine::features::{CpuFeatures, LfenceOrder, SystemSupport};
use cyclescope_core::machine::processor::{Processor, Vendor};

/// As if each bit of CPUID were set and the system had switched all of it on.
pub fn everything() -> CpuFeatures {
    let answer = [u32::MAX; 4];
    let leaves =
        [0, 1, 7, 0x14, 0x19, 0xD, 0x8000_0001, 0x8000_0007, 0x8000_0008, 0x8000_001F, 0x8000_0021, 0xC000_0001];
    let rows: Vec<(u32, u32, [u32; 4])> =
        leaves.iter().flat_map(|leaf| (0..3).map(|subleaf| (*leaf, subleaf, answer))).collect();
    let leaves = CpuidLeaves::from_table(&rows);
    let enabled = SystemSupport { xcr0: u64::MAX, tile_permission: true, fsgsbase: true, shadow_stack: true };
    // Padlock is told by a vendor's own leaf.
    let cpu = Processor { vendor: Vendor::Zhaoxin, ..Processor::detect(&leaves, &SystemFiles::rooted_at("/nowhere")) };
    CpuFeatures::from_leaves(&leaves, &cpu, enabled, Fact::Known(LfenceOrder::Architectural))
}
