//! Options for the arguments and memory of a called function.

use super::size::parse_size;
use clap::{Args, ValueEnum};
use cyclescope::record::SerializedBy;
use std::fmt;
use std::path::PathBuf;

const CALL_HEADING: &str = "Function arguments and memory";

/// Arguments, buffer and stack for the function of --c, --lib or --elf.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct CallArgs {
    /// Measure the latency of a call instead of its throughput. Each call waits for an LFENCE
    /// (`fence`), or its first argument waits for the previous result: an integer (`result`) or a
    /// floating point number (`float-result`). With --c, the compiler determines which of the two
    /// [without a value: fence]
    #[arg(help_heading = CALL_HEADING, long, value_name = "HOW", value_enum, num_args = 0..=1, default_missing_value = "fence",
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub serialize: Option<CallSerialization>,
    /// Function of the same file that runs before each call, with the same arguments; for a
    /// snippet, assembly that runs before each copy. Its cost is excluded
    #[arg(help_heading = CALL_HEADING, long, value_name = "NAME|CODE", allow_hyphen_values = true)]
    pub setup: Option<String>,
    /// One more argument, after the pointer to the buffer. Up to five integers, `buffer` (its
    /// address) or `size` (bytes of the --contents file, else of the buffer); up to eight floating
    /// point numbers such as 0.5 (double) or 0.5f (float)
    #[arg(help_heading = CALL_HEADING, long = "arg", value_name = "N", value_parser = parse_value, allow_hyphen_values = true,
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub values: Vec<ArgValue>,
    /// Bytes of the buffer that the first argument points to, such as 4096, 64K or 8M [default: 1M,
    /// or the size of a larger --contents file]
    #[arg(help_heading = CALL_HEADING, long, value_name = "BYTES", value_parser = parse_bytes,
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub buffer: Option<u64>,
    /// Initial contents of the buffer: `pattern` (floating point numbers slightly above 1), `zero`,
    /// `random`, or a file, padded with zeros [default: pattern]
    #[arg(help_heading = CALL_HEADING, long, value_name = "WHAT", conflicts_with_all = ["snippet", "file", "hex"])]
    pub contents: Option<BufferContents>,
    /// Minimum stack size in bytes, such as 64K or 8M [default: 8M]
    #[arg(help_heading = CALL_HEADING, long, value_name = "BYTES", value_parser = parse_bytes,
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub stack: Option<u64>,
}

impl CallArgs {
    /// Whether the command line has any of these options.
    pub fn is_given(&self) -> bool {
        self.serialize.is_some()
            || self.setup.is_some()
            || !self.values.is_empty()
            || self.buffer.is_some()
            || self.contents.is_some()
            || self.stack.is_some()
    }
}

/// What each call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallSerialization {
    /// The previous call's result, an integer or an address
    Result,
    /// The previous call's result, a floating point number
    FloatResult,
    /// An LFENCE
    Fence,
}

impl From<CallSerialization> for SerializedBy {
    fn from(serialize: CallSerialization) -> SerializedBy {
        match serialize {
            CallSerialization::Result => SerializedBy::Result,
            CallSerialization::FloatResult => SerializedBy::FloatResult,
            CallSerialization::Fence => SerializedBy::Fence,
        }
    }
}

/// The value of one argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArgValue {
    /// An integer.
    Number(i128),
    /// A `double`.
    Double(f64),
    /// A `float`.
    Single(f32),
    /// Bytes of the file in the buffer, or of the buffer if it holds no file.
    Size,
    /// The address of the buffer.
    Buffer,
}

impl ArgValue {
    /// Whether the value is passed as a floating point number.
    pub fn is_float(&self) -> bool {
        matches!(self, ArgValue::Double(_) | ArgValue::Single(_))
    }
}

impl serde::Serialize for ArgValue {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for ArgValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgValue::Number(number) => number.fmt(f),
            // The debug format always has a point or an exponent.
            ArgValue::Double(number) => write!(f, "{number:?}"),
            ArgValue::Single(number) => write!(f, "{number:?}f"),
            ArgValue::Size => "size".fmt(f),
            ArgValue::Buffer => "buffer".fmt(f),
        }
    }
}

