//! Options of `clock`.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cyclescope::clock::source::{LANGUAGES, SourceLanguage, find_language};

/// Options of `clock`.
#[derive(Debug, Args)]
#[command(
    after_help = "The text has the method's start and end, what they promise, which registers they change, and an example \
    that subtracts what an empty pair takes: cyclescope clock lfence-rdtsc-lfence --emit c > timer.h"
)]
pub struct ClockArgs {
    /// The timing method [default: all are listed]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print the method as source text in this language
    #[arg(long, value_parser = language_parser(), value_name = "LANGUAGE", requires = "name")]
    pub emit: Option<&'static SourceLanguage>,
    /// List the methods, what they order and whether they work here
    #[arg(long, conflicts_with_all = ["name", "emit"])]
    pub list: bool,
}

/// The languages that a timing method can be written in, by their names.
fn language_parser() -> impl TypedValueParser<Value = &'static SourceLanguage> {
    let values = LANGUAGES.iter().map(|language| PossibleValue::new(language.name).help(language.about));
    PossibleValuesParser::new(values).map(|name| find_language(&name).expect("only these names are possible"))
}
