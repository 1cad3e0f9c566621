//! Links: instructions that carry a value from an instance's output to the next one's input.
//!
//! Their costs are not tabulated: [`crate::experiments::link_costs`] measures them.

use crate::forms::form_anatomy::RegisterBank;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::registers::nth_register_like;
use cyclescope_core::machine::features::CpuFeatures;
use iced_x86::{Code, Instruction, MemoryOperand, Register, RflagsBits};

/// A kind of link. All links of one kind cost the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The name in results of 64-bit code: see [`Link::name`].
    name: &'static str,
    /// The bank that it reads.
    pub from: RegisterBank,
    /// The bank that it writes.
    pub to: RegisterBank,
    /// Bytes of the value read.
    pub bytes: usize,
    /// The flag that it reads, in `RflagsBits`.
    pub flag: u32,
    code: Code,
    pattern: LinkPattern,
}

/// The address of a link's store or load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LinkAddress {
    /// Number of the base register.
    pub base: u8,
    /// Displacement in bytes.
    pub displacement: i32,
}

/// The operands of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum LinkPattern {
    /// `op destination, source`
    Move,
    /// `op source, constant`
    Against,
    /// `op destination, constant`
    Select,
    /// `op destination, source, source`
    Square,
    /// `op destination, source, constant`
    Masked,
    /// `op destination, source, 0xe4`: an identity shuffle.
    Shuffle,
    /// `op [base + displacement], source`
    Store,
    /// `op destination, [base + displacement]`
    Load,
}

const fn new_link(
    name: &'static str,
    from: RegisterBank,
    to: RegisterBank,
    bytes: usize,
    code: Code,
    pattern: LinkPattern,
) -> Link {
    Link { name, from, to, bytes, flag: 0, code, pattern }
}

const fn select_link(name: &'static str, flag: u32, code: Code) -> Link {
    Link {
        name,
        from: RegisterBank::Flags,
        to: RegisterBank::General,
        bytes: 8,
        flag,
        code,
        pattern: LinkPattern::Select,
    }
}

use RegisterBank::{Flags, General, HighByte, Mask, Memory, Mmx, Vector};

/// MOVSX is always executed; MOV and MOVZX could vanish at rename.
pub(crate) const FROM_32: Link = new_link("movsxd", General, General, 4, Code::Movsxd_r64_rm32, LinkPattern::Move);
pub(crate) const FROM_16: Link = new_link("movsx r16", General, General, 2, Code::Movsx_r64_rm16, LinkPattern::Move);
pub(crate) const FROM_8: Link = new_link("movsx r8", General, General, 1, Code::Movsx_r64_rm8, LinkPattern::Move);
pub(crate) const FROM_HIGH: Link = new_link("movsx r8h", HighByte, General, 1, Code::Movsx_r32_rm8, LinkPattern::Move);
/// Applied twice, it leaves the destination unchanged but dependent.
pub(crate) const XOR: Link = new_link("xor", General, General, 8, Code::Xor_r64_rm64, LinkPattern::Move);
/// On Golden Cove, a conditional move waits longer for the flags of TEST, AND or OR than for CMP's.
pub(crate) const COMPARE: Link = new_link("cmp", General, Flags, 8, Code::Cmp_r64_rm64, LinkPattern::Against);
/// AND with a zero register, then OR: the value stays the same but depends on another.
pub(crate) const CLEAR: Link = new_link("and", General, General, 8, Code::And_r64_rm64, LinkPattern::Against);
pub(crate) const RESTORE: Link = new_link("or", General, General, 8, Code::Or_r64_rm64, LinkPattern::Move);
pub(crate) const SELECT: [Link; 5] = [
    select_link("cmovc", RflagsBits::CF, Code::Cmovb_r64_rm64),
    select_link("cmovz", RflagsBits::ZF, Code::Cmove_r64_rm64),
    select_link("cmovs", RflagsBits::SF, Code::Cmovs_r64_rm64),
    select_link("cmovo", RflagsBits::OF, Code::Cmovo_r64_rm64),
    select_link("cmovp", RflagsBits::PF, Code::Cmovp_r64_rm64),
];
/// Squares, which undo square roots. Fields: bytes of an element, bytes of the vector (or of the
/// scalar), VEX or not. Legacy ones work in place.
pub(crate) const SQUARES: [(usize, usize, bool, Link); 16] = [
    (2, 2, true, square_link("vmulsh", Code::EVEX_Vmulsh_xmm_k1z_xmm_xmmm16_er)),
    (2, 16, true, square_link("vmulph xmm", Code::EVEX_Vmulph_xmm_k1z_xmm_xmmm128b16)),
    (2, 32, true, square_link("vmulph ymm", Code::EVEX_Vmulph_ymm_k1z_ymm_ymmm256b16)),
    (2, 64, true, square_link("vmulph zmm", Code::EVEX_Vmulph_zmm_k1z_zmm_zmmm512b16_er)),
    (4, 4, true, square_link("vmulss", Code::VEX_Vmulss_xmm_xmm_xmmm32)),
    (4, 16, true, square_link("vmulps xmm", Code::VEX_Vmulps_xmm_xmm_xmmm128)),
    (4, 32, true, square_link("vmulps ymm", Code::VEX_Vmulps_ymm_ymm_ymmm256)),
    (4, 64, true, square_link("vmulps zmm", Code::EVEX_Vmulps_zmm_k1z_zmm_zmmm512b32_er)),
    (8, 8, true, square_link("vmulsd", Code::VEX_Vmulsd_xmm_xmm_xmmm64)),
    (8, 16, true, square_link("vmulpd xmm", Code::VEX_Vmulpd_xmm_xmm_xmmm128)),
    (8, 32, true, square_link("vmulpd ymm", Code::VEX_Vmulpd_ymm_ymm_ymmm256)),
    (8, 64, true, square_link("vmulpd zmm", Code::EVEX_Vmulpd_zmm_k1z_zmm_zmmm512b64_er)),
    (4, 4, false, new_link("mulss", Vector, Vector, 16, Code::Mulss_xmm_xmmm32, LinkPattern::Move)),
    (4, 16, false, new_link("mulps", Vector, Vector, 16, Code::Mulps_xmm_xmmm128, LinkPattern::Move)),
    (8, 8, false, new_link("mulsd", Vector, Vector, 16, Code::Mulsd_xmm_xmmm64, LinkPattern::Move)),
    (8, 16, false, new_link("mulpd", Vector, Vector, 16, Code::Mulpd_xmm_xmmm128, LinkPattern::Move)),
];

