//! What the machine code of a call is made from, in both modes.

use crate::input::argument_binding::BoundCall;
use cyclescope::asm::CodeMode;
use cyclescope::record::SerializedBy;
use iced_x86::Register;

/// Multiplications between a call's result and the next call. This chain outlasts a call of an
/// empty function, so such calls also wait for each other.
pub const RESULT_LINKS: usize = 8;
/// The stack's alignment at a call.
pub const STACK_ALIGNMENT: u64 = 16;

/// A call to encode.
pub struct CallEncoding<'a> {
    /// Its arguments.
    pub call: &'a BoundCall,
    /// Address of the function.
    pub function: u64,
    /// Address of the function that runs before each call.
    pub setup: Option<u64>,
    /// Addresses of the functions that arguments name.
    pub callbacks: &'a [u64],
    /// What each call waits for.
    pub serialized: Option<SerializedBy>,
}

/// The register that points to the texts and the second buffer, in code of a mode.
pub fn second_register(mode: CodeMode) -> Register {
    match mode {
        CodeMode::Bits64 => Register::RBX,
        CodeMode::Bits32 => Register::ESI,
    }
}
