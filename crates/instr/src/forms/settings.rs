//! What particular instructions need before they can run, as data.
//!
//! Nothing here says what an instruction costs: only which values its registers and its memory must hold for it to run
//! at all, again and again, and to do what it usually does.

use iced_x86::{Code, Mnemonic};

/// The header of an XSAVE area has to be zero where XSAVE does not write it (Intel SDM vol. 1, 13.4.2).
macro_rules! cleared {
    () => {
        "xor ebx, ebx; mov [r14+512], rbx; mov [r14+520], rbx; mov [r14+528], rbx; mov [r14+536], rbx; \
         mov [r14+544], rbx; mov [r14+552], rbx; mov [r14+560], rbx; mov [r14+568], rbx"
    };
}

/// What a group of instructions needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The instructions.
    pub mnemonics: &'static [Mnemonic],
    /// Those of which not all operands need the same.
    pub codes: &'static [Code],
    /// Assembly that runs once before the body. The address of memory operands is in R14.
    pub init: &'static str,
    /// Values that a chain runs through are put back to what they were.
    pub kept: bool,
    /// Operands are numbers with full mantissas: the time may depend on them.
    pub full: bool,
    /// A chain squares each result.
    pub squared: bool,
    /// All memory operands are at one address: what `init` prepared.
    pub prepared: bool,
    /// The immediate, where not any will do.
    pub immediate: Option<i64>,
    /// Register operands that hold an address, from 1.
    pub pointer: Option<u32>,
    /// Empties caches or buffers of translations, so that what follows is slow once.
    pub empties: bool,
    /// One instance may take a millisecond.
    pub long: bool,
}

/// Most instructions need nothing.
pub(crate) const NONE: Setting = Setting {
    mnemonics: &[],
    codes: &[],
    init: "",
    kept: false,
    full: false,
    squared: false,
    prepared: false,
    immediate: None,
    pointer: None,
    empties: false,
    long: false,
};

/// All registers that may be a constant operand get one value.
macro_rules! everywhere {
    ($before:literal, $after:literal) => {
        concat!(
            $before, "rax", $after, $before, "rbx", $after, $before, "rcx", $after, $before, "rdx", $after,
            $before, "rsi", $after, $before, "rdi", $after, $before, "rbp", $after, $before, "r8", $after,
            $before, "r9", $after, $before, "r10", $after, $before, "r11", $after, $before, "r12", $after,
            $before, "r13", $after
        )
    };
}

