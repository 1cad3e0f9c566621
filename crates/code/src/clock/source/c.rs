//! C and C++ with GNU C's inline assembly: a header of two functions that are always inlined.

use super::language::{SourceLanguage, TemplateWords};
use super::syntax::{SourceLine, SourceSyntax, register_name, step_lines};
use super::wiring::RegisterWiring;
use crate::asm::CodeMode;
use crate::clock::step::ClockStep;
use crate::clock::timing_method::{Clock, ClockSide};
use iced_x86::Register::{self, EAX, EBX, ECX, EDX};

pub(super) const C: SourceLanguage = SourceLanguage {
    name: "c",
    about: "a header, C99 and later, for GCC and Clang; for the kernel too",
    calls: true,
    comment: " * ",
    template: include_str!("c.txt"),
    examples: [include_str!("c_example.txt"); 2],
    mode_words: &MODE_WORDS,
    words: |clock, mode| {
        let include = if clock.calls_system() { SYSTEM_INCLUDES } else { TYPE_INCLUDES };
        fill_words((clock, mode), include, "uint32_t counter", "void")
    },
};

pub(super) const CXX: SourceLanguage = SourceLanguage {
    name: "c++",
    about: "a header, C++11 and later, for GCC and Clang",
    calls: true,
    comment: " * ",
    template: include_str!("cxx.txt"),
    examples: [include_str!("cxx_example.txt"); 2],
    mode_words: &MODE_WORDS,
    words: |clock, mode| {
        let include =
            if clock.calls_system() { "#include <cstdint>\n#include <time.h>\n" } else { "#include <cstdint>\n" };
        let words = fill_words((clock, mode), include, "std::uint32_t counter", "");
        let qualified = |text: String| {
            let text = text.replace("uint64_t", "std::uint64_t").replace("uint32_t", "std::uint32_t");
            text.replace(" clock_gettime(", " ::clock_gettime(")
        };
        TemplateWords { start: qualified(words.start), end: qualified(words.end), ..words }
    },
};

const MODE_WORDS: [(&str, [&str; 2]); 3] = [
    ("@MACRO@", ["__x86_64__", "__i386__"]),
    ("@PROCESSOR@", ["x86-64", "32-bit x86"]),
    ("@COMPILE@", ["-O2", "-m32 -O2"]),
];

const TYPE_INCLUDES: &str = "#ifdef __KERNEL__\n#include <linux/types.h>\n#else\n#include <stdint.h>\n#endif\n";
const SYSTEM_INCLUDES: &str = "#include <stdint.h>\n#include <time.h>\n#ifndef CLOCK_MONOTONIC_RAW\n\
    #error \"compile with -std=gnu11 or -D_GNU_SOURCE: strict C hides CLOCK_MONOTONIC_RAW\"\n#endif\n";

fn fill_words(
    (clock, mode): (&Clock, CodeMode),
    include: &'static str,
    counter: &'static str,
    nothing: &'static str,
) -> TemplateWords {
    let (parameter, argument) = if clock.reads_counter() { (counter, "counter") } else { (nothing, "") };
    let body = |side| match clock.calls_system() {
        true => system_call_body(clock, side),
        false => reading_body(clock, side, mode),
    };
    let [start, end] = ClockSide::BOTH.map(body);
    TemplateWords { include: include.to_string(), parameter, argument, start, end }
}

fn reading_body(clock: &Clock, side: ClockSide, mode: CodeMode) -> String {
    let result = mode.choose(["high << 32 | low", "(uint64_t)high << 32 | low"]);
    let style = BodyStyle { half: mode.choose(["uint64_t", "uint32_t"]), names: mode };
    function_body(clock, side, &RegisterWiring::new(clock, side, mode), style) + &format!("    return {result};\n")
}

/// Words in a body.
#[derive(Clone, Copy)]
struct BodyStyle {
    /// The type of a half of the reading.
    half: &'static str,
    /// The mode whose names registers have in the list of those that change.
    names: CodeMode,
}

/// The style of the header: most bodies are the same in both modes.
#[cfg(test)]
const HEADER_STYLE: BodyStyle = BodyStyle { half: "cyclescope_word", names: CodeMode::Bits32 };

/// Body of a function of the header, for programs of both modes.
#[cfg(test)]
pub(super) fn header_body(clock: &Clock, side: ClockSide) -> String {
    if clock.calls_system() {
        return system_call_body(clock, side);
    }
    choose_by_mode(|mode| {
        let body = function_body(clock, side, &RegisterWiring::new(clock, side, mode), HEADER_STYLE);
        body + "    return (uint64_t)high << 32 | low;\n"
    })
}

/// The same for one that returns the number of its CPU too.
#[cfg(test)]
pub(super) fn cpu_reading_body(clock: &Clock, side: ClockSide) -> String {
    choose_by_mode(|mode| {
        let body = function_body(clock, side, &RegisterWiring::with_cpu(clock, side, mode), HEADER_STYLE);
        body + "    reading.clock = (uint64_t)high << 32 | low;\n    return reading;\n"
    })
}

/// Text for programs of both modes, which the preprocessor chooses from if they differ.
#[cfg(test)]
fn choose_by_mode(text: impl Fn(CodeMode) -> String) -> String {
    let [wide, narrow] = [CodeMode::Bits64, CodeMode::Bits32].map(text);
    if wide == narrow { wide } else { format!("#ifdef __x86_64__\n{wide}#else\n{narrow}#endif\n") }
}

