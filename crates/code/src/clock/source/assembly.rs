//! NASM and GNU as: two macros, which store a reading where they are told. They change the registers that the method changes.

use super::language::{Language, Words};
use super::syntax::{Line, Syntax, lines, name};
use crate::clock::method::{Clock, Side};
use crate::clock::step::Step;

pub(super) const NASM: Language = Language {
    name: "nasm",
    about: "macros for NASM",
    calls: false,
    comment: "; ",
    template: include_str!("nasm.txt"),
    example: include_str!("nasm_example.txt"),
    words: |clock| words(clock, &Dialect::NASM),
};

pub(super) const GAS: Language = Language {
    name: "gas",
    about: "macros for GNU as, AT&T syntax",
    calls: false,
    comment: " * ",
    template: include_str!("gas.txt"),
    example: include_str!("gas_example.txt"),
    words: |clock| words(clock, &Dialect::GAS),
};

/// What differs between the two, besides the instructions.
struct Dialect {
    syntax: Syntax,
    /// The parameters of a macro, without and with a counter's number.
    parameters: [&'static str; 2],
    argument: &'static str,
    /// The moves of a reading to memory.
    store: [&'static str; 2],
    /// The move of a counter's number to ECX.
    counter: &'static str,
    /// What a comment begins and ends with.
    comment: [&'static str; 2],
}

impl Dialect {
    const NASM: Dialect = Dialect {
        syntax: Syntax::Nasm,
        parameters: [
            "1 ; %1: address of the 8 bytes for the reading",
            "2 ; %1: address of the 8 bytes for the reading, %2: the counter",
        ],
        argument: ", COUNTER",
        store: ["mov [%1], eax", "mov [%1 + 4], edx"],
        counter: "mov ecx, %2",
        comment: ["; ", ""],
    };
    const GAS: Dialect = Dialect {
        syntax: Syntax::Att,
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

fn words(clock: &Clock, dialect: &Dialect) -> Words {
    let counts = clock.reads_counter();
    let [start, end] = Side::BOTH.map(|side| body(clock, side, dialect));
    Words {
        include: "",
        parameter: dialect.parameters[usize::from(counts)],
        argument: if counts { dialect.argument } else { "" },
        start,
        end,
    }
}

fn body(clock: &Clock, side: Side, dialect: &Dialect) -> String {
    let [open, close] = dialect.comment;
    let changed: Vec<String> = clock.clobbers_of(side).into_iter().map(name).collect();
    let mut text = format!("    {open}changes {}{close}\n", changed.join(", "));
    for step in clock.side(side) {
        let mut all = lines(*step, dialect.syntax);
        if *step == Step::Rdpmc {
            all.insert(0, Line { text: dialect.counter.to_string(), remark: "" });
        }
        if *step == Step::Store {
            all.extend(dialect.store.map(|line| Line { text: line.to_string(), remark: "" }));
        }
        for Line { text: line, remark } in all {
            text.push_str(&match remark {
                "" => format!("    {line}\n"),
                remark => format!("    {line:<24} {open}{remark}{close}\n"),
            });
        }
    }
    text
}
