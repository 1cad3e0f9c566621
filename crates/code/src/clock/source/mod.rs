//! Prints a timing method as source text that users paste into their own programs.
//!
//! The text has the instructions that the engine assembles, in the order of the method's steps. A language says how to write
//! them; its template has the functions, comments and example around them. A new method needs no change here, a new
//! language one file.

mod assembly;
mod c;
#[cfg(test)]
mod generated_files;
mod language;
mod rust;
mod syntax;
mod wiring;

pub use language::SourceLanguage;

use super::timing_method::Clock;
use cyclescope_core::unit::Unit;

/// Macros for C and C++ that keep a compiler from moving, or leaving out, computations.
pub const C_GUARDS: &str = include_str!("guards.h");

/// Why a method is not written in a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedLanguage {
    /// The reason.
    pub why: String,
    /// What to do instead.
    pub remedy: String,
}

/// All languages.
pub const LANGUAGES: &[SourceLanguage] = &[c::C, c::CXX, rust::RUST, assembly::NASM, assembly::GAS];

/// The language of this name.
pub fn find_language(name: &str) -> Option<&'static SourceLanguage> {
    LANGUAGES.iter().find(|language| language.name == name)
}

/// The name of a method as languages have names.
pub fn clock_identifier(clock: &Clock) -> String {
    clock.name.replace('-', "_")
}

/// The text of a method: a file to include or to paste, with what the method promises, its start, its end and an example. The
/// example runs as a program, except that of methods which a process can't use unprepared: those have none.
pub fn render_source(clock: &Clock, language: &SourceLanguage) -> Result<String, UnsupportedLanguage> {
    if clock.calls_system() && !language.calls {
        let able = LANGUAGES.iter().filter(|language| language.calls).map(|language| language.name);
        return Err(UnsupportedLanguage {
            why: format!("{} calls a function of the C library and is no sequence of instructions", clock.name),
            remedy: format!("choose {}, or call clock_gettime(2) yourself", able.collect::<Vec<_>>().join(", ")),
        });
    }
    let words = (language.words)(clock);
    let runs_alone = !clock.needs_ring0() && !clock.reads_counter();
    let mut text = language.template.to_string();
    if !runs_alone {
        text = text.lines().filter(|line| !line.contains(" Example: ")).map(|line| format!("{line}\n")).collect();
    }
    let head: Vec<String> = header_lines(clock, language).iter().map(|line| comment_line(language, line)).collect();
    for (place, put) in [
        ("@HEAD@", head.join("\n")),
        ("@EXAMPLE@", if runs_alone { language.example.trim_end().to_string() } else { String::new() }),
        ("@GUARDS@", C_GUARDS.to_string()),
        ("@INCLUDE@", words.include.to_string()),
        ("@PARAMETER@", words.parameter.to_string()),
        ("@ARGUMENT@", words.argument.to_string()),
        ("@START@", words.start),
        ("@END@", words.end),
        ("@NAME@", clock_identifier(clock)),
        ("@GUARD@", clock_identifier(clock).to_uppercase()),
        ("@UNIT@", clock.counts.text().to_string()),
    ] {
        text = text.replace(place, &put);
    }
    Ok(text)
}

fn comment_line(language: &SourceLanguage, line: &str) -> String {
    format!("{}{line}", language.comment).trim_end().to_string()
}

/// What a user has to know of a method, from its data.
fn header_lines(clock: &Clock, language: &SourceLanguage) -> Vec<String> {
    let promised = |made| clock.promises.list_promises().into_iter().filter(move |(_, _, kept)| *kept == made);
    let mut lines = vec![
        format!("{}: {}", clock.name, clock.about),
        format!("Source: {}", clock.source),
        format!("Written by: cyclescope clock {} --emit {}", clock.name, language.name),
        String::new(),
        format!("A reading is an unsigned number of 64 bits and counts {}.", clock.counts.text()),
    ];
    lines.extend(match clock.counts {
        Unit::TscTicks => {
            ["They pass at a fixed rate and are no core cycles; on many CPUs a reading moves by 20 to 40 of them at a time."]
                .as_slice()
        }
        Unit::CoreCycles => &["Two readings have to be of one CPU: keep the thread on it."],
        _ => &[],
    }.iter().map(|line| line.to_string()));
    lines.push(String::new());
    lines.extend(promised(true).map(|(_, text, _)| format!("promised:     {text}")));
    lines.extend(promised(false).map(|(_, text, _)| format!("not promised: {text}")));
    lines.extend(list_conditions(clock).into_iter().map(|text| format!("condition:    {text}")));
    lines.push(String::new());
    lines.extend(USAGE_LINES.map(str::to_string));
    lines.push(String::new());
    lines
}

/// The paper's way to a figure: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, section 4.
const USAGE_LINES: [&str; 5] = [
    "1. Choose the method by its variance, contamination and resolution here: cyclescope evaluate.",
    "2. Keep the thread on one CPU, and run the code a few times before it counts.",
    "3. Take many pairs around the code, and as many around nothing, in turn: the latter are the overhead.",
    "4. Subtract the overhead's median (the paper: its minimum), and look at the spread of what is left: interrupts and",
    "   the clock's step are in single pairs.",
];

/// What must hold for a method: the conditions of its steps, each once.
pub fn list_conditions(clock: &Clock) -> Vec<&'static str> {
    let mut found = Vec::new();
    for condition in clock.steps().filter_map(|step| step.describe_condition()) {
        if !found.contains(&condition) {
            found.push(condition);
        }
    }
    found
}

#[cfg(test)]
mod tests;
