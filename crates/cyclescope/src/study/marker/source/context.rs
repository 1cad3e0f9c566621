//! Contexts: loops with a marker in them.

/// One loop, in each language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// Its name in records and on the command line.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// Whether it is measured without being asked for: the two that the document on Linux kernel markers has.
    pub usual: bool,
    /// Whether it touches the memory that it is given.
    pub touches_memory: bool,
    /// C before the loop.
    pub before: &'static str,
    /// C of the loop's body. `memory` points to at least 256 KiB.
    pub body: &'static str,
    /// C after the loop.
    pub after: &'static str,
}

/// All contexts.
pub const ALL: &[Context] = &[
    Context {
        name: "empty",
        about: "an empty loop",
        usual: true,
        touches_memory: false,
        before: "",
        body: "barrier();",
        after: "",
    },
    Context {
        name: "memcpy",
        about: "a loop of memcpy of 4096 bytes",
        usual: true,
        touches_memory: true,
        before: "",
        // Source and destination are no multiple of 4096 apart: such loads would wait for stores that they don't need.
        body: "memcpy(memory + 4096 + 5 * 320, memory, 4096); barrier();",
        after: "",
    },
];
