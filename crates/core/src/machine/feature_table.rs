//! CPUID bits of each feature, and the register state that the system must enable for it.
//!
//! Sources: Intel SDM vol. 2A (CPUID) and vol. 1 chapter 13 (XSAVE-managed state); AMD APM vol. 3,
//! appendix E; Zhaoxin's Padlock programming guide for C000_0001h; iced's documentation of each
//! `CpuidFeature`.

use iced_x86::CpuidFeature as F;

use super::cpuid_leaves::CpuidRegister::{self, Eax, Ebx, Ecx, Edx};

/// Register state that the operating system must have enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegisterState {
    /// Enabled on every 64-bit system.
    Base,
    /// XMM and YMM: XCR0 bits 2:1.
    Ymm,
    /// Also opmask and ZMM: XCR0 bits 7:5.
    Zmm,
    /// AMX tile configuration and data: XCR0 bits 18:17, and a permission of the process.
    Tile,
    /// Bound registers: XCR0 bits 4:3.
    Bounds,
    /// AMD's lightweight profiling: XCR0 bit 62.
    Profiling,
}

impl RegisterState {
    /// Required XCR0 bits (SDM vol. 1, 13.3).
    pub(super) fn xcr0_bits(self) -> u64 {
        match self {
            RegisterState::Base => 0,
            RegisterState::Ymm => 0b110,
            RegisterState::Zmm => 0b1110_0110,
            RegisterState::Tile => 0b11 << 17,
            RegisterState::Bounds => 0b11 << 3,
            RegisterState::Profiling => 1 << 62,
        }
    }
}

/// CPUID bit of one feature.
pub(super) struct FeatureBit {
    pub feature: F,
    pub leaf: u32,
    pub subleaf: u32,
    pub register: CpuidRegister,
    pub bit: u32,
    pub state: RegisterState,
}

const fn feature_bit(
    feature: F,
    leaf: u32,
    subleaf: u32,
    register: CpuidRegister,
    bit: u32,
    state: RegisterState,
) -> FeatureBit {
    FeatureBit { feature, leaf, subleaf, register, bit, state }
}

const fn base_bit(feature: F, leaf: u32, register: CpuidRegister, position: u32) -> FeatureBit {
    feature_bit(feature, leaf, 0, register, position, RegisterState::Base)
}

const fn ymm_bit(feature: F, leaf: u32, register: CpuidRegister, position: u32) -> FeatureBit {
    feature_bit(feature, leaf, 0, register, position, RegisterState::Ymm)
}

const fn zmm_bit(feature: F, leaf: u32, register: CpuidRegister, position: u32) -> FeatureBit {
    feature_bit(feature, leaf, 0, register, position, RegisterState::Zmm)
}

/// A bit of leaf 7, subleaf 1.
const fn leaf_7_1_bit(feature: F, register: CpuidRegister, position: u32, state: RegisterState) -> FeatureBit {
    feature_bit(feature, 7, 1, register, position, state)
}

const EXTENDED_LEAF: u32 = 0x8000_0001;
const SIZES_LEAF: u32 = 0x8000_0008;

