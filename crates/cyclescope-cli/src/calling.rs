//! What a function is called with: its arguments, the buffer that the first one points to, and the stack.

use crate::args::{self, CallArgs, Contents, Value};
use crate::compiler;
use crate::failure::Failure;
use cyclescope::context::Element;
use cyclescope::program::memory::{Fill, Memory, STANDARD_BYTES, TOP_MOST};
use cyclescope::record::Serialized;
use cyclescope::snippet::Snippet;
use cyclescope::study::run::Subject;

/// What a function is called with.
pub struct Calling {
    /// What each call waits for.
    pub serialized: Option<Serialized>,
    values: Vec<Value>,
    buffer: u64,
    /// What `size` stands for.
    size: u64,
    contents: Fill,
    stack: u64,
}

/// A function at one of its addresses, and what is beside it.
pub struct Instance {
    /// The function.
    pub function: u64,
    /// The function that runs before each call of it.
    pub setup: Option<u64>,
    /// A function that does nothing.
    pub empty: u64,
    /// A function that returns its argument.
    pub identity: u64,
}

/// Bytes of stack: the limit that a program usually has.
const STACK: u64 = 8 << 20;
/// Bytes that a function may get from the system: as much as a small machine has to spare.
pub const HEAP: u64 = 512 << 20;
/// Nothing is below this address (`vm.mmap_min_addr`): who accesses it had a null pointer.
const NULL_MOST: u64 = 64 << 10;
const LFENCE: [u8; 3] = [0x0f, 0xae, 0xe8];
/// `mov rdi, rbx`
const BUFFER: [u8; 3] = [0x48, 0x89, 0xdf];
/// Encodings of `mov r, imm64` and `mov r, rbx` for the registers of the second to the sixth argument, RSI, RDX, RCX, R8
/// and R9 (System V ABI for x86-64, 3.2.3).
const ARGUMENTS: [([u8; 2], [u8; 3]); 5] = [
    ([0x48, 0xbe], [0x48, 0x89, 0xde]),
    ([0x48, 0xba], [0x48, 0x89, 0xda]),
    ([0x48, 0xb9], [0x48, 0x89, 0xd9]),
    ([0x49, 0xb8], [0x49, 0x89, 0xd8]),
    ([0x49, 0xb9], [0x49, 0x89, 0xd9]),
];

impl Calling {
    /// What the options ask for; `seed` is that of random contents.
    pub fn new(args: &CallArgs, seed: u64) -> Result<Calling, Failure> {
        if args.setup.is_some() && args.serialize == Some(args::Serialize::Result) {
            let remedy = "use --serialize fence, or leave --setup out";
            return Err(Failure::usage(
                "with --setup the result of the last call is not the next one's",
                Some(remedy),
            ));
        }
        if args.values.len() > ARGUMENTS.len() {
            let remedy = "registers take six arguments, the pointer among them";
            return Err(Failure::usage("--arg is given more than five times", Some(remedy)));
        }
        let contents = match args.contents.as_ref().unwrap_or(&Contents::Pattern) {
            Contents::Pattern => Fill::Pattern(Element::default()),
            Contents::Zero => Fill::Image(Vec::new()),
            Contents::Random => Fill::Random(seed),
            Contents::File(path) => {
                compiler::readable(path)?;
                let read = std::fs::read(path).map_err(|error| {
                    Failure::usage(format!("opening {} failed: {error}", path.display()), None)
                });
                Fill::Image(read?)
            }
        };
        let file = if let Fill::Image(bytes) = &contents { bytes.len() as u64 } else { 0 };
        let buffer = args.buffer.unwrap_or(file.max(STANDARD_BYTES));
        if file > buffer {
            let text = format!("the file of --contents has {file} bytes, more than the buffer");
            return Err(Failure::usage(text, Some("give a larger --buffer, or leave it out")));
        }
        let is_file = matches!(args.contents, Some(Contents::File(_)));
        let size = if is_file { file } else { buffer };
        let stack = args.stack.unwrap_or(STACK);
        let serialized = args.serialize.map(Serialized::from);
        let values = args.values.clone();
        let calling = Calling { serialized, values, buffer, size, contents, stack };
        match calling.memory().check() {
            Ok(()) => Ok(calling),
            Err(bad) => Err(Failure::usage(bad.what, Some(&bad.expected))),
        }
    }

