//! Gives each parameter of a function its value, or refuses a call that doesn't fit.
//!
//! With a signature, values become those of the parameters' types, as in C, but without loss: 3 is
//! a `double`, 1e3 is an `int` and 0.5 is none, and 200 is no `signed char`. A pointer without a
//! value gets the buffer, a number never does. Without a signature, each value has the kind that its text shows.

use crate::args::{ArgValue, BUFFER_START, CallArgument};
use crate::input::calling_convention::{
    ArgumentWord, CallConvention, PlacedArguments, ResultPlace, classify_result, find_alignment,
};
use crate::input::signature::{BitReading, FunctionTypes, Parameter, Pointee, Signature, ValueType};
use crate::input::value_encoding::{CallMemory, count_of, encode_value, plural, word_bytes};
use crate::output::Failure;
use cyclescope::asm::CodeMode;

/// The arguments of a call as the command line has them.
#[derive(Debug, Clone, Copy)]
pub enum GivenArguments<'a> {
    /// Those of `--call 'f(…)'`: all of them.
    All(&'a [CallArgument]),
    /// Those of --arg, which follow the buffer.
    AfterBuffer(&'a [CallArgument]),
}

/// The arguments of a call in their places.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundCall {
    /// The arguments.
    pub placed: PlacedArguments,
    /// Where the result is.
    pub result: ResultPlace,
    /// Whether AL must hold the number of vector registers in use, because the function may take
    /// any arguments.
    pub counts_vectors: bool,
    /// The call as text, such as `f(buffer, 1000)`.
    pub text: String,
    /// The names of the parameters that got the buffer without having been given it.
    pub implied: Vec<String>,
    /// The largest number among the arguments that counts bytes or elements; 0 without one.
    pub largest: u64,
}

impl BoundCall {
    /// Whether it passes the address of a buffer.
    pub fn passes_memory(&self) -> bool {
        let words = [&self.placed.integers, &self.placed.stack].into_iter().flatten();
        words.into_iter().any(|word| matches!(word, ArgumentWord::Buffer(_)))
    }

    /// Whether another function finds arguments of its own kinds in the places of this call's.
    pub fn has_kinds_of(&self, other: &Signature) -> bool {
        let Ok(result) = classify_result(&other.result, self.placed.convention.mode()) else { return false };
        let is_special = |result: &ResultPlace| matches!(result, ResultPlace::Memory(_) | ResultPlace::X87);
        if matches!(self.result, ResultPlace::Memory(_)) || is_special(&result) {
            return false;
        }
        let mut placed = PlacedArguments::new(result, self.placed.convention);
        for parameter in &other.parameters {
            placed.push(&parameter.value_type, &[]);
        }
        self.placed.kinds.starts_with(&placed.kinds) && !placed.kinds.contains(&Vec::new())
    }
}

/// Gives the parameters of the function `name` their values.
pub fn bind_arguments(
    name: &str,
    given: GivenArguments,
    types: &FunctionTypes,
    memory: &dyn CallMemory,
) -> Result<BoundCall, Failure> {
    match types.signature() {
        Some(signature) => SignatureBinding { signature, memory }.bind(name, given),
        None => bind_by_kind(name, given, types, memory),
    }
}

/// The type of an integer without a parameter.
const fn unknown_integer(word_bytes: u64) -> ValueType {
    ValueType::integer(word_bytes, BitReading::Unknown)
}

