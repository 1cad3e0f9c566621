//! Programs of a form with other operand values than its usual ones.
//!
//! Divisions and square roots get candidates among which the fastest and the slowest are found.
//! Floating-point arithmetic gets subnormal inputs. The values must survive any number of
//! instances: an instance divides its value by one or slightly more, or the value is zero. Limits:
//! each pair of values has one program of a kind, and no x87 registers are loaded.

use super::chain::{ChainEnds, LatencyChain};
use super::chain_registers::ChainRegisters;
use super::division_operands::{DivisionOperands, division_signedness, list_integer_divisions, repeat_element};
use super::operand_contents::OperandContents;
use super::route::find_routes;
use super::throughput_body::ThroughputBody;
use super::throughput_recipe::{AddressPattern, DependencyBreaking, ThroughputRecipe};
use super::x87;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, OperandPort, RegisterBank, RegisterSlot};
use crate::forms::instruction_setting;
use cyclescope_core::machine::features::CpuFeatures;
use iced_x86::{Instruction, InstructionInfoFactory, MemorySize, OpAccess, OpKind, Register};

/// The variant with subnormal inputs.
pub(crate) const SUBNORMAL: &str = "subnormal";
/// The variant with the fastest operands found.
pub(crate) const FAST_OPERANDS: &str = "fast operands";
/// The variant with the slowest operands found.
pub(crate) const SLOW_OPERANDS: &str = "slow operands";

/// Two costs differ if they exceed both this share and this number of core cycles.
const DIFFERENCE_SHARE: f64 = 0.05;
const DIFFERENCE_CYCLES: f64 = 0.1;

/// Whether two costs differ by more than differently written programs do.
pub(crate) fn costs_differ(one: f64, other: f64) -> bool {
    let difference = (one - other).abs();
    difference > DIFFERENCE_CYCLES && difference > DIFFERENCE_SHARE * one.min(other)
}

/// Prefixes of floating-point arithmetic, after the `v` of VEX and EVEX forms and the `f` of x87.
const ARITHMETIC_STARTS: [&str; 40] = [
    "add", "sub", "mul", "div", "sqrt", "max", "min", "hadd", "hsub", "dpp", "round", "cmp", "com", "ucom", "cvt",
    "fmadd", "fmsub", "fmaddsub", "fmsubadd", "fnmadd", "fnmsub", "fmul", "fcmul", "fcmadd", "rcp", "rsqrt",
    "rndscale", "reduce", "range", "scalef", "getexp", "getmant", "fixupimm", "fpclass", "exp2", "minmax", "ld",
    "rcp14", "rsqrt14", "frcz",
];
/// Prefixes of operations whose result is subnormal only if a single operand is.
const PRODUCT_STARTS: [&str; 4] = ["mul", "div", "fmul", "fcmul"];

/// A program with chosen operand values.
#[derive(Debug, Clone)]
pub(crate) struct ValueCandidate {
    /// The ends and the chain of a latency. `None` for a throughput.
    pub chain: Option<(OperandPort, OperandPort, LatencyChain)>,
    /// The recipe as text, for a throughput.
    pub recipe: String,
    /// The values as text.
    pub values: String,
    /// One period of the body.
    pub period: Vec<Instruction>,
    /// Instances in a period.
    pub copies: usize,
    /// Approximate number of instances in the body.
    pub body_copies: usize,
    /// Code that runs once before the body, after the setting's own code.
    pub init: Vec<Instruction>,
}

/// Values that all instances of a program read.
struct OperandValues {
    text: String,
    contents: OperandContents,
}

/// Floating-point numbers of one format, as bits.
struct FloatBits {
    /// Bits of an element.
    bits: u32,
    /// 1.
    one: u64,
    /// A number with a full mantissa.
    full: u64,
    /// A number slightly above 1.
    near: u64,
    /// A subnormal number.
    subnormal: u64,
}

impl FloatBits {
    fn from_element(element: MemorySize) -> Option<FloatBits> {
        Some(match element {
            MemorySize::Float64 => FloatBits {
                bits: 64,
                one: 0x3ff0_0000_0000_0000,
                full: 0x3ffe_3779_b97f_4a7d,
                near: 0x3ff0_0123_4567_89ab,
                subnormal: 0x12_3456_789b,
            },
            MemorySize::Float32 => {
                FloatBits { bits: 32, one: 0x3f80_0000, full: 0x3ff3_3779, near: 0x3f80_0953, subnormal: 0x123 }
            }
            MemorySize::Float16 => FloatBits { bits: 16, one: 0x3c00, full: 0x3f37, near: 0x3c01, subnormal: 0x3 },
            _ => return None,
        })
    }
}

