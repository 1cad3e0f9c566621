//! How a function is called, and what each call waits for.

use crate::args::{CallArgs, CallArgument, CallSerialization};
use crate::input::argument_binding::{BoundCall, GivenArguments, bind_arguments};
use crate::input::call_code::encode_wide_call;
use crate::input::call_encoding::CallEncoding;
use crate::input::calling_convention::ResultPlace;
use crate::input::empty_function::{EmptyFunctions, choose_empty_function};
use crate::input::function_memory::{FunctionMemory, VariantMemory};
use crate::input::function_symbol::CallbackSymbol;
use crate::input::narrow_call_code::encode_narrow_call;
use crate::input::signature::{FunctionTypes, Signature};
use crate::output::{Failure, print_warning};
use cyclescope::asm::CodeMode;
use cyclescope::program::memory::{AreaFill, MOST_ABOVE_TOP, ProgramMemory};
use cyclescope::record::{CallRecord, SerializedBy};
use cyclescope::snippet::Snippet;
use cyclescope::study::run::RunSubject;

/// The parameters of the calls of a function, and of those that it is compared with.
pub struct CallParameters {
    /// What each call waits for.
    pub serialized: Option<SerializedBy>,
    /// Name of the function that runs before each call.
    pub setup: Option<String>,
    calls: Vec<BoundCall>,
    memory: FunctionMemory,
    /// The functions' declarations, if known.
    signatures: Vec<Option<String>>,
}

/// A function to call, and what the command line says about its arguments.
pub struct CallRequest<'a> {
    /// The function's name.
    pub name: &'a str,
    /// The options for its arguments and memory.
    pub args: &'a CallArgs,
    /// All of its arguments, if --call has them.
    pub arguments: Option<&'a [CallArgument]>,
    /// Its types.
    pub types: &'a FunctionTypes,
    /// The types of the function that runs before each call, if known.
    pub setup: Option<&'a Signature>,
    /// The functions that its arguments may name.
    pub callbacks: &'a [CallbackSymbol],
}

/// A function at one of its addresses, and the functions used with it.
pub struct FunctionInstance {
    /// Address of the function.
    pub function: u64,
    /// Address of the function that runs before each call.
    pub setup: Option<u64>,
    /// Addresses of the functions that arguments name.
    pub callbacks: Vec<u64>,
    /// Functions that do nothing, as the reference.
    pub empty: EmptyFunctions,
}

/// Bytes of heap for a function: what a small machine can spare.
pub const HEAP_BYTES: u64 = 512 << 20;
/// Nothing is mapped below this address (`vm.mmap_min_addr`); an access there means a null pointer.
const NULL_MOST: u64 = 64 << 10;

impl CallParameters {
    /// Reads the options for these calls, which share their memory. Other options are those of the
    /// first call. `seed` determines random contents.
    pub fn new(requests: &[CallRequest], mode: CodeMode, seed: u64) -> Result<CallParameters, Failure> {
        let args = requests[0].args;
        if args.setup.is_some() && !matches!(args.serialize, None | Some(CallSerialization::Fence)) {
            let remedy = "use --serialize fence, or leave --setup out";
            return Err(Failure::usage("with --setup a call can't wait for the previous result", Some(remedy)));
        }
        let listed = requests.iter().map(|request| request.args.arguments()).collect::<Result<Vec<_>, _>>()?;
        let given = requests.iter().zip(&listed).map(|(request, listed)| collect_arguments(request, listed));
        let given = given.collect::<Result<Vec<_>, _>>()?;
        let options: Vec<&CallArgs> = requests.iter().map(|request| request.args).collect();
        let memory = FunctionMemory::new(&options, &given, mode, seed)?;
        let bind = |(request, given): (&CallRequest, &GivenArguments), size: &u64| {
            let own = VariantMemory { memory: &memory, size: *size, callbacks: request.callbacks };
            let call = bind_arguments(request.name, *given, request.types, &own)?;
            request.setup.map_or(Ok(()), |setup| require_same_arguments(setup, request, &call))?;
            Ok::<_, Failure>(call)
        };
        let calls = requests.iter().zip(&given).zip(&memory.sizes).map(|(call, size)| bind(call, size));
        let calls = calls.collect::<Result<Vec<_>, _>>()?;
        let known = requests.iter().zip(&calls).map(|(request, call)| request.types.signature().map(|_| call.result));
        let serialized = choose_serialization(args.serialize, &known.flatten().collect::<Vec<_>>(), mode)?;
        for call in &calls {
            memory.require_stack(call)?;
        }
        for request in requests.iter().filter(|request| matches!(request.types, FunctionTypes::Missing(_))) {
            let why = request.types.explain_absence();
            print_warning(&format!("the types of {} are not known: {why}; check its arguments", request.name));
        }
        let signature = |request: &CallRequest| request.types.signature().map(|known| known.text.clone());
        let signatures = requests.iter().map(signature).collect();
        let calling = CallParameters { serialized, setup: args.setup.clone(), calls, memory, signatures };
        match calling.program_memory().check() {
            Ok(()) => Ok(calling),
            Err(bad) => Err(Failure::usage(bad.what, Some(&bad.expected))),
        }
    }

    /// The memory of the program that calls the function.
    pub fn program_memory(&self) -> ProgramMemory {
        let FunctionMemory { buffer, contents, stack, .. } = &self.memory;
        let mut memory = ProgramMemory::for_call(*buffer, contents.clone(), *stack);
        memory.areas.extend(self.memory.second_area());
        memory
    }