/// Passes each value by its own kind.
fn bind_by_kind(
    name: &str,
    given: GivenArguments,
    types: &FunctionTypes,
    memory: &dyn CallMemory,
) -> Result<BoundCall, Failure> {
    let (first, rest): (&[ArgValue], &[CallArgument]) = match given {
        GivenArguments::All(all) => (&[], all),
        GivenArguments::AfterBuffer(rest) => (&[BUFFER_START], rest),
    };
    let word_bytes = word_bytes(memory.mode());
    let mut placed = PlacedArguments::new(ResultPlace::Unknown, CallConvention::of_system(memory.mode()));
    for (value, parameter) in
        first.iter().map(|value| (value, None)).chain(rest.iter().map(|given| (&given.value, given.name.as_ref())))
    {
        if let Some(parameter) = parameter {
            let text = format!("{}, so `{parameter}` can't be found in {name}", types.explain_absence());
            let remedy = format!("give the arguments in order, or {}", types.absence_remedy());
            return Err(Failure::usage(text, Some(&remedy)));
        }
        let value_type = match value {
            ArgValue::Double(_) => ValueType::Float { bytes: 8 },
            ArgValue::Single(_) => ValueType::Float { bytes: 4 },
            ArgValue::Number(_) | ArgValue::Size { .. } => unknown_integer(word_bytes),
            ArgValue::Memory(_) | ArgValue::Text(_) => ValueType::Pointer(Pointee::Bytes, word_bytes),
            ArgValue::Function(_) => ValueType::Pointer(Pointee::Function, word_bytes),
            ArgValue::Name(_) => {
                let text = format!("{}, so `{value}` has no value", types.explain_absence());
                let remedy = format!(
                    "write a number, `buffer`, `out` or `size`, or &{value} for a function, or {}",
                    types.absence_remedy()
                );
                return Err(Failure::usage(text, Some(&remedy)));
            }
            ArgValue::Members(_) => {
                let text = format!("{}, so the structure {value} has no layout", types.explain_absence());
                return Err(Failure::usage(text, Some(types.absence_remedy())));
            }
        };
        let words = encode_value(&value_type, value, memory).map_err(|why| {
            // A number of 64 bits has two words in 32-bit code.
            let halves = "give the low and the high half of a 64-bit number as two arguments";
            let remedy = format!("{halves}, or {}", types.absence_remedy());
            let remedy = (memory.mode() == CodeMode::Bits32).then_some(remedy.as_str());
            Failure::usage(format!("{value} can't be an argument: {why}"), remedy)
        })?;
        placed.push(&value_type, &words);
    }
    let values: Vec<&ArgValue> = first.iter().chain(rest.iter().map(|given| &given.value)).collect();
    Ok(BoundCall {
        counts_vectors: placed.convention == CallConvention::SystemV,
        placed,
        result: ResultPlace::Unknown,
        text: describe_call(name, values.iter().map(|value| value.to_string())),
        implied: Vec::new(),
        largest: values.iter().map(|value| count_of(value, memory)).max().unwrap_or(0),
    })
}

fn describe_call(name: &str, values: impl Iterator<Item = String>) -> String {
    format!("{name}({})", values.collect::<Vec<_>>().join(", "))
}

/// A call of a function whose types are known.
struct SignatureBinding<'a> {
    signature: &'a Signature,
    memory: &'a dyn CallMemory,
}

/// A parameter's value, and whether the command line has it.
struct ChosenValue {
    value: ArgValue,
    is_given: bool,
}