const fn square_link(name: &'static str, code: Code) -> Link {
    new_link(name, Vector, Vector, 16, code, LinkPattern::Square)
}

/// AND with a zero vector: indices that are zero but depend on another value.
pub(crate) const ZERO_INDICES: Link =
    new_link("vpand", Vector, Vector, 16, Code::VEX_Vpand_xmm_xmm_xmmm128, LinkPattern::Masked);

/// Reads the carry flag. The CMOVs do not read it after an instruction that clears it.
pub(crate) const BORROW: Link = select_link("sbb", RflagsBits::CF, Code::Sbb_r64_rm64);
pub(crate) const SHUFFLE: Link =
    new_link("pshufd", Vector, Vector, 16, Code::Pshufd_xmm_xmmm128_imm8, LinkPattern::Shuffle);
pub(crate) const SHUFFLE_VEX: Link =
    new_link("vpshufd", Vector, Vector, 16, Code::VEX_Vpshufd_xmm_xmmm128_imm8, LinkPattern::Shuffle);
pub(crate) const TO_VECTOR: Link =
    new_link("movq xmm, r64", General, Vector, 8, Code::Movq_xmm_rm64, LinkPattern::Move);
pub(crate) const TO_VECTOR_VEX: Link =
    new_link("vmovq xmm, r64", General, Vector, 8, Code::VEX_Vmovq_xmm_rm64, LinkPattern::Move);
pub(crate) const FROM_VECTOR: Link =
    new_link("movq r64, xmm", Vector, General, 8, Code::Movq_rm64_xmm, LinkPattern::Move);
pub(crate) const FROM_VECTOR_VEX: Link =
    new_link("vmovq r64, xmm", Vector, General, 8, Code::VEX_Vmovq_rm64_xmm, LinkPattern::Move);
pub(crate) const TO_MASK: Link = new_link("kmovq k, r64", General, Mask, 8, Code::VEX_Kmovq_kr_r64, LinkPattern::Move);
pub(crate) const FROM_MASK: Link =
    new_link("kmovq r64, k", Mask, General, 8, Code::VEX_Kmovq_r64_kr, LinkPattern::Move);
pub(crate) const MASK_TO_VECTOR: Link =
    new_link("vpmovm2d", Mask, Vector, 8, Code::EVEX_Vpmovm2d_xmm_kr, LinkPattern::Move);
