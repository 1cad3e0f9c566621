//! The meaning of an immediate, by the instruction's mnemonic and the width of its operands.

use iced_x86::{Instruction, Mnemonic, OpKind};

/// The role of an immediate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImmediateMeaning {
    /// A number that the operation uses as an operand.
    Number,
    /// A bit position, or a count of bits by which a general register is shifted or rotated.
    Count {
        /// Bits of the register.
        width: u32,
    },
    /// A count of bits by which elements are shifted or rotated.
    Shift {
        /// Bits of an element.
        width: u32,
    },
    /// A count of bytes by which a lane is shifted.
    Bytes {
        /// Bytes of a lane.
        all: u32,
    },
    /// The index of an element or lane.
    Element {
        /// Number of elements or lanes.
        count: u32,
    },
    /// A count of elements by which a vector is rotated.
    Rotation {
        /// Elements of the vector.
        count: u32,
        /// Elements in 128 bits.
        lane: u32,
    },
    /// One bit per element: which of two sources it comes from.
    Choices {
        /// Number of elements.
        count: u32,
    },
    /// One bit per element: which of two elements it copies.
    Halves {
        /// Number of elements.
        count: u32,
    },
    /// Anything else with these values. The general one comes first.
    Listed(&'static [i64]),
    /// Only this value is known to be harmless.
    Alone(i64),
}

/// Four fields of two bits: reversed; identity; the first, the last; halves; no pattern.
const SHUFFLE_FIELDS: ImmediateMeaning =
    ImmediateMeaning::Listed(&[0x1b, 0xe4, 0x00, 0xff, 0x4e, 0x44, 0xee, 0xb1, 0x72]);
/// Rounding: down; to nearest, up, toward zero, by MXCSR, without exceptions.
const ROUNDING: ImmediateMeaning = ImmediateMeaning::Listed(&[1, 0, 2, 3, 4, 8]);
/// Rounding modes, with the number of kept fraction bits in the upper half.
const SCALED_ROUNDING: ImmediateMeaning = ImmediateMeaning::Listed(&[0x31, 0x00, 0x01, 0x30, 0x04, 0x08, 0xf3]);
/// Floating-point predicates that all encodings have: less; equal and so on.
const FLOAT_PREDICATES: ImmediateMeaning = ImmediateMeaning::Listed(&[1, 0, 2, 3, 4, 7]);
/// Predicates that VEX and EVEX add: never, always, quiet and signalling.
const VEX_PREDICATES: ImmediateMeaning = ImmediateMeaning::Listed(&[1, 0, 3, 4, 7, 0x0b, 0x0f, 0x11, 0x1f]);
/// Integer predicates: less; equal, never, not equal, always.
const INTEGER_PREDICATES: ImmediateMeaning = ImmediateMeaning::Listed(&[1, 0, 3, 4, 6, 7]);
/// String comparisons: aggregation, polarity, format.
const STRING_CONTROLS: ImmediateMeaning = ImmediateMeaning::Listed(&[0x1a, 0x00, 0x04, 0x08, 0x0c, 0x40, 0x7f]);

