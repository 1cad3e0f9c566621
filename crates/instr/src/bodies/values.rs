//! Operand values: programs of a form with other numbers than those that all others are measured with.
//!
//! For divisions and square roots, candidates among which the fastest and the slowest are found; for floating point
//! arithmetic, subnormal inputs. A program finds its values again after any number of instances: what an instance
//! changes is divided by one, or by hardly more, or is zero. Limits: each pair of values has one program of
//! a kind, and no x87 registers are loaded.

use super::chain::{Chain, Ends, Registers};
use super::contents::Contents;
use super::quotients::{Quotient, is_division, quotients, repeated};
use super::route::routes;
use super::throughput::{Addresses, Body, Breaking, Recipe};
use super::x87;
use crate::forms::operands::{Anatomy, Bank, Place, Port, Slot};
use crate::forms::settings;
use cyclescope_core::machine::features::Features;
use iced_x86::{Instruction, InstructionInfoFactory, MemorySize, OpAccess, OpKind, Register};

/// The variant with subnormal inputs.
pub(crate) const SUBNORMAL: &str = "subnormal";
/// The variant with the fastest operands that were found.
pub(crate) const FAST: &str = "fast operands";
/// The variant with the slowest operands that were found.
pub(crate) const SLOW: &str = "slow operands";

/// Costs that differ do so by more than this share, and by more than these core cycles.
const DIFFERENCE_SHARE: f64 = 0.05;
const DIFFERENCE_CYCLES: f64 = 0.1;

/// Whether two costs differ by more than programs do that are written differently.
pub(crate) fn differ(one: f64, other: f64) -> bool {
    let difference = (one - other).abs();
    difference > DIFFERENCE_CYCLES && difference > DIFFERENCE_SHARE * one.min(other)
}

/// Mnemonics of arithmetic on floating point numbers begin so, after the `v` of VEX and EVEX forms and the `f` of x87.
const ARITHMETIC: [&str; 40] = [
    "add", "sub", "mul", "div", "sqrt", "max", "min", "hadd", "hsub", "dpp", "round", "cmp", "com", "ucom",
    "cvt", "fmadd", "fmsub", "fmaddsub", "fmsubadd", "fnmadd", "fnmsub", "fmul", "fcmul", "fcmadd", "rcp",
    "rsqrt", "rndscale", "reduce", "range", "scalef", "getexp", "getmant", "fixupimm", "fpclass", "exp2",
    "minmax", "ld", "rcp14", "rsqrt14", "frcz",
];
/// Those whose result with a subnormal number is one only if the others are none.
const PRODUCTS: [&str; 4] = ["mul", "div", "fmul", "fcmul"];

/// A program with chosen values.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The ports of a latency; none for a throughput.
    pub chain: Option<(Port, Port, Chain)>,
    /// The program in words, for a throughput.
    pub recipe: String,
    /// The values in words.
    pub values: String,
    /// One period of the body.
    pub period: Vec<Instruction>,
    /// Instances in a period.
    pub copies: usize,
    /// Instances in the body, about.
    pub body: usize,
    /// What runs once before, after the setting's own code.
    pub init: Vec<Instruction>,
}

/// All instances of a program read these values.
struct Values {
    text: String,
    contents: Contents,
}

/// Floating point numbers of one format, as bits.
struct Numbers {
    /// Bits of an element.
    bits: u32,
    /// 1.
    one: u64,
    /// One with a full mantissa.
    full: u64,
    /// One hardly above 1.
    near: u64,
    /// A subnormal one.
    subnormal: u64,
}

impl Numbers {
    fn of(element: MemorySize) -> Option<Numbers> {
        Some(match element {
            MemorySize::Float64 => Numbers {
                bits: 64,
                one: 0x3ff0_0000_0000_0000,
                full: 0x3ffe_3779_b97f_4a7d,
                near: 0x3ff0_0123_4567_89ab,
                subnormal: 0x12_3456_789b,
            },
            MemorySize::Float32 => {
                Numbers { bits: 32, one: 0x3f80_0000, full: 0x3ff3_3779, near: 0x3f80_0953, subnormal: 0x123 }
            }
            MemorySize::Float16 => {
                Numbers { bits: 16, one: 0x3c00, full: 0x3f37, near: 0x3c01, subnormal: 0x3 }
            }
            _ => return None,
        })
    }
}

