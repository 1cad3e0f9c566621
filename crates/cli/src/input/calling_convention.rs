//! Where a call passes its arguments and finds its result: the System V ABI for x86-64, section
//! 3.2.3, for the types of [`signature`](crate::input::signature).
//!
//! A value of up to 16 bytes is one or two eightbytes, each in a general or a vector register. If
//! registers for all of its eightbytes are not left, the whole value is on the stack, as larger
//! values are. A large result is written to memory whose address is the first argument.
//!
//! In 32-bit code (System V ABI for i386, 2.2) all arguments are on the stack, in words of 4 bytes.
//! Floating point numbers are returned on the x87 stack, structures in memory, whose address the
//! function takes from the stack.
//!
//! Windows passes one word per argument (Microsoft x64 calling convention): the first four in the general
//! register and the vector register of their position, the others on the stack above 32 bytes that the
//! function may use. A function without a declaration gets a floating point number in both registers.

use crate::input::signature::{RecordType, ValueType};
use cyclescope::asm::CodeMode;
use cyclescope_platform::processor::PASSES_BY_POSITION;

/// Integer registers for arguments: RDI, RSI, RDX, RCX, R8 and R9.
pub const INTEGER_REGISTERS: usize = 6;
/// Vector registers for arguments: XMM0 to XMM7.
pub const VECTOR_REGISTERS: usize = 8;
/// Arguments in registers on Windows: RCX, RDX, R8 and R9, or XMM0 to XMM3.
pub const MICROSOFT_REGISTERS: usize = 4;
/// Bytes of stack below the arguments there, which the function may use.
pub const SHADOW_BYTES: u64 = 32;
/// Bytes of a word of the stack in 32-bit code.
pub const NARROW_WORD: u64 = 4;

/// How functions take their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallConvention {
    /// 64-bit code of Linux.
    #[default]
    SystemV,
    /// 64-bit code of Windows.
    Microsoft,
    /// 32-bit code.
    Narrow,
}

impl CallConvention {
    /// The convention of this system's functions of a mode.
    pub fn of_system(mode: CodeMode) -> CallConvention {
        match mode {
            CodeMode::Bits64 if PASSES_BY_POSITION => CallConvention::Microsoft,
            CodeMode::Bits64 => CallConvention::SystemV,
            CodeMode::Bits32 => CallConvention::Narrow,
        }
    }

    /// The mode of its code.
    pub fn mode(self) -> CodeMode {
        if self == CallConvention::Narrow { CodeMode::Bits32 } else { CodeMode::Bits64 }
    }

    /// Bytes of stack below the arguments.
    pub fn shadow_bytes(self) -> u64 {
        if self == CallConvention::Microsoft { SHADOW_BYTES } else { 0 }
    }
}

/// A word of an argument: eight bytes, or four in 32-bit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentWord {
    /// These bits.
    Bits(u64),
    /// The address of the buffer and this offset.
    Buffer(u64),
    /// The address of the second memory and this offset.
    Second(u64),
    /// The address of a function: its number among those that the call names.
    Function(usize),
    /// The address of the memory for the result.
    Result,
}

/// Kind of register for eight bytes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterClass {
    /// A general register.
    Integer,
    /// A vector register.
    Vector,
}

/// How a value is passed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ArgumentPassing {
    /// In one register per eightbyte; in none if it has no content.
    Registers(Vec<RegisterClass>),
    /// In memory.
    Memory,
}

/// Where a function leaves its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultPlace {
    /// Its type is not known.
    Unknown,
    /// It has none.
    Nothing,
    /// In RAX, or EAX and EDX.
    Integer,
    /// In XMM0.
    Vector,
    /// On the x87 stack.
    X87,
    /// In memory of this many bytes that the caller provides.
    Memory(u64),
}

/// A number or an address among the arguments on the stack of 32-bit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackScalar {
    /// Number of its first word.
    pub word: usize,
    /// Its size.
    pub bytes: u64,
    /// Whether it is a floating point number.
    pub is_float: bool,
}

/// The arguments of a call in their places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacedArguments {
    /// How the function takes them.
    pub convention: CallConvention,
    /// For the integer registers in order.
    pub integers: Vec<ArgumentWord>,
    /// For the lower halves of the vector registers in order; 0 for one that has no argument.
    pub vectors: Vec<u64>,
    /// On the stack, from RSP on, or above the shadow bytes.
    pub stack: Vec<ArgumentWord>,
    /// The numbers and addresses on the stack of 32-bit code.
    pub scalars: Vec<StackScalar>,
    /// The kinds of registers that each argument takes; none for one in memory. In 32-bit code the
    /// kinds of its words.
    pub kinds: Vec<Vec<RegisterClass>>,
}

