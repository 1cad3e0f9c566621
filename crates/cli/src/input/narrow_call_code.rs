//! The machine code that calls a function of 32-bit code: all arguments are on the stack.
//!
//! A number of 8 bytes or more is stored as a whole, because two stores can't be forwarded to the
//! one load of the function. It comes from a place behind the arguments, where the init code put it.

use crate::input::call_encoding::{CallEncoding, RESULT_LINKS, STACK_ALIGNMENT, second_register};
use crate::input::calling_convention::{ArgumentWord, NARROW_WORD, PlacedArguments, ResultPlace, StackScalar};
use cyclescope::asm::CodeMode;
use cyclescope::record::SerializedBy;
use cyclescope::snippet::Snippet;
use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};

/// The register that points to the buffer. Functions preserve it, as they do the next one and EBP,
/// which counts the calls.
const BUFFER_REGISTER: Register = Register::EBX;
/// Holds 0.
const ZERO_REGISTER: Register = Register::EDI;
/// Holds the address of a function. Arguments are in no register.
const FUNCTION_REGISTER: Register = Register::ECX;
/// Intermediate values.
const SCRATCH: Register = Register::EDX;
/// The previous call's result, made 0.
const RESULT: Register = Register::EAX;
/// Bytes for a result that is taken from the x87 stack.
const FLOAT_RESULT_BYTES: u64 = 8;
/// Bytes of a number of the x87 format that mean something.
const EXTENDED_BYTES: u64 = 10;

/// Encodes the calls.
///
/// ```text
/// xor edi, edi           ; init: EBX points to the buffer, ESI to texts and the second buffer
/// sub esp, 48
/// mov dword ptr [esp+16], 0
/// mov dword ptr [esp+20], 0x3fe00000
/// lfence                 ; each copy starts here; with a fence, and with --setup
/// (arguments)            ; this and the next two with --setup
/// mov ecx, setup
/// call ecx
/// lfence                 ; with a fence
/// mov eax, [esp+32]      ; if the result is a floating point number
/// and eax, edi           ; this and the next two if a call waits for a result
/// imul eax, eax          ; several times
/// mov edx, 100
/// add edx, eax
/// mov [esp], edx         ; an integer
/// movq xmm0, [esp+16]    ; a number of 8 bytes
/// movd xmm1, eax
/// por xmm0, xmm1         ; if a call waits for a result
/// movq [esp+4], xmm0
/// mov ecx, function
/// call ecx
/// sub esp, 4             ; if the function took the address of its result from the stack
/// fstp st(0)             ; if the result is on the x87 stack; fstp [esp+32] if a call waits for it
/// emms                   ; if it may be there
/// ```
pub fn encode_narrow_call(encoding: &CallEncoding, text: &str) -> Snippet {
    let CallEncoding { call, function, setup, callbacks, serialized } = *encoding;
    let frame = CallFrame::new(&call.placed, call.result);
    let mut init = NarrowCode::new(&frame, callbacks);
    init.add(Instruction::with2(Code::Xor_r32_rm32, ZERO_REGISTER, ZERO_REGISTER));
    init.add(Instruction::with2(Code::Sub_rm32_imm32, Register::ESP, frame.bytes as i32));
    init.store_constants();
    let mut code = NarrowCode::new(&frame, callbacks);
    let is_fenced = serialized == Some(SerializedBy::Fence);
    if let Some(setup) = setup {
        code.add_fence(is_fenced);
        code.store_arguments(false);
        code.call(setup);
    }
    code.add_fence(is_fenced);
    let waits_for_float = serialized == Some(SerializedBy::FloatResult);
    let waits = waits_for_float || serialized == Some(SerializedBy::Result);
    if waits_for_float {
        code.add(Instruction::with2(Code::Mov_r32_rm32, RESULT, stack_place(frame.float_result)));
    }
    if waits {
        code.add(Instruction::with2(Code::And_r32_rm32, RESULT, ZERO_REGISTER));
        for _ in 0..RESULT_LINKS {
            code.add(Instruction::with2(Code::Imul_r32_rm32, RESULT, RESULT));
        }
    }
    code.store_arguments(waits);
    code.call(function);
    match call.result {
        ResultPlace::Memory(_) => {
            code.add(Instruction::with2(Code::Sub_rm32_imm8, Register::ESP, NARROW_WORD as i32));
        }
        _ if waits_for_float => code.add(Instruction::with1(Code::Fstp_m64fp, stack_place(frame.float_result))),
        ResultPlace::X87 => code.add(Instruction::with1(Code::Fstp_sti, Register::ST0)),
        ResultPlace::Unknown => code.add(Ok(Instruction::with(Code::Emms))),
        _ => {}
    }
    Snippet::new(code.bytes, init.bytes, text).with_mode(CodeMode::Bits32)
}

