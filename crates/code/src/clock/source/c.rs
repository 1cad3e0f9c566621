//! C and C++, with GNU C's inline assembly: a header of two functions that are always built in.

use super::language::{Language, Words};
use super::syntax::{Line, Syntax, lines, name};
use super::wiring::Wiring;
use crate::clock::method::{Clock, Side};
use crate::clock::step::Step;
use iced_x86::Register::{self, EAX, EDX};

pub(super) const C: Language = Language {
    name: "c",
    about: "a header, C99 and later, for GCC and Clang; for the kernel too",
    calls: true,
    comment: " * ",
    template: include_str!("c.txt"),
    example: include_str!("c_example.txt"),
    words: |clock| {
        let include = if clock.calls() { INCLUDE_CALL } else { INCLUDE };
        words(clock, include, "uint32_t counter", "void")
    },
};

pub(super) const CXX: Language = Language {
    name: "c++",
    about: "a header, C++11 and later, for GCC and Clang",
    calls: true,
    comment: " * ",
    template: include_str!("cxx.txt"),
    example: include_str!("cxx_example.txt"),
    words: |clock| {
        let include =
            if clock.calls() { "#include <cstdint>\n#include <time.h>\n" } else { "#include <cstdint>\n" };
        let words = words(clock, include, "std::uint32_t counter", "");
        let qualified = |text: String| {
            let text = text.replace("uint64_t", "std::uint64_t");
            text.replace(" clock_gettime(", " ::clock_gettime(")
        };
        Words { start: qualified(words.start), end: qualified(words.end), ..words }
    },
};

const INCLUDE: &str = "#ifdef __KERNEL__\n#include <linux/types.h>\n#else\n#include <stdint.h>\n#endif\n";
const INCLUDE_CALL: &str = "#include <stdint.h>\n#include <time.h>\n#ifndef CLOCK_MONOTONIC_RAW\n\
    #error \"compile with -std=gnu11 or -D_GNU_SOURCE: strict C hides CLOCK_MONOTONIC_RAW\"\n#endif\n";

fn words(clock: &Clock, include: &'static str, counter: &'static str, nothing: &'static str) -> Words {
    let (parameter, argument) = if clock.reads_counter() { (counter, "counter") } else { (nothing, "") };
    let [start, end] =
        Side::BOTH.map(|side| if clock.calls() { call(clock, side) } else { body(clock, side) });
    Words { include, parameter, argument, start, end }
}

/// A function's body: one statement of assembly, which the compiler keeps together and in its place.
fn body(clock: &Clock, side: Side) -> String {
    let wiring = Wiring::new(clock, side);
    let mut text = String::from("    uint64_t low, high");
    text.push_str(if wiring.keeps_rbx { ", rbx;\n\n" } else { ";\n\n" });
    text.push_str("    __asm__ __volatile__(\n");
    for Line { text: line, remark } in assembly(clock.side(side), &wiring) {
        let line = format!("        \"{line}\\n\\t\"");
        text.push_str(&if remark.is_empty() { line + "\n" } else { format!("{line:<44} /* {remark} */\n") });
    }
    let early = if wiring.is_moved || wiring.keeps_rbx { "=&" } else { "=" };
    let [low, high] = wiring.reading.map(letter);
    text.push_str(&format!("        : \"{early}{low}\"(low), \"{early}{high}\"(high)"));
    text.push_str(if wiring.keeps_rbx { ", \"=&r\"(rbx)\n" } else { "\n" });
    text.push_str(if wiring.takes_counter { "        : \"c\"(counter)\n" } else { "        :\n" });
    let clobbers = wiring.clobbers.iter().map(|register| format!("\"{}\", ", name(*register)));
    text.push_str(&format!("        : {}\"memory\");\n", clobbers.collect::<String>()));
    text + "    return high << 32 | low;\n"
}

/// The lines of one statement, for compilers that write either syntax.
fn assembly(steps: &[Step], wiring: &Wiring) -> Vec<Line> {
    let [low, high] = wiring.reading.map(|register| name(register.full_register32()));
    let moved = |from: Register, to: &str, remark| {
        let from = name(from);
        Line { text: format!("{{mov %%{from}, %%{to}|mov {to}, {from}}}"), remark }
    };
    let mut all = Vec::new();
    for step in steps {
        match step {
            Step::Store if wiring.is_moved => {
                all.extend([moved(EAX, &low, ""), moved(EDX, &high, step.effect())]);
            }
            step => all.extend(both(*step)),
        }
    }
    if wiring.keeps_rbx {
        let text = "{mov %%rbx, %2|mov %2, rbx}".to_string();
        all.insert(0, Line { text, remark: "the compiler may need RBX for itself" });
        all.push(Line { text: "{mov %2, %%rbx|mov rbx, %2}".to_string(), remark: "" });
    }
    all
}

/// A step's lines in both syntaxes of one text.
fn both(step: Step) -> impl Iterator<Item = Line> {
    let pairs = lines(step, Syntax::Att).into_iter().zip(lines(step, Syntax::Intel));
    pairs.map(|(att, intel)| {
        let same = att.text == intel.text;
        let doubled = att.text.replace('%', "%%");
        Line {
            text: if same { doubled } else { format!("{{{doubled}|{}}}", intel.text) },
            remark: att.remark,
        }
    })
}

/// The letter that constraints have for a register.
fn letter(register: Register) -> char {
    match register {
        Register::RAX => 'a',
        Register::RDX => 'd',
        Register::RSI => 'S',
        _ => 'D',
    }
}

/// A function's body that calls the system: its fences are statements of their own.
fn call(clock: &Clock, side: Side) -> String {
    let mut text = String::from("    struct timespec now;\n\n");
    for step in clock.side(side) {
        match step {
            Step::ClockGettime => text.push_str("    clock_gettime(CLOCK_MONOTONIC_RAW, &now);\n"),
            Step::Store => {}
            step => both(*step).for_each(|Line { text: line, remark }| {
                let statement = format!("    __asm__ __volatile__(\"{line}\" : : : \"memory\");");
                text.push_str(&format!("{statement} /* {remark} */\n"));
            }),
        }
    }
    text + "    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;\n"
}