impl SignatureBinding<'_> {
    fn refuse(&self, text: String, remedy: &str) -> Failure {
        let signature = &self.signature.text;
        Failure::usage(format!("{text}; the function is `{signature}`"), (!remedy.is_empty()).then_some(remedy))
    }

    fn bind(&self, name: &str, given: GivenArguments) -> Result<BoundCall, Failure> {
        let Signature { parameters, is_variadic, is_altered, .. } = self.signature;
        if *is_altered {
            let text = format!("the compiler changed how {name} takes its arguments");
            return Err(self.refuse(text, "export the function, so that the compiler doesn't know all of its callers"));
        }
        for parameter in parameters {
            if let Some(obstacle) = self.find_obstacle(parameter) {
                let text = format!("`{}` can't be passed: it is {obstacle}", parameter.text);
                return Err(self.refuse(text, "measure a function that takes its address, or numbers"));
            }
        }
        let result = classify_result(&self.signature.result, self.memory.mode()).map_err(|what| {
            let text = format!("{name} can't be called: it returns {what}");
            self.refuse(text, "measure a function that returns a number, an address or a structure")
        })?;
        let (chosen, surplus) = self.choose_values(given)?;
        let mut placed = PlacedArguments::new(result, CallConvention::of_system(self.memory.mode()));
        for (parameter, chosen) in parameters.iter().zip(&chosen) {
            let words = encode_value(&parameter.value_type, &chosen.value, self.memory).map_err(|why| {
                let text = format!("{} can't be `{}`: {why}", chosen.value, parameter.text);
                self.refuse(text, "give each parameter a value of its type, in order or as NAME=VALUE")
            })?;
            if placed.is_place_uncertain(&parameter.value_type) {
                let text = format!(
                    "the place of `{}` on the stack depends on whether its type is packed, which isn't known",
                    parameter.text
                );
                return Err(self
                    .refuse(text, "declare the type with alignas(16), or measure a function that takes its address"));
            }
            placed.push(&parameter.value_type, &words);
        }
        for value in &surplus {
            let (value_type, value) = promote(value, word_bytes(self.memory.mode()));
            let words = encode_value(&value_type, &value, self.memory)
                .map_err(|why| self.refuse(format!("{value} can't be a further argument: {why}"), ""))?;
            placed.push(&value_type, &words);
        }
        let implied = parameters.iter().zip(&chosen).enumerate().filter(|(_, (_, chosen))| !chosen.is_given);
        let implied =
            implied.map(|(index, (parameter, _))| parameter.name.clone().unwrap_or(format!("#{}", index + 1)));
        let values = chosen.iter().map(|chosen| &chosen.value).chain(&surplus);
        Ok(BoundCall {
            placed,
            result,
            counts_vectors: *is_variadic,
            text: describe_call(name, values.clone().map(|value| value.to_string())),
            implied: implied.collect(),
            largest: values.map(|value| count_of(value, self.memory)).max().unwrap_or(0),
        })
    }

    fn find_obstacle(&self, parameter: &Parameter) -> Option<String> {
        let aligned = || {
            let alignment = find_alignment(&parameter.value_type);
            (alignment > 16).then(|| format!("aligned to {alignment} bytes"))
        };
        parameter.value_type.find_obstacle().or_else(aligned)
    }

    /// The value of each parameter, and further values.
    fn choose_values(&self, given: GivenArguments) -> Result<(Vec<ChosenValue>, Vec<ArgValue>), Failure> {
        let Signature { parameters, is_variadic, .. } = self.signature;
        let arguments = match given {
            GivenArguments::All(arguments) | GivenArguments::AfterBuffer(arguments) => arguments,
        };
        let mut values: Vec<Option<ArgValue>> = vec![None; parameters.len()];
        for argument in arguments {
            let Some(name) = &argument.name else { continue };
            let Some(at) = parameters.iter().position(|parameter| parameter.name.as_ref() == Some(name)) else {
                return Err(self.refuse(format!("there is no parameter `{name}`"), "use a name of the signature"));
            };
            if values[at].replace(argument.value.clone()).is_some() {
                return Err(self.refuse(format!("`{name}` has two values"), "give it once"));
            }
        }
        let mut in_order: Vec<ArgValue> = arguments
            .iter()
            .filter(|argument| argument.name.is_none())
            .map(|argument| argument.value.clone())
            .collect();
        let open: Vec<usize> = (0..parameters.len()).filter(|at| values[*at].is_none()).collect();
        // The buffer comes first, unless values for all parameters are given. A method gets its
        // object in the same way.
        let buffer_first = open.first().is_some_and(|first| {
            let parameter = &parameters[*first];
            let is_object = parameter.name.as_deref() == Some("this");
            let may_be_implied = is_object || matches!(given, GivenArguments::AfterBuffer(_));
            may_be_implied && parameter.value_type.is_data_pointer() && in_order.len() < open.len()
        });
        let open = &open[usize::from(buffer_first)..];
        let surplus = in_order.split_off(in_order.len().min(open.len()));
        for (at, value) in open.iter().zip(in_order) {
            values[*at] = Some(value);
        }
        if let Some(first) = surplus.first().filter(|_| !is_variadic) {
            let count = arguments.len();
            let text = format!("{count} argument{} {} too many: {first} has no parameter", plural(count), are(count));
            return Err(self.refuse(text, self.remedy_for_count(given)));
        }
        let may_be_implied = |at: usize| match given {
            GivenArguments::AfterBuffer(_) => true,
            GivenArguments::All(_) => buffer_first && at == 0,
        };
        let mut chosen = Vec::with_capacity(parameters.len());
        for (at, (parameter, value)) in parameters.iter().zip(values).enumerate() {
            let is_given = value.is_some();
            let value = match value {
                Some(value) => value,
                None if parameter.value_type == ValueType::Void => ArgValue::Members(Vec::new()),
                None if parameter.value_type.is_data_pointer() && may_be_implied(at) => BUFFER_START,
                None => {
                    let text = format!("`{}` needs a value", parameter.text);
                    let named = parameter.name.as_ref().map(|name| format!("--arg {name}={}", example(parameter)));
                    let remedy = match (given, named) {
                        (GivenArguments::AfterBuffer(_), Some(named)) => format!("add {named}"),
                        (GivenArguments::AfterBuffer(_), None) => format!("add --arg {}", example(parameter)),
                        (GivenArguments::All(_), _) => self.remedy_for_count(given).to_string(),
                    };
                    return Err(self.refuse(text, &remedy));
                }
            };
            chosen.push(ChosenValue { value, is_given });
        }
        Ok((chosen, surplus))
    }

    fn remedy_for_count(&self, given: GivenArguments) -> &'static str {
        match given {
            GivenArguments::All(_) => "give each parameter one value between the parentheses",
            GivenArguments::AfterBuffer(_) => "give each parameter one value, as in --call 'f(buffer, size)'",
        }
    }
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// A value that fits a parameter, for a remedy.
fn example(parameter: &Parameter) -> String {
    fn of(value_type: &ValueType) -> String {
        match value_type {
            ValueType::Float { .. } | ValueType::LongDouble { .. } => "0.5".to_string(),
            ValueType::Pointer(Pointee::Function, _) => "&NAME".to_string(),
            ValueType::Pointer(..) => "buffer".to_string(),
            ValueType::Record(record) => {
                let written = if record.is_union { 1 } else { record.members.len() };
                let members: Vec<String> =
                    record.members.iter().take(written).map(|member| of(&member.value_type)).collect();
                format!("{{{}}}", members.join(", "))
            }
            _ => "100".to_string(),
        }
    }
    let text = of(&parameter.value_type);
    // Characters of the shell.
    if text.starts_with(['{', '&']) { format!("'{text}'") } else { text }
}

/// The type of a value for `...`, where a `float` becomes a `double`.
fn promote(value: &ArgValue, word_bytes: u64) -> (ValueType, ArgValue) {
    let value_type = match value {
        ArgValue::Single(number) => return (ValueType::Float { bytes: 8 }, ArgValue::Double((*number).into())),
        ArgValue::Double(_) => ValueType::Float { bytes: 8 },
        ArgValue::Memory(_) => ValueType::Pointer(Pointee::Data, word_bytes),
        ArgValue::Text(_) => ValueType::Pointer(Pointee::Bytes, word_bytes),
        ArgValue::Function(_) => ValueType::Pointer(Pointee::Function, word_bytes),
        _ => unknown_integer(word_bytes),
    };
    (value_type, value.clone())
}
