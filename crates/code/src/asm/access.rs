//! Instructions that access memory in an unusual way, or that order others.

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

/// Whether an instruction orders others by definition: an atomic one, a fence, or a serialising one
/// (Intel SDM vol. 3, 9.2.5 and 9.3). Others wait for it, or it waits for them.
pub fn orders_others(instruction: &Instruction) -> bool {
    use Mnemonic::{
        Cpuid, Invd, Invept, Invlpg, Invlpgb, Invpcid, Invvpid, Iret, Iretd, Iretq, Lfence, Lgdt, Lidt, Lldt, Lmsw,
        Ltr, Mfence, Rdtscp, Rsm, Serialize, Sfence, Wbinvd, Wbnoinvd, Wrmsr,
    };
    let ordering = matches!(
        instruction.mnemonic(),
        Cpuid
            | Invd
            | Invept
            | Invlpg
            | Invlpgb
            | Invpcid
            | Invvpid
            | Iret
            | Iretd
            | Iretq
            | Lfence
            | Lgdt
            | Lidt
            | Lldt
            | Lmsw
            | Ltr
            | Mfence
            | Rdtscp
            | Rsm
            | Serialize
            | Sfence
            | Wbinvd
            | Wbnoinvd
            | Wrmsr
    );
    let written = instruction.op0_register();
    ordering || written.is_cr() || written.is_dr() || is_atomic(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse_assembly;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn atomic_fencing_and_serialising_instructions_order_others() {
        let orders = |text: &str| {
            let code = parse_assembly(text).unwrap();
            orders_others(&Decoder::new(64, code.bytes(), DecoderOptions::NONE).decode())
        };
        for text in ["lock add [rsi], rax", "xchg [rsi], rax", "mfence", "lfence", "cpuid", "mov cr0, rax"] {
            assert!(orders(text), "{text}");
        }
        for text in ["add [rsi], rax", "xchg rbx, rax", "rdtsc", "mov rax, cr0", "cmpxchg [rsi], rax"] {
            assert!(!orders(text), "{text}");
        }
    }
}