/// Where everything is on the stack during a call, from ESP on.
struct CallFrame<'a> {
    placed: &'a PlacedArguments,
    /// The memory for the result.
    result: u64,
    /// The numbers of 8 bytes or more, and their places.
    constants: Vec<(StackScalar, u64)>,
    /// A floating point result that a call waits for.
    float_result: u64,
    bytes: u64,
}

impl CallFrame<'_> {
    fn new(placed: &PlacedArguments, result: ResultPlace) -> CallFrame<'_> {
        let mut end = 0;
        let mut take = |bytes: u64| {
            let at = end;
            end = (at + bytes).next_multiple_of(STACK_ALIGNMENT);
            at
        };
        // Without an argument, the empty function reads a word of its own.
        take(NARROW_WORD * placed.stack.len().max(1) as u64);
        let result = take(if let ResultPlace::Memory(bytes) = result { bytes } else { 0 });
        let is_wide = |scalar: &&StackScalar| scalar.bytes > NARROW_WORD;
        let constants = placed.scalars.iter().filter(is_wide).map(|scalar| (*scalar, take(scalar.bytes))).collect();
        let float_result = take(FLOAT_RESULT_BYTES);
        CallFrame { placed, result, constants, float_result, bytes: end }
    }

    fn constant_place(&self, word: usize) -> Option<u64> {
        self.constants.iter().find(|(scalar, _)| scalar.word == word).map(|(_, at)| *at)
    }
}

fn stack_place(offset: u64) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::ESP, offset as i64)
}

/// Machine code under construction.
struct NarrowCode<'a> {
    frame: &'a CallFrame<'a>,
    /// Addresses of the functions that arguments name.
    callbacks: &'a [u64],
    bytes: Vec<u8>,
}

