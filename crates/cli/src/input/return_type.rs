//! Asks the compiler what a C or C++ function returns, to the detail that the calling convention
//! needs.
//!
//! A second file includes the first one and ends with a constant that depends on the function's
//! type. In C, empty parentheses match every parameter list without types that default promotion
//! changes. A function with `float` or `char` parameters therefore remains unknown, apart from
//! common cases.

use crate::args::CallSerialization;
use crate::output::Failure;
use cyclescope::record::SerializedBy;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol};

/// What a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnType {
    /// Nothing.
    Nothing,
    /// An integer or an address in RAX, or unknown.
    Number,
    /// A floating point number in XMM0.
    Float,
}

/// Name of the constant.
const ANSWER_SYMBOL: &str = "cyclescope_returned";

/// Writes the file with the constant for this function; it includes the file with this path.
pub fn write_question(source: &str, function: &str, plus_plus: bool) -> String {
    let question = if plus_plus {
        format!(
            "template <class R> struct cyclescope_kind {{ static const char is = 'i'; }};\n\
             template <> struct cyclescope_kind<void> {{ static const char is = 'n'; }};\n\
             template <> struct cyclescope_kind<float> {{ static const char is = 'f'; }};\n\
             template <> struct cyclescope_kind<double> {{ static const char is = 'f'; }};\n\
             template <class R, class... A> cyclescope_kind<R> cyclescope_of(R (*)(A...));\n\
             extern \"C\" const char {ANSWER_SYMBOL}[] = {{decltype(cyclescope_of(&{function}))::is}};\n"
        )
    } else {
        format!(
            "#define CYCLESCOPE_IS(type) __builtin_types_compatible_p(__typeof__({function}), type)\n\
             #define CYCLESCOPE_FLOAT CYCLESCOPE_IS(float()) || CYCLESCOPE_IS(double()) || \\\n\
             CYCLESCOPE_IS(float(float)) || CYCLESCOPE_IS(float(float, float)) || \\\n\
             CYCLESCOPE_IS(float(float, float, float))\n\
             const char {ANSWER_SYMBOL}[] = {{CYCLESCOPE_IS(void()) ? 'n' : CYCLESCOPE_FLOAT ? 'f' : 'i'}};\n"
        )
    };
    format!("#include \"{source}\"\n{question}")
}

/// Reads the answer from the compiled file.
pub fn read_answer(image: &[u8]) -> Option<ReturnType> {
    let file = ElfFile64::<object::Endianness>::parse(image).ok()?;
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(ANSWER_SYMBOL))?;
    let place = symbol.address();
    match file.sections().find_map(|section| section.data_range(place, 1).ok()?)? {
        [b'n'] => Some(ReturnType::Nothing),
        [b'f'] => Some(ReturnType::Float),
        _ => Some(ReturnType::Number),
    }
}

/// Chooses what each call waits for, from the options and the known return types.
pub fn choose_serialization(
    asked: Option<CallSerialization>,
    returned: &[Option<ReturnType>],
) -> Result<Option<SerializedBy>, Failure> {
    let Some(CallSerialization::Result) = asked else { return Ok(asked.map(SerializedBy::from)) };
    let refused = |text| Err(Failure::usage(text, Some("use --serialize fence")));
    let known: Vec<ReturnType> = returned.iter().copied().flatten().collect();
    if known.contains(&ReturnType::Nothing) {
        return refused("a function that returns nothing has no result to wait for");
    }
    if known.iter().any(|other| *other != known[0]) {
        return refused("only some of the functions return a floating point number");
    }
    match returned.first() {
        Some(Some(ReturnType::Float)) => Ok(Some(SerializedBy::FloatResult)),
        _ => Ok(Some(SerializedBy::Result)),
    }
}
