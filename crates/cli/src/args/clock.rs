//! Options of `clock`.

use super::mode::ModeArgs;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cyclescope::clock::source::{LANGUAGES, SourceLanguage, find_language};

/// Options of `clock`.
#[derive(Debug, Args)]
#[command(
    after_help = "The source code has the method's start and end, their ordering guarantees, the registers they \
    change, and an example that subtracts the cost of an empty pair: cyclescope clock lfence-rdtsc-lfence --emit c > \
    timer.h"
)]
#[command(mut_arg("bits", |bits| bits.help("Mode of the programs that use the method: 64, or 32 [default: 64]")))]
pub struct ClockArgs {
    /// Timing method to print [default: list all]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print the method as source code in this language
    #[arg(long, value_parser = language_parser(), value_name = "LANGUAGE", requires = "name")]
    pub emit: Option<&'static SourceLanguage>,
    #[command(flatten)]
    pub code_mode: ModeArgs,
    /// List the methods, what they order, and whether they work on this machine
    #[arg(long, conflicts_with_all = ["name", "emit"])]
    pub list: bool,
}

/// Accepts the names of the languages that timing methods can be printed in.
fn language_parser() -> impl TypedValueParser<Value = &'static SourceLanguage> {
    let values = LANGUAGES.iter().map(|language| PossibleValue::new(language.name).help(language.about));
    PossibleValuesParser::new(values).map(|name| find_language(&name).expect("only these names are possible"))
}
