//! The bytes of arguments.

use crate::args::ArgValue;
use crate::input::calling_convention::ArgumentWord;
use crate::input::signature::{BitReading, NamedNumber, Pointee, ValueType};
use cyclescope::asm::CodeMode;

/// The memory that arguments refer to.
pub trait CallMemory {
    /// The mode of the code that uses it.
    fn mode(&self) -> CodeMode;
    /// The value of `size`, in bytes.
    fn size(&self) -> u64;
    /// The address of a value with an address: of a buffer or a text.
    fn locate(&self, value: &ArgValue) -> ArgumentWord;
    /// The address of a function. The error says why there is none.
    fn find_function(&self, value: &ArgValue) -> Result<ArgumentWord, String>;
}

/// Most names of values that a message lists.
const NAMES_MOST: usize = 8;

/// The number that an argument counts; 0 if it is no such number.
pub fn count_of(value: &ArgValue, memory: &dyn CallMemory) -> u64 {
    match value {
        ArgValue::Members(members) => members.iter().map(|member| count_of(member, memory)).max().unwrap_or(0),
        value => to_whole(value, memory).and_then(|number| u64::try_from(number).ok()).unwrap_or(0),
    }
}

/// The whole number that a value is; `None` if it is none.
fn to_whole(value: &ArgValue, memory: &dyn CallMemory) -> Option<i128> {
    let float = match value {
        ArgValue::Number(number) => return Some(*number),
        ArgValue::Size { divisor } => return Some((memory.size() / divisor).into()),
        ArgValue::Double(number) => *number,
        ArgValue::Single(number) => (*number).into(),
        ArgValue::Memory(_) | ArgValue::Text(_) | ArgValue::Name(_) | ArgValue::Function(_) | ArgValue::Members(_) => {
            return None;
        }
    };
    // The conversion clamps numbers beyond the integer type, and the way back shows it.
    (float as i128 as f64 == float && float.abs() < i128::MAX as f64).then_some(float as i128)
}

/// The bytes of a value in words of a mode's registers.
struct ValueWords {
    words: Vec<ArgumentWord>,
    word_bytes: u64,
}

impl ValueWords {
    /// Zeros for a value of this size.
    fn new(bytes: u64, mode: CodeMode) -> ValueWords {
        let word_bytes = word_bytes(mode);
        ValueWords { words: vec![ArgumentWord::Bits(0); bytes.div_ceil(word_bytes) as usize], word_bytes }
    }

    fn write_address(&mut self, address: ArgumentWord, offset: u64) -> Result<(), String> {
        if !offset.is_multiple_of(self.word_bytes) {
            return Err(format!("an address must be aligned to {} bytes", self.word_bytes));
        }
        self.words[(offset / self.word_bytes) as usize] = address;
        Ok(())
    }

    /// Writes the lowest bytes of a number at an offset.
    fn write_bits(&mut self, bits: u128, offset: u64, bytes: u64) {
        for (at, byte) in (offset..).zip(&bits.to_le_bytes()[..bytes as usize]) {
            if let ArgumentWord::Bits(word) = &mut self.words[(at / self.word_bytes) as usize] {
                let shift = 8 * (at % self.word_bytes);
                *word = *word & !(0xff << shift) | u64::from(*byte) << shift;
            }
        }
    }
}

/// Bytes of a general register, and of a place on the stack.
pub fn word_bytes(mode: CodeMode) -> u64 {
    u64::from(mode.bits() / 8)
}