/// The candidates for the fast and the slow operands of a form.
pub(crate) fn candidates(anatomy: &Anatomy, features: &Features, latency: bool) -> Vec<Candidate> {
    let mnemonic = anatomy.code().mnemonic();
    let setting = settings::of(anatomy.code());
    if let Some(signed) = is_division(mnemonic) {
        let Some(bits) = divisor(anatomy).map(|(_, bits)| bits) else { return Vec::new() };
        let values: Vec<Values> =
            quotients(bits, signed).iter().filter_map(|quotient| integer(anatomy, quotient)).collect();
        let rax =
            |port: &&Port| matches!(port.place, Place::Fixed(one) if one.full_register() == Register::RAX);
        let (from, to) = (anatomy.inputs.iter().find(rax), anatomy.outputs.iter().find(rax));
        return search(anatomy, features, &values, ends(from, to).filter(|_| latency));
    }
    let Some(numbers) = numbers(anatomy).filter(|_| setting.full) else { return Vec::new() };
    let inputs = inputs(anatomy);
    let values = match (setting.squared, inputs.as_slice()) {
        (true, all) => roots(&numbers, all),
        (false, [dividend, divisor]) => divisions(&numbers, *dividend, *divisor),
        _ => return Vec::new(),
    };
    // What a division divides goes on to the next one; the divisor of a legacy one can't, and stay what it was.
    let read = if setting.squared { inputs.last() } else { inputs.first() };
    let from = anatomy.inputs.iter().find(|port| {
        let place = read.map(|operand| Place::Slot(Slot::Operand(*operand)));
        place == Some(port.place) && anatomy.bank(port.place) == Bank::Vector
    });
    let to = anatomy.outputs.iter().find(|port| anatomy.bank(port.place) == Bank::Vector);
    search(anatomy, features, &values, ends(from, to).filter(|_| latency))
}

/// A throughput program with subnormal inputs, for arithmetic.
pub(crate) fn subnormal(anatomy: &Anatomy) -> Option<Candidate> {
    let numbers = numbers(anatomy)?;
    let mnemonic = format!("{:?}", anatomy.code().mnemonic()).to_lowercase();
    let x87 = mnemonic.starts_with('f') && x87::uses(&anatomy.sample);
    let name = match x87 {
        true => &mnemonic[1..],
        false => mnemonic.strip_prefix('v').unwrap_or(&mnemonic),
    };
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    let product = begins(&PRODUCTS);
    // LD stands for FLD alone, and a product on the x87 stack would soon overflow.
    if !begins(&ARITHMETIC) || (x87 && product) || (!x87 && name.starts_with("ld")) {
        return None;
    }
    let inputs = inputs(anatomy);
    let of = |(index, operand): (usize, &u32)| {
        let value = if product && index > 0 { numbers.one } else { numbers.subnormal };
        (*operand, repeated(value, numbers.bits))
    };
    let contents = Contents { operands: inputs.iter().enumerate().map(of).collect(), dividend: None };
    let breaking = if x87 { Breaking::Zero } else { Breaking::Copy };
    throughput(anatomy, &Values { text: SUBNORMAL.to_string(), contents }, 48, breaking)
}

fn integer(anatomy: &Anatomy, quotient: &Quotient) -> Option<Values> {
    let (operand, _) = divisor(anatomy)?;
    let contents =
        Contents { operands: vec![(operand, quotient.pattern())], dividend: Some(quotient.dividend()) };
    Some(Values { text: quotient.text(), contents })
}