/// The exceptions.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        mnemonics: &[Mnemonic::Div, Mnemonic::Idiv],
        // Divisors that are high bytes are above zero too. Where other registers hold addresses, these do not.
        init: "xor edx, edx; mov eax, 0x10019; mov ebx, 0x10303; mov ecx, 0x10303; mov ebp, ecx; mov esi, ecx; \
               mov edi, ecx",
        kept: true,
        ..NONE
    },
    Setting {
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
        full: true,
        ..NONE
    },
    // A chain of square roots alone would end at one.
    Setting {
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
        full: true,
        squared: true,
        ..NONE
    },
    // Results that are operands again would end at numbers that are quick.
    Setting {
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
        kept: true,
        ..NONE
    },
    // The bit's number is an address: no register that may hold it holds one at first.
    Setting {
        mnemonics: &[Mnemonic::Bt, Mnemonic::Bts, Mnemonic::Btr, Mnemonic::Btc],
        init: "xor ebp, ebp; xor esi, esi; xor edi, edi",
        kept: true,
        ..NONE
    },
    Setting { mnemonics: &[Mnemonic::Cpuid], init: "xor eax, eax; xor ecx, ecx", kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Xgetbv], init: "xor ecx, ecx", kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Rdpkru], init: "xor ecx, ecx", kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Rdpru], init: "xor ecx, ecx", kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Xlatb], init: "mov rbx, r14", kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Clzero], init: "mov rax, r14", kept: true, ..NONE },
    Setting {
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
            Mnemonic::Leave,
            Mnemonic::Maskmovdqu,
            Mnemonic::Maskmovq,
            Mnemonic::Vmaskmovdqu,
        ],
        kept: true,
        ..NONE
    },
    // The string instructions, whose names SSE has too.
    Setting { mnemonics: &[Mnemonic::Movsd, Mnemonic::Cmpsd], kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Enter], kept: true, immediate: Some(0), ..NONE },
    Setting { mnemonics: &[Mnemonic::Ldmxcsr], init: "stmxcsr dword ptr [r14]", prepared: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Vldmxcsr], init: "vstmxcsr dword ptr [r14]", prepared: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Fldcw], init: "fnstcw word ptr [r14]", prepared: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Fldenv], init: "fnstenv [r14]", prepared: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Frstor], init: "fnsave [r14]; fninit", prepared: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Fxrstor], init: "fxsave [r14]", prepared: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Fxrstor64], init: "fxsave64 [r14]", prepared: true, ..NONE },
    Setting {
        mnemonics: &[Mnemonic::Xsave, Mnemonic::Xsaveopt, Mnemonic::Xsavec, Mnemonic::Xsaves],
        init: "mov eax, 7; xor edx, edx",
        kept: true,
        ..NONE
    },
    Setting {
        mnemonics: &[Mnemonic::Xsave64, Mnemonic::Xsaveopt64, Mnemonic::Xsavec64, Mnemonic::Xsaves64],
        init: "mov eax, 7; xor edx, edx",
        kept: true,
        ..NONE
    },
    Setting {
        mnemonics: &[Mnemonic::Xrstor],
        init: concat!("mov eax, 7; xor edx, edx; ", cleared!(), "; xsave [r14]"),
        kept: true,
        prepared: true,
        ..NONE
    },
    Setting {
        mnemonics: &[Mnemonic::Xrstor64],
        init: concat!("mov eax, 7; xor edx, edx; ", cleared!(), "; xsave64 [r14]"),
        kept: true,
        prepared: true,
        ..NONE
    },
    // The null selector, in whatever register keeps its value; other moves do not mind.
    Setting { mnemonics: &[Mnemonic::Mov], init: "xor r10d, r10d; xor r11d, r11d; xor r12d, r12d", ..NONE },
    Setting { mnemonics: &[Mnemonic::Movdir64b], pointer: Some(1), kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Rdpmc], init: "xor ecx, ecx", kept: true, ..NONE },
    // Only what was read from CR0 may be written to it.
    Setting { codes: &[Code::Mov_cr_r64], init: everywhere!("mov ", ", cr0; "), kept: true, ..NONE },
    Setting { codes: &[Code::Mov_dr_r64], init: everywhere!("mov ", ", 0; "), kept: true, ..NONE },
    // IA32_FS_BASE, which is nobody's while the code runs.
    Setting { mnemonics: &[Mnemonic::Rdmsr], init: "mov ecx, 0xc0000100", kept: true, ..NONE },
    Setting {
        mnemonics: &[Mnemonic::Wrmsr],
        init: "mov ecx, 0xc0000100; xor eax, eax; xor edx, edx",
        kept: true,
        ..NONE
    },
    Setting { mnemonics: &[Mnemonic::Xsetbv], init: "xor ecx, ecx; xgetbv", kept: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Wbinvd, Mnemonic::Wbnoinvd], empties: true, long: true, ..NONE },
    Setting { mnemonics: &[Mnemonic::Invlpg], empties: true, ..NONE },
    // The descriptor is context 0, address 0; the register holds the type.
    Setting {
        mnemonics: &[Mnemonic::Invpcid],
        init: concat!("mov qword ptr [r14], 0; mov qword ptr [r14+8], 0; ", everywhere!("mov ", ", 0; ")),
        kept: true,
        prepared: true,
        empties: true,
        ..NONE
    },
];

/// The setting of an instruction.
pub(crate) fn of(code: Code) -> &'static Setting {
    let alone = SETTINGS.iter().find(|setting| setting.codes.contains(&code));
    let mnemonic = code.mnemonic();
    alone.or_else(|| SETTINGS.iter().find(|setting| setting.mnemonics.contains(&mnemonic))).unwrap_or(&NONE)
}