/// The bytes of a value of a type, as words. The error says why the value has not this type.
pub fn encode_value(
    value_type: &ValueType,
    value: &ArgValue,
    memory: &dyn CallMemory,
) -> Result<Vec<ArgumentWord>, String> {
    let mut written = ValueWords::new(value_type.bytes(), memory.mode());
    write_value(value_type, value, 0, memory, &mut written)?;
    let mut words = written.words;
    // Some compilers rely on integers that are extended to their register.
    if let (ValueType::Integer { bytes: bytes @ ..8, reading: BitReading::Signed, .. }, [ArgumentWord::Bits(word)]) =
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
    words: &mut ValueWords,
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
        (ValueType::Pointer(Pointee::Function, _), ArgValue::Function(_) | ArgValue::Name(_)) => {
            words.write_address(memory.find_function(value)?, offset)
        }
        (ValueType::Pointer(Pointee::Function, _), ArgValue::Number(0)) => Ok(()),
        (ValueType::Pointer(Pointee::Function, _), _) => {
            Err("a pointer to a function is the name of one, such as &compare, or NULL".to_string())
        }
        (_, ArgValue::Function(_)) => Err("it is no pointer to a function".to_string()),
        (ValueType::Pointer(Pointee::Data, _), ArgValue::Text(_)) => Err("text is an array of `char`".to_string()),
        (ValueType::Pointer(..), ArgValue::Memory(_) | ArgValue::Text(_)) => {
            words.write_address(memory.locate(value), offset)
        }
        (ValueType::Pointer(..), ArgValue::Number(0)) => Ok(()),
        (ValueType::Pointer(..), _) => Err("a pointer is `buffer`, `out`, \"text\" or NULL".to_string()),
        (_, ArgValue::Memory(_) | ArgValue::Text(_)) => Err("it is no pointer".to_string()),
        (ValueType::Float { .. } | ValueType::LongDouble { .. }, ArgValue::Name(_)) => {
            Err("it is a floating point type".to_string())
        }
        (ValueType::Integer { bytes, reading, names }, _) => {
            let number = match value {
                ArgValue::Name(name) => find_named(name, names)?,
                value => to_whole(value, memory).ok_or("it is an integer type")?,
            };
            words.write_bits(encode_integer(number, *bytes, *reading)?, offset, *bytes);
            Ok(())
        }
        (ValueType::Float { bytes: 4 }, _) => {
            words.write_bits(encode_single(value, memory)?.into(), offset, 4);
            Ok(())
        }
        (ValueType::Float { .. }, _) => {
            words.write_bits(to_double(value, memory)?.to_bits().into(), offset, 8);
            Ok(())
        }
        (ValueType::LongDouble { bytes }, _) => {
            words.write_bits(encode_long_double(to_double(value, memory)?), offset, *bytes);
            Ok(())
        }
        (ValueType::Void | ValueType::Vector { .. } | ValueType::ByReference { .. } | ValueType::Unsupported(_), _) => {
            Err("its type has no values".to_string())
        }
    }
}

/// The number of a value of an enumeration. The names around its own are not compared.
fn find_named(name: &str, names: &[NamedNumber]) -> Result<i128, String> {
    let own = name.rsplit("::").next().unwrap_or(name);
    let found = names.iter().find(|named| named.name == own || named.name == name);
    found.map(|named| named.number).ok_or_else(|| {
        let known: Vec<&str> = names.iter().take(NAMES_MOST).map(|named| named.name.as_str()).collect();
        match (known.as_slice(), names.len() > known.len()) {
            ([], _) => "the type has no named values".to_string(),
            (known, true) => format!("the values are {} and more", known.join(", ")),
            (known, false) => format!("the values are {}", known.join(", ")),
        }
    })
}

/// The bits of an integer, if the type has it.
fn encode_integer(number: i128, bytes: u64, reading: BitReading) -> Result<u128, String> {
    let unused = 128 - 8 * bytes as u32;
    let [signed, unsigned] = [(i128::MIN >> unused, i128::MAX as u128 >> unused), (0, u128::MAX >> unused)];
    let (low, high) = match reading {
        BitReading::Signed => signed,
        BitReading::Unsigned => unsigned,
        BitReading::Unknown => (signed.0, unsigned.1),
        BitReading::Truth => (0, 1),
    };
    let fits = |low: i128, high: u128| number >= low && (number < 0 || number as u128 <= high);
    if fits(low, high) {
        return Ok(number as u128);
    }
    // The other reading of the same bits, which the user may mean.
    let is_bits = reading != BitReading::Truth && fits(signed.0, unsigned.1);
    let same_bits = match number < 0 {
        true => (number as u128 & unsigned.1).to_string(),
        false => (number << unused >> unused).to_string(),
    };
    let hint = if is_bits { format!("; {same_bits} has the same bits") } else { String::new() };
    Err(format!("{number} is outside {low} to {high}{hint}"))
}

fn to_double(value: &ArgValue, memory: &dyn CallMemory) -> Result<f64, String> {
    match value {
        ArgValue::Double(number) => return Ok(*number),
        ArgValue::Single(number) => return Ok((*number).into()),
        _ => {}
    }
    let number = to_whole(value, memory).ok_or("it is a floating point type")?;
    let double = number as f64;
    if double as i128 == number { Ok(double) } else { Err(describe_rounding(number, double)) }
}

fn encode_single(value: &ArgValue, memory: &dyn CallMemory) -> Result<u32, String> {
    let number = to_double(value, memory)?;
    let single = number as f32;
    let is_integer = matches!(value, ArgValue::Number(_) | ArgValue::Size { .. });
    if single.is_infinite() {
        return Err(format!("{value} is outside {:?} to {:?}", f32::MIN, f32::MAX));
    }
    if single == 0.0 && number != 0.0 {
        return Err(format!("{value} is nearer to 0 than any other number of the type"));
    }
    if is_integer && f64::from(single) != number {
        return Err(describe_rounding(number, single.into()));
    }
    Ok(single.to_bits())
}

/// Why an integer is no value of a floating point type.
fn describe_rounding(number: impl std::fmt::Display, rounded: f64) -> String {
    format!("the type rounds {number} to {rounded}")
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