/// The operand that is the divisor of a division of integers, and its bits.
fn divisor(anatomy: &Anatomy) -> Option<(u32, u32)> {
    let operand = (0..anatomy.sample.op_count()).next_back()?;
    let bytes = match anatomy.sample.op_kind(operand) {
        OpKind::Register => anatomy.sample.op_register(operand).size(),
        _ => anatomy.memory_bytes,
    };
    Some((operand, 8 * bytes as u32))
}

fn divisions(numbers: &Numbers, dividend: u32, divisor: u32) -> Vec<Values> {
    let Numbers { bits, one, full, near, .. } = *numbers;
    let of = |text: &str, values: (u64, u64)| Values {
        text: text.to_string(),
        contents: Contents {
            operands: vec![(dividend, repeated(values.0, bits)), (divisor, repeated(values.1, bits))],
            dividend: None,
        },
    };
    vec![
        of("1 / 1", (one, one)),
        of("full mantissa / 1", (full, one)),
        of("0 / full mantissa", (0, near)),
        of("full mantissa / full mantissa", (full, near)),
    ]
}

fn roots(numbers: &Numbers, inputs: &[u32]) -> Vec<Values> {
    let Numbers { bits, one, full, .. } = *numbers;
    // All three formats begin so.
    let two = 0x4000 << (bits - 16);
    let of = |text: &str, value: u64| Values {
        text: text.to_string(),
        contents: Contents {
            operands: inputs.iter().map(|operand| (*operand, repeated(value, bits))).collect(),
            dividend: None,
        },
    };
    vec![of("of 1", one), of("of 2", two), of("of 0", 0), of("of a full mantissa", full)]
}

fn numbers(anatomy: &Anatomy) -> Option<Numbers> {
    Numbers::of(anatomy.sample.op_code().memory_size().element_type())
}

/// The operands that take part in the operation: not one that is read only to keep masked-off elements.
fn inputs(anatomy: &Anatomy) -> Vec<u32> {
    let mut sample = anatomy.sample;
    sample.set_op_mask(Register::None);
    sample.set_zeroing_masking(false);
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&sample);
    (0..sample.op_count())
        .filter(|operand| {
            let read =
                !matches!(info.op_access(*operand), OpAccess::None | OpAccess::Write | OpAccess::CondWrite);
            read && match sample.op_kind(*operand) {
                OpKind::Register => sample.op_register(*operand).is_vector_register(),
                kind => kind == OpKind::Memory,
            }
        })
        .collect()
}

/// The ends of a chain, where there are both.
fn ends<'a>(from: Option<&'a Port>, to: Option<&'a Port>) -> Option<Ends<'a>> {
    Some(Ends { from: from?, to: to? })
}

/// A program for each of some values, and a chain.
fn search(anatomy: &Anatomy, features: &Features, values: &[Values], ends: Option<Ends>) -> Vec<Candidate> {
    let mut found: Vec<Candidate> =
        values.iter().filter_map(|values| throughput(anatomy, values, 96, Breaking::Copy)).collect();
    let Some(ends) = ends else { return found };
    let has = |links: &Vec<super::links::Link>| {
        links.iter().all(|link| features.missing(link.features()).is_empty())
    };
    let Some(links) = routes(anatomy, ends.from.place, ends.to.place).into_iter().find(has) else {
        return found;
    };
    let Some(chain) = Chain::new(anatomy, ends, &links, Registers::Distinct) else { return found };
    for values in values {
        let Some(mut init) = values.contents.code(anatomy, &chain.period, &chain.init) else { continue };
        init.extend(&chain.init);
        found.push(Candidate {
            recipe: String::new(),
            values: values.text.clone(),
            period: chain.period.clone(),
            copies: chain.copies,
            body: 96,
            init,
            chain: Some((ends.from.clone(), ends.to.clone(), chain.clone())),
        });
    }
    found
}

