//! Values of function arguments.

use std::fmt;

/// The value of one argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgValue {
    /// An integer.
    Number(i128),
    /// A `double`.
    Double(f64),
    /// A `float`.
    Single(f32),
    /// Bytes of the file in the buffer, or of the buffer if it holds no file, divided by a number.
    Size {
        /// The divisor.
        divisor: u64,
    },
    /// An address in the memory that functions work on.
    Memory(MemoryPlace),
    /// The address of this text and a NUL byte.
    Text(Vec<u8>),
    /// The name of a value of an enumeration, or of a function.
    Name(String),
    /// The address of the function of this name.
    Function(String),
    /// Members of a structure.
    Members(Vec<ArgValue>),
}

/// A place in the memory that functions work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlace {
    /// Which memory.
    pub memory: CallMemoryName,
    /// Its bytes, if given.
    pub bytes: Option<u64>,
    /// Offset from its start in bytes.
    pub offset: u64,
}

/// The memory that functions work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallMemoryName {
    /// The buffer that --buffer and --contents describe.
    Buffer,
    /// The second buffer.
    Out,
}

/// The start of the buffer.
pub const BUFFER_START: ArgValue =
    ArgValue::Memory(MemoryPlace { memory: CallMemoryName::Buffer, bytes: None, offset: 0 });

impl ArgValue {
    /// The places in memory that it contains.
    pub fn memory_places(&self) -> Vec<MemoryPlace> {
        match self {
            ArgValue::Memory(place) => vec![*place],
            ArgValue::Members(members) => members.iter().flat_map(ArgValue::memory_places).collect(),
            _ => Vec::new(),
        }
    }

    /// The values in it that name a function, or may.
    pub fn named_functions(&self) -> Vec<&ArgValue> {
        match self {
            ArgValue::Name(_) | ArgValue::Function(_) => vec![self],
            ArgValue::Members(members) => members.iter().flat_map(ArgValue::named_functions).collect(),
            _ => Vec::new(),
        }
    }

    /// The texts that it contains.
    pub fn texts(&self) -> Vec<&[u8]> {
        match self {
            ArgValue::Text(text) => vec![text],
            ArgValue::Members(members) => members.iter().flat_map(ArgValue::texts).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for ArgValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgValue::Number(number) => number.fmt(f),
            // The debug format always has a point or an exponent.
            ArgValue::Double(number) => write!(f, "{number:?}"),
            ArgValue::Single(number) => write!(f, "{number:?}f"),
            ArgValue::Size { divisor: 1 } => f.write_str("size"),
            ArgValue::Size { divisor } => write!(f, "size/{divisor}"),
            ArgValue::Memory(MemoryPlace { memory, bytes, offset }) => {
                f.write_str(match memory {
                    CallMemoryName::Buffer => "buffer",
                    CallMemoryName::Out => "out",
                })?;
                bytes.map_or(Ok(()), |bytes| write!(f, ":{bytes}"))?;
                if *offset > 0 { write!(f, "+{offset}") } else { Ok(()) }
            }
            ArgValue::Name(name) => name.fmt(f),
            ArgValue::Function(name) => write!(f, "&{name}"),
            ArgValue::Text(text) => write!(f, "\"{}\"", text.escape_ascii()),
            ArgValue::Members(members) => {
                let members: Vec<String> = members.iter().map(ArgValue::to_string).collect();
                write!(f, "{{{}}}", members.join(", "))
            }
        }
    }
}

/// One argument: a value, and its parameter's name if it is passed by name.
#[derive(Debug, Clone, PartialEq)]
pub struct CallArgument {
    /// The name of the parameter.
    pub name: Option<String>,
    /// The value.
    pub value: ArgValue,
}

impl fmt::Display for CallArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.as_ref().map_or(Ok(()), |name| write!(f, "{name}="))?;
        self.value.fmt(f)
    }
}

impl serde::Serialize for CallArgument {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