/// Instructions whose immediates have the same meaning.
const MEANINGS: &[(&[Mnemonic], ImmediateMeaning)] = {
    use Mnemonic as M;
    &[
        (
            &[
                M::Pshufd,
                M::Vpshufd,
                M::Pshufw,
                M::Pshuflw,
                M::Vpshuflw,
                M::Pshufhw,
                M::Vpshufhw,
                M::Shufps,
                M::Vshufps,
                M::Vpermilps,
                M::Vpermq,
                M::Vpermpd,
            ],
            SHUFFLE_FIELDS,
        ),
        // The other operand's lower lane above this one's upper lane; both lower, both upper lanes,
        // copies, zeros.
        (
            &[M::Vperm2f128, M::Vperm2i128],
            ImmediateMeaning::Listed(&[0x21, 0x20, 0x30, 0x31, 0x10, 0x32, 0x01, 0x08, 0x88, 0x00]),
        ),
        // From element 1 to element 2; element 0 alone, all zeroed, one moved and the rest zeroed.
        (&[M::Insertps, M::Vinsertps], ImmediateMeaning::Listed(&[0x60, 0x00, 0x0f, 0x0e, 0x10, 0x40, 0xf5])),
        (&[M::Mpsadbw, M::Vmpsadbw, M::Vdbpsadbw], ImmediateMeaning::Listed(&[0x2d, 0x00, 0xe4, 0x1b, 0xff])),
        (&[M::Roundps, M::Roundpd, M::Roundss, M::Roundsd], ROUNDING),
        (&[M::Vroundps, M::Vroundpd, M::Vroundss, M::Vroundsd, M::Vcvtps2ph], ROUNDING),
        (
            &[M::Vrndscaleps, M::Vrndscalepd, M::Vrndscaleph, M::Vrndscaless, M::Vrndscalesd, M::Vrndscalesh],
            SCALED_ROUNDING,
        ),
        (&[M::Vreduceps, M::Vreducepd, M::Vreduceph, M::Vreducess, M::Vreducesd, M::Vreducesh], SCALED_ROUNDING),
        // Interval and sign.
        (
            &[M::Vgetmantps, M::Vgetmantpd, M::Vgetmantph, M::Vgetmantss, M::Vgetmantsd, M::Vgetmantsh],
            ImmediateMeaning::Listed(&[6, 0, 1, 3, 8]),
        ),
        // Selected value and its sign.
        (&[M::Vrangeps, M::Vrangepd, M::Vrangess, M::Vrangesd], ImmediateMeaning::Listed(&[5, 0, 2, 3, 8, 0xf])),
        (
            &[
                M::Vfixupimmps,
                M::Vfixupimmpd,
                M::Vfixupimmss,
                M::Vfixupimmsd,
                M::Vfpclassps,
                M::Vfpclasspd,
                M::Vfpclassph,
                M::Vfpclassss,
                M::Vfpclasssd,
                M::Vfpclasssh,
            ],
            ImmediateMeaning::Listed(&[0x25, 0x00, 0x01, 0x18, 0xff]),
        ),
        (&[M::Cmpps, M::Cmppd, M::Cmpss, M::Cmpsd], FLOAT_PREDICATES),
        (&[M::Vcmpps, M::Vcmppd, M::Vcmpss, M::Vcmpsd, M::Vcmpph, M::Vcmpsh], VEX_PREDICATES),
        (
            &[M::Vpcmpb, M::Vpcmpw, M::Vpcmpd, M::Vpcmpq, M::Vpcmpub, M::Vpcmpuw, M::Vpcmpud, M::Vpcmpuq],
            INTEGER_PREDICATES,
        ),
        (
            &[M::Vpcomb, M::Vpcomw, M::Vpcomd, M::Vpcomq, M::Vpcomub, M::Vpcomuw, M::Vpcomud, M::Vpcomuq],
            INTEGER_PREDICATES,
        ),
        // Selection by the first operand; zeros, ones, each operand alone, one inverted, XOR of
        // all.
        (&[M::Vpternlogd, M::Vpternlogq], ImmediateMeaning::Listed(&[0xca, 0x00, 0xff, 0xf0, 0xcc, 0xaa, 0x55, 0x96])),
        (&[M::Pclmulqdq, M::Vpclmulqdq], ImmediateMeaning::Listed(&[0x10, 0x00, 0x01, 0x11])),
        (
            &[M::Gf2p8affineqb, M::Vgf2p8affineqb, M::Gf2p8affineinvqb, M::Vgf2p8affineinvqb],
            ImmediateMeaning::Listed(&[0x63, 0x00, 0x01, 0xff]),
        ),
        (&[M::Aeskeygenassist, M::Vaeskeygenassist], ImmediateMeaning::Listed(&[0x1b, 0x00, 0x01, 0xff])),
        (&[M::Sha1rnds4], ImmediateMeaning::Listed(&[1, 0, 2, 3])),
        // Selected products, and where their sum goes.
        (&[M::Dpps, M::Vdpps], ImmediateMeaning::Listed(&[0xb7, 0x00, 0x11, 0xf1, 0x71, 0xff])),
        (&[M::Dppd, M::Vdppd], ImmediateMeaning::Listed(&[0x31, 0x00, 0x11, 0x22, 0x33])),
        (&[M::Pcmpestri, M::Pcmpestrm, M::Pcmpistri, M::Pcmpistrm, M::Pcmpestri64, M::Pcmpestrm64], STRING_CONTROLS),
        (
            &[M::Vpcmpestri, M::Vpcmpestrm, M::Vpcmpistri, M::Vpcmpistrm, M::Vpcmpestri64, M::Vpcmpestrm64],
            STRING_CONTROLS,
        ),
        // Treatment of a matched zero: four bits next to a register number.
        (&[M::Vpermil2ps, M::Vpermil2pd], ImmediateMeaning::Listed(&[1, 0, 2, 3])),
        // The first bit, and above it the number of bits.
        (&[M::Bextr], ImmediateMeaning::Listed(&[0x0c05, 0, 0x0800, 0x2000, 0x0100])),
        // The number of bits, and the first bit.
        (&[M::Extrq, M::Insertq], ImmediateMeaning::Listed(&[0x12, 0, 1, 8, 0x20])),
        (&[M::Palignr, M::Vpalignr, M::Pslldq, M::Vpslldq, M::Psrldq, M::Vpsrldq], ImmediateMeaning::Bytes { all: 16 }),
        // Ports, interrupts, events: some values do harm.
        (
            &[M::In, M::Out, M::Int, M::Hreset, M::Lwpins, M::Lwpval, M::Xabort, M::Loadiwkey],
            ImmediateMeaning::Alone(2),
        ),
    ]
};