fn throughput(anatomy: &Anatomy, values: &Values, copies: usize, breaking: Breaking) -> Option<Candidate> {
    let recipe =
        Recipe { destinations: 24, copies, nop_after: None, addresses: Addresses::Adjacent(8), breaking };
    let body = Body::new(anatomy, recipe)?;
    let mut init = values.contents.code(anatomy, &body.period, &body.init)?;
    init.extend(&body.init);
    Some(Candidate {
        chain: None,
        recipe: body.text((copies / body.copies).max(1) * body.copies, anatomy.slots().contains(&Slot::Base)),
        values: values.text.clone(),
        period: body.period,
        copies: body.copies,
        body: copies,
        init,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::forms;
    use cyclescope_core::machine::Machine;
    use iced_x86::Code;

    fn anatomies(code: Code) -> Vec<Anatomy> {
        forms::all().filter(|form| form.code == code).filter_map(Anatomy::of).collect()
    }

    #[test]
    fn numbers_are_what_they_are_called() {
        let wide = Numbers::of(MemorySize::Float64).unwrap();
        let single = Numbers::of(MemorySize::Float32).unwrap();
        let of = |bits: u64| f32::from_bits(bits as u32);
        assert!(f64::from_bits(wide.subnormal).is_subnormal() && of(single.subnormal).is_subnormal());
        assert!(f64::from_bits(wide.one) == 1.0 && of(single.one) == 1.0);
        // A number that is divided 4000 times stays normal.
        assert!(f64::from_bits(wide.near).powi(4000) < 4.0 && of(single.near).powi(4000) < 4.0);
        assert!((1.5..2.0).contains(&f64::from_bits(wide.full)) && (1.5..2.0).contains(&of(single.full)));
    }

    #[test]
    fn only_arithmetic_has_subnormal_operands() {
        let has = |code| anatomies(code).iter().filter(|anatomy| subnormal(anatomy).is_some()).count();
        for code in [
            Code::Addps_xmm_xmmm128,
            Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256,
            Code::VEX_Vcmpps_xmm_xmm_xmmm128_imm8,
        ] {
            assert!(has(code) > 0, "{code:?}");
        }
        for code in [Code::Fadd_m64fp, Code::Fld_m32fp, Code::EVEX_Vmulph_zmm_k1z_zmm_zmmm512b16_er] {
            assert!(has(code) > 0, "{code:?}");
        }
        for code in [Code::Movaps_xmm_xmmm128, Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8, Code::Fmul_m64fp] {
            assert_eq!(has(code), 0, "{code:?}");
        }
        for code in
            [Code::Paddd_xmm_xmmm128, Code::VEX_Vlddqu_xmm_m128, Code::Add_r64_rm64, Code::Fadd_st0_sti]
        {
            assert_eq!(has(code), 0, "{code:?}");
        }
    }

    #[test]
    fn masked_off_elements_are_no_input() {
        let code = Code::EVEX_Vmulpd_ymm_k1z_ymm_ymmm256b64;
        assert!(anatomies(code).iter().all(|anatomy| inputs(anatomy) == [1, 2]));
        let code = Code::EVEX_Vfmadd213pd_ymm_k1z_ymm_ymmm256b64;
        assert!(anatomies(code).iter().all(|anatomy| inputs(anatomy) == [0, 1, 2]));
    }

    #[test]
    fn divisions_and_roots_are_searched() {
        let features = Machine::detect().features;
        for (code, chains) in [
            (Code::Div_rm32, 8),
            (Code::Idiv_rm64, 9),
            (Code::Divpd_xmm_xmmm128, 4),
            (Code::Sqrtps_xmm_xmmm128, 4),
        ] {
            let anatomy =
                anatomies(code).into_iter().find(|anatomy| !anatomy.slots().contains(&Slot::Base)).unwrap();
            let found = candidates(&anatomy, &features, true);
            assert_eq!(found.iter().filter(|one| one.chain.is_some()).count(), chains, "{code:?}");
            assert_eq!(found.len(), 2 * chains, "{code:?}");
            assert_eq!(candidates(&anatomy, &features, false).len(), chains);
        }
        assert!(candidates(&anatomies(Code::Addpd_xmm_xmmm128)[0], &features, true).is_empty());
    }
}
