//! Contexts: loops with a marker in them.

/// A loop in each language.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoopContext<'a> {
    /// Name in records and on the command line.
    pub name: &'a str,
    /// One-line description.
    pub about: &'a str,
    /// Whether it is measured by default: the two contexts of the document on Linux kernel markers.
    pub usual: bool,
    /// Target half width of a difference at one placement, in core cycles.
    pub aim: f64,
    /// Its use of the memory that it receives.
    pub memory: MemoryFootprint,
    /// Its text in C.
    pub c: LoopText<'a>,
    /// Its text in Rust.
    pub rust: LoopText<'a>,
}

/// A loop's use of its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFootprint {
    /// None.
    Untouched,
    /// Reads and writes at least 256 KiB.
    Scratch,
    /// Cycles through a working set that exceeds the cache of this level. A word at its start holds
    /// its size.
    Beyond(u32),
}

/// A loop over a working set. Its memory begins with the set's size in bytes, a multiple of 256,
/// and the loop's position in the set. The set begins 4096 bytes later. A loop continues at the
/// position where the last one ended, so that any number of loops covers all of it.
const LINES_IN_C: LoopText = LoopText {
    before: "volatile unsigned long *head = (void *)memory; unsigned long bytes = head[0], at = head[1];",
    body: "const volatile unsigned long *word = (void *)(memory + 4096 + at);\n\
           word[0]; word[64 / sizeof(*word)]; word[128 / sizeof(*word)]; word[192 / sizeof(*word)];\n\
           at += 256; if (at >= bytes) at = 0; barrier();",
    after: "head[1] = at;",
};
const LINES_IN_RUST: LoopText = LoopText {
    before: "let head = memory.cast::<usize>(); \
             let (bytes, mut at) = (head.read_volatile(), head.add(1).read_volatile());",
    body: "let word = memory.add(4096 + at).cast::<u64>();\n\
           for index in [0, 8, 16, 24] { word.add(index).read_volatile(); }\n\
           at += 256; if at >= bytes { at = 0 } barrier();",
    after: "head.add(1).write_volatile(at);",
};

/// The code around and in a loop, in one language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopText<'a> {
    /// Before the loop.
    pub before: &'a str,
    /// The loop's body. `memory` points to at least 256 KiB.
    pub body: &'a str,
    /// After the loop.
    pub after: &'a str,
}

/// Target half width in a custom loop.
pub const CUSTOM_LOOP_AIM: f64 = 0.1;

/// All contexts.
pub const ALL: &[LoopContext] = &[
    LoopContext {
        name: "empty",
        about: "an empty loop",
        usual: true,
        aim: 0.05,
        memory: MemoryFootprint::Untouched,
        c: LoopText { before: "", body: "barrier();", after: "" },
        rust: LoopText { before: "", body: "barrier();", after: "" },
    },
    LoopContext {
        name: "memcpy",
        about: "a loop of memcpy of 4096 bytes",
        usual: true,
        aim: 0.1,
        memory: MemoryFootprint::Scratch,
        // Source and destination differ by other than a multiple of 4096. Otherwise loads would
        // wait for unrelated stores.
        c: LoopText { before: "", body: "memcpy(memory + 4096 + 5 * 320, memory, 4096); barrier();", after: "" },
        rust: LoopText {
            before: "",
            body: "core::ptr::copy_nonoverlapping(memory, memory.add(4096 + 5 * 320), 4096); barrier();",
            after: "",
        },
    },
    LoopContext {
        name: "branchy",
        about: "a loop with four predictable branches, controlled by a repeating table of bytes",
        usual: false,
        aim: 0.1,
        memory: MemoryFootprint::Scratch,
        // Each branch skips a NOP, so that compilers cannot merge branches.
        c: LoopText {
            before: "unsigned long at = 0;",
            body: "unsigned long bits = memory[at] ^ at; barrier();\n\
                   if (bits & 1) asm volatile(\"nop\"); barrier();\n\
                   if (bits & 2) asm volatile(\"nop\"); barrier();\n\
                   if (bits & 4) asm volatile(\"nop\"); barrier();\n\
                   if (bits & 8) asm volatile(\"nop\"); barrier();\n\
                   at = (at + 1) & 15; barrier();",
            after: "",
        },
        rust: LoopText {
            before: "let mut at = 0u64;",
            body: "let bits = u64::from(*memory.add(at as usize)) ^ at; barrier();\n\
                   if bits & 1 != 0 { nop() } barrier();\n\
                   if bits & 2 != 0 { nop() } barrier();\n\
                   if bits & 4 != 0 { nop() } barrier();\n\
                   if bits & 8 != 0 { nop() } barrier();\n\
                   at = (at + 1) & 15; barrier();",
            after: "",
        },
    },
    LoopContext {
        name: "l1",
        about: "a loop bound by loads from the level 1 cache: eight loads per iteration, 2 KiB in total",
        usual: false,
        aim: 0.1,
        memory: MemoryFootprint::Scratch,
        c: LoopText {
            before: "unsigned long at = 0;",
            body: "const volatile unsigned long *word = (void *)(memory + at);\n\
                   word[0]; word[1]; word[2]; word[3]; word[4]; word[5]; word[6]; word[7];\n\
                   at = (at + 64) & 2047; barrier();",
            after: "",
        },
        rust: LoopText {
            before: "let mut at = 0usize;",
            body: "let word = memory.add(at).cast::<u64>();\n\
                   for index in 0..8 { word.add(index).read_volatile(); }\n\
                   at = (at + 64) & 2047; barrier();",
            after: "",
        },
    },
    LoopContext {
        name: "l2",
        about: "a loop that loads the lines of a working set larger than the level 1 cache in order",
        usual: false,
        aim: 0.1,
        memory: MemoryFootprint::Beyond(1),
        c: LINES_IN_C,
        rust: LINES_IN_RUST,
    },
    LoopContext {
        name: "l3",
        about: "a loop that loads the lines of a working set larger than the level 2 cache in order",
        usual: false,
        aim: 0.1,
        memory: MemoryFootprint::Beyond(2),
        c: LINES_IN_C,
        rust: LINES_IN_RUST,
    },
];