impl PlacedArguments {
    /// Starts the arguments of a function with this result.
    pub fn new(result: ResultPlace, convention: CallConvention) -> PlacedArguments {
        let hidden = if matches!(result, ResultPlace::Memory(_)) { vec![ArgumentWord::Result] } else { Vec::new() };
        match convention {
            CallConvention::SystemV | CallConvention::Microsoft => {
                PlacedArguments { convention, integers: hidden, ..PlacedArguments::default() }
            }
            CallConvention::Narrow => {
                let address = |word| StackScalar { word, bytes: NARROW_WORD, is_float: false };
                let scalars = (0..hidden.len()).map(address).collect();
                PlacedArguments { convention, stack: hidden, scalars, ..PlacedArguments::default() }
            }
        }
    }

    /// Adds an argument of this type, whose bytes are these words.
    pub fn push(&mut self, value_type: &ValueType, words: &[ArgumentWord]) {
        match self.convention {
            CallConvention::SystemV => {}
            CallConvention::Microsoft => return self.push_microsoft(value_type, words),
            CallConvention::Narrow => return self.push_narrow(value_type, words),
        }
        let ArgumentPassing::Registers(classes) = classify_value(value_type) else {
            self.kinds.push(Vec::new());
            return self.push_to_stack(value_type, words);
        };
        let count = |class| classes.iter().filter(|own| **own == class).count();
        let fits = self.integers.len() + count(RegisterClass::Integer) <= INTEGER_REGISTERS
            && self.vectors.len() + count(RegisterClass::Vector) <= VECTOR_REGISTERS;
        self.kinds.push(classes.clone());
        if !fits {
            return self.push_to_stack(value_type, words);
        }
        for (class, word) in classes.iter().zip(words) {
            match (class, word) {
                (RegisterClass::Vector, ArgumentWord::Bits(bits)) => self.vectors.push(*bits),
                _ => self.integers.push(*word),
            }
        }
    }

    fn push_microsoft(&mut self, value_type: &ValueType, words: &[ArgumentWord]) {
        let is_float = matches!(value_type, ValueType::Float { .. });
        self.kinds.push(vec![if is_float { RegisterClass::Vector } else { RegisterClass::Integer }]);
        for word in words {
            let position = self.integers.len();
            if position == MICROSOFT_REGISTERS {
                self.stack.push(*word);
                continue;
            }
            self.integers.push(*word);
            if let (true, ArgumentWord::Bits(bits)) = (is_float, word) {
                self.vectors.resize(position, 0);
                self.vectors.push(*bits);
            }
        }
    }

    fn push_narrow(&mut self, value_type: &ValueType, words: &[ArgumentWord]) {
        let first = self.stack.len();
        let mut scalars = Vec::new();
        value_type.collect_scalars(0, &mut scalars);
        let is_float = |scalar: &ValueType| matches!(scalar, ValueType::Float { .. } | ValueType::LongDouble { .. });
        let kinds = scalars.iter().flat_map(|(_, scalar)| {
            let class = if is_float(scalar) { RegisterClass::Vector } else { RegisterClass::Integer };
            std::iter::repeat_n(class, scalar.bytes().div_ceil(NARROW_WORD) as usize)
        });
        self.kinds.push(kinds.collect());
        let whole = scalars.iter().filter(|(offset, _)| offset.is_multiple_of(NARROW_WORD));
        self.scalars.extend(whole.map(|(offset, scalar)| StackScalar {
            word: first + (offset / NARROW_WORD) as usize,
            bytes: scalar.bytes(),
            is_float: is_float(scalar),
        }));
        self.stack.extend(words);
    }

    /// Whether the place of one more argument of this type is uncertain: a packed structure may
    /// have the layout of another one, and debug information doesn't tell that it needs no padding
    /// on the stack.
    pub fn is_place_uncertain(&self, value_type: &ValueType) -> bool {
        self.convention == CallConvention::SystemV
            && matches!(value_type, ValueType::Record(record) if record.alignment <= 8)
            && find_alignment(value_type) > 8
            && !self.stack.len().is_multiple_of(2)
    }

    fn push_to_stack(&mut self, value_type: &ValueType, words: &[ArgumentWord]) {
        if find_alignment(value_type) > 8 && !self.stack.len().is_multiple_of(2) {
            self.stack.push(ArgumentWord::Bits(0));
        }
        self.stack.extend(words);
    }
}