pub(crate) const VECTOR_TO_MASK: Link =
    new_link("vpmovd2m", Vector, Mask, 16, Code::EVEX_Vpmovd2m_kr_xmm, LinkPattern::Move);
pub(crate) const TO_MMX: Link = new_link("movq mm, r64", General, Mmx, 8, Code::Movq_mm_rm64, LinkPattern::Move);
pub(crate) const FROM_MMX: Link = new_link("movq r64, mm", Mmx, General, 8, Code::Movq_rm64_mm, LinkPattern::Move);

/// Names of links whose instruction differs in 32-bit code.
const NARROW_NAMES: [(Link, &str); 9] = [
    (FROM_32, "movsx r32, r16"),
    (TO_VECTOR, "movd xmm, r32"),
    (TO_VECTOR_VEX, "vmovd xmm, r32"),
    (FROM_VECTOR, "movd r32, xmm"),
    (FROM_VECTOR_VEX, "vmovd r32, xmm"),
    (TO_MASK, "kmovd k, r32"),
    (FROM_MASK, "kmovd r32, k"),
    (TO_MMX, "movd mm, r32"),
    (FROM_MMX, "movd r32, mm"),
];

/// Links within masks and within MMX registers.
pub(crate) const WITHIN_MASKS: Link = new_link("kandq", Mask, Mask, 8, Code::VEX_Kandq_kr_kr_kr, LinkPattern::Square);
pub(crate) const WITHIN_MMX: Link = new_link("pshufw", Mmx, Mmx, 8, Code::Pshufw_mm_mmm64_imm8, LinkPattern::Shuffle);

/// Stores and loads of each size, by bank.
pub(crate) const STORES: [Link; 15] = [
    new_link("mov m8, r8", General, Memory, 1, Code::Mov_rm8_r8, LinkPattern::Store),
    new_link("mov m16, r16", General, Memory, 2, Code::Mov_rm16_r16, LinkPattern::Store),
    new_link("mov m32, r32", General, Memory, 4, Code::Mov_rm32_r32, LinkPattern::Store),
    new_link("mov m64, r64", General, Memory, 8, Code::Mov_rm64_r64, LinkPattern::Store),
    new_link("movss m32, xmm", Vector, Memory, 4, Code::Movss_xmmm32_xmm, LinkPattern::Store),
    new_link("movsd m64, xmm", Vector, Memory, 8, Code::Movsd_xmmm64_xmm, LinkPattern::Store),
    new_link("movups m128, xmm", Vector, Memory, 16, Code::Movups_xmmm128_xmm, LinkPattern::Store),
    new_link("vmovss m32, xmm", Vector, Memory, 4, Code::VEX_Vmovss_m32_xmm, LinkPattern::Store),
    new_link("vmovsd m64, xmm", Vector, Memory, 8, Code::VEX_Vmovsd_m64_xmm, LinkPattern::Store),
    new_link("vmovups m128, xmm", Vector, Memory, 16, Code::VEX_Vmovups_xmmm128_xmm, LinkPattern::Store),
    new_link("vmovups m256, ymm", Vector, Memory, 32, Code::VEX_Vmovups_ymmm256_ymm, LinkPattern::Store),
    new_link("vmovups m512, zmm", Vector, Memory, 64, Code::EVEX_Vmovups_zmmm512_k1z_zmm, LinkPattern::Store),
    new_link("movq m64, mm", Mmx, Memory, 8, Code::Movq_mmm64_mm, LinkPattern::Store),
    new_link("kmovw m16, k", Mask, Memory, 2, Code::VEX_Kmovw_m16_kr, LinkPattern::Store),
    new_link("kmovq m64, k", Mask, Memory, 8, Code::VEX_Kmovq_m64_kr, LinkPattern::Store),
];
pub(crate) const LOADS: [Link; 15] = [
    new_link("movzx r32, m8", Memory, General, 1, Code::Movzx_r32_rm8, LinkPattern::Load),
    new_link("movzx r32, m16", Memory, General, 2, Code::Movzx_r32_rm16, LinkPattern::Load),
    new_link("mov r32, m32", Memory, General, 4, Code::Mov_r32_rm32, LinkPattern::Load),
    new_link("mov r64, m64", Memory, General, 8, Code::Mov_r64_rm64, LinkPattern::Load),
    new_link("movss xmm, m32", Memory, Vector, 4, Code::Movss_xmm_xmmm32, LinkPattern::Load),
    new_link("movsd xmm, m64", Memory, Vector, 8, Code::Movsd_xmm_xmmm64, LinkPattern::Load),
    new_link("movups xmm, m128", Memory, Vector, 16, Code::Movups_xmm_xmmm128, LinkPattern::Load),
    new_link("vmovss xmm, m32", Memory, Vector, 4, Code::VEX_Vmovss_xmm_m32, LinkPattern::Load),
    new_link("vmovsd xmm, m64", Memory, Vector, 8, Code::VEX_Vmovsd_xmm_m64, LinkPattern::Load),
    new_link("vmovups xmm, m128", Memory, Vector, 16, Code::VEX_Vmovups_xmm_xmmm128, LinkPattern::Load),
    new_link("vmovups ymm, m256", Memory, Vector, 32, Code::VEX_Vmovups_ymm_ymmm256, LinkPattern::Load),
    new_link("vmovups zmm, m512", Memory, Vector, 64, Code::EVEX_Vmovups_zmm_k1z_zmmm512, LinkPattern::Load),
    new_link("movq mm, m64", Memory, Mmx, 8, Code::Movq_mm_mmm64, LinkPattern::Load),
    new_link("kmovw k, m16", Memory, Mask, 2, Code::VEX_Kmovw_kr_km16, LinkPattern::Load),
    new_link("kmovq k, m64", Memory, Mask, 8, Code::VEX_Kmovq_kr_km64, LinkPattern::Load),
];

