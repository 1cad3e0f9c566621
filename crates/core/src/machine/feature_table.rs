//! Where CPUID reports each feature, and which register state the system must have switched on for it.
//!
//! Sources: Intel SDM vol. 2A (CPUID) and vol. 1 chapter 13 (XSAVE-managed state); AMD APM vol. 3, appendix
//! E; Zhaoxin's Padlock programming guide for C000_0001h; iced's documentation of each `CpuidFeature`.

use iced_x86::CpuidFeature as F;

use super::leaves::Register::{self, Eax, Ebx, Ecx, Edx};

/// Register state that the operating system must have enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// No more than every 64-bit system has.
    Base,
    /// XMM and YMM: XCR0 bits 2:1.
    Ymm,
    /// Opmask and ZMM besides: XCR0 bits 7:5.
    Zmm,
    /// AMX tile configuration and data: XCR0 bits 18:17, and a permission for the process.
    Tile,
    /// Bound registers: XCR0 bits 4:3.
    Bounds,
    /// AMD's lightweight profiling: XCR0 bit 62.
    Profiling,
}

impl State {
    /// The bits that XCR0 must have (SDM vol. 1, 13.3).
    pub(super) fn xcr0_bits(self) -> u64 {
        match self {
            State::Base => 0,
            State::Ymm => 0b110,
            State::Zmm => 0b1110_0110,
            State::Tile => 0b11 << 17,
            State::Bounds => 0b11 << 3,
            State::Profiling => 1 << 62,
        }
    }
}

/// The CPUID bit of one feature.
pub(super) struct Bit {
    pub feature: F,
    pub leaf: u32,
    pub subleaf: u32,
    pub register: Register,
    pub bit: u32,
    pub state: State,
}

const fn bit(feature: F, leaf: u32, subleaf: u32, register: Register, bit: u32, state: State) -> Bit {
    Bit { feature, leaf, subleaf, register, bit, state }
}

const fn base(feature: F, leaf: u32, register: Register, position: u32) -> Bit {
    bit(feature, leaf, 0, register, position, State::Base)
}

const fn ymm(feature: F, leaf: u32, register: Register, position: u32) -> Bit {
    bit(feature, leaf, 0, register, position, State::Ymm)
}

const fn zmm(feature: F, leaf: u32, register: Register, position: u32) -> Bit {
    bit(feature, leaf, 0, register, position, State::Zmm)
}

/// A bit of leaf 7, subleaf 1.
const fn seven_one(feature: F, register: Register, position: u32, state: State) -> Bit {
    bit(feature, 7, 1, register, position, state)
}

const EXTENDED: u32 = 0x8000_0001;
const SIZES: u32 = 0x8000_0008;

