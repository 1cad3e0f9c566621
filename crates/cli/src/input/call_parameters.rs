//! How a function is called: its arguments, the buffer that the first one points to, and the stack.

use crate::args::{ArgValue, BufferContents, CallArgs};
use crate::output::Failure;
use cyclescope::context::FloatElement;
use cyclescope::input::{self, InputKind};
use cyclescope::program::memory::{AreaFill, MOST_ABOVE_TOP, ProgramMemory, STANDARD_AREA_BYTES};
use cyclescope::record::SerializedBy;
use cyclescope::snippet::Snippet;
use cyclescope::study::run::RunSubject;

/// The parameters of a call.
pub struct CallParameters {
    /// What each call waits for.
    pub serialized: Option<SerializedBy>,
    /// Name of the function that runs before each call.
    pub setup: Option<String>,
    values: Vec<ArgValue>,
    buffer: u64,
    /// The value of `--arg size`.
    size: u64,
    contents: AreaFill,
    stack: u64,
}

/// A function at one of its addresses, and the functions used with it.
pub struct FunctionInstance {
    /// Address of the function.
    pub function: u64,
    /// Address of the function that runs before each call.
    pub setup: Option<u64>,
    /// Functions that do nothing, as the reference.
    pub empty: EmptyFunctions,
}

/// Addresses of functions that do nothing.
#[derive(Clone, Copy)]
pub struct EmptyFunctions {
    /// Only returns.
    pub returns: u64,
    /// Returns its first argument.
    pub identity: u64,
    /// Returns the bits of its first argument as a floating point number.
    pub float_identity: u64,
}

/// Default bytes of stack: a program's usual limit.
const STACK_BYTES: u64 = 8 << 20;
/// Bytes of heap for a function: what a small machine can spare.
pub const HEAP_BYTES: u64 = 512 << 20;
/// Nothing is mapped below this address (`vm.mmap_min_addr`); an access there means a null pointer.
const NULL_MOST: u64 = 64 << 10;
/// Registers for floating point arguments, XMM0 to XMM7.
const VECTOR_ARGUMENTS: u8 = 8;
/// Multiplications between a call's result and the next call. This chain outlasts a call of an
/// empty function, so such calls also wait for each other.
const RESULT_LINKS: usize = 8;
const LFENCE: [u8; 3] = [0x0f, 0xae, 0xe8];
/// `mov rdi, rbx`
const MOVE_BUFFER: [u8; 3] = [0x48, 0x89, 0xdf];
/// Encodings of `mov r, imm64` and `mov r, rbx` for the registers of arguments two to six, RSI,
/// RDX, RCX, R8 and R9 (System V ABI for x86-64, 3.2.3).
const ARGUMENT_MOVES: [([u8; 2], [u8; 3]); 5] = [
    ([0x48, 0xbe], [0x48, 0x89, 0xde]),
    ([0x48, 0xba], [0x48, 0x89, 0xda]),
    ([0x48, 0xb9], [0x48, 0x89, 0xd9]),
    ([0x49, 0xb8], [0x49, 0x89, 0xd8]),
    ([0x49, 0xb9], [0x49, 0x89, 0xd9]),
];

impl CallParameters {
    /// Reads the options. Each call waits for `serialized`; `seed` determines random contents.
    pub fn new(args: &CallArgs, serialized: Option<SerializedBy>, seed: u64) -> Result<CallParameters, Failure> {
        if args.setup.is_some() && !matches!(serialized, None | Some(SerializedBy::Fence)) {
            let remedy = "use --serialize fence, or leave --setup out";
            return Err(Failure::usage("with --setup a call can't wait for the previous result", Some(remedy)));
        }
        let floats = args.values.iter().filter(|value| value.is_float()).count();
        if args.values.len() - floats > ARGUMENT_MOVES.len() || floats > usize::from(VECTOR_ARGUMENTS) {
            let remedy = "pass at most five integers and eight floating point numbers";
            return Err(Failure::usage("too many --arg values for the argument registers", Some(remedy)));
        }
        let contents = match args.contents.as_ref().unwrap_or(&BufferContents::Pattern) {
            BufferContents::Pattern => AreaFill::Pattern(FloatElement::default()),
            BufferContents::Zero => AreaFill::Image(Vec::new()),
            BufferContents::Random => AreaFill::Random(seed),
            BufferContents::File(path) => {
                let remedy = "name a regular file that you may read";
                AreaFill::Image(
                    input::read_input(path, InputKind::Contents).map_err(|bad| Failure::from_input(&bad, remedy))?,
                )
            }
        };
        let file = if let AreaFill::Image(bytes) = &contents { bytes.len() as u64 } else { 0 };
        let buffer = args.buffer.unwrap_or(file.max(STANDARD_AREA_BYTES));
        if file > buffer {
            let text = format!("the file of --contents has {file} bytes, more than the buffer");
            return Err(Failure::usage(text, Some("use a larger --buffer, or leave it out")));
        }
        let is_file = matches!(args.contents, Some(BufferContents::File(_)));
        let size = if is_file { file } else { buffer };
        let stack = args.stack.unwrap_or(STACK_BYTES);
        let values = args.values.clone();
        let setup = args.setup.clone();
        let calling = CallParameters { serialized, setup, values, buffer, size, contents, stack };
        match calling.program_memory().check() {
            Ok(()) => Ok(calling),
            Err(bad) => Err(Failure::usage(bad.what, Some(&bad.expected))),
        }
    }

    /// The memory of the program that calls the function.
    pub fn program_memory(&self) -> ProgramMemory {
        ProgramMemory::for_call(self.buffer, self.contents.clone(), self.stack)
    }