impl Link {
    /// Builds the instruction, with registers by number. `constant` is a general register that
    /// keeps its value. `address` applies to stores and loads.
    pub(crate) fn build_instruction(
        &self,
        mode: CodeMode,
        destination: u8,
        source: u8,
        constant: u8,
        address: LinkAddress,
    ) -> Instruction {
        let code = mode.counterpart(self.code);
        let info = code.op_code();
        let register = |operand: u32, number: u8| {
            let like = sample_register(info.op_kind(operand), self.from == HighByte && operand == 1);
            nth_register_like(like, u32::from(number)).expect("links use registers of their class")
        };
        let base = Register::RAX + u32::from(address.base);
        let memory = MemoryOperand::with_base_displ(base, i64::from(address.displacement));
        let built = match self.pattern {
            LinkPattern::Move => Instruction::with2(code, register(0, destination), register(1, source)),
            LinkPattern::Against => Instruction::with2(code, register(0, source), register(1, constant)),
            LinkPattern::Select => Instruction::with2(code, register(0, destination), register(1, constant)),
            LinkPattern::Square => {
                Instruction::with3(code, register(0, destination), register(1, source), register(2, source))
            }
            LinkPattern::Masked => {
                Instruction::with3(code, register(0, destination), register(1, source), register(2, constant))
            }
            LinkPattern::Shuffle => Instruction::with3(code, register(0, destination), register(1, source), 0xe4),
            LinkPattern::Store => Instruction::with2(code, memory, register(1, source)),
            LinkPattern::Load => Instruction::with2(code, register(0, destination), memory),
        };
        built.expect("links have fitting operands")
    }

    /// Whether it is VEX or EVEX code.
    pub(crate) fn is_vex(&self) -> bool {
        self.name.starts_with('v')
    }

    /// Whether it reads a general register that keeps its value, besides zero.
    pub(crate) fn reads_constant(&self) -> bool {
        matches!(self.pattern, LinkPattern::Against | LinkPattern::Select) && *self != CLEAR
    }

    /// Whether it modifies a register that already holds a value.
    pub(crate) fn is_in_place(&self) -> bool {
        [XOR, CLEAR, RESTORE].contains(self)
    }

    /// Whether it squares a register in place.
    pub(crate) fn squares_in_place(&self) -> bool {
        SQUARES.iter().any(|(.., vex, link)| link == self && !vex)
    }

    /// Whether it writes flags.
    pub(crate) fn changes_flags(&self) -> bool {
        let mut instruction = Instruction::default();
        instruction.set_code(self.code);
        instruction.rflags_modified() != 0
    }

