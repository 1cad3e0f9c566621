//! Contexts: loops with a marker in them.

/// One loop, in each language.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Context {
    /// Its name in records and on the command line.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// Whether it is measured without being asked for: the two that the document on Linux kernel markers has.
    pub usual: bool,
    /// The half width, in core cycles, that a difference at one placement shall have.
    pub aim: f64,
    /// Whether it touches the memory that it is given.
    pub touches_memory: bool,
    /// Its text in C.
    pub c: Text,
    /// Its text in Rust.
    pub rust: Text,
}

/// What stands around and in a loop, in one language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Before the loop.
    pub before: &'static str,
    /// The loop's body. `memory` points to at least 256 KiB.
    pub body: &'static str,
    /// After the loop.
    pub after: &'static str,
}

/// The aim in a loop of the user's own.
pub const AIM: f64 = 0.1;

/// All contexts.
pub const ALL: &[Context] = &[
    Context {
        name: "empty",
        about: "an empty loop",
        usual: true,
        aim: 0.05,
        touches_memory: false,
        c: Text { before: "", body: "barrier();", after: "" },
        rust: Text { before: "", body: "barrier();", after: "" },
    },
    Context {
        name: "memcpy",
        about: "a loop of memcpy of 4096 bytes",
        usual: true,
        aim: 0.1,
        touches_memory: true,
        // Source and destination are no multiple of 4096 apart: such loads would wait for stores that they don't need.
        c: Text { before: "", body: "memcpy(memory + 4096 + 5 * 320, memory, 4096); barrier();", after: "" },
        rust: Text {
            before: "",
            body: "core::ptr::copy_nonoverlapping(memory, memory.add(4096 + 5 * 320), 4096); barrier();",
            after: "",
        },
    },
];