/// Initial contents of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferContents {
    /// Floating point numbers slightly above 1.
    Pattern,
    /// Zeros.
    Zero,
    /// Random bytes from the run's seed.
    Random,
    /// The bytes of a file, then zeros.
    File(PathBuf),
}

impl From<&str> for BufferContents {
    fn from(text: &str) -> BufferContents {
        match text {
            "pattern" => BufferContents::Pattern,
            "zero" => BufferContents::Zero,
            "random" => BufferContents::Random,
            path => BufferContents::File(path.into()),
        }
    }
}

impl serde::Serialize for BufferContents {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for BufferContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferContents::Pattern => "pattern".fmt(f),
            BufferContents::Zero => "zero".fmt(f),
            BufferContents::Random => "random".fmt(f),
            BufferContents::File(path) => path.display().fmt(f),
        }
    }
}

fn parse_value(text: &str) -> Result<ArgValue, String> {
    match text {
        "size" => return Ok(ArgValue::Size),
        "buffer" => return Ok(ArgValue::Buffer),
        _ => {}
    }
    if let Some(real) = parse_float(text) {
        return Ok(real);
    }
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let number = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let number = number.ok().filter(|number| *number >= 0).map(|number| sign * number);
    match number {
        Some(number) if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number) => Ok(ArgValue::Number(number)),
        _ => Err("expected a 64-bit number such as 100, -1, 0x40, 0.5 or 0.5f, or `size` or `buffer`".to_string()),
    }
}

/// Parses a floating point number: text with a point or an exponent.
fn parse_float(text: &str) -> Option<ArgValue> {
    if text.contains(['x', 'X']) || !text.contains(['.', 'e', 'E']) {
        return None;
    }
    let value = match text.strip_suffix('f') {
        Some(digits) => ArgValue::Single(digits.parse().ok().filter(|number: &f32| number.is_finite())?),
        None => ArgValue::Double(text.parse().ok().filter(|number: &f64| number.is_finite())?),
    };
    Some(value)
}

/// The largest buffer or stack: 1 GiB.
const BYTES_MOST: u64 = 1 << 30;

fn parse_bytes(text: &str) -> Result<u64, String> {
    let expected = "expected 1 byte to 1G, such as 4096, 64K or 8M".to_string();
    parse_size(text).filter(|bytes| (1..=BYTES_MOST).contains(bytes)).ok_or(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_accept_units() {
        assert_eq!(["1", "64K", "8M", "1G"].map(|text| parse_bytes(text).unwrap()), [1, 65536, 8 << 20, 1 << 30]);
        for wrong in ["", "0", "K", "1.5M", "-1", "1025M", "1T", "99999999999G"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_64_bit_numbers_or_keywords() {
        let most = ArgValue::Number(u64::MAX.into());
        assert_eq!(
            ["0x10", "-1", "18446744073709551615"].map(|text| parse_value(text).unwrap()),
            [ArgValue::Number(16), ArgValue::Number(-1), most]
        );
        assert_eq!(
            ["0.5", "-1e3"].map(|text| parse_value(text).unwrap()),
            [ArgValue::Double(0.5), ArgValue::Double(-1000.0)]
        );
        assert_eq!(parse_value("2.5f"), Ok(ArgValue::Single(2.5)));
        for text in ["0.5", "-1000.0", "1e300", "2.5f", "size", "-1"] {
            assert_eq!(parse_value(text).unwrap().to_string(), text);
        }
        assert_eq!(["size", "buffer"].map(|text| parse_value(text).unwrap()), [ArgValue::Size, ArgValue::Buffer]);
        for wrong in ["", "--1", "x", "1.5.2", "e", "1e999", "1f", "0x", "18446744073709551616", "-9223372036854775809"]
        {
            assert!(parse_value(wrong).is_err(), "{wrong}");
        }
    }
}
