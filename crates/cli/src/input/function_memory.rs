//! The memory that called functions work on: the buffer, the second buffer and texts, and the stack.

use crate::args::{ArgValue, BufferContents, CallArgs, CallMemoryName, MemoryPlace};
use crate::input::argument_binding::{BoundCall, GivenArguments};
use crate::input::call_encoding::second_register;
use crate::input::calling_convention::{ArgumentWord, ResultPlace};
use crate::input::function_symbol::CallbackSymbol;
use crate::input::value_encoding::{CallMemory, word_bytes};
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::context::FloatElement;
use cyclescope::input::{self, InputKind};
use cyclescope::program::memory::{AreaFill, AreaPointer, MemoryArea, PointerPosition, STANDARD_AREA_BYTES};

/// Share of the stack that arguments and a result may take.
const STACK_SHARE: u64 = 2;
/// Default bytes of stack: a program's usual limit.
const STACK_BYTES: u64 = 8 << 20;
/// The memory that the functions of all variants work on, as large as the largest needs.
pub struct FunctionMemory {
    /// The mode of the functions.
    pub mode: CodeMode,
    /// Bytes of the buffer.
    pub buffer: u64,
    /// The value of `size` in each variant.
    pub sizes: Vec<u64>,
    /// The buffer's initial contents.
    pub contents: AreaFill,
    /// Bytes of the stack.
    pub stack: u64,
    /// The texts among the arguments, each with a NUL byte and at the start of a cache line.
    texts: Vec<u8>,
    /// The places of the texts.
    text_places: Vec<(Vec<u8>, u64)>,
    /// Bytes of the second buffer, if an argument refers to it.
    out: Option<u64>,
}

/// Alignment of texts: the cache line.
const TEXT_ALIGNMENT: usize = 64;
const PAGE: u64 = 4096;
/// The largest buffer: 1 GiB.
const BYTES_MOST: u64 = 1 << 30;

impl FunctionMemory {
    /// Memory for calls with these options and arguments, in code of a mode. `seed` determines random
    /// contents.
    pub fn new(
        options: &[&CallArgs],
        given: &[GivenArguments],
        mode: CodeMode,
        seed: u64,
    ) -> Result<FunctionMemory, Failure> {
        let first = options[0];
        if options.iter().any(|args| args.contents != first.contents) {
            let remedy = "give all the same --contents, or measure each alone with --sweep";
            return Err(Failure::usage("the variants share one buffer, but their --contents differ", Some(remedy)));
        }
        let contents = read_contents(first, seed)?;
        let mut memory = FunctionMemory {
            mode,
            buffer: 0,
            sizes: Vec::with_capacity(options.len()),
            contents,
            stack: 0,
            texts: Vec::new(),
            text_places: Vec::new(),
            out: None,
        };
        let mut length = None;
        for (args, given) in options.iter().zip(given) {
            length = memory.add_call(args, given, length)?;
        }
        Ok(memory)
    }

    /// Adds what one variant's call needs. Returns the length of the buffer if it is given, here or in
    /// the variant before.
    fn add_call(
        &mut self,
        args: &CallArgs,
        given: &GivenArguments,
        before: Option<u64>,
    ) -> Result<Option<u64>, Failure> {
        let (GivenArguments::All(arguments) | GivenArguments::AfterBuffer(arguments)) = given;
        let places: Vec<MemoryPlace> = arguments.iter().flat_map(|argument| argument.value.memory_places()).collect();
        let asked = find_bytes(&places, CallMemoryName::Buffer, args.buffer_bytes()?)?.or(before);
        let file = if let AreaFill::Image(bytes) = &self.contents { bytes.len() as u64 } else { 0 };
        let buffer = asked.unwrap_or(file.max(STANDARD_AREA_BYTES));
        if file > buffer {
            let text = format!("the file of --contents has {file} bytes, more than the buffer");
            return Err(Failure::usage(text, Some("use a larger --buffer, or leave it out")));
        }
        let uses_out = places.iter().any(|place| place.memory == CallMemoryName::Out);
        let out = find_bytes(&places, CallMemoryName::Out, None)?;
        let out = uses_out.then(|| out.unwrap_or(buffer));
        for place in &places {
            let bytes = if place.memory == CallMemoryName::Buffer { buffer } else { out.unwrap_or_default() };
            if place.offset > bytes {
                let text = format!("`{}` is outside its {bytes} bytes", ArgValue::Memory(*place));
                return Err(Failure::usage(text, Some("use a smaller offset or a larger buffer")));
            }
        }
        let is_file = matches!(args.contents, Some(BufferContents::File(_)));
        self.sizes.push(if is_file { file } else { buffer });
        self.buffer = self.buffer.max(buffer);
        self.stack = self.stack.max(args.stack_bytes()?.unwrap_or(STACK_BYTES));
        self.out = self.out.max(out);
        for text in arguments.iter().flat_map(|argument| argument.value.texts()) {
            self.add_text(text);
        }
        Ok(asked)
    }

