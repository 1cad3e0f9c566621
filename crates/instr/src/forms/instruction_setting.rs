//! The settings that particular instructions need, as a table.
//!
//! A setting says nothing about costs. It lists the register and memory values that an instruction
//! needs to run repeatedly and do its usual work.

use iced_x86::{Code, Mnemonic};

/// The header of an XSAVE area must be zero where XSAVE does not write it (Intel SDM vol. 1,
/// 13.4.2).
macro_rules! cleared {
    () => {
        "xorps xmm0, xmm0; movups [r14+512], xmm0; movups [r14+528], xmm0; movups [r14+544], xmm0; \
         movups [r14+560], xmm0"
    };
}

/// The needs of a group of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstructionSetting {
    /// The instructions, by mnemonic.
    pub mnemonics: &'static [Mnemonic],
    /// The instructions, by code, if the setting applies only to some of their operands.
    pub codes: &'static [Code],
    /// Assembly of 64-bit mode that runs once before the body. R14 holds the address of memory
    /// operands. Without a text of its own, 32-bit code gets its counterpart.
    pub init: &'static str,
    /// The same for 32-bit code, if it differs. EBX holds the address of memory operands.
    pub narrow_init: Option<&'static str>,
    /// Chains reset the values that they run through.
    pub restores_values: bool,
    /// Operands have full mantissas: the time may depend on them.
    pub full_mantissas: bool,
    /// A chain squares each result.
    pub squared: bool,
    /// All memory operands have one address, which `init` prepares.
    pub prepared: bool,
    /// The immediate, if not every value works.
    pub immediate: Option<i64>,
    /// The register operand that holds an address, numbered from 1.
    pub pointer: Option<u32>,
    /// Flushes caches or translation buffers, so that the code after it is slow once.
    pub empties: bool,
    /// One instance may take up to a millisecond.
    pub long: bool,
}

/// Most instructions need no setting.
pub(crate) const NO_SETTING: InstructionSetting = InstructionSetting {
    mnemonics: &[],
    codes: &[],
    init: "",
    narrow_init: None,
    restores_values: false,
    full_mantissas: false,
    squared: false,
    prepared: false,
    immediate: None,
    pointer: None,
    empties: false,
    long: false,
};

/// Sets all registers that may be a constant operand to one value.
macro_rules! everywhere {
    ($before:literal, $after:literal) => {
        concat!(
            $before, "rax", $after, $before, "rbx", $after, $before, "rcx", $after, $before, "rdx", $after, $before,
            "rsi", $after, $before, "rdi", $after, $before, "rbp", $after, $before, "r8", $after, $before, "r9",
            $after, $before, "r10", $after, $before, "r11", $after, $before, "r12", $after, $before, "r13", $after
        )
    };
}