/// Features that one CPUID bit (and a register state) decides.
pub(super) const BITS: &[Bit] = &[
    base(F::X64, EXTENDED, Edx, 29),
    base(F::FPU, 1, Edx, 0),
    base(F::TSC, 1, Edx, 4),
    base(F::MSR, 1, Edx, 5),
    base(F::CX8, 1, Edx, 8),
    base(F::SEP, 1, Edx, 11),
    base(F::CMOV, 1, Edx, 15),
    base(F::CLFSH, 1, Edx, 19),
    base(F::MMX, 1, Edx, 23),
    base(F::FXSR, 1, Edx, 24),
    base(F::SSE, 1, Edx, 25),
    base(F::SSE2, 1, Edx, 26),
    base(F::SSE3, 1, Ecx, 0),
    base(F::PCLMULQDQ, 1, Ecx, 1),
    base(F::MONITOR, 1, Ecx, 3),
    base(F::VMX, 1, Ecx, 5),
    base(F::SMX, 1, Ecx, 6),
    base(F::SSSE3, 1, Ecx, 9),
    ymm(F::FMA, 1, Ecx, 12),
    base(F::CMPXCHG16B, 1, Ecx, 13),
    base(F::SSE4_1, 1, Ecx, 19),
    base(F::SSE4_2, 1, Ecx, 20),
    base(F::MOVBE, 1, Ecx, 22),
    base(F::POPCNT, 1, Ecx, 23),
    base(F::AES, 1, Ecx, 25),
    ymm(F::AVX, 1, Ecx, 28),
    ymm(F::F16C, 1, Ecx, 29),
    base(F::RDRAND, 1, Ecx, 30),
    base(F::BMI1, 7, Ebx, 3),
    base(F::HLE, 7, Ebx, 4),
    ymm(F::AVX2, 7, Ebx, 5),
    base(F::BMI2, 7, Ebx, 8),
    base(F::INVPCID, 7, Ebx, 10),
    base(F::RTM, 7, Ebx, 11),
    bit(F::MPX, 7, 0, Ebx, 14, State::Bounds),
    zmm(F::AVX512F, 7, Ebx, 16),
    zmm(F::AVX512DQ, 7, Ebx, 17),
    base(F::RDSEED, 7, Ebx, 18),
    base(F::ADX, 7, Ebx, 19),
    base(F::SMAP, 7, Ebx, 20),
    zmm(F::AVX512_IFMA, 7, Ebx, 21),
    base(F::PCOMMIT, 7, Ebx, 22),
    base(F::CLFLUSHOPT, 7, Ebx, 23),
    base(F::CLWB, 7, Ebx, 24),
    zmm(F::AVX512PF, 7, Ebx, 26),
    zmm(F::AVX512ER, 7, Ebx, 27),
    zmm(F::AVX512CD, 7, Ebx, 28),
    base(F::SHA, 7, Ebx, 29),
    zmm(F::AVX512BW, 7, Ebx, 30),
    zmm(F::AVX512VL, 7, Ebx, 31),
    base(F::PREFETCHWT1, 7, Ecx, 0),
    zmm(F::AVX512_VBMI, 7, Ecx, 1),
    base(F::WAITPKG, 7, Ecx, 5),
    zmm(F::AVX512_VBMI2, 7, Ecx, 6),
    base(F::GFNI, 7, Ecx, 8),
    ymm(F::VAES, 7, Ecx, 9),
    ymm(F::VPCLMULQDQ, 7, Ecx, 10),
    zmm(F::AVX512_VNNI, 7, Ecx, 11),
    zmm(F::AVX512_BITALG, 7, Ecx, 12),
    zmm(F::AVX512_VPOPCNTDQ, 7, Ecx, 14),
    base(F::RDPID, 7, Ecx, 22),
    base(F::KL, 7, Ecx, 23),
    base(F::CLDEMOTE, 7, Ecx, 25),
    base(F::MOVDIRI, 7, Ecx, 27),
    base(F::MOVDIR64B, 7, Ecx, 28),
    base(F::ENQCMD, 7, Ecx, 29),
    zmm(F::AVX512_4VNNIW, 7, Edx, 2),
    zmm(F::AVX512_4FMAPS, 7, Edx, 3),
    zmm(F::AVX512_VP2INTERSECT, 7, Edx, 8),
    base(F::SERIALIZE, 7, Edx, 14),
    base(F::TSXLDTRK, 7, Edx, 16),
    base(F::PCONFIG, 7, Edx, 18),
    bit(F::AMX_BF16, 7, 0, Edx, 22, State::Tile),
    zmm(F::AVX512_FP16, 7, Edx, 23),
    bit(F::AMX_TILE, 7, 0, Edx, 24, State::Tile),
    bit(F::AMX_INT8, 7, 0, Edx, 25, State::Tile),
    seven_one(F::SHA512, Eax, 0, State::Ymm),
    seven_one(F::SM3, Eax, 1, State::Ymm),
    seven_one(F::SM4, Eax, 2, State::Ymm),
    seven_one(F::RAO_INT, Eax, 3, State::Base),
    seven_one(F::AVX_VNNI, Eax, 4, State::Ymm),
    seven_one(F::AVX512_BF16, Eax, 5, State::Zmm),
    seven_one(F::CMPCCXADD, Eax, 7, State::Base),
    seven_one(F::FRED, Eax, 17, State::Base),
    seven_one(F::LKGS, Eax, 18, State::Base),
    seven_one(F::WRMSRNS, Eax, 19, State::Base),
    seven_one(F::AMX_FP16, Eax, 21, State::Tile),
    seven_one(F::HRESET, Eax, 22, State::Base),
    seven_one(F::AVX_IFMA, Eax, 23, State::Ymm),
    seven_one(F::MSRLIST, Eax, 27, State::Base),
    seven_one(F::TSE, Ebx, 1, State::Base),
    seven_one(F::AVX_VNNI_INT8, Edx, 4, State::Ymm),
    seven_one(F::AVX_NE_CONVERT, Edx, 5, State::Ymm),
    seven_one(F::AMX_COMPLEX, Edx, 8, State::Tile),
    seven_one(F::AVX_VNNI_INT16, Edx, 10, State::Ymm),
    seven_one(F::PREFETCHITI, Edx, 14, State::Base),
    base(F::XSAVEOPT, 0xD, Eax, 0).in_subleaf(1),
    base(F::XSAVEC, 0xD, Eax, 1).in_subleaf(1),
    base(F::XSAVES, 0xD, Eax, 3).in_subleaf(1),
    base(F::SGX1, 0x12, Eax, 0),
    base(F::OSS, 0x12, Eax, 5),
    base(F::PTWRITE, 0x14, Ebx, 4),
    base(F::AESKLE, 0x19, Ebx, 0),
    base(F::WIDE_KL, 0x19, Ebx, 2),
    base(F::SVM, EXTENDED, Ecx, 2),
    base(F::LZCNT, EXTENDED, Ecx, 5),
    base(F::SSE4A, EXTENDED, Ecx, 6),
    base(F::PREFETCHW, EXTENDED, Ecx, 8),
    ymm(F::XOP, EXTENDED, Ecx, 11),
    base(F::SKINIT, EXTENDED, Ecx, 12),
    bit(F::LWP, EXTENDED, 0, Ecx, 15, State::Profiling),
    ymm(F::FMA4, EXTENDED, Ecx, 16),
    base(F::TBM, EXTENDED, Ecx, 21),
    base(F::MONITORX, EXTENDED, Ecx, 29),
    base(F::SYSCALL, EXTENDED, Edx, 11),
    base(F::RDTSCP, EXTENDED, Edx, 27),
    base(F::D3NOWEXT, EXTENDED, Edx, 30),
    base(F::D3NOW, EXTENDED, Edx, 31),
    base(F::CLZERO, SIZES, Ebx, 0),
    base(F::INVLPGB, SIZES, Ebx, 3),
    base(F::RDPRU, SIZES, Ebx, 4),
    base(F::MCOMMIT, SIZES, Ebx, 8),
    base(F::WBNOINVD, SIZES, Ebx, 9),
    base(F::SEV_ES, 0x8000_001F, Eax, 3),
    base(F::SEV_SNP, 0x8000_001F, Eax, 4),
    base(F::RMPQUERY, 0x8000_001F, Eax, 6),
];