    fn add_text(&mut self, text: &[u8]) {
        let place = self.texts.len() as u64;
        self.text_places.push((text.to_vec(), place));
        self.texts.extend(text);
        self.texts.resize((self.texts.len() + 1).next_multiple_of(TEXT_ALIGNMENT), 0);
    }

    /// Where the second buffer starts: at a page behind the texts.
    fn out_offset(&self) -> u64 {
        (self.texts.len() as u64).next_multiple_of(PAGE)
    }

    /// The memory of the texts and the second buffer, if there is any.
    pub fn second_area(&self) -> Option<MemoryArea> {
        let bytes = self.out.map_or(self.texts.len() as u64, |out| self.out_offset() + out);
        let pointer = AreaPointer { register: second_register(self.mode).number() as u8, at: PointerPosition::Start };
        let area = MemoryArea::new(bytes, AreaFill::Image(self.texts.clone()));
        (bytes > 0).then_some(MemoryArea { pointer: Some(pointer), ..area })
    }

    /// Fails if a call's arguments and result leave the function too little stack.
    pub fn require_stack(&self, call: &BoundCall) -> Result<(), Failure> {
        let result = if let ResultPlace::Memory(bytes) = call.result { bytes } else { 0 };
        let bytes = result.saturating_add(word_bytes(self.mode) * call.placed.stack.len() as u64);
        match bytes <= self.stack / STACK_SHARE {
            true => Ok(()),
            false => {
                let text = format!("the arguments and the result of {} take {bytes} bytes of stack", call.text);
                Err(Failure::usage(text, Some("raise --stack to more than twice as much")))
            }
        }
    }
}

/// The memory as one variant sees it.
pub struct VariantMemory<'a> {
    /// The memory of all.
    pub memory: &'a FunctionMemory,
    /// The variant's value of `size`.
    pub size: u64,
    /// The functions that its arguments may name.
    pub callbacks: &'a [CallbackSymbol],
}

impl CallMemory for VariantMemory<'_> {
    fn mode(&self) -> CodeMode {
        self.memory.mode
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn locate(&self, value: &ArgValue) -> ArgumentWord {
        match value {
            ArgValue::Memory(MemoryPlace { memory: CallMemoryName::Out, offset, .. }) => {
                ArgumentWord::Second(self.memory.out_offset() + offset)
            }
            ArgValue::Memory(place) => ArgumentWord::Buffer(place.offset),
            value => {
                let is_own = |(text, _): &&(Vec<u8>, u64)| value.texts().first() == Some(&text.as_slice());
                ArgumentWord::Second(self.memory.text_places.iter().find(is_own).map_or(0, |(_, place)| *place))
            }
        }
    }

    fn find_function(&self, value: &ArgValue) -> Result<ArgumentWord, String> {
        let found = self.callbacks.iter().position(|callback| callback.value == *value);
        found.map(ArgumentWord::Function).ok_or_else(|| "the file has no function of this name, or several".to_string())
    }
}

/// The initial contents of the buffer.
fn read_contents(args: &CallArgs, seed: u64) -> Result<AreaFill, Failure> {
    Ok(match args.contents.as_ref().unwrap_or(&BufferContents::Pattern) {
        BufferContents::Pattern => AreaFill::Pattern(FloatElement::default()),
        BufferContents::Zero => AreaFill::Image(Vec::new()),
        BufferContents::Random => AreaFill::Random(seed),
        BufferContents::File(path) => {
            let remedy = "name a regular file that you may read";
            AreaFill::Image(
                input::read_input(path, InputKind::Contents).map_err(|bad| Failure::from_input(&bad, remedy))?,
            )
        }
    })
}

/// The bytes of a buffer, from its option and from arguments.
fn find_bytes(places: &[MemoryPlace], memory: CallMemoryName, option: Option<u64>) -> Result<Option<u64>, Failure> {
    let mut found = option;
    for place in places.iter().filter(|place| place.memory == memory) {
        let Some(bytes) = place.bytes else { continue };
        let value = ArgValue::Memory(*place);
        if !(1..=BYTES_MOST).contains(&bytes) {
            return Err(Failure::usage(format!("`{value}` has no bytes from 1 to 1G"), Some("give it another length")));
        }
        if found.is_some_and(|found| found != bytes) {
            let text = format!("`{value}` has another length than before");
            return Err(Failure::usage(text, Some("give the buffer one length, by --buffer or in one argument")));
        }
        found = Some(bytes);
    }
    Ok(found)
}
