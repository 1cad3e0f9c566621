//! The types of a function's parameters and result, to the detail that the calling convention
//! needs.

use std::path::PathBuf;

/// What is known about the types of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionTypes {
    /// All of them.
    Known(Box<Signature>),
    /// Nothing, because there is no debug information.
    Unknown,
    /// Nothing, because this program does not read them from files of this format.
    NotRead,
    /// Nothing, because they are in this file, which is missing or of another build.
    Missing(PathBuf),
}

impl FunctionTypes {
    /// The types, if known.
    pub fn signature(&self) -> Option<&Signature> {
        if let FunctionTypes::Known(signature) = self { Some(signature) } else { None }
    }

    /// Why they are not known.
    pub fn explain_absence(&self) -> String {
        match self {
            FunctionTypes::Missing(file) => {
                format!("its debug information is in {}, which is missing or of another build", file.display())
            }
            FunctionTypes::NotRead => "types are read from ELF files only".to_string(),
            _ => "the file has no debug information".to_string(),
        }
    }

    /// How they become known.
    pub fn absence_remedy(&self) -> &'static str {
        match self {
            FunctionTypes::Missing(_) => {
                "put that file there or beside the measured file, or compile without -gsplit-dwarf"
            }
            FunctionTypes::NotRead => "measure the function on Linux, from a file that is compiled with -g",
            _ => "compile the file with -g",
        }
    }
}

/// What a function takes and returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// Its declaration, such as `long f(char *p, long n)`.
    pub text: String,
    /// The parameters in order.
    pub parameters: Vec<Parameter>,
    /// The type of the result.
    pub result: ValueType,
    /// Whether it takes further arguments, as `printf` does.
    pub is_variadic: bool,
    /// Whether the compiler changed how it takes its arguments, because it knew all callers.
    pub is_altered: bool,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its declaration, such as `char *p`.
    pub text: String,
    /// Its type.
    pub value_type: ValueType,
}

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueType {
    /// No value.
    Void,
    /// An integer, a character, a truth value or an enumeration.
    Integer {
        /// Its size: 1, 2, 4, 8 or 16.
        bytes: u64,
        /// Which numbers its bits are.
        reading: BitReading,
        /// The values of an enumeration.
        names: Vec<NamedNumber>,
    },
    /// `float` or `double`.
    Float {
        /// Its size: 4 or 8.
        bytes: u64,
    },
    /// `long double`, the x87 format.
    LongDouble {
        /// Its size with padding: 16, or 12 in 32-bit code.
        bytes: u64,
    },
    /// A vector register's content.
    Vector {
        /// Its size.
        bytes: u64,
    },
    /// An address, and its bytes.
    Pointer(Pointee, u64),
    /// A structure, a class, a union, an array in one of them, or a complex number.
    Record(RecordType),
    /// A class that is passed and returned by the address of an object.
    ByReference {
        /// Bytes of the object.
        bytes: u64,
    },
    /// A type that can't be passed here, and what it is.
    Unsupported(String),
}

/// A value of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedNumber {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: i128,
}

/// Which numbers the bits of an integer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitReading {
    /// Numbers with a sign.
    Signed,
    /// Numbers of 0 and more.
    Unsigned,
    /// Not known: numbers of both kinds.
    Unknown,
    /// 0 for false, 1 for true, and no other number.
    Truth,
}

/// What a pointer points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pointee {
    /// Characters, bytes, or anything.
    Bytes,
    /// Data of another type.
    Data,
    /// A function.
    Function,
}

/// A type with members.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordType {
    /// Its size.
    pub bytes: u64,
    /// The alignment that its declaration asks for, beyond that of its members; 1 without.
    pub alignment: u64,
    /// Its members in order.
    pub members: Vec<RecordMember>,
    /// Whether the members share their place, so that a value has only the first one.
    pub is_union: bool,
}

/// A member of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordMember {
    /// Its offset in bytes.
    pub offset: u64,
    /// Its type.
    pub value_type: ValueType,
}

impl RecordType {
    /// Whether a vector is among its members.
    pub fn has_vectors(&self) -> bool {
        self.members.iter().any(|member| match &member.value_type {
            ValueType::Vector { .. } => true,
            ValueType::Record(record) => record.has_vectors(),
            _ => false,
        })
    }
}

impl ValueType {
    /// An integer type without named values.
    pub const fn integer(bytes: u64, reading: BitReading) -> ValueType {
        ValueType::Integer { bytes, reading, names: Vec::new() }
    }

    /// Bytes of a value.
    pub fn bytes(&self) -> u64 {
        match self {
            ValueType::Void | ValueType::Unsupported(_) => 0,
            ValueType::Integer { bytes, .. } | ValueType::Float { bytes } => *bytes,
            ValueType::Record(record) => record.bytes,
            ValueType::LongDouble { bytes }
            | ValueType::Pointer(_, bytes)
            | ValueType::Vector { bytes }
            | ValueType::ByReference { bytes } => *bytes,
        }
    }

    /// Why it can't be passed here.
    pub fn find_obstacle(&self) -> Option<String> {
        match self {
            ValueType::Unsupported(what) => Some(what.clone()),
            ValueType::Vector { bytes } => Some(format!("a vector of {bytes} bytes")),
            ValueType::ByReference { .. } => Some("an object that is passed by its address".to_string()),
            ValueType::Record(record) => record.members.iter().find_map(|member| member.value_type.find_obstacle()),
            _ => None,
        }
    }

    /// Whether it points to data, so that the buffer fits.
    pub fn is_data_pointer(&self) -> bool {
        matches!(self, ValueType::Pointer(Pointee::Bytes | Pointee::Data, _))
    }

    /// The numbers and addresses in it, with their offsets.
    pub fn collect_scalars(&self, offset: u64, scalars: &mut Vec<(u64, ValueType)>) {
        match self {
            ValueType::Record(record) => record
                .members
                .iter()
                .for_each(|member| member.value_type.collect_scalars(offset + member.offset, scalars)),
            ValueType::Void | ValueType::Unsupported(_) | ValueType::ByReference { .. } => {}
            scalar => scalars.push((offset, scalar.clone())),
        }
    }
}