    /// Its name in results.
    pub fn name(&self, mode: CodeMode) -> &'static str {
        let narrow = NARROW_NAMES.iter().find(|(link, _)| link == self && mode == CodeMode::Bits32);
        narrow.map_or(self.name, |(_, name)| name)
    }

    /// Whether it exists in a mode: no link carries 64 bits between memory and general registers of
    /// 32-bit code.
    pub(crate) fn exists_in(&self, mode: CodeMode) -> bool {
        let code = mode.counterpart(self.code);
        let on_memory = matches!(self.pattern, LinkPattern::Store | LinkPattern::Load);
        mode.has_code(code) && !(on_memory && code != self.code)
    }

    /// Whether it exists in a mode on a CPU with these features.
    pub(crate) fn is_available(&self, mode: CodeMode, features: &CpuFeatures) -> bool {
        self.exists_in(mode) && features.find_missing(mode.counterpart(self.code).cpuid_features()).is_empty()
    }
}

/// The link from a bank to itself. Legacy code gets no VEX link.
pub(crate) fn find_link_within(bank: RegisterBank, vex: bool) -> Option<Link> {
    match bank {
        General => Some(FROM_32),
        Vector if vex => Some(SHUFFLE_VEX),
        Vector => Some(SHUFFLE),
        Mask => Some(WITHIN_MASKS),
        Mmx => Some(WITHIN_MMX),
        _ => None,
    }
}

/// Names of the links in order. A run of equal links is abbreviated.
pub(crate) fn join_names(links: &[Link], mode: CodeMode) -> String {
    let rows = links.chunk_by(|a, b| a == b);
    let one = |row: &[Link]| match row.len() {
        0..=2 => vec![row[0].name(mode); row.len()].join(" + "),
        count => format!("{count} × {}", row[0].name(mode)),
    };
    rows.map(one).collect::<Vec<_>>().join(" + ")
}

/// A register of the class that an operand kind takes.
fn sample_register(kind: iced_x86::OpCodeOperandKind, high: bool) -> Register {
    use iced_x86::OpCodeOperandKind as Kind;
    match kind {
        Kind::r8_or_mem | Kind::r8_reg if high => Register::AH,
        Kind::r8_or_mem | Kind::r8_reg => Register::AL,
        Kind::r16_or_mem | Kind::r16_reg => Register::AX,
        Kind::r32_or_mem | Kind::r32_reg | Kind::r32_rm => Register::EAX,
        Kind::r64_or_mem | Kind::r64_reg | Kind::r64_rm => Register::RAX,
        Kind::xmm_or_mem | Kind::xmm_reg | Kind::xmm_rm | Kind::xmm_vvvv => Register::XMM0,
        Kind::ymm_or_mem | Kind::ymm_reg | Kind::ymm_vvvv => Register::YMM0,
        Kind::zmm_or_mem | Kind::zmm_reg | Kind::zmm_vvvv => Register::ZMM0,
        Kind::k_or_mem | Kind::k_reg | Kind::k_rm | Kind::k_vvvv => Register::K0,
        Kind::mm_or_mem | Kind::mm_reg => Register::MM0,
        _ => Register::None,
    }
}

/// Copies a general register by an operation that no core completes at rename.
pub(crate) fn build_computed_copy(to: Register, from: Register) -> [Instruction; 2] {
    let low = Register::EAX + to.number() as u32;
    [
        Instruction::with2(Code::Xor_r32_rm32, low, low).expect("two registers"),
        Instruction::with2(Code::Or_r64_rm64, to, from).expect("two registers"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::form_anatomy::encode_instructions;
    use cyclescope_code::asm::ALL_MODES;

    #[test]
    fn every_link_can_be_encoded() {
        let others = [
            FROM_32,
            FROM_16,
            FROM_8,
            FROM_HIGH,
            XOR,
            COMPARE,
            CLEAR,
            RESTORE,
            BORROW,
            ZERO_INDICES,
            SHUFFLE,
            SHUFFLE_VEX,
            TO_VECTOR,
            TO_VECTOR_VEX,
            FROM_VECTOR,
            FROM_VECTOR_VEX,
            TO_MASK,
            FROM_MASK,
            MASK_TO_VECTOR,
            VECTOR_TO_MASK,
            TO_MMX,
            FROM_MMX,
            WITHIN_MASKS,
            WITHIN_MMX,
        ];
        for link in
            others.iter().chain(SQUARES.iter().map(|(.., link)| link)).chain(&SELECT).chain(&STORES).chain(&LOADS)
        {
            for mode in ALL_MODES.into_iter().filter(|mode| link.exists_in(*mode)) {
                let instruction = link.build_instruction(mode, 1, 2, 3, LinkAddress { base: 6, displacement: 64 });
                assert!(encode_instructions(mode, &[instruction]).is_some(), "{}", link.name(mode));
            }
        }
    }
}
