//! The bytes of arguments.

use crate::args::ArgValue;
use crate::input::calling_convention::ArgumentWord;
use crate::input::signature::{Pointee, ValueType};

/// The memory that arguments refer to.
pub trait CallMemory {
    /// The value of `size`, in bytes.
    fn size(&self) -> u64;
    /// The address of a value with an address: of a buffer or a text.
    fn locate(&self, value: &ArgValue) -> ArgumentWord;
}

/// The number that an argument counts; 0 if it is no such number.
pub fn count_of(value: &ArgValue, memory: &dyn CallMemory) -> u64 {
    match value {
        ArgValue::Number(number) => u64::try_from(*number).unwrap_or(0),
        ArgValue::Size { divisor } => memory.size() / divisor,
        ArgValue::Members(members) => members.iter().map(|member| count_of(member, memory)).max().unwrap_or(0),
        _ => 0,
    }
}

/// The bytes of a value of a type, as words. The error says why the value has not this type.
pub fn encode_value(
    value_type: &ValueType,
    value: &ArgValue,
    memory: &dyn CallMemory,
) -> Result<Vec<ArgumentWord>, String> {
    let mut words = vec![ArgumentWord::Bits(0); value_type.bytes().div_ceil(8) as usize];
    write_value(value_type, value, 0, memory, &mut words)?;
    // Some compilers rely on integers that are extended to their register.
    if let (ValueType::Integer { bytes: bytes @ ..8, is_signed: true }, [ArgumentWord::Bits(word)]) =
        (value_type, words.as_mut_slice())
    {
        let unused = 64 - 8 * bytes;
        *word = ((*word << unused) as i64 >> unused) as u64;
    }
    Ok(words)
}

fn write_value(
    value_type: &ValueType,
    value: &ArgValue,
    offset: u64,
    memory: &dyn CallMemory,
    words: &mut [ArgumentWord],
) -> Result<(), String> {
    match (value_type, value) {
        (ValueType::Record(record), ArgValue::Members(values)) => {
            let written = if record.is_union { record.members.len().min(1) } else { record.members.len() };
            if values.len() != written {
                return Err(format!("the structure has {written} member{}", plural(written)));
            }
            record.members.iter().zip(values).try_for_each(|(member, value)| {
                write_value(&member.value_type, value, offset + member.offset, memory, words)
            })
        }
        (ValueType::Record(_), _) => Err("a structure's value is a list of its members, such as {1, 2}".to_string()),
        (ValueType::Void, ArgValue::Members(values)) if values.is_empty() => Ok(()),
        (_, ArgValue::Members(_)) => Err("it is no structure".to_string()),
        (ValueType::Pointer(Pointee::Function), ArgValue::Memory(_) | ArgValue::Text(_)) => {
            Err("a pointer to a function can only be NULL".to_string())
        }
        (ValueType::Pointer(Pointee::Data), ArgValue::Text(_)) => Err("text is an array of `char`".to_string()),
        (ValueType::Pointer(_), ArgValue::Memory(_) | ArgValue::Text(_)) => {
            if !offset.is_multiple_of(8) {
                return Err("an address must be aligned to 8 bytes".to_string());
            }
            words[(offset / 8) as usize] = memory.locate(value);
            Ok(())
        }
        (ValueType::Pointer(_), ArgValue::Number(0)) => Ok(()),
        (ValueType::Pointer(_), _) => Err("a pointer is `buffer`, `out`, \"text\" or NULL".to_string()),
        (_, ArgValue::Memory(_) | ArgValue::Text(_)) => Err("it is no pointer".to_string()),
        (ValueType::Integer { bytes, .. }, _) => {
            let number = match value {
                ArgValue::Number(number) => *number,
                ArgValue::Size { divisor } => (memory.size() / divisor).into(),
                _ => return Err("it is an integer type".to_string()),
            };
            write_bits(encode_integer(number, *bytes)?, offset, *bytes, words);
            Ok(())
        }
        (ValueType::Float { bytes: 4 }, _) => {
            write_bits(encode_single(value, memory)?.into(), offset, 4, words);
            Ok(())
        }
        (ValueType::Float { .. }, _) => {
            write_bits(to_double(value, memory)?.to_bits().into(), offset, 8, words);
            Ok(())
        }
        (ValueType::LongDouble, _) => {
            write_bits(encode_long_double(to_double(value, memory)?), offset, 16, words);
            Ok(())
        }
        (ValueType::Void | ValueType::Vector { .. } | ValueType::ByReference { .. } | ValueType::Unsupported(_), _) => {
            Err("its type has no values".to_string())
        }
    }
}

/// Writes the lowest bytes of a number at an offset.
fn write_bits(bits: u128, offset: u64, bytes: u64, words: &mut [ArgumentWord]) {
    for (at, byte) in (offset..).zip(&bits.to_le_bytes()[..bytes as usize]) {
        if let ArgumentWord::Bits(word) = &mut words[(at / 8) as usize] {
            let shift = 8 * (at % 8);
            *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
        }
    }
}

/// The bits of an integer. Both readings of them are accepted, as for the `unsigned` -1 and the
/// `int` 0xffffffff.
fn encode_integer(number: i128, bytes: u64) -> Result<u128, String> {
    let bits = 8 * bytes as u32;
    match bits == 128 || (-(1i128 << (bits - 1))..1i128 << bits).contains(&number) {
        true => Ok(number as u128),
        false => Err(format!("it has {bits} bits")),
    }
}

fn to_double(value: &ArgValue, memory: &dyn CallMemory) -> Result<f64, String> {
    let number = match value {
        ArgValue::Double(number) => return Ok(*number),
        ArgValue::Single(number) => return Ok((*number).into()),
        ArgValue::Number(number) => *number,
        ArgValue::Size { divisor } => (memory.size() / divisor).into(),
        _ => return Err("it is a floating point type".to_string()),
    };
    match number as f64 as i128 == number {
        true => Ok(number as f64),
        false => Err("the type rounds it".to_string()),
    }
}

fn encode_single(value: &ArgValue, memory: &dyn CallMemory) -> Result<u32, String> {
    let number = to_double(value, memory)?;
    let single = number as f32;
    let is_integer = matches!(value, ArgValue::Number(_) | ArgValue::Size { .. });
    match single.is_finite() && (!is_integer || f64::from(single) == number) {
        true => Ok(single.to_bits()),
        false => Err("the type rounds it".to_string()),
    }
}

/// The x87 format of a number: the sign, 15 bits of exponent, and 64 bits of significand with the
/// leading 1 (Intel SDM vol. 1, 4.2.2).
fn encode_long_double(number: f64) -> u128 {
    const BIAS_DIFFERENCE: u64 = 16383 - 1023;
    let bits = number.to_bits();
    let (sign, exponent, fraction) = (bits >> 63, bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let (exponent, significand) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        // A subnormal number becomes a normal one.
        (0, fraction) => {
            let shift = fraction.leading_zeros();
            (BIAS_DIFFERENCE + 12 - u64::from(shift), fraction << shift)
        }
        (0x7ff, fraction) => (0x7fff, 1 << 63 | fraction << 11),
        (exponent, fraction) => (exponent + BIAS_DIFFERENCE, 1 << 63 | fraction << 11),
    };
    u128::from(sign << 15 | exponent) << 64 | u128::from(significand)
}

/// The ending of a noun.
pub fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
