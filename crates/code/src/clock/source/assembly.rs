//! NASM and GNU as: two macros that store a reading at a given address. They change the registers
//! that the method changes.

use super::language::{SourceLanguage, TemplateWords};
use super::syntax::{SourceLine, SourceSyntax, register_name, step_lines};
use crate::clock::step::ClockStep;
use crate::clock::timing_method::{Clock, ClockSide};

pub(super) const NASM: SourceLanguage = SourceLanguage {
    name: "nasm",
    about: "macros for NASM",
    calls: false,
    comment: "; ",
    template: include_str!("nasm.txt"),
    example: include_str!("nasm_example.txt"),
    words: |clock| fill_words(clock, &MacroDialect::NASM),
};

pub(super) const GAS: SourceLanguage = SourceLanguage {
    name: "gas",
    about: "macros for GNU as, AT&T syntax",
    calls: false,
    comment: " * ",
    template: include_str!("gas.txt"),
    example: include_str!("gas_example.txt"),
    words: |clock| fill_words(clock, &MacroDialect::GAS),
};

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
            "to /* the 8 bytes for the reading, such as 0(%rsp) */",
            "to counter /* the 8 bytes for the reading, such as 0(%rsp), and the counter */",
        ],
        argument: ", COUNTER",
        store: ["movl %eax, \\to", "movl %edx, 4 + \\to"],
        counter: "movl \\counter, %ecx",
        comment: ["/* ", " */"],
    };
}

fn fill_words(clock: &Clock, dialect: &MacroDialect) -> TemplateWords {
    let counts = clock.reads_counter();
    let [start, end] = ClockSide::BOTH.map(|side| macro_body(clock, side, dialect));
    TemplateWords {
        include: "",
        parameter: dialect.parameters[usize::from(counts)],
        argument: if counts { dialect.argument } else { "" },
        start,
        end,
    }
}

fn macro_body(clock: &Clock, side: ClockSide, dialect: &MacroDialect) -> String {
    let [open, close] = dialect.comment;
    let changed: Vec<String> = clock.side_clobbers(side).into_iter().map(register_name).collect();
    let mut text = format!("    {open}changes {}{close}\n", changed.join(", "));
    for step in clock.side_steps(side) {
        let mut all = step_lines(*step, dialect.syntax);
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
