//! Functions that do nothing: the reference for the cost of a call.

use crate::input::argument_binding::BoundCall;
use crate::input::calling_convention::{CallConvention, ResultPlace};
use crate::input::library_loader;
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::record::SerializedBy;

/// What an empty function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyFunction {
    /// Nothing.
    Nothing,
    /// Its first argument.
    Identity,
    /// The bits of its first argument as a floating point number. In 32-bit code, where reading most
    /// of them would be slow, the number that it is.
    FloatIdentity,
    /// Its first argument of 4 bytes, a floating point number. Only in 32-bit code, as are the next
    /// three.
    SingleIdentity,
    /// The same of 8 bytes.
    DoubleIdentity,
    /// The same of 10 bytes.
    ExtendedIdentity,
    /// The address of its result, its first argument, which it takes from the stack.
    MemoryAddress,
    /// 0 on the x87 stack.
    X87Zero,
}

/// An empty function and its code.
type CodedFunction = (EmptyFunction, &'static [u8]);

/// ```text
/// ret
/// mov rax, rdi; ret
/// movq xmm0, rdi; ret
/// fldz; ret
/// ```
const EMPTY_FUNCTIONS: &[CodedFunction] = &[
    (EmptyFunction::Nothing, &[0xc3]),
    (EmptyFunction::Identity, &[0x48, 0x89, 0xf8, 0xc3]),
    (EmptyFunction::FloatIdentity, &[0x66, 0x48, 0x0f, 0x6e, 0xc7, 0xc3]),
    (EmptyFunction::X87Zero, &[0xd9, 0xee, 0xc3]),
];

/// ```text
/// ret
/// mov rax, rcx; ret
/// movq xmm0, rcx; ret
/// fldz; ret
/// ```
const MICROSOFT_FUNCTIONS: &[CodedFunction] = &[
    (EmptyFunction::Nothing, &[0xc3]),
    (EmptyFunction::Identity, &[0x48, 0x89, 0xc8, 0xc3]),
    (EmptyFunction::FloatIdentity, &[0x66, 0x48, 0x0f, 0x6e, 0xc1, 0xc3]),
    (EmptyFunction::X87Zero, &[0xd9, 0xee, 0xc3]),
];

/// ```text
/// ret
/// mov eax, [esp+4]; ret
/// fild dword ptr [esp+4]; ret
/// fld dword ptr [esp+4]; ret
/// fld qword ptr [esp+4]; ret
/// fld tbyte ptr [esp+4]; ret
/// mov eax, [esp+4]; ret 4
/// fldz; ret
/// ```
const NARROW_FUNCTIONS: &[CodedFunction] = &[
    (EmptyFunction::Nothing, &[0xc3]),
    (EmptyFunction::Identity, &[0x8b, 0x44, 0x24, 4, 0xc3]),
    (EmptyFunction::FloatIdentity, &[0xdb, 0x44, 0x24, 4, 0xc3]),
    (EmptyFunction::SingleIdentity, &[0xd9, 0x44, 0x24, 4, 0xc3]),
    (EmptyFunction::DoubleIdentity, &[0xdd, 0x44, 0x24, 4, 0xc3]),
    (EmptyFunction::ExtendedIdentity, &[0xdb, 0x6c, 0x24, 4, 0xc3]),
    (EmptyFunction::MemoryAddress, &[0x8b, 0x44, 0x24, 4, 0xc2, 4, 0]),
    (EmptyFunction::X87Zero, &[0xd9, 0xee, 0xc3]),
];

/// Addresses of functions that do nothing.
pub struct EmptyFunctions(Vec<(EmptyFunction, u64)>);

impl EmptyFunctions {
    /// The address of one.
    ///
    /// # Panics
    ///
    /// If the mode of these functions has none of this kind.
    pub fn address_of(&self, function: EmptyFunction) -> u64 {
        let found = self.0.iter().find(|(own, _)| *own == function);
        found.expect("the mode has this function").1
    }

    /// All kinds at the same address, for calls that nobody makes.
    #[cfg(test)]
    pub fn nowhere(mode: CodeMode) -> EmptyFunctions {
        EmptyFunctions(
            list_functions(CallConvention::of_system(mode)).iter().map(|(function, _)| (*function, 0)).collect(),
        )
    }
}

fn list_functions(convention: CallConvention) -> &'static [CodedFunction] {
    match convention {
        CallConvention::SystemV => EMPTY_FUNCTIONS,
        CallConvention::Microsoft => MICROSOFT_FUNCTIONS,
        CallConvention::Narrow => NARROW_FUNCTIONS,
    }
}

/// The empty function for calls that wait for `serialized`.
pub fn choose_empty_function(call: &BoundCall, serialized: Option<SerializedBy>) -> EmptyFunction {
    let is_narrow = call.placed.convention == CallConvention::Narrow;
    match (serialized, call.result) {
        (Some(SerializedBy::Result), _) => EmptyFunction::Identity,
        (Some(SerializedBy::FloatResult), _) if is_narrow => match call.placed.scalars.first() {
            Some(first) if first.is_float && first.bytes == 4 => EmptyFunction::SingleIdentity,
            Some(first) if first.is_float && first.bytes == 8 => EmptyFunction::DoubleIdentity,
            Some(first) if first.is_float => EmptyFunction::ExtendedIdentity,
            _ => EmptyFunction::FloatIdentity,
        },
        (Some(SerializedBy::FloatResult), _) if call.placed.vectors.is_empty() => EmptyFunction::FloatIdentity,
        (_, ResultPlace::Memory(_)) if is_narrow => EmptyFunction::MemoryAddress,
        (_, ResultPlace::X87) => EmptyFunction::X87Zero,
        _ => EmptyFunction::Nothing,
    }
}

/// Maps the empty functions that serve as the reference for a call. They are as far from the
/// calling code as the function and at the same offset in their pages. In this program's own code,
/// far away in the address space, the first took 3 core cycles more than an empty function of a
/// library (Xeon, family 6, model 207).
pub fn map_empty_functions(address: u64, mode: CodeMode) -> Result<EmptyFunctions, Failure> {
    let functions = list_functions(CallConvention::of_system(mode));
    let code: Vec<&[u8]> = functions.iter().map(|(_, code)| *code).collect();
    let addresses = library_loader::map_code(address, &code, mode)?;
    Ok(EmptyFunctions(functions.iter().map(|(function, _)| *function).zip(addresses).collect()))
}
