//! A CPU with all features of all CPUs.

use cyclescope_core::machine::cpuid_leaves::CpuidLeaves;
use cyclescope_core::machine::fact::{Fact, SystemFiles};
use cyclescope_core::machine::features::{CpuFeatures, LfenceOrder, SystemSupport};
use cyclescope_core::machine::processor::{Processor, Vendor};

/// Features as if every CPUID bit were set and the system had enabled everything.
pub fn everything() -> CpuFeatures {
    let answer = [u32::MAX; 4];
    let leaves =
        [0, 1, 7, 0x14, 0x19, 0xD, 0x8000_0001, 0x8000_0007, 0x8000_0008, 0x8000_001F, 0x8000_0021, 0xC000_0001];
    let rows: Vec<(u32, u32, [u32; 4])> =
        leaves.iter().flat_map(|leaf| (0..3).map(|subleaf| (*leaf, subleaf, answer))).collect();
    let leaves = CpuidLeaves::from_table(&rows);
    let enabled = SystemSupport { xcr0: u64::MAX, tile_permission: true, fsgsbase: true, shadow_stack: true };
    // Padlock is reported by a vendor-specific leaf.
    let cpu = Processor { vendor: Vendor::Zhaoxin, ..Processor::detect(&leaves, &SystemFiles::rooted_at("/nowhere")) };
    CpuFeatures::from_leaves(&leaves, &cpu, enabled, Fact::Known(LfenceOrder::Architectural))
}