/// Where a function of a mode leaves a result of this type. The error says what the type is.
pub fn classify_result(result: &ValueType, mode: CodeMode) -> Result<ResultPlace, String> {
    if mode == CodeMode::Bits32 {
        return classify_narrow_result(result);
    }
    match result {
        ValueType::Void => return Ok(ResultPlace::Nothing),
        ValueType::LongDouble { .. } => return Ok(ResultPlace::X87),
        ValueType::Vector { bytes: ..=16 } => return Ok(ResultPlace::Vector),
        ValueType::ByReference { bytes } => return Ok(ResultPlace::Memory(*bytes)),
        // Only vectors are returned in registers that large.
        ValueType::Record(record) if record.bytes > 16 && !record.has_vectors() => {
            return Ok(ResultPlace::Memory(record.bytes));
        }
        _ => {}
    }
    if let Some(obstacle) = result.find_obstacle() {
        return Err(obstacle);
    }
    let mut scalars = Vec::new();
    result.collect_scalars(0, &mut scalars);
    match classify_value(result) {
        // A structure with nothing but a `long double`.
        ArgumentPassing::Memory
            if result.bytes() == 16 && matches!(scalars.as_slice(), [(0, ValueType::LongDouble { .. })]) =>
        {
            Ok(ResultPlace::X87)
        }
        ArgumentPassing::Memory => Ok(ResultPlace::Memory(result.bytes())),
        ArgumentPassing::Registers(classes) => Ok(match classes.first() {
            None => ResultPlace::Nothing,
            Some(RegisterClass::Integer) => ResultPlace::Integer,
            Some(RegisterClass::Vector) => ResultPlace::Vector,
        }),
    }
}

/// Where a function of 32-bit code leaves its result.
fn classify_narrow_result(result: &ValueType) -> Result<ResultPlace, String> {
    match result {
        ValueType::Void => Ok(ResultPlace::Nothing),
        ValueType::Float { .. } | ValueType::LongDouble { .. } => Ok(ResultPlace::X87),
        ValueType::Vector { bytes: 16 } => Ok(ResultPlace::Vector),
        ValueType::ByReference { bytes } => Ok(ResultPlace::Memory(*bytes)),
        ValueType::Record(record) if !record.has_vectors() => Ok(ResultPlace::Memory(record.bytes)),
        _ => result.find_obstacle().map_or(Ok(ResultPlace::Integer), Err),
    }
}

/// Decides how a value is passed.
fn classify_value(value_type: &ValueType) -> ArgumentPassing {
    let mut scalars = Vec::new();
    value_type.collect_scalars(0, &mut scalars);
    let bytes = value_type.bytes();
    let is_unaligned = |(offset, scalar): &(u64, ValueType)| !offset.is_multiple_of(scalar.bytes());
    let has_x87 = scalars.iter().any(|(_, scalar)| matches!(scalar, ValueType::LongDouble { .. }));
    if bytes > 16 || has_x87 || scalars.iter().any(is_unaligned) {
        return ArgumentPassing::Memory;
    }
    // A structure of C++ without members has a byte, which is not passed.
    if scalars.is_empty() {
        return ArgumentPassing::Registers(Vec::new());
    }
    let class_of = |eightbyte: u64| {
        let within = |(offset, scalar): &&(u64, ValueType)| {
            *offset < 8 * (eightbyte + 1) && offset + scalar.bytes() > 8 * eightbyte
        };
        let is_integer = |(_, scalar): &(u64, ValueType)| !matches!(scalar, ValueType::Float { .. });
        match scalars.iter().filter(within).any(is_integer) {
            true => RegisterClass::Integer,
            false => RegisterClass::Vector,
        }
    };
    ArgumentPassing::Registers((0..bytes.div_ceil(8)).map(class_of).collect())
}

/// The alignment of a value on the stack, at least 8.
pub fn find_alignment(value_type: &ValueType) -> u64 {
    natural_alignment(value_type).max(8)
}

/// The alignment of a type. A structure with members at other places is packed.
fn natural_alignment(value_type: &ValueType) -> u64 {
    let ValueType::Record(RecordType { bytes, alignment: declared, members, .. }) = value_type else {
        return value_type.bytes().max(1);
    };
    let own = members.iter().map(|member| (member.offset, natural_alignment(&member.value_type)));
    let alignment = own.clone().map(|(_, alignment)| alignment).max().unwrap_or(1);
    let is_packed = own.into_iter().any(|(offset, alignment)| !offset.is_multiple_of(alignment));
    if is_packed || !bytes.is_multiple_of(alignment) { *declared } else { alignment.max(*declared) }
}
