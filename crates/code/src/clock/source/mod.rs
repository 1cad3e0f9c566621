//! Prints a timing method as source text that users paste into their own programs.
//!
//! The text has the instructions that the engine assembles, in the order of the method's steps. A
//! language defines how to write them; its template has the functions, comments and example around
//! them. A new method needs no change here; a new language needs one file.

mod assembly;
mod c;
#[cfg(test)]
mod generated_files;
mod language;
mod rust;
mod syntax;
mod wiring;

pub use language::SourceLanguage;

use super::step::ClockStep;
use super::timing_method::Clock;
use crate::asm::CodeMode;
use cyclescope_core::unit::Unit;

/// Macros for C and C++ that keep a compiler from moving or omitting computations.
pub const C_GUARDS: &str = include_str!("guards.h");

/// Why a method cannot be written in a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedLanguage {
    /// Reason.
    pub why: String,
    /// Alternative.
    pub remedy: String,
}

/// All languages.
pub const LANGUAGES: &[SourceLanguage] = &[c::C, c::CXX, rust::RUST, assembly::NASM, assembly::GAS];

/// Finds the language with this name.
pub fn find_language(name: &str) -> Option<&'static SourceLanguage> {
    LANGUAGES.iter().find(|language| language.name == name)
}

/// Name of a method as an identifier.
pub fn clock_identifier(clock: &Clock) -> String {
    clock.name.replace('-', "_")
}

/// Source text of a method for code of a mode: a file to include or paste, with its guarantees, its start, its end and
/// an example. The example runs as a program. Methods that a process cannot use without preparation
/// have no example.
pub fn render_source(clock: &Clock, language: &SourceLanguage, mode: CodeMode) -> Result<String, UnsupportedLanguage> {
    if clock.calls_system() && !language.calls {
        let able = LANGUAGES.iter().filter(|language| language.calls).map(|language| language.name);
        return Err(UnsupportedLanguage {
            why: format!("{} calls a function of the C library, so it is not a sequence of instructions", clock.name),
            remedy: format!("choose {}, or call clock_gettime(2) yourself", able.collect::<Vec<_>>().join(", ")),
        });
    }
    let words = (language.words)(clock, mode);
    let runs_alone = !clock.needs_ring0() && !clock.reads_counter();
    let mut text = language.template.to_string();
    if !runs_alone {
        text = text.lines().filter(|line| !line.contains(" Example: ")).map(|line| format!("{line}\n")).collect();
    }
    let head: Vec<String> =
        header_lines(clock, language, mode).iter().map(|line| comment_line(language, line)).collect();
    for (place, put) in [
        ("@HEAD@", head.join("\n")),
        ("@EXAMPLE@", if runs_alone { mode.choose(language.examples).trim_end().to_string() } else { String::new() }),
        ("@GUARDS@", C_GUARDS.to_string()),
        ("@INCLUDE@", words.include),
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
    for (place, texts) in language.mode_words {
        text = text.replace(place, mode.choose(*texts));
    }
    Ok(text)
}

fn comment_line(language: &SourceLanguage, line: &str) -> String {
    format!("{}{line}", language.comment).trim_end().to_string()
}

/// Header comment for users of a method, from its data.
fn header_lines(clock: &Clock, language: &SourceLanguage, mode: CodeMode) -> Vec<String> {
    let promised = |made| clock.promises.list_promises().into_iter().filter(move |(_, _, kept)| *kept == made);
    let mut lines = vec![
        format!("{}: {}", clock.name, clock.about),
        format!("Source: {}", clock.source),
        format!(
            "Written by: cyclescope clock {} --emit {}{}",
            clock.name,
            language.name,
            mode.choose(["", " --bits 32"])
        ),
        String::new(),
        format!("A reading is an unsigned 64-bit number and counts {}.", clock.counts.text()),
    ];
    lines.extend(
        match clock.counts {
            Unit::TscTicks => [
                "They pass at a fixed rate and are not core cycles; many CPUs advance a reading by 20 to 40 at a time.",
            ]
            .as_slice(),
            Unit::CoreCycles => &["Both readings must come from one CPU: keep the thread on it."],
            _ => &[],
        }
        .iter()
        .map(|line| line.to_string()),
    );
    lines.push(String::new());
    lines.extend(promised(true).map(|(_, text, _)| format!("promised:     {text}")));
    lines.extend(promised(false).map(|(_, text, _)| format!("not promised: {text}")));
    lines.extend(list_conditions(clock, mode).into_iter().map(|text| format!("condition:    {text}")));
    lines.push(String::new());
    lines.extend(USAGE_LINES.map(str::to_string));
    lines.push(String::new());
    lines
}

/// How to get a result: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64,
/// section 4.
const USAGE_LINES: [&str; 5] = [
    "1. Choose the method by its variance, contamination and resolution on this machine: cyclescope evaluate.",
    "2. Keep the thread on one CPU, and run the code a few times before measuring.",
    "3. Take many pairs around the code, in turn with as many empty pairs: those give the overhead.",
    "4. Subtract the median overhead (the paper: the minimum), and check the spread of the rest: single pairs",
    "   contain interrupts and the clock's step.",
];

/// Conditions of a method in code of a mode: those of its steps, each once.
pub fn list_conditions(clock: &Clock, mode: CodeMode) -> Vec<&'static str> {
    let mut found = Vec::new();
    // Every x86-64 CPU has SSE2.
    if mode == CodeMode::Bits32 && clock.steps().any(|step| [ClockStep::Lfence, ClockStep::Mfence].contains(step)) {
        found.push("LFENCE and MFENCE need SSE2 (CPUID leaf 1, EDX bit 26); the CPU faults without it");
    }
    for condition in clock.steps().filter_map(|step| step.describe_condition()) {
        if !found.contains(&condition) {
            found.push(condition);
        }
    }
    found
}

#[cfg(test)]
mod tests;