    /// The file bytes at the start of the buffer; empty if it has other contents.
    pub fn file_bytes(&self) -> &[u8] {
        if let AreaFill::Image(bytes) = &self.memory.contents { bytes } else { &[] }
    }

    /// The call with its arguments, if another variant calls a function of the same name with others.
    pub fn distinguishing_text(&self, variant: usize) -> Option<&str> {
        let own = &self.calls[variant].text;
        let name = |text: &str| text.rsplit_once('(').map_or(text.to_string(), |(name, _)| name.to_string());
        let is_like = |other: &BoundCall| other.text != *own && name(&other.text) == name(own);
        self.calls.iter().any(is_like).then_some(own.as_str())
    }

    /// Describes the call of the measured function, for its result.
    pub fn describe_call(&self) -> CallRecord {
        let call = &self.calls[0];
        CallRecord {
            text: call.text.clone(),
            versus: self.calls.get(1).map(|other| other.text.clone()),
            signature: self.signatures[0].clone(),
            implied: call.implied.clone(),
            largest: if call.passes_memory() { call.largest } else { 0 },
        }
    }

    /// Builds calls of each instance's function that wait for `serialized`, and matching calls of
    /// an empty function. `variant` is the function's number, 0 or 1.
    pub fn build_subject(
        &self,
        variant: usize,
        instances: &[FunctionInstance],
        text: &str,
        serialized: Option<SerializedBy>,
    ) -> RunSubject {
        let call = &self.calls[variant];
        let calls = |instance: &FunctionInstance| {
            let empty = instance.empty.address_of(choose_empty_function(call, serialized));
            let encode = |function, text: &str| -> Snippet {
                let FunctionInstance { setup, callbacks, .. } = instance;
                let encoding = CallEncoding { call, function, setup: *setup, callbacks, serialized };
                match call.placed.convention.mode() {
                    CodeMode::Bits64 => encode_wide_call(&encoding, text),
                    CodeMode::Bits32 => encode_narrow_call(&encoding, text),
                }
            };
            (encode(instance.function, text), encode(empty, "an empty function"))
        };
        let (instances, empty_calls) = instances.iter().map(calls).unzip();
        RunSubject { instances, empty_calls }
    }

    /// The remedy for an access to an address without memory.
    pub fn remedy_for_address(memory: &ProgramMemory, address: u64, mode: CodeMode) -> Option<String> {
        let [buffer, stack, ..] = memory.areas.as_slice() else { return None };
        if address < NULL_MOST && mode == CodeMode::Bits32 {
            let remedy = "null pointer access: check its pointers; 32-bit code finds variables of a thread, such as the \
                          one that -fstack-protector checks, at such addresses too, and there are none: compile it \
                          with -fno-stack-protector";
            return Some(remedy.to_string());
        }
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

/// The arguments for a call, from --call or from --arg.
fn collect_arguments<'a>(request: &CallRequest<'a>, listed: &'a [CallArgument]) -> Result<GivenArguments<'a>, Failure> {
    match request.arguments {
        None => Ok(GivenArguments::AfterBuffer(listed)),
        Some(all) if listed.is_empty() => Ok(GivenArguments::All(all)),
        Some(_) => {
            let remedy = "put all arguments between the parentheses";
            Err(Failure::usage("the arguments are in --call and in --arg", Some(remedy)))
        }
    }
}

/// Fails if the setup would find other arguments than the function, in the places where it looks
/// for them.
fn require_same_arguments(setup: &Signature, request: &CallRequest, call: &BoundCall) -> Result<(), Failure> {
    if call.has_kinds_of(setup) {
        return Ok(());
    }
    let text = format!("--setup gets the arguments of {}, {}, but is `{}`", request.name, call.text, setup.text);
    Err(Failure::usage(text, Some("name a function with the same first parameters and without a result")))
}

/// Chooses what each call waits for, from the options and the known results.
fn choose_serialization(
    asked: Option<CallSerialization>,
    results: &[ResultPlace],
    mode: CodeMode,
) -> Result<Option<SerializedBy>, Failure> {
    let (Some(CallSerialization::Result) | Some(CallSerialization::FloatResult)) = asked else {
        return Ok(asked.map(SerializedBy::from));
    };
    let refused = |text| Err(Failure::usage(text, Some("use --serialize fence")));
    let is_float = asked == Some(CallSerialization::FloatResult);
    match results {
        results if results.contains(&ResultPlace::Nothing) => {
            refused("a function that returns nothing has no result to wait for")
        }
        results if results.contains(&ResultPlace::X87) && mode == CodeMode::Bits64 => {
            refused("a call can't wait for a result of type `long double`")
        }
        results if results.iter().any(|result| matches!(result, ResultPlace::Memory(_))) => {
            refused("a call can't wait for a result in memory")
        }
        [one, others @ ..] if others.iter().any(|other| other != one) => {
            refused("only some of the functions return a floating point number")
        }
        [ResultPlace::Integer, ..] if is_float => refused("the function returns no floating point number"),
        [ResultPlace::Vector, ..] if mode == CodeMode::Bits32 => refused("a call can't wait for a vector"),
        [ResultPlace::Vector | ResultPlace::X87, ..] => Ok(Some(SerializedBy::FloatResult)),
        _ => Ok(asked.map(SerializedBy::from)),
    }
}