/// Features that depend on one CPUID bit and a register state.
pub(super) const FEATURE_BITS: &[FeatureBit] = &[
    base_bit(F::X64, EXTENDED_LEAF, Edx, 29),
    base_bit(F::FPU, 1, Edx, 0),
    base_bit(F::TSC, 1, Edx, 4),
    base_bit(F::MSR, 1, Edx, 5),
    base_bit(F::CX8, 1, Edx, 8),
    base_bit(F::SEP, 1, Edx, 11),
    base_bit(F::CMOV, 1, Edx, 15),
    base_bit(F::CLFSH, 1, Edx, 19),
    base_bit(F::MMX, 1, Edx, 23),
    base_bit(F::FXSR, 1, Edx, 24),
    base_bit(F::SSE, 1, Edx, 25),
    base_bit(F::SSE2, 1, Edx, 26),
    base_bit(F::SSE3, 1, Ecx, 0),
    base_bit(F::PCLMULQDQ, 1, Ecx, 1),
    base_bit(F::MONITOR, 1, Ecx, 3),
    base_bit(F::VMX, 1, Ecx, 5),
    base_bit(F::SMX, 1, Ecx, 6),
    base_bit(F::SSSE3, 1, Ecx, 9),
    ymm_bit(F::FMA, 1, Ecx, 12),
    base_bit(F::CMPXCHG16B, 1, Ecx, 13),
    base_bit(F::SSE4_1, 1, Ecx, 19),
    base_bit(F::SSE4_2, 1, Ecx, 20),
    base_bit(F::MOVBE, 1, Ecx, 22),
    base_bit(F::POPCNT, 1, Ecx, 23),
    base_bit(F::AES, 1, Ecx, 25),
    ymm_bit(F::AVX, 1, Ecx, 28),
    ymm_bit(F::F16C, 1, Ecx, 29),
    base_bit(F::RDRAND, 1, Ecx, 30),
    base_bit(F::BMI1, 7, Ebx, 3),
    base_bit(F::HLE, 7, Ebx, 4),
    ymm_bit(F::AVX2, 7, Ebx, 5),
    base_bit(F::BMI2, 7, Ebx, 8),
    base_bit(F::INVPCID, 7, Ebx, 10),
    base_bit(F::RTM, 7, Ebx, 11),
    feature_bit(F::MPX, 7, 0, Ebx, 14, RegisterState::Bounds),
    zmm_bit(F::AVX512F, 7, Ebx, 16),
    zmm_bit(F::AVX512DQ, 7, Ebx, 17),
    base_bit(F::RDSEED, 7, Ebx, 18),
    base_bit(F::ADX, 7, Ebx, 19),
    base_bit(F::SMAP, 7, Ebx, 20),
    zmm_bit(F::AVX512_IFMA, 7, Ebx, 21),
    base_bit(F::PCOMMIT, 7, Ebx, 22),
    base_bit(F::CLFLUSHOPT, 7, Ebx, 23),
    base_bit(F::CLWB, 7, Ebx, 24),
    zmm_bit(F::AVX512PF, 7, Ebx, 26),
    zmm_bit(F::AVX512ER, 7, Ebx, 27),
    zmm_bit(F::AVX512CD, 7, Ebx, 28),
    base_bit(F::SHA, 7, Ebx, 29),
    zmm_bit(F::AVX512BW, 7, Ebx, 30),
    zmm_bit(F::AVX512VL, 7, Ebx, 31),
    base_bit(F::PREFETCHWT1, 7, Ecx, 0),
    zmm_bit(F::AVX512_VBMI, 7, Ecx, 1),
    base_bit(F::WAITPKG, 7, Ecx, 5),
    zmm_bit(F::AVX512_VBMI2, 7, Ecx, 6),
    base_bit(F::GFNI, 7, Ecx, 8),
    ymm_bit(F::VAES, 7, Ecx, 9),
    ymm_bit(F::VPCLMULQDQ, 7, Ecx, 10),
    zmm_bit(F::AVX512_VNNI, 7, Ecx, 11),
    zmm_bit(F::AVX512_BITALG, 7, Ecx, 12),
    zmm_bit(F::AVX512_VPOPCNTDQ, 7, Ecx, 14),
    base_bit(F::RDPID, 7, Ecx, 22),
    base_bit(F::KL, 7, Ecx, 23),
    base_bit(F::CLDEMOTE, 7, Ecx, 25),
    base_bit(F::MOVDIRI, 7, Ecx, 27),
    base_bit(F::MOVDIR64B, 7, Ecx, 28),
    base_bit(F::ENQCMD, 7, Ecx, 29),
    zmm_bit(F::AVX512_4VNNIW, 7, Edx, 2),
    zmm_bit(F::AVX512_4FMAPS, 7, Edx, 3),
    zmm_bit(F::AVX512_VP2INTERSECT, 7, Edx, 8),
    base_bit(F::SERIALIZE, 7, Edx, 14),
    base_bit(F::TSXLDTRK, 7, Edx, 16),
    base_bit(F::PCONFIG, 7, Edx, 18),
    feature_bit(F::AMX_BF16, 7, 0, Edx, 22, RegisterState::Tile),
    zmm_bit(F::AVX512_FP16, 7, Edx, 23),
    feature_bit(F::AMX_TILE, 7, 0, Edx, 24, RegisterState::Tile),
    feature_bit(F::AMX_INT8, 7, 0, Edx, 25, RegisterState::Tile),
    leaf_7_1_bit(F::SHA512, Eax, 0, RegisterState::Ymm),
    leaf_7_1_bit(F::SM3, Eax, 1, RegisterState::Ymm),
    leaf_7_1_bit(F::SM4, Eax, 2, RegisterState::Ymm),
    leaf_7_1_bit(F::RAO_INT, Eax, 3, RegisterState::Base),
    leaf_7_1_bit(F::AVX_VNNI, Eax, 4, RegisterState::Ymm),
    leaf_7_1_bit(F::AVX512_BF16, Eax, 5, RegisterState::Zmm),
    leaf_7_1_bit(F::CMPCCXADD, Eax, 7, RegisterState::Base),
    leaf_7_1_bit(F::FRED, Eax, 17, RegisterState::Base),
    leaf_7_1_bit(F::LKGS, Eax, 18, RegisterState::Base),
    leaf_7_1_bit(F::WRMSRNS, Eax, 19, RegisterState::Base),
    leaf_7_1_bit(F::AMX_FP16, Eax, 21, RegisterState::Tile),
    leaf_7_1_bit(F::HRESET, Eax, 22, RegisterState::Base),
    leaf_7_1_bit(F::AVX_IFMA, Eax, 23, RegisterState::Ymm),
    leaf_7_1_bit(F::MSRLIST, Eax, 27, RegisterState::Base),
    leaf_7_1_bit(F::TSE, Ebx, 1, RegisterState::Base),
    leaf_7_1_bit(F::AVX_VNNI_INT8, Edx, 4, RegisterState::Ymm),
    leaf_7_1_bit(F::AVX_NE_CONVERT, Edx, 5, RegisterState::Ymm),
    leaf_7_1_bit(F::AMX_COMPLEX, Edx, 8, RegisterState::Tile),
    leaf_7_1_bit(F::AVX_VNNI_INT16, Edx, 10, RegisterState::Ymm),
    leaf_7_1_bit(F::PREFETCHITI, Edx, 14, RegisterState::Base),
    base_bit(F::XSAVEOPT, 0xD, Eax, 0).in_subleaf(1),
    base_bit(F::XSAVEC, 0xD, Eax, 1).in_subleaf(1),
    base_bit(F::XSAVES, 0xD, Eax, 3).in_subleaf(1),
    base_bit(F::SGX1, 0x12, Eax, 0),
    base_bit(F::OSS, 0x12, Eax, 5),
    base_bit(F::PTWRITE, 0x14, Ebx, 4),
    base_bit(F::AESKLE, 0x19, Ebx, 0),
    base_bit(F::WIDE_KL, 0x19, Ebx, 2),
    base_bit(F::SVM, EXTENDED_LEAF, Ecx, 2),
    base_bit(F::LZCNT, EXTENDED_LEAF, Ecx, 5),
    base_bit(F::SSE4A, EXTENDED_LEAF, Ecx, 6),
    base_bit(F::PREFETCHW, EXTENDED_LEAF, Ecx, 8),
    ymm_bit(F::XOP, EXTENDED_LEAF, Ecx, 11),
    base_bit(F::SKINIT, EXTENDED_LEAF, Ecx, 12),
    feature_bit(F::LWP, EXTENDED_LEAF, 0, Ecx, 15, RegisterState::Profiling),
    ymm_bit(F::FMA4, EXTENDED_LEAF, Ecx, 16),
    base_bit(F::TBM, EXTENDED_LEAF, Ecx, 21),
    base_bit(F::MONITORX, EXTENDED_LEAF, Ecx, 29),
    base_bit(F::SYSCALL, EXTENDED_LEAF, Edx, 11),
    base_bit(F::RDTSCP, EXTENDED_LEAF, Edx, 27),
    base_bit(F::D3NOWEXT, EXTENDED_LEAF, Edx, 30),
    base_bit(F::D3NOW, EXTENDED_LEAF, Edx, 31),
    base_bit(F::CLZERO, SIZES_LEAF, Ebx, 0),
    base_bit(F::INVLPGB, SIZES_LEAF, Ebx, 3),
    base_bit(F::RDPRU, SIZES_LEAF, Ebx, 4),
    base_bit(F::MCOMMIT, SIZES_LEAF, Ebx, 8),
    base_bit(F::WBNOINVD, SIZES_LEAF, Ebx, 9),
    base_bit(F::SEV_ES, 0x8000_001F, Eax, 3),
    base_bit(F::SEV_SNP, 0x8000_001F, Eax, 4),
    base_bit(F::RMPQUERY, 0x8000_001F, Eax, 6),
];

impl FeatureBit {
    const fn in_subleaf(self, subleaf: u32) -> FeatureBit {
        FeatureBit { subleaf, ..self }
    }
}

/// Zhaoxin's features: two adjacent bits of C000_0001h EDX, "exists" and "is enabled".
pub(super) const PADLOCK_BITS: &[(F, u32)] = &[
    (F::CENTAUR_AIS, 0),
    (F::PADLOCK_RNG, 2),
    (F::PADLOCK_GMI, 4),
    (F::PADLOCK_ACE, 6),
    (F::PADLOCK_PHE, 10),
    (F::PADLOCK_PMM, 12),
];

/// Features of every processor with 64-bit mode (SDM vol. 1, chapter 5; APM vol. 1, 1.1). Includes
/// the one for ENDBR: without branch tracking the instruction is a multi-byte NOP.
pub(super) const ALWAYS_USABLE: &[F] = &[
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

/// Features that 64-bit mode never has, or that user code cannot detect, each with the reason.
pub(super) const NEVER_USABLE: &[(F, &str)] = &[
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
