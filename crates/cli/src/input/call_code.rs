//! The machine code that calls a function of 64-bit code. That of 32-bit code is in
//! [`narrow_call_code`](crate::input::narrow_call_code).

use crate::input::argument_binding::BoundCall;
use crate::input::call_encoding::{CallEncoding, RESULT_LINKS, STACK_ALIGNMENT, second_register};
use crate::input::calling_convention::{
    ArgumentWord, CallConvention, INTEGER_REGISTERS, MICROSOFT_REGISTERS, PlacedArguments, ResultPlace,
};
use cyclescope::asm::CodeMode;
use cyclescope::record::SerializedBy;
use cyclescope::snippet::Snippet;
use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};

/// The register that points to the buffer. Functions preserve it, as they do the next three.
const BUFFER_REGISTER: Register = Register::R14;
const FUNCTION_REGISTER: Register = Register::R12;
const SETUP_REGISTER: Register = Register::RBP;
/// Holds 0.
const ZERO_REGISTER: Register = Register::R13;
const ARGUMENT_REGISTERS: [Register; INTEGER_REGISTERS] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
const MICROSOFT_ARGUMENT_REGISTERS: [Register; MICROSOFT_REGISTERS] =
    [Register::RCX, Register::RDX, Register::R8, Register::R9];
/// Intermediate values; no argument is passed in it.
const SCRATCH: Register = Register::R11;

/// The general registers of a function's first arguments.
fn argument_registers(convention: CallConvention) -> &'static [Register] {
    match convention {
        CallConvention::Microsoft => &MICROSOFT_ARGUMENT_REGISTERS,
        CallConvention::SystemV | CallConvention::Narrow => &ARGUMENT_REGISTERS,
    }
}

/// Encodes the calls. On Windows other registers have the arguments, and the stack always has a part.
///
/// ```text
/// mov r12, function      ; init: R14 points to the buffer, RBX to texts and the second buffer
/// mov rbp, setup
/// xor r13d, r13d
/// sub rsp, 32            ; with arguments or a result on the stack
/// lfence                 ; each copy starts here; with a fence, and with --setup
/// mov rdi, r14           ; this and the next two with --setup
/// mov rsi, 100
/// call rbp
/// lfence                 ; with a fence
/// movq rax, xmm0         ; if the result is a floating point number
/// and rax, r13           ; this and the next two if a call waits for a result
/// imul rax, rax          ; several times
/// mov rdi, r14
/// add rdi, rax
/// mov rsi, 100           ; an integer
/// mov r11, 0.5           ; a floating point number; its bits
/// or r11, rax            ; if a call waits for a result
/// movq xmm0, r11
/// mov eax, 1             ; vector registers with arguments, for a function that may ask
/// call r12
/// fstp st(0)             ; if the result is on the x87 stack
/// ```
pub fn encode_wide_call(encoding: &CallEncoding, text: &str) -> Snippet {
    let CallEncoding { call, function, setup, callbacks, serialized } = *encoding;
    let mut init = CodeBuilder::default();
    init.load_number(FUNCTION_REGISTER, function);
    if let Some(setup) = setup {
        init.load_number(SETUP_REGISTER, setup);
    }
    init.add(Instruction::with2(Code::Xor_r32_rm32, Register::R13D, Register::R13D));
    let frame = frame_bytes(&call.placed, call.result);
    if frame > 0 {
        init.add(Instruction::with2(Code::Sub_rm64_imm32, Register::RSP, frame as i32));
    }
    let is_fenced = serialized == Some(SerializedBy::Fence);
    let mut code = CodeBuilder { callbacks, ..CodeBuilder::default() };
    if setup.is_some() {
        // Without a fence, the setup would start before the previous call of the function has
        // ended.
        code.add_fence(is_fenced);
        code.load_arguments(call, false);
        code.add(Instruction::with1(Code::Call_rm64, SETUP_REGISTER));
    }
    code.add_fence(is_fenced);
    if serialized == Some(SerializedBy::FloatResult) {
        code.add(Instruction::with2(Code::Movq_rm64_xmm, Register::RAX, Register::XMM0));
    }
    let waits = matches!(serialized, Some(SerializedBy::Result | SerializedBy::FloatResult));
    if waits {
        code.add(Instruction::with2(Code::And_r64_rm64, Register::RAX, ZERO_REGISTER));
        for _ in 0..RESULT_LINKS {
            code.add(Instruction::with2(Code::Imul_r64_rm64, Register::RAX, Register::RAX));
        }
    }
    code.load_arguments(call, waits);
    code.add(Instruction::with1(Code::Call_rm64, FUNCTION_REGISTER));
    if call.result == ResultPlace::X87 {
        code.add(Instruction::with1(Code::Fstp_sti, Register::ST0));
    }
    Snippet::new(code.bytes, init.bytes, text)
}

/// Bytes of stack for arguments and the result.
fn frame_bytes(placed: &PlacedArguments, result: ResultPlace) -> u64 {
    let result = if let ResultPlace::Memory(bytes) = result { bytes } else { 0 };
    (result_offset(placed) + result).next_multiple_of(STACK_ALIGNMENT)
}

/// The offset of the result's memory from RSP.
fn result_offset(placed: &PlacedArguments) -> u64 {
    stack_offset(placed, placed.stack.len()).next_multiple_of(STACK_ALIGNMENT)
}

/// The offset of an argument from RSP.
fn stack_offset(placed: &PlacedArguments, index: usize) -> u64 {
    placed.convention.shadow_bytes() + 8 * index as u64
}

/// Machine code under construction.
#[derive(Default)]
struct CodeBuilder<'a> {
    bytes: Vec<u8>,
    /// Addresses of the functions that arguments name.
    callbacks: &'a [u64],
}