/// Candidates for the fast and the slow operands of a form.
pub(crate) fn build_candidates(anatomy: &FormAnatomy, features: &CpuFeatures, latency: bool) -> Vec<ValueCandidate> {
    let mnemonic = anatomy.code().mnemonic();
    let setting = instruction_setting::find_setting(anatomy.code());
    if let Some(signed) = division_signedness(mnemonic) {
        let Some(bits) = find_divisor(anatomy).map(|(_, bits)| bits) else { return Vec::new() };
        let values: Vec<OperandValues> = list_integer_divisions(bits, signed)
            .iter()
            .filter_map(|quotient| integer_division_values(anatomy, quotient))
            .collect();
        let rax = |port: &&OperandPort| {
            matches!(
                port.place,
                OperandPlace::Fixed(one) if one.full_register() == Register::RAX
            )
        };
        let (from, to) = (anatomy.inputs.iter().find(rax), anatomy.outputs.iter().find(rax));
        return build_programs(anatomy, features, &values, pair_ends(from, to).filter(|_| latency));
    }
    let Some(numbers) = find_float_bits(anatomy).filter(|_| setting.full_mantissas) else {
        return Vec::new();
    };
    let inputs = find_value_operands(anatomy);
    let values = match (setting.squared, inputs.as_slice()) {
        (true, all) => square_root_values(&numbers, all),
        (false, [dividend, divisor]) => float_division_values(&numbers, *dividend, *divisor),
        _ => return Vec::new(),
    };
    // A division's dividend carries the value to the next instance. The divisor of a legacy
    // division can't: it must keep its value.
    let read = if setting.squared { inputs.last() } else { inputs.first() };
    let from = anatomy.inputs.iter().find(|port| {
        let place = read.map(|operand| OperandPlace::Slot(RegisterSlot::Operand(*operand)));
        place == Some(port.place) && anatomy.place_bank(port.place) == RegisterBank::Vector
    });
    let to = anatomy.outputs.iter().find(|port| anatomy.place_bank(port.place) == RegisterBank::Vector);
    build_programs(anatomy, features, &values, pair_ends(from, to).filter(|_| latency))
}

/// A throughput program with subnormal inputs, for floating-point arithmetic.
pub(crate) fn build_subnormal(anatomy: &FormAnatomy) -> Option<ValueCandidate> {
    let numbers = find_float_bits(anatomy)?;
    let mnemonic = format!("{:?}", anatomy.code().mnemonic()).to_lowercase();
    let x87 = mnemonic.starts_with('f') && x87::uses_stack(&anatomy.sample);
    let name = match x87 {
        true => &mnemonic[1..],
        false => mnemonic.strip_prefix('v').unwrap_or(&mnemonic),
    };
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    let product = begins(&PRODUCT_STARTS);
    // LD is FLD only. A product on the x87 stack would soon overflow.
    if !begins(&ARITHMETIC_STARTS) || (x87 && product) || (!x87 && name.starts_with("ld")) {
        return None;
    }
    let inputs = find_value_operands(anatomy);
    let content = |(index, operand): (usize, &u32)| {
        let value = if product && index > 0 { numbers.one } else { numbers.subnormal };
        (*operand, repeat_element(value, numbers.bits))
    };
    let contents = OperandContents { operands: inputs.iter().enumerate().map(content).collect(), dividend: None };
    let breaking = if x87 { DependencyBreaking::Zero } else { DependencyBreaking::Copy };
    build_throughput(anatomy, &OperandValues { text: SUBNORMAL.to_string(), contents }, 48, breaking)
}

fn integer_division_values(anatomy: &FormAnatomy, quotient: &DivisionOperands) -> Option<OperandValues> {
    let (operand, _) = find_divisor(anatomy)?;
    let contents =
        OperandContents { operands: vec![(operand, quotient.divisor_pattern())], dividend: Some(quotient.dividend()) };
    Some(OperandValues { text: quotient.describe(), contents })
}

