//! Options for the arguments and memory of a called function.

use super::arg_value::CallArgument;
use super::size::parse_size;
use super::template::BoundVariable;
use super::template_value::TemplateValue;
use super::value_reader::parse_argument;
use crate::output::Failure;
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
    /// One more argument, after the pointer to the buffer; NAME=VALUE sets a parameter by its name.
    /// Values: numbers such as 100, 0x40, 0.5 (double) and 0.5f (float); `size` (bytes of the
    /// --contents file, else of the buffer); `buffer` and `out` (a second buffer), with a length as
    /// in buffer:4096 and an offset as in out+8; "text"; members of a structure as in {1, 2}; a
    /// function of the file as in &compare. --call
    /// 'f(0, buffer, size)' has all arguments in order
    #[arg(help_heading = CALL_HEADING, long = "arg", value_name = "VALUE", value_parser = read_argument, allow_hyphen_values = true,
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub values: Vec<TemplateValue<CallArgument>>,
    /// Bytes of the buffer that the first argument points to, such as 4096, 64K or 8M [default: 1M,
    /// or the size of a larger --contents file]
    #[arg(help_heading = CALL_HEADING, long, value_name = "BYTES", value_parser = read_bytes,
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub buffer: Option<TemplateValue<u64>>,
    /// Initial contents of the buffer: `pattern` (floating point numbers slightly above 1), `zero`,
    /// `random`, or a file, padded with zeros [default: pattern]
    #[arg(help_heading = CALL_HEADING, long, value_name = "WHAT", conflicts_with_all = ["snippet", "file", "hex"])]
    pub contents: Option<BufferContents>,
    /// Minimum stack size in bytes, such as 64K or 8M [default: 8M]
    #[arg(help_heading = CALL_HEADING, long, value_name = "BYTES", value_parser = read_bytes,
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub stack: Option<TemplateValue<u64>>,
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

    /// Inserts a word of `--versus`. Returns whether any option had the variable.
    pub fn fill_word(&mut self, bound: BoundVariable) -> Result<bool, Failure> {
        let mut is_changed = false;
        for value in &mut self.values {
            is_changed |= value.fill(bound, "--arg", parse_argument)?;
        }
        for (bytes, option) in [(&mut self.buffer, "--buffer"), (&mut self.stack, "--stack")] {
            if let Some(bytes) = bytes {
                is_changed |= bytes.fill(bound, option, parse_bytes)?;
            }
        }
        if let Some(contents) = &mut self.contents {
            let filled = bound.fill_text(&contents.to_string())?;
            is_changed |= filled.is_changed;
            *contents = BufferContents::from(filled.text.as_str());
        }
        Ok(is_changed)
    }

    /// The values of --arg.
    pub fn arguments(&self) -> Result<Vec<CallArgument>, Failure> {
        self.values.iter().map(|value| value.require("--arg").cloned()).collect()
    }

    /// The bytes of the buffer, if given.
    pub fn buffer_bytes(&self) -> Result<Option<u64>, Failure> {
        self.buffer.as_ref().map(|bytes| bytes.require("--buffer").copied()).transpose()
    }

    /// The bytes of the stack, if given.
    pub fn stack_bytes(&self) -> Result<Option<u64>, Failure> {
        self.stack.as_ref().map(|bytes| bytes.require("--stack").copied()).transpose()
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

/// The largest buffer or stack: 1 GiB.
const BYTES_MOST: u64 = 1 << 30;

fn read_argument(text: &str) -> Result<TemplateValue<CallArgument>, String> {
    TemplateValue::read(text, parse_argument)
}

fn read_bytes(text: &str) -> Result<TemplateValue<u64>, String> {
    TemplateValue::read(text, parse_bytes)
}

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
}