impl CodeBuilder<'_> {
    fn add(&mut self, instruction: Result<Instruction, IcedError>) {
        let mut encoder = Encoder::new(64);
        let instruction = instruction.expect("the operands fit the instruction");
        encoder.encode(&instruction, 0).expect("the instruction exists in 64-bit mode");
        self.bytes.extend(encoder.take_buffer());
    }

    fn add_fence(&mut self, is_wanted: bool) {
        if is_wanted {
            self.add(Ok(Instruction::with(Code::Lfence)));
        }
    }

    fn load_number(&mut self, register: Register, number: u64) {
        self.add(Instruction::with2(Code::Mov_r64_imm64, register, number));
    }

    fn load_address(&mut self, register: Register, base: Register, offset: u64) {
        self.add(match offset {
            0 => Instruction::with2(Code::Mov_rm64_r64, register, base),
            _ => Instruction::with2(Code::Lea_r64_m, register, MemoryOperand::with_base_displ(base, offset as i64)),
        });
    }

    fn load_word(&mut self, register: Register, word: ArgumentWord, placed: &PlacedArguments) {
        match word {
            ArgumentWord::Bits(bits) => self.load_number(register, bits),
            ArgumentWord::Buffer(offset) => self.load_address(register, BUFFER_REGISTER, offset),
            ArgumentWord::Second(offset) => self.load_address(register, second_register(CodeMode::Bits64), offset),
            ArgumentWord::Function(number) => self.load_number(register, self.callbacks[number]),
            ArgumentWord::Result => self.load_address(register, Register::RSP, result_offset(placed)),
        }
    }

    /// Loads the arguments. If the call `waits`, the first integer or address and the floating
    /// point numbers depend on RAX, which is 0.
    fn load_arguments(&mut self, call: &BoundCall, waits: bool) {
        let placed = &call.placed;
        let PlacedArguments { integers, vectors, stack, .. } = placed;
        for (index, word) in stack.iter().enumerate() {
            self.load_word(SCRATCH, *word, placed);
            if waits && index == 0 && integers.is_empty() && vectors.is_empty() {
                self.add(Instruction::with2(Code::Add_r64_rm64, SCRATCH, Register::RAX));
            }
            let place = MemoryOperand::with_base_displ(Register::RSP, stack_offset(placed, index) as i64);
            self.add(Instruction::with2(Code::Mov_rm64_r64, place, SCRATCH));
        }
        let registers = argument_registers(placed.convention);
        for (index, (register, word)) in registers.iter().zip(integers).enumerate() {
            self.load_word(*register, *word, placed);
            if waits && index == 0 {
                self.add(Instruction::with2(Code::Add_r64_rm64, *register, Register::RAX));
            }
        }
        if waits && integers.is_empty() {
            // The empty function returns it.
            self.add(Instruction::with2(Code::Mov_rm64_r64, registers[0], Register::RAX));
        }
        for (index, bits) in vectors.iter().enumerate() {
            self.load_number(SCRATCH, *bits);
            if waits {
                self.add(Instruction::with2(Code::Or_r64_rm64, SCRATCH, Register::RAX));
            }
            let register = Register::XMM0 + index as u32;
            self.add(Instruction::with2(Code::Movq_xmm_rm64, register, SCRATCH));
        }
        if call.counts_vectors {
            self.add(Instruction::with2(Code::Mov_r32_imm32, Register::EAX, vectors.len() as u32));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::signature::{BitReading, ValueType};
    use cyclescope::asm::Listing;

    #[test]
    fn functions_of_windows_get_their_arguments_by_position() {
        let mut placed = PlacedArguments::new(ResultPlace::Unknown, CallConvention::Microsoft);
        let integer = |placed: &mut PlacedArguments, word| {
            placed.push(&ValueType::integer(8, BitReading::Unknown), &[word]);
        };
        let double = |placed: &mut PlacedArguments, number: f64| {
            placed.push(&ValueType::Float { bytes: 8 }, &[ArgumentWord::Bits(number.to_bits())]);
        };
        integer(&mut placed, ArgumentWord::Bits(1));
        double(&mut placed, 2.0);
        integer(&mut placed, ArgumentWord::Buffer(0));
        double(&mut placed, 4.0);
        integer(&mut placed, ArgumentWord::Bits(5));
        double(&mut placed, 6.0);
        let call = BoundCall {
            placed,
            result: ResultPlace::Unknown,
            counts_vectors: false,
            text: String::new(),
            implied: Vec::new(),
            largest: 0,
        };
        let encoding = CallEncoding { call: &call, function: 0x1000, setup: None, callbacks: &[], serialized: None };
        let snippet = encode_wide_call(&encoding, "");
        let text = |code: &[u8]| Listing::from_code(code, CodeMode::Bits64).text().to_string();
        assert!(text(snippet.init()).contains("sub rsp, 0x30"), "{}", text(snippet.init()));
        let code = text(snippet.code());
        for part in [
            "mov r11, 5; mov qword ptr [rsp+0x20], r11",
            "mov r11, 0x4018000000000000; mov qword ptr [rsp+0x28], r11",
            "mov rcx, 1; mov rdx, 0x4000000000000000; mov r8, r14; mov r9, 0x4010000000000000",
            "mov r11, 0; movq xmm0, r11; mov r11, 0x4000000000000000; movq xmm1, r11; mov r11, 0; movq xmm2, r11; \
             mov r11, 0x4010000000000000; movq xmm3, r11; call r12",
        ] {
            assert!(code.replace('\n', "; ").contains(part), "{part}: {code}");
        }
    }
}