/// Instructions that need a setting.
pub(crate) const SETTINGS: &[InstructionSetting] = &[
    InstructionSetting {
        mnemonics: &[Mnemonic::Div, Mnemonic::Idiv],
        // Divisors in high bytes are above zero too. Registers that hold addresses elsewhere hold
        // none here.
        init: "xor edx, edx; mov eax, 0x10019; mov ebx, 0x10303; mov ecx, 0x10303; mov ebp, ecx; mov esi, ecx; \
               mov edi, ecx",
        narrow_init: Some("xor edx, edx; mov eax, 0x10019; mov ebx, 0x10303; mov ecx, 0x10303; mov esi, ecx"),
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[
            Mnemonic::Divps,
            Mnemonic::Divpd,
            Mnemonic::Divss,
            Mnemonic::Divsd,
            Mnemonic::Vdivps,
            Mnemonic::Vdivpd,
            Mnemonic::Vdivss,
            Mnemonic::Vdivsd,
            Mnemonic::Vdivph,
            Mnemonic::Vdivsh,
        ],
        full_mantissas: true,
        ..NO_SETTING
    },
    // Repeated square roots alone would converge to one.
    InstructionSetting {
        mnemonics: &[
            Mnemonic::Sqrtps,
            Mnemonic::Sqrtpd,
            Mnemonic::Sqrtss,
            Mnemonic::Sqrtsd,
            Mnemonic::Vsqrtps,
            Mnemonic::Vsqrtpd,
            Mnemonic::Vsqrtss,
            Mnemonic::Vsqrtsd,
            Mnemonic::Vsqrtph,
            Mnemonic::Vsqrtsh,
        ],
        full_mantissas: true,
        squared: true,
        ..NO_SETTING
    },
    // Repeated results would converge to values with quick operations.
    InstructionSetting {
        mnemonics: &[
            Mnemonic::Fsqrt,
            Mnemonic::Fsin,
            Mnemonic::Fcos,
            Mnemonic::Frndint,
            Mnemonic::F2xm1,
            Mnemonic::Fscale,
            Mnemonic::Fprem,
            Mnemonic::Fprem1,
        ],
        restores_values: true,
        ..NO_SETTING
    },
    // The bit number acts as an address, so candidate registers start at zero.
    InstructionSetting {
        mnemonics: &[Mnemonic::Bt, Mnemonic::Bts, Mnemonic::Btr, Mnemonic::Btc],
        init: "xor ebp, ebp; xor esi, esi; xor edi, edi",
        narrow_init: Some("xor ebx, ebx; xor esi, esi"),
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[Mnemonic::Cpuid],
        init: "xor eax, eax; xor ecx, ecx",
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting { mnemonics: &[Mnemonic::Xgetbv], init: "xor ecx, ecx", restores_values: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Rdpkru], init: "xor ecx, ecx", restores_values: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Rdpru], init: "xor ecx, ecx", restores_values: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Xlatb], init: "mov rbx, r14", restores_values: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Clzero], init: "mov rax, r14", restores_values: true, ..NO_SETTING },
    InstructionSetting {
        mnemonics: &[
            Mnemonic::Movsb,
            Mnemonic::Movsw,
            Mnemonic::Movsq,
            Mnemonic::Cmpsb,
            Mnemonic::Cmpsw,
            Mnemonic::Cmpsq,
            Mnemonic::Stosb,
            Mnemonic::Stosw,
            Mnemonic::Stosd,
            Mnemonic::Stosq,
            Mnemonic::Lodsb,
            Mnemonic::Lodsw,
            Mnemonic::Lodsd,
            Mnemonic::Lodsq,
            Mnemonic::Scasb,
            Mnemonic::Scasw,
            Mnemonic::Scasd,
            Mnemonic::Scasq,
            Mnemonic::Push,
            Mnemonic::Pop,
            Mnemonic::Pushf,
            Mnemonic::Pushfq,
            Mnemonic::Popf,
            Mnemonic::Popfq,
            Mnemonic::Pushfd,
            Mnemonic::Popfd,
            Mnemonic::Pusha,
            Mnemonic::Pushad,
            Mnemonic::Popa,
            Mnemonic::Popad,
            Mnemonic::Leave,
            Mnemonic::Maskmovdqu,
            Mnemonic::Maskmovq,
            Mnemonic::Vmaskmovdqu,
        ],
        restores_values: true,
        ..NO_SETTING
    },
    // String instructions that share their names with SSE instructions.
    InstructionSetting { mnemonics: &[Mnemonic::Movsd, Mnemonic::Cmpsd], restores_values: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Enter], restores_values: true, immediate: Some(0), ..NO_SETTING },
    InstructionSetting {
        mnemonics: &[Mnemonic::Ldmxcsr],
        init: "stmxcsr dword ptr [r14]",
        prepared: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[Mnemonic::Vldmxcsr],
        init: "vstmxcsr dword ptr [r14]",
        prepared: true,
        ..NO_SETTING
    },
    InstructionSetting { mnemonics: &[Mnemonic::Fldcw], init: "fnstcw word ptr [r14]", prepared: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Fldenv], init: "fnstenv [r14]", prepared: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Frstor], init: "fnsave [r14]; fninit", prepared: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Fxrstor], init: "fxsave [r14]", prepared: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Fxrstor64], init: "fxsave64 [r14]", prepared: true, ..NO_SETTING },
    InstructionSetting {
        mnemonics: &[Mnemonic::Xsave, Mnemonic::Xsaveopt, Mnemonic::Xsavec, Mnemonic::Xsaves],
        init: "mov eax, 7; xor edx, edx",
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[Mnemonic::Xsave64, Mnemonic::Xsaveopt64, Mnemonic::Xsavec64, Mnemonic::Xsaves64],
        init: "mov eax, 7; xor edx, edx",
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[Mnemonic::Xrstor],
        init: concat!("mov eax, 7; xor edx, edx; ", cleared!(), "; xsave [r14]"),
        restores_values: true,
        prepared: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[Mnemonic::Xrstor64],
        init: concat!("mov eax, 7; xor edx, edx; ", cleared!(), "; xsave64 [r14]"),
        restores_values: true,
        prepared: true,
        ..NO_SETTING
    },
    // The null selector, in all constant registers. Other moves ignore it.
    InstructionSetting {
        mnemonics: &[Mnemonic::Mov],
        init: "xor r10d, r10d; xor r11d, r11d; xor r12d, r12d",
        narrow_init: Some("xor eax, eax; xor ecx, ecx; xor edx, edx"),
        ..NO_SETTING
    },
    // 32-bit code needs these segments: a far pointer to the flat one of its data (Linux,
    // `__USER_DS`).
    InstructionSetting {
        codes: &[Code::Les_r32_m1632, Code::Lds_r32_m1632, Code::Lss_r32_m1632],
        narrow_init: Some("mov dword ptr [ebx+4], 0x2b"),
        restores_values: true,
        prepared: true,
        ..NO_SETTING
    },
    InstructionSetting {
        codes: &[Code::Les_r16_m1616, Code::Lds_r16_m1616, Code::Lss_r16_m1616],
        narrow_init: Some("mov word ptr [ebx+2], 0x2b"),
        restores_values: true,
        prepared: true,
        ..NO_SETTING
    },
    // Bounds that every index lies between.
    InstructionSetting {
        codes: &[Code::Bound_r32_m3232],
        narrow_init: Some("mov dword ptr [ebx], 0x80000000; mov dword ptr [ebx+4], 0x7fffffff"),
        prepared: true,
        ..NO_SETTING
    },
    InstructionSetting {
        codes: &[Code::Bound_r16_m1616],
        narrow_init: Some("mov dword ptr [ebx], 0x7fff8000"),
        prepared: true,
        ..NO_SETTING
    },
    InstructionSetting { mnemonics: &[Mnemonic::Movdir64b], pointer: Some(1), restores_values: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Rdpmc], init: "xor ecx, ecx", restores_values: true, ..NO_SETTING },
    // Only the present value of CR0 may be written to it.
    InstructionSetting {
        codes: &[Code::Mov_cr_r64],
        init: everywhere!("mov ", ", cr0; "),
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting {
        codes: &[Code::Mov_dr_r64],
        init: everywhere!("mov ", ", 0; "),
        restores_values: true,
        ..NO_SETTING
    },
    // IA32_FS_BASE, which nothing else uses while the code runs.
    InstructionSetting {
        mnemonics: &[Mnemonic::Rdmsr],
        init: "mov ecx, 0xc0000100",
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[Mnemonic::Wrmsr],
        init: "mov ecx, 0xc0000100; xor eax, eax; xor edx, edx",
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting {
        mnemonics: &[Mnemonic::Xsetbv],
        init: "xor ecx, ecx; xgetbv",
        restores_values: true,
        ..NO_SETTING
    },
    InstructionSetting { mnemonics: &[Mnemonic::Wbinvd, Mnemonic::Wbnoinvd], empties: true, long: true, ..NO_SETTING },
    InstructionSetting { mnemonics: &[Mnemonic::Invlpg], empties: true, ..NO_SETTING },
    // The descriptor is context 0, address 0. The register holds the type.
    InstructionSetting {
        mnemonics: &[Mnemonic::Invpcid],
        init: concat!("mov qword ptr [r14], 0; mov qword ptr [r14+8], 0; ", everywhere!("mov ", ", 0; ")),
        restores_values: true,
        prepared: true,
        empties: true,
        ..NO_SETTING
    },
];

/// Finds the setting of an instruction.
pub(crate) fn find_setting(code: Code) -> &'static InstructionSetting {
    let alone = SETTINGS.iter().find(|setting| setting.codes.contains(&code));
    let mnemonic = code.mnemonic();
    alone.or_else(|| SETTINGS.iter().find(|setting| setting.mnemonics.contains(&mnemonic))).unwrap_or(&NO_SETTING)
}