/// Body of a function without its last line: one assembly statement, which the compiler keeps
/// together and in place.
fn function_body(clock: &Clock, side: ClockSide, wiring: &RegisterWiring, style: BodyStyle) -> String {
    let mut text = format!("    {} low, high", style.half);
    text.push_str(if wiring.keeps_rbx { ", rbx;\n" } else { ";\n" });
    text.push_str(if wiring.keeps_cpu { "    struct cyclescope_cpu_reading reading;\n\n" } else { "\n" });
    text.push_str("    __asm__ __volatile__(\n");
    for SourceLine { text: line, remark } in assembly_lines(clock.side_steps(side), wiring) {
        let line = format!("        \"{line}\\n\\t\"");
        text.push_str(&if remark.is_empty() { line + "\n" } else { format!("{line:<44} /* {remark} */\n") });
    }
    let early = if wiring.is_moved || wiring.keeps_rbx { "=&" } else { "=" };
    let [low, high] = wiring.reading.map(constraint_letter);
    text.push_str(&format!("        : \"{early}{low}\"(low), \"{early}{high}\"(high)"));
    text.push_str(if wiring.keeps_rbx { ", \"=&r\"(rbx)" } else { "" });
    text.push_str(match (wiring.keeps_cpu, wiring.is_moved) {
        (false, _) => "\n",
        (true, false) => ", \"=c\"(reading.cpu)\n",
        // A register could be RBX, which CPUID changes meanwhile.
        (true, true) => ", \"=m\"(reading.cpu)\n",
    });
    text.push_str(if wiring.takes_counter { "        : \"c\"(counter)\n" } else { "        :\n" });
    let clobbers = wiring.clobbers.iter().map(|register| register_name(style.names.register(*register)));
    let clobbers = clobbers.map(|name| format!("\"{name}\", "));
    text.push_str(&format!("        : {}\"memory\");\n", clobbers.collect::<String>()));
    text
}

/// Lines of one statement, for compilers that emit either syntax.
fn assembly_lines(steps: &[ClockStep], wiring: &RegisterWiring) -> Vec<SourceLine> {
    let [low, high] = wiring.reading.map(|register| register_name(register.full_register32()));
    let moved = |from: Register, to: &str, remark| {
        let from = register_name(from);
        SourceLine { text: format!("{{mov %%{from}, %%{to}|mov {to}, {from}}}"), remark }
    };
    let mut all = Vec::new();
    for step in steps {
        match step {
            ClockStep::Store if wiring.is_moved => {
                all.extend([moved(EAX, &low, ""), moved(EDX, &high, step.describe_effect())]);
                if wiring.keeps_cpu {
                    // The operand after the reading and RBX.
                    let number = 2 + usize::from(wiring.keeps_rbx);
                    let text = format!("{{mov %%ecx, %{number}|mov %{number}, ecx}}");
                    all.push(SourceLine { text, remark: "the number of the CPU" });
                }
            }
            ClockStep::Store if wiring.pushes_reading => {
                all.extend(wiring.keeps_cpu.then(|| on_stack("push", ECX, "the number of the CPU")));
                all.extend([on_stack("push", EDX, ""), on_stack("push", EAX, step.describe_effect())]);
            }
            step if wiring.pushes_around(*step) => {
                all.push(on_stack("push", EBX, "the compiler may need EBX"));
                all.extend(in_both_syntaxes(*step, wiring.mode));
                all.push(on_stack("pop", EBX, ""));
            }
            step => all.extend(in_both_syntaxes(*step, wiring.mode)),
        }
    }
    if wiring.pushes_reading {
        all.extend([on_stack("pop", EAX, ""), on_stack("pop", EDX, "")]);
        all.extend(wiring.keeps_cpu.then(|| on_stack("pop", ECX, "")));
    }
    if wiring.keeps_rbx {
        let text = "{mov %%rbx, %2|mov %2, rbx}".to_string();
        all.insert(0, SourceLine { text, remark: "the compiler may need RBX" });
        all.push(SourceLine { text: "{mov %2, %%rbx|mov rbx, %2}".to_string(), remark: "" });
    }
    all
}

/// A push or a pop.
fn on_stack(mnemonic: &str, register: Register, remark: &'static str) -> SourceLine {
    let register = register_name(register);
    SourceLine { text: format!("{{{mnemonic} %%{register}|{mnemonic} {register}}}"), remark }
}

/// Lines of a step, each with both syntaxes.
fn in_both_syntaxes(step: ClockStep, mode: CodeMode) -> impl Iterator<Item = SourceLine> {
    let pairs = step_lines(step, SourceSyntax::Att, mode).into_iter().zip(step_lines(step, SourceSyntax::Intel, mode));
    pairs.map(|(att, intel)| {
        let same = att.text == intel.text;
        let doubled = att.text.replace('%', "%%");
        SourceLine { text: if same { doubled } else { format!("{{{doubled}|{}}}", intel.text) }, remark: att.remark }
    })
}

/// Constraint letter of a register.
fn constraint_letter(register: Register) -> char {
    match register {
        Register::RAX => 'a',
        Register::RDX => 'd',
        Register::RSI => 'S',
        _ => 'D',
    }
}

/// Body of a function that calls the system; its fences are separate statements.
fn system_call_body(clock: &Clock, side: ClockSide) -> String {
    let mut text = String::from("    struct timespec now;\n\n");
    for step in clock.side_steps(side) {
        match step {
            ClockStep::ClockGettime => text.push_str("    clock_gettime(CLOCK_MONOTONIC_RAW, &now);\n"),
            ClockStep::Store => {}
            // Fences are the same in both modes.
            step => in_both_syntaxes(*step, CodeMode::Bits64).for_each(|SourceLine { text: line, remark }| {
                let statement = format!("    __asm__ __volatile__(\"{line}\" : : : \"memory\");");
                text.push_str(&format!("{statement} /* {remark} */\n"));
            }),
        }
    }
    text + "    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;\n"
}