    /// The file bytes at the start of the buffer; empty if it has other contents.
    pub fn file_bytes(&self) -> &[u8] {
        if let AreaFill::Image(bytes) = &self.contents { bytes } else { &[] }
    }

    /// Builds calls of each instance's function that wait for `serialized`, and matching calls of
    /// an empty function.
    pub fn build_subject(
        &self,
        instances: &[FunctionInstance],
        text: &str,
        serialized: Option<SerializedBy>,
    ) -> RunSubject {
        let calls = |instance: &FunctionInstance| {
            let EmptyFunctions { returns, identity, float_identity } = instance.empty;
            let empty = match serialized {
                Some(SerializedBy::Result) => identity,
                Some(SerializedBy::FloatResult) if !self.has_float() => float_identity,
                _ => returns,
            };
            let call = |function, text| self.encode_call(function, instance.setup, serialized, text);
            (call(instance.function, text), call(empty, "an empty function"))
        };
        let (instances, empty_calls) = instances.iter().map(calls).unzip();
        RunSubject { instances, empty_calls }
    }

    /// ```text
    /// mov rbx, r14           ; init: R14 points to the buffer; RBX, RBP, R12 and R13 survive calls
    /// mov r12, function
    /// mov rbp, setup
    /// xor r13d, r13d
    /// lfence                 ; each copy starts here; with a fence, and with --setup
    /// mov rdi, rbx           ; this and the next two with --setup
    /// mov rsi, 100
    /// call rbp
    /// lfence                 ; with a fence
    /// movq rax, xmm0         ; if the result is a floating point number
    /// and rax, r13           ; this and the next two if a call waits for a result
    /// imul rax, rax          ; several times
    /// mov rdi, rbx
    /// add rdi, rax
    /// mov rsi, 100           ; with --arg 100
    /// mov r11, 0.5           ; with --arg 0.5; its bits
    /// or r11, rax            ; if a call waits for a result
    /// movq xmm0, r11
    /// call r12
    /// ```
    fn encode_call(&self, function: u64, setup: Option<u64>, serialized: Option<SerializedBy>, text: &str) -> Snippet {
        let mut init = vec![0x4c, 0x89, 0xf3, 0x49, 0xbc];
        init.extend(function.to_le_bytes());
        let fence: &[u8] = if serialized == Some(SerializedBy::Fence) { &LFENCE } else { &[] };
        let mut code = Vec::new();
        if let Some(setup) = setup {
            init.extend([0x48, 0xbd]);
            init.extend(setup.to_le_bytes());
            // Without a fence, the setup would start before the previous call of the function has
            // ended.
            code.extend(fence);
            code.extend(self.encode_arguments(false));
            code.extend([0xff, 0xd5]);
        }
        init.extend([0x45, 0x31, 0xed]);
        code.extend(fence);
        if serialized == Some(SerializedBy::FloatResult) {
            code.extend([0x66, 0x48, 0x0f, 0x7e, 0xc0]);
        }
        let waits = matches!(serialized, Some(SerializedBy::Result | SerializedBy::FloatResult));
        if waits {
            code.extend([0x4c, 0x21, 0xe8]);
            code.extend([0x48, 0x0f, 0xaf, 0xc0].repeat(RESULT_LINKS));
        }
        code.extend(self.encode_arguments(waits));
        code.extend([0x41, 0xff, 0xd4]);
        Snippet::new(code, init, text)
    }

    /// Loads the arguments. If the call `waits`, the pointer and floating point numbers depend on
    /// RAX, which is 0.
    fn encode_arguments(&self, waits: bool) -> Vec<u8> {
        let mut code = MOVE_BUFFER.to_vec();
        if waits {
            code.extend([0x48, 0x01, 0xc7]);
        }
        let (mut registers, mut vectors) = (ARGUMENT_MOVES.iter(), 0..VECTOR_ARGUMENTS);
        for value in &self.values {
            let (is_float, bits) = match value {
                // Two's complement for a negative number.
                ArgValue::Number(number) => (false, *number as u64),
                ArgValue::Size => (false, self.size),
                ArgValue::Double(number) => (true, number.to_bits()),
                ArgValue::Single(number) => (true, number.to_bits().into()),
                ArgValue::Buffer => {
                    code.extend(registers.next().expect("there are as many registers").1);
                    continue;
                }
            };
            if !is_float {
                code.extend(registers.next().expect("there are as many registers").0);
                code.extend(bits.to_le_bytes());
                continue;
            }
            code.extend([0x49, 0xbb]);
            code.extend(bits.to_le_bytes());
            if waits {
                code.extend([0x49, 0x09, 0xc3]);
            }
            let vector = vectors.next().expect("there are as many registers");
            code.extend([0x66, 0x49, 0x0f, 0x6e, 0xc3 | vector << 3]);
        }
        code
    }

    /// Whether XMM0 holds an argument.
    fn has_float(&self) -> bool {
        self.values.iter().any(ArgValue::is_float)
    }

    /// The remedy for an access to an address without memory.
    pub fn remedy_for_address(memory: &ProgramMemory, address: u64) -> Option<String> {
        let [buffer, stack] = memory.areas.as_slice() else { return None };
        if address < NULL_MOST {
            return Some(format!(
                "null pointer access: malloc returns null once the function holds {} MiB; free what it allocates, and \
                 check its pointers",
                HEAP_BYTES >> 20
            ));
        }
        Some(format!(
            "raise --buffer or --stack if the function needs more memory: its buffer has {} bytes and its stack {} \
             bytes",
            buffer.bytes,
            stack.bytes - MOST_ABOVE_TOP
        ))
    }
}