    /// The memory of the program that calls it.
    pub fn memory(&self) -> Memory {
        Memory::of_call(self.buffer, self.contents.clone(), self.stack)
    }

    /// Calls of the function of each instance that wait for this, and calls of an empty function in the same way.
    pub fn subject(&self, instances: &[Instance], text: &str, serialized: Option<Serialized>) -> Subject {
        let calls = |instance: &Instance| {
            let empty = match serialized {
                Some(Serialized::Result) => instance.identity,
                _ => instance.empty,
            };
            let call = |function, text| self.snippet(function, instance.setup, serialized, text);
            (call(instance.function, text), call(empty, "an empty function"))
        };
        let (instances, empty_calls) = instances.iter().map(calls).unzip();
        Subject { instances, empty_calls }
    }

    /// ```text
    /// mov rbx, r14           ; init: R14 points to the buffer; RBX, RBP, R12 and R13 outlive a call
    /// mov r12, function
    /// mov rbp, setup
    /// xor r13d, r13d
    /// lfence                 ; each copy; behind a fence, and with --setup
    /// mov rdi, rbx           ; this and the next two with --setup
    /// mov rsi, 100
    /// call rbp
    /// lfence                 ; behind a fence
    /// mov rdi, rbx
    /// and rax, r13           ; this and the next with --serialize result
    /// add rdi, rax
    /// mov rsi, 100           ; with --arg 100
    /// call r12
    /// ```
    fn snippet(
        &self,
        function: u64,
        setup: Option<u64>,
        serialized: Option<Serialized>,
        text: &str,
    ) -> Snippet {
        let mut init = vec![0x4c, 0x89, 0xf3, 0x49, 0xbc];
        init.extend(function.to_le_bytes());
        let fence: &[u8] = if serialized == Some(Serialized::Fence) { &LFENCE } else { &[] };
        let mut code = Vec::new();
        if let Some(setup) = setup {
            init.extend([0x48, 0xbd]);
            init.extend(setup.to_le_bytes());
            // Else it would begin while the last call of the function has not ended.
            code.extend(fence);
            code.extend(BUFFER);
            code.extend(self.further());
            code.extend([0xff, 0xd5]);
        }
        init.extend([0x45, 0x31, 0xed]);
        code.extend(fence);
        code.extend(BUFFER);
        if serialized == Some(Serialized::Result) {
            code.extend([0x4c, 0x21, 0xe8, 0x48, 0x01, 0xc7]);
        }
        code.extend(self.further());
        code.extend([0x41, 0xff, 0xd4]);
        Snippet::new(code, init, text)
    }

    /// Loads the further arguments.
    fn further(&self) -> Vec<u8> {
        let mut code = Vec::new();
        for (value, (immediate, from_rbx)) in self.values.iter().zip(ARGUMENTS) {
            let number = match value {
                // The two's complement of a negative number.
                Value::Number(number) => *number as u64,
                Value::Size => self.size,
                Value::Buffer => {
                    code.extend(from_rbx);
                    continue;
                }
            };
            code.extend(immediate);
            code.extend(number.to_le_bytes());
        }
        code
    }

    /// What helps where the function accessed an address without memory.
    pub fn remedy(memory: &Memory, address: u64) -> Option<String> {
        let [buffer, stack] = memory.areas.as_slice() else { return None };
        if address < NULL_MOST {
            return Some(format!(
                "a null pointer: malloc returns one where the function holds {} MiB already, so it has to free what it \
                 allocates",
                HEAP >> 20
            ));
        }
        Some(format!(
            "its first argument points to a buffer of {} bytes (--buffer BYTES), and it has {} bytes of stack \
             (--stack BYTES)",
            buffer.bytes,
            stack.bytes - TOP_MOST
        ))
    }
}
