//! NASM and GNU as: two macros that store a reading at a given address. They change the registers
//! that the method changes.

use super::language::{SourceLanguage, TemplateWords};
use super::syntax::{SourceLine, SourceSyntax, register_name, step_lines};
use crate::asm::CodeMode;
use crate::clock::step::ClockStep;
use crate::clock::timing_method::{Clock, ClockSide};

pub(super) const NASM: SourceLanguage = SourceLanguage {
    name: "nasm",
    about: "macros for NASM",
    calls: false,
    comment: "; ",
    template: include_str!("nasm.txt"),
    examples: [include_str!("nasm_example.txt"), include_str!("nasm_example_32.txt")],
    mode_words: &[
        ("@BEGUN@", ["rel begun", "begun"]),
        ("@ENDED@", ["rel ended", "ended"]),
        ("@SUBTRACT@", [SUBTRACT_IN_NASM, SUBTRACT_IN_NASM_32]),
        ("@FORMAT@", ["elf64", "elf32"]),
        ("@LINK@", ["cc", "cc -m32 -no-pie"]),
    ],
    words: |clock, mode| fill_words((clock, mode), &MacroDialect::NASM),
};

pub(super) const GAS: SourceLanguage = SourceLanguage {
    name: "gas",
    about: "macros for GNU as, AT&T syntax",
    calls: false,
    comment: " * ",
    template: include_str!("gas.txt"),
    examples: [include_str!("gas_example.txt"), include_str!("gas_example_32.txt")],
    mode_words: &[
        ("@BEGUN@", ["begun(%rip)", "begun"]),
        ("@ENDED@", ["ended(%rip)", "ended"]),
        ("@SUBTRACT@", [SUBTRACT_IN_GAS, SUBTRACT_IN_GAS_32]),
        ("@STACK@", ["0(%rsp)", "0(%esp)"]),
        ("@ASSEMBLE@", ["as", "as --32"]),
        ("@LINK@", ["cc", "cc -m32 -no-pie"]),
    ],
    words: |clock, mode| fill_words((clock, mode), &MacroDialect::GAS),
};

/// The difference of two readings, as lines of the opening comment.
const SUBTRACT_IN_NASM: &str = "\
;          mov rax, [rel ended]
;          sub rax, [rel begun]";
const SUBTRACT_IN_NASM_32: &str = "\
;          mov eax, [ended]
;          mov edx, [ended + 4]
;          sub eax, [begun]
;          sbb edx, [begun + 4]";
const SUBTRACT_IN_GAS: &str = " *          movq ended(%rip), %rax
 *          subq begun(%rip), %rax";
const SUBTRACT_IN_GAS_32: &str = " *          movl ended, %eax
 *          movl ended + 4, %edx
 *          subl begun, %eax
 *          sbbl begun + 4, %edx";

/// Differences between the two assemblers, besides the instructions.
struct MacroDialect {
    syntax: SourceSyntax,
    /// Parameters of a macro, without and with a counter's number.
    parameters: [&'static str; 2],
    argument: &'static str,
    /// Moves of a reading to memory.
    store: [&'static str; 2],
    /// Move of a counter's number to ECX.
    counter: &'static str,
    /// Start and end of a comment.
    comment: [&'static str; 2],
}

impl MacroDialect {
    const NASM: MacroDialect = MacroDialect {
        syntax: SourceSyntax::Nasm,
        parameters: [
            "1 ; %1: address of the 8 bytes for the reading",
            "2 ; %1: address of the 8 bytes for the reading, %2: the counter",
        ],
        argument: ", COUNTER",
        store: ["mov [%1], eax", "mov [%1 + 4], edx"],
        counter: "mov ecx, %2",
        comment: ["; ", ""],
    };
    const GAS: MacroDialect = MacroDialect {
        syntax: SourceSyntax::Att,
        parameters: [
            "to /* the 8 bytes for the reading, such as @STACK@ */",
            "to counter /* the 8 bytes for the reading, such as @STACK@, and the counter */",
        ],
        argument: ", COUNTER",
        store: ["movl %eax, \\to", "movl %edx, 4 + \\to"],
        counter: "movl \\counter, %ecx",
        comment: ["/* ", " */"],
    };
}

fn fill_words((clock, mode): (&Clock, CodeMode), dialect: &MacroDialect) -> TemplateWords {
    let counts = clock.reads_counter();
    let [start, end] = ClockSide::BOTH.map(|side| macro_body((clock, mode), side, dialect));
    TemplateWords {
        include: String::new(),
        parameter: dialect.parameters[usize::from(counts)],
        argument: if counts { dialect.argument } else { "" },
        start,
        end,
    }
}

fn macro_body((clock, mode): (&Clock, CodeMode), side: ClockSide, dialect: &MacroDialect) -> String {
    let [open, close] = dialect.comment;
    let changed: Vec<String> =
        clock.side_clobbers(side).into_iter().map(|one| register_name(mode.register(one))).collect();
    let mut text = format!("    {open}changes {}{close}\n", changed.join(", "));
    for step in clock.side_steps(side) {
        let mut all = step_lines(*step, dialect.syntax, mode);
        if *step == ClockStep::Rdpmc {
            all.insert(0, SourceLine { text: dialect.counter.to_string(), remark: "" });
        }
        if *step == ClockStep::Store {
            all.extend(dialect.store.map(|line| SourceLine { text: line.to_string(), remark: "" }));
        }
        for SourceLine { text: line, remark } in all {
            text.push_str(&match remark {
                "" => format!("    {line}\n"),
                remark => format!("    {line:<24} {open}{remark}{close}\n"),
            });
        }
    }
    text
}
