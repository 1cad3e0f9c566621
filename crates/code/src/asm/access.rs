//! Instructions that access memory in an unusual way.

use iced_x86::{Instruction, Mnemonic};

/// Whether an instruction stores past the caches: its data waits in a buffer until the cache line
/// is complete (Intel SDM vol. 1, 10.4.6.2; vol. 2, MOVDIRI).
pub fn is_non_temporal_store(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Movdiri, Movntdq, Movnti, Movntpd, Movntps, Movntq, Movntsd, Movntss, Vmovntdq, Vmovntpd, Vmovntps,
    };
    matches!(
        instruction.mnemonic(),
        Movdiri | Movntdq | Movnti | Movntpd | Movntps | Movntq | Movntsd | Movntss | Vmovntdq | Vmovntpd | Vmovntps
    )
}

/// Whether an instruction reads and writes memory atomically: with a LOCK prefix, or as XCHG or
/// CMPccXADD without one (Intel SDM vol. 3, 9.1.2.2; vol. 2, CMPccXADD). It must see memory itself,
/// so no core forwards a store's register to it.
pub fn is_atomic(instruction: &Instruction) -> bool {
    let name = format!("{:?}", instruction.mnemonic());
    let compares = name.starts_with("Cmp") && name.ends_with("xadd");
    let implied = instruction.mnemonic() == Mnemonic::Xchg || compares;
    instruction.has_lock_prefix() || implied && instruction.memory_base() != iced_x86::Register::None
}
