//! Rust: a module of two functions that are always inlined.

use super::language::{SourceLanguage, TemplateWords};
use super::syntax::{SourceLine, SourceSyntax, register_name, step_lines};
use super::wiring::RegisterWiring;
use crate::asm::CodeMode;
use crate::clock::step::ClockStep;
use crate::clock::timing_method::{Clock, ClockSide};

pub(super) const RUST: SourceLanguage = SourceLanguage {
    name: "rust",
    about: "a module, Rust 1.82 and later",
    calls: true,
    comment: "// ",
    template: include_str!("rust.txt"),
    examples: [include_str!("rust_example.txt"); 2],
    mode_words: &[("@WORD@", ["u64", "u32"]), ("@TARGET@", ["", " --target i686-unknown-linux-gnu"])],
    words: |clock, mode| {
        let include = if clock.calls_system() { declare_system_call(mode) } else { String::new() };
        let (parameter, argument) = if clock.reads_counter() { ("counter: u32", "counter") } else { ("", "") };
        let body = |side| match clock.calls_system() {
            true => system_call_body(clock, side),
            false => reading_body(clock, side, mode),
        };
        let [start, end] = ClockSide::BOTH.map(body);
        TemplateWords { include, parameter, argument, start, end }
    },
};

/// The value of `CLOCK_MONOTONIC_RAW` is part of Linux's interface, and so is the structure.
fn declare_system_call(mode: CodeMode) -> String {
    SYSTEM_DECLARATIONS.replace("@LONG@", mode.choose(["i64", "i32"]))
}

const SYSTEM_DECLARATIONS: &str = "
const CLOCK_MONOTONIC_RAW: i32 = 4;

#[repr(C)]
struct Timespec {
    seconds: @LONG@,
    nanoseconds: @LONG@,
}

unsafe extern \"C\" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}
";

fn reading_body(clock: &Clock, side: ClockSide, mode: CodeMode) -> String {
    let result = mode.choose(["(high << 32) | low", "(u64::from(high) << 32) | u64::from(low)"]);
    function_body(clock, side, &RegisterWiring::new(clock, side, mode)) + &format!("    {result}\n")
}

/// Body of a function that returns the number of its CPU too.
#[cfg(test)]
pub(super) fn cpu_reading_body(clock: &Clock, side: ClockSide) -> String {
    let body = function_body(clock, side, &RegisterWiring::with_cpu(clock, side, CodeMode::Bits64));
    body + "    CpuReading { clock: (high << 32) | low, cpu }\n"
}

/// Body of a function without its result.
fn function_body(clock: &Clock, side: ClockSide, wiring: &RegisterWiring) -> String {
    let mut all: Vec<SourceLine> = Vec::new();
    if wiring.keeps_rbx {
        all.push(SourceLine { text: "mov {rbx}, rbx".to_string(), remark: "the compiler needs RBX" });
    }
    for step in clock.side_steps(side) {
        match step {
            ClockStep::Store if wiring.is_moved => {
                let [low, high] = wiring.reading.map(|register| register_name(register.full_register32()));
                all.push(SourceLine { text: format!("mov {low}, eax"), remark: "" });
                all.push(SourceLine { text: format!("mov {high}, edx"), remark: step.describe_effect() });
                if wiring.keeps_cpu {
                    all.push(SourceLine { text: "mov r8d, ecx".to_string(), remark: "the number of the CPU" });
                }
            }
            ClockStep::Store if wiring.pushes_reading => {
                all.push(SourceLine { text: "push edx".to_string(), remark: "" });
                all.push(SourceLine { text: "push eax".to_string(), remark: step.describe_effect() });
            }
            step if wiring.pushes_around(*step) => {
                all.push(SourceLine { text: "push ebx".to_string(), remark: "the compiler may need EBX" });
                all.extend(step_lines(*step, SourceSyntax::Intel, wiring.mode));
                all.push(SourceLine { text: "pop ebx".to_string(), remark: "" });
            }
            step => all.extend(step_lines(*step, SourceSyntax::Intel, wiring.mode)),
        }
    }
    if wiring.pushes_reading {
        all.extend(["pop eax", "pop edx"].map(|text| SourceLine { text: text.to_string(), remark: "" }));
    }
    if wiring.keeps_rbx {
        all.push(SourceLine { text: "mov rbx, {rbx}".to_string(), remark: "" });
    }
    let mut text =
        wiring.mode.choose(["    let (low, high): (u64, u64);\n", "    let (low, high): (u32, u32);\n"]).to_string();
    text.push_str(if wiring.keeps_cpu { "    let cpu: u32;\n" } else { "" });
    text.push_str(
        "    // SAFETY: this reads a clock, and lists the registers that it changes.\n    unsafe {\n        asm!(\n",
    );
    for SourceLine { text: line, remark } in all {
        let line = format!("            \"{line}\",");
        text.push_str(&if remark.is_empty() { line + "\n" } else { format!("{line:<40} // {remark}\n") });
    }
    if wiring.takes_counter {
        text.push_str("            in(\"ecx\") counter,\n");
    }
    if wiring.keeps_rbx {
        text.push_str("            rbx = out(reg) _,\n");
    }
    for (register, to) in wiring.reading.iter().zip(["low", "high"]) {
        text.push_str(&format!("            out(\"{}\") {to},\n", wiring.name(*register)));
    }
    if wiring.keeps_cpu {
        let place = if wiring.is_moved { "out(\"r8d\")" } else { "out(\"ecx\")" };
        text.push_str(&format!("            {place} cpu,\n"));
    }
    for register in &wiring.clobbers {
        text.push_str(&format!("            out(\"{}\") _,\n", wiring.name(*register)));
    }
    let uses_stack = wiring.pushes_ebx || wiring.pushes_reading;
    text.push_str(if uses_stack { "" } else { "            options(nostack),\n" });
    text + "        );\n    }\n"
}

/// Body of a function that calls the system.
fn system_call_body(clock: &Clock, side: ClockSide) -> String {
    let mut text = String::from(
        "    let mut now = Timespec { seconds: 0, nanoseconds: 0 };\n\
         \x20   // SAFETY: the call writes only this structure; the fences change nothing.\n    unsafe {\n",
    );
    for step in clock.side_steps(side) {
        match step {
            ClockStep::ClockGettime => text.push_str("        clock_gettime(CLOCK_MONOTONIC_RAW, &mut now);\n"),
            ClockStep::Store => {}
            step => step_lines(*step, SourceSyntax::Intel, CodeMode::Bits64).into_iter().for_each(
                |SourceLine { text: line, remark }| {
                    text.push_str(&format!("        asm!(\"{line}\", options(nostack)); // {remark}\n"));
                },
            ),
        }
    }
    text + "    }\n    now.seconds as u64 * 1_000_000_000 + now.nanoseconds as u64\n"
}