impl<'a> NarrowCode<'a> {
    fn new(frame: &'a CallFrame, callbacks: &'a [u64]) -> NarrowCode<'a> {
        NarrowCode { frame, callbacks, bytes: Vec::new() }
    }

    fn add(&mut self, instruction: Result<Instruction, IcedError>) {
        let mut encoder = Encoder::new(CodeMode::Bits32.bits());
        let instruction = instruction.expect("the operands fit the instruction");
        encoder.encode(&instruction, 0).expect("the instruction exists in 32-bit mode");
        self.bytes.extend(encoder.take_buffer());
    }

    fn add_fence(&mut self, is_wanted: bool) {
        if is_wanted {
            self.add(Ok(Instruction::with(Code::Lfence)));
        }
    }

    fn call(&mut self, function: u64) {
        self.add(Instruction::with2(Code::Mov_r32_imm32, FUNCTION_REGISTER, function as u32));
        self.add(Instruction::with1(Code::Call_rm32, FUNCTION_REGISTER));
    }

    fn store_word(&mut self, offset: u64, word: u32) {
        self.add(Instruction::with2(Code::Mov_rm32_imm32, stack_place(offset), word));
    }

    /// Stores the numbers of 8 bytes or more in their places.
    fn store_constants(&mut self) {
        for (scalar, place) in &self.frame.constants {
            let words = scalar.bytes.div_ceil(NARROW_WORD);
            for (index, offset) in (0..words as usize).zip((*place..).step_by(NARROW_WORD as usize)) {
                if let ArgumentWord::Bits(bits) = self.frame.placed.stack[scalar.word + index] {
                    self.store_word(offset, bits as u32);
                }
            }
        }
    }

    /// Stores the arguments. If the call `waits`, the first one and the floating point numbers depend
    /// on EAX, which is 0.
    fn store_arguments(&mut self, waits: bool) {
        let PlacedArguments { stack, scalars, .. } = self.frame.placed;
        if waits && stack.is_empty() {
            self.add(Instruction::with2(Code::Mov_rm32_r32, stack_place(0), RESULT));
        }
        let mut word = 0;
        while word < stack.len() {
            let scalar = scalars.iter().find(|scalar| scalar.word == word);
            let depends = waits && (word == 0 || scalar.is_some_and(|scalar| scalar.is_float));
            let place = NARROW_WORD * word as u64;
            match (scalar, self.frame.constant_place(word)) {
                (Some(scalar), Some(constant)) => {
                    self.copy_constant(scalar.bytes, constant, place, depends);
                    word += scalar.bytes.div_ceil(NARROW_WORD) as usize;
                }
                _ => {
                    self.store_argument(stack[word], place, depends);
                    word += 1;
                }
            }
        }
    }

    fn copy_constant(&mut self, bytes: u64, constant: u64, place: u64, depends: bool) {
        let [value, zero] = [Register::XMM0, Register::XMM1];
        if bytes >= EXTENDED_BYTES {
            self.add(Instruction::with1(Code::Fld_m80fp, stack_place(constant)));
            if depends {
                let zero = stack_place(self.frame.float_result);
                self.add(Instruction::with2(Code::Mov_rm32_r32, zero, RESULT));
                self.add(Instruction::with1(Code::Fiadd_m32int, zero));
            }
            return self.add(Instruction::with1(Code::Fstp_m80fp, stack_place(place)));
        }
        self.add(Instruction::with2(Code::Movq_xmm_xmmm64, value, stack_place(constant)));
        if depends {
            self.add(Instruction::with2(Code::Movd_xmm_rm32, zero, RESULT));
            self.add(Instruction::with2(Code::Por_xmm_xmmm128, value, zero));
        }
        self.add(Instruction::with2(Code::Movq_xmmm64_xmm, stack_place(place), value));
    }

    fn store_argument(&mut self, word: ArgumentWord, place: u64, depends: bool) {
        match word {
            ArgumentWord::Bits(bits) if !depends => return self.store_word(place, bits as u32),
            ArgumentWord::Bits(bits) => self.load_number(bits as u32),
            ArgumentWord::Function(number) => self.load_number(self.callbacks[number] as u32),
            ArgumentWord::Buffer(offset) => self.load_address(BUFFER_REGISTER, offset),
            ArgumentWord::Second(offset) => self.load_address(second_register(CodeMode::Bits32), offset),
            ArgumentWord::Result => self.load_address(Register::ESP, self.frame.result),
        }
        if depends {
            self.add(Instruction::with2(Code::Add_r32_rm32, SCRATCH, RESULT));
        }
        self.add(Instruction::with2(Code::Mov_rm32_r32, stack_place(place), SCRATCH));
    }

    fn load_number(&mut self, number: u32) {
        self.add(Instruction::with2(Code::Mov_r32_imm32, SCRATCH, number));
    }

    fn load_address(&mut self, base: Register, offset: u64) {
        let address = MemoryOperand::with_base_displ(base, offset as i64);
        self.add(Instruction::with2(Code::Lea_r32_m, SCRATCH, address));
    }
}