/// Instructions that shift, rotate or test bits of general registers.
const BIT_COUNT_MNEMONICS: [Mnemonic; 15] = {
    use Mnemonic as M;
    [
        M::Shl,
        M::Sal,
        M::Shr,
        M::Sar,
        M::Rol,
        M::Ror,
        M::Rcl,
        M::Rcr,
        M::Shld,
        M::Shrd,
        M::Rorx,
        M::Bt,
        M::Bts,
        M::Btr,
        M::Btc,
    ]
};

/// Prefixes of mnemonics that count bits. Their last letter gives the element width.
const SHIFT_STARTS: [&str; 13] = [
    "psll", "psrl", "psra", "vpsll", "vpsrl", "vpsra", "vprol", "vpror", "vprot", "vpshld", "vpshrd", "kshiftl",
    "kshiftr",
];

/// Finds the meaning of an instruction's immediate.
pub(super) fn find_meaning(sample: &Instruction) -> ImmediateMeaning {
    let mnemonic = sample.mnemonic();
    let known = MEANINGS.iter().find(|(mnemonics, _)| mnemonics.contains(&mnemonic));
    let registers = || (0..sample.op_count()).map(|operand| sample.op_register(operand));
    // MMX registers hold half a lane.
    let narrow = registers().any(|register| register.is_mm());
    match known {
        Some((_, ImmediateMeaning::Bytes { .. })) if narrow => return ImmediateMeaning::Bytes { all: 8 },
        Some((_, meaning)) => return *meaning,
        None => {}
    }
    if BIT_COUNT_MNEMONICS.contains(&mnemonic) {
        let register = sample.op_kind(0) == OpKind::Register;
        let bytes = if register { sample.op0_register().size() } else { sample.memory_size().size() };
        return ImmediateMeaning::Count { width: 8 * bytes as u32 };
    }
    let name = format!("{mnemonic:?}").to_lowercase();
    let registers = registers().filter(|register| register.is_vector_register());
    let bytes = registers.map(|register| register.size()).max().unwrap_or(16) as u32;
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    let width = match name.chars().last() {
        Some('b') => 8,
        Some('w') => 16,
        Some('d') if !name.ends_with("pd") => 32,
        Some('s') => 32,
        _ => 64,
    };
    let elements = 8 * bytes / width;
    let count = match () {
        _ if name.ends_with("128") || name.ends_with("x8") || name.ends_with("64x4") => 2,
        _ => bytes / 16,
    };
    match () {
        _ if begins(&SHIFT_STARTS) => ImmediateMeaning::Shift { width },
        _ if begins(&["vextractf", "vextracti", "vinsertf", "vinserti"]) => ImmediateMeaning::Element { count },
        _ if begins(&["pextr", "vpextr", "pinsr", "vpinsr", "extractps", "vextractps"]) => {
            ImmediateMeaning::Element { count: if narrow { 64 } else { 128 } / width }
        }
        _ if begins(&["vshuff", "vshufi"]) && bytes == 64 => SHUFFLE_FIELDS,
        _ if begins(&["vshuff", "vshufi"]) => ImmediateMeaning::Listed(&[1, 2, 0, 3]),
        _ if begins(&["valign"]) => ImmediateMeaning::Rotation { count: elements, lane: 128 / width },
        _ if begins(&["shufpd", "vshufpd", "vpermilpd"]) => ImmediateMeaning::Halves { count: elements },
        // Word blends use the same choices in every lane.
        _ if begins(&["pblendw", "vpblendw"]) => ImmediateMeaning::Choices { count: 8 },
        _ if begins(&["blend", "vblend", "vpblend"]) => ImmediateMeaning::Choices { count: elements },
        _ => ImmediateMeaning::Number,
    }
}