impl Bit {
    const fn in_subleaf(self, subleaf: u32) -> Bit {
        Bit { subleaf, ..self }
    }
}

/// Zhaoxin's features: two neighbouring bits of C000_0001h EDX, "exists" and "is enabled".
pub(super) const PADLOCK: &[(F, u32)] = &[
    (F::CENTAUR_AIS, 0),
    (F::PADLOCK_RNG, 2),
    (F::PADLOCK_GMI, 4),
    (F::PADLOCK_ACE, 6),
    (F::PADLOCK_PHE, 10),
    (F::PADLOCK_PMM, 12),
];

/// What every processor with 64-bit mode has (SDM vol. 1, chapter 5; APM vol. 1, 1.1), and what ENDBR needs:
/// the instruction is a multi-byte NOP wherever branch tracking is off.
pub(super) const ALWAYS: &[F] = &[
    F::INTEL8086,
    F::INTEL186,
    F::INTEL286,
    F::INTEL386,
    F::INTEL486,
    F::FPU287,
    F::FPU387,
    F::CPUID,
    F::MULTIBYTENOP,
    F::PAUSE,
    F::RDPMC,
    F::CET_IBT,
];

/// Features that no 64-bit mode has, or that user code can't learn of, each with the reason.
pub(super) const NEVER: &[(F, &str)] = &[
    (F::INTEL8086_ONLY, NOT_64_BIT),
    (F::INTEL286_ONLY, NOT_64_BIT),
    (F::INTEL386_ONLY, NOT_64_BIT),
    (F::INTEL386_A0_ONLY, NOT_64_BIT),
    (F::INTEL486_A_ONLY, NOT_64_BIT),
    (F::UMOV, NOT_64_BIT),
    (F::IA64, NOT_64_BIT),
    (F::CL1INVMB, NOT_64_BIT),
    (F::FPU287XL_ONLY, NOT_64_BIT),
    (F::FPU387SL_ONLY, NOT_64_BIT),
    (F::CYRIX_D3NOW, NOT_64_BIT),
    (F::CYRIX_FPU, NOT_64_BIT),
    (F::CYRIX_SMM, NOT_64_BIT),
    (F::CYRIX_SMINT, NOT_64_BIT),
    (F::CYRIX_SMINT_0F7E, NOT_64_BIT),
    (F::CYRIX_SHR, NOT_64_BIT),
    (F::CYRIX_DDI, NOT_64_BIT),
    (F::CYRIX_EMMI, NOT_64_BIT),
    (F::CYRIX_DMI, NOT_64_BIT),
    (F::MOV_TR, NOT_64_BIT),
    (F::KNC, "only the Knights Corner coprocessor has it"),
    (F::SMM, "RSM runs in system management mode only"),
    (F::INVEPT, "reported by an MSR (IA32_VMX_EPT_VPID_CAP) that user mode can't read"),
    (F::INVVPID, "reported by an MSR (IA32_VMX_EPT_VPID_CAP) that user mode can't read"),
    (F::UDBG, "undocumented, and reported by no CPUID bit"),
    (F::PADLOCK_UNDOC, "undocumented, and reported by no CPUID bit"),
    (F::UINTR, "Linux does not enable user interrupts"),
];

const NOT_64_BIT: &str = "no processor with a 64-bit mode has it";