/// The divisor operand of an integer division, and its bits.
fn find_divisor(anatomy: &FormAnatomy) -> Option<(u32, u32)> {
    let operand = (0..anatomy.sample.op_count()).next_back()?;
    let bytes = match anatomy.sample.op_kind(operand) {
        OpKind::Register => anatomy.sample.op_register(operand).size(),
        _ => anatomy.memory_bytes,
    };
    Some((operand, 8 * bytes as u32))
}

fn float_division_values(numbers: &FloatBits, dividend: u32, divisor: u32) -> Vec<OperandValues> {
    let FloatBits { bits, one, full, near, .. } = *numbers;
    let quotient = |text: &str, values: (u64, u64)| OperandValues {
        text: text.to_string(),
        contents: OperandContents {
            operands: vec![(dividend, repeat_element(values.0, bits)), (divisor, repeat_element(values.1, bits))],
            dividend: None,
        },
    };
    vec![
        quotient("1 / 1", (one, one)),
        quotient("full mantissa / 1", (full, one)),
        quotient("0 / full mantissa", (0, near)),
        quotient("full mantissa / full mantissa", (full, near)),
    ]
}

fn square_root_values(numbers: &FloatBits, inputs: &[u32]) -> Vec<OperandValues> {
    let FloatBits { bits, one, full, .. } = *numbers;
    // All three formats start with these bits.
    let two = 0x4000 << (bits - 16);
    let repeated = |text: &str, value: u64| OperandValues {
        text: text.to_string(),
        contents: OperandContents {
            operands: inputs.iter().map(|operand| (*operand, repeat_element(value, bits))).collect(),
            dividend: None,
        },
    };
    vec![repeated("of 1", one), repeated("of 2", two), repeated("of 0", 0), repeated("of a full mantissa", full)]
}

fn find_float_bits(anatomy: &FormAnatomy) -> Option<FloatBits> {
    FloatBits::from_element(anatomy.sample.op_code().memory_size().element_type())
}

/// Operands that take part in the operation, without those read only to keep masked-off elements.
fn find_value_operands(anatomy: &FormAnatomy) -> Vec<u32> {
    let mut sample = anatomy.sample;
    sample.set_op_mask(Register::None);
    sample.set_zeroing_masking(false);
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&sample);
    (0..sample.op_count())
        .filter(|operand| {
            let read = !matches!(info.op_access(*operand), OpAccess::None | OpAccess::Write | OpAccess::CondWrite);
            read && match sample.op_kind(*operand) {
                OpKind::Register => sample.op_register(*operand).is_vector_register(),
                kind => kind == OpKind::Memory,
            }
        })
        .collect()
}

/// The ends of a chain, if both exist.
fn pair_ends<'a>(from: Option<&'a OperandPort>, to: Option<&'a OperandPort>) -> Option<ChainEnds<'a>> {
    Some(ChainEnds { from: from?, to: to? })
}

/// A throughput program for each set of values, and chains if there are ends.
fn build_programs(
    anatomy: &FormAnatomy,
    features: &CpuFeatures,
    values: &[OperandValues],
    ends: Option<ChainEnds>,
) -> Vec<ValueCandidate> {
    let mut found: Vec<ValueCandidate> =
        values.iter().filter_map(|values| build_throughput(anatomy, values, 96, DependencyBreaking::Copy)).collect();
    let Some(ends) = ends else { return found };
    let has = |links: &Vec<super::links::Link>| links.iter().all(|link| link.is_available(anatomy.mode(), features));
    let Some(links) = find_routes(anatomy, ends.from.place, ends.to.place).into_iter().find(has) else {
        return found;
    };
    let Some(chain) = LatencyChain::new(anatomy, ends, &links, ChainRegisters::Distinct) else {
        return found;
    };
    for values in values {
        let Some(mut init) = values.contents.build_code(anatomy, &chain.period) else {
            continue;
        };
        init.extend(&chain.init);
        found.push(ValueCandidate {
            recipe: String::new(),
            values: values.text.clone(),
            period: chain.period.clone(),
            copies: chain.copies,
            body_copies: 96,
            init,
            chain: Some((ends.from.clone(), ends.to.clone(), chain.clone())),
        });
    }
    found
}

fn build_throughput(
    anatomy: &FormAnatomy,
    values: &OperandValues,
    copies: usize,
    breaking: DependencyBreaking,
) -> Option<ValueCandidate> {
    let recipe = ThroughputRecipe {
        destinations: 24,
        copies,
        nop_after: None,
        companions: None,
        lead: 0,
        addresses: AddressPattern::Adjacent(8),
        breaking,
    };
    let body = ThroughputBody::new(anatomy, recipe)?;
    let mut init = values.contents.build_code(anatomy, &body.period)?;
    init.extend(&body.init);
    Some(ValueCandidate {
        chain: None,
        recipe: body
            .describe((copies / body.copies).max(1) * body.copies, anatomy.slots().contains(&RegisterSlot::Base)),
        values: values.text.clone(),
        period: body.period,
        copies: body.copies,
        body_copies: copies,
        init,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::forms;
    use cyclescope_core::machine::Machine;
    use iced_x86::Code;

    fn anatomies(code: Code) -> Vec<FormAnatomy> {
        forms::all_forms().filter(|form| form.code == code).filter_map(FormAnatomy::from_form).collect()
    }

    #[test]
    fn float_constants_have_their_stated_properties() {
        let wide = FloatBits::from_element(MemorySize::Float64).unwrap();
        let single = FloatBits::from_element(MemorySize::Float32).unwrap();
        let single_value = |bits: u64| f32::from_bits(bits as u32);
        assert!(f64::from_bits(wide.subnormal).is_subnormal() && single_value(single.subnormal).is_subnormal());
        assert!(f64::from_bits(wide.one) == 1.0 && single_value(single.one) == 1.0);
        // After 4000 divisions, the number is still normal.
        assert!(f64::from_bits(wide.near).powi(4000) < 4.0 && single_value(single.near).powi(4000) < 4.0);
        assert!((1.5..2.0).contains(&f64::from_bits(wide.full)) && (1.5..2.0).contains(&single_value(single.full)));
    }

    #[test]
    fn only_arithmetic_has_subnormal_operands() {
        let has = |code| anatomies(code).iter().filter(|anatomy| build_subnormal(anatomy).is_some()).count();
        for code in
            [Code::Addps_xmm_xmmm128, Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256, Code::VEX_Vcmpps_xmm_xmm_xmmm128_imm8]
        {
            assert!(has(code) > 0, "{code:?}");
        }
        for code in [Code::Fadd_m64fp, Code::Fld_m32fp, Code::EVEX_Vmulph_zmm_k1z_zmm_zmmm512b16_er] {
            assert!(has(code) > 0, "{code:?}");
        }
        for code in [Code::Movaps_xmm_xmmm128, Code::VEX_Vshufps_xmm_xmm_xmmm128_imm8, Code::Fmul_m64fp] {
            assert_eq!(has(code), 0, "{code:?}");
        }
        for code in [Code::Paddd_xmm_xmmm128, Code::VEX_Vlddqu_xmm_m128, Code::Add_r64_rm64, Code::Fadd_st0_sti] {
            assert_eq!(has(code), 0, "{code:?}");
        }
    }

    #[test]
    fn masked_off_elements_are_not_an_input() {
        let code = Code::EVEX_Vmulpd_ymm_k1z_ymm_ymmm256b64;
        assert!(anatomies(code).iter().all(|anatomy| find_value_operands(anatomy) == [1, 2]));
        let code = Code::EVEX_Vfmadd213pd_ymm_k1z_ymm_ymmm256b64;
        assert!(anatomies(code).iter().all(|anatomy| find_value_operands(anatomy) == [0, 1, 2]));
    }

    #[test]
    fn divisions_and_roots_have_candidates() {
        let features = Machine::detect().features;
        for (code, chains) in
            [(Code::Div_rm32, 8), (Code::Idiv_rm64, 9), (Code::Divpd_xmm_xmmm128, 4), (Code::Sqrtps_xmm_xmmm128, 4)]
        {
            let anatomy =
                anatomies(code).into_iter().find(|anatomy| !anatomy.slots().contains(&RegisterSlot::Base)).unwrap();
            let found = build_candidates(&anatomy, &features, true);
            assert_eq!(found.iter().filter(|one| one.chain.is_some()).count(), chains, "{code:?}");
            assert_eq!(found.len(), 2 * chains, "{code:?}");
            assert_eq!(build_candidates(&anatomy, &features, false).len(), chains);
        }
        assert!(build_candidates(&anatomies(Code::Addpd_xmm_xmmm128)[0], &features, true).is_empty());
    }
}
