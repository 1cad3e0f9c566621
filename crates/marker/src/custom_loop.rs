//! Custom loops: the library compiled for each design at run time, and its contents.
//!
//! A C file is included unchanged (`library::around` lists its definitions). A snippet becomes an
//! `asm` statement in the loop's body. The registers that it uses are variables of the loop, so
//! that it finds its own values again, whatever the marker does in between.
//!
//! Initial values are as in `run`: RDI, RSI, R14 and RBP point into memory, general registers are
//! odd numbers (RCX is 3), vector registers hold 1.0. This covers the lower 16 bytes of the first
//! 16 vector registers. Other vectors, masks and x87 registers are lost when an enabled marker
//! calls. The stack keeps its state.

use super::source::context::{CUSTOM_LOOP_AIM, LoopContext, LoopText, MemoryFootprint};
use super::source::design::{DesignLanguage, SiteDesign};
use super::source::library;
use cyclescope_code::asm::Listing;
use cyclescope_code::asm::registers::{RegisterSet, registers_read, registers_written, vector_state};
use iced_x86::Register;
use std::path::Path;

pub use library::CUSTOM_LOOP_NAME;

/// A custom loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CustomLoop {
    /// A C file, as a path for `#include`.
    File(String),
    /// A snippet, as C text.
    Snippet {
        /// Code before the loop.
        before: String,
        /// Body of the loop.
        body: String,
    },
}

/// The reason that a loop is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfitLoop {
    /// `#include` cannot express the path.
    Path,
    /// There are no instructions.
    Empty,
}

/// Compiler flags in addition to the build's. Jump tables are off because they lead out of copies.
/// The red zone is off for snippets that push. Headers included by a file come after the first one,
/// so definitions that affect them come first.
pub const COMPILER_FLAGS: &[&str] = &[
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-reorder-blocks-and-partition",
    "-fno-jump-tables",
    "-mno-red-zone",
    "-D_GNU_SOURCE",
    "-Werror=implicit-function-declaration",
];

impl CustomLoop {
    /// The loop of a C file.
    pub fn from_file(path: &Path) -> Result<CustomLoop, UnfitLoop> {
        let text = path.to_str().filter(|text| !text.contains(['"', '\n', '\r']));
        text.map(|text| CustomLoop::File(text.to_string())).ok_or(UnfitLoop::Path)
    }

    /// The loop of a snippet.
    pub fn from_snippet(listing: &Listing) -> Result<CustomLoop, UnfitLoop> {
        if listing.bytes().is_empty() {
            return Err(UnfitLoop::Empty);
        }
        let used = listing.instructions().iter().fold(RegisterSet::EMPTY, |used, instruction| {
            used.union(registers_read(instruction)).union(registers_written(instruction))
        });
        let general: Vec<Register> =
            used.registers().filter(|register| register.is_gpr64() && *register != Register::RSP).collect();
        let vectors: Vec<usize> =
            used.registers().filter(|it| it.is_zmm()).map(Register::number).filter(|it| *it < 16).collect();
        // The instruction database does not list registers that only move on the x87 stack.
        let state = vector_state(listing.instructions());
        let x87 = state.x87 || state.mmx;
        Ok(CustomLoop::Snippet {
            before: write_loop_start(&general, &vectors),
            body: write_loop_body(listing, &general, &vectors, x87),
        })
    }

    /// The C text of a design's library with this loop. The error is the reason that none is
    /// possible.
    pub fn write_library(&self, design: &SiteDesign) -> Result<String, &'static str> {
        if design.language != DesignLanguage::C {
            return Err("it is a Rust macro, which a loop in C can't contain");
        }
        let text = match self {
            CustomLoop::File(include) => return Ok(library::write_user_library(design, include)),
            CustomLoop::Snippet { before, body } => LoopText { before, body, after: "" },
        };
        let context = LoopContext {
            name: CUSTOM_LOOP_NAME,
            about: "a custom loop",
            usual: false,
            aim: CUSTOM_LOOP_AIM,
            memory: MemoryFootprint::Scratch,
            c: text,
            rust: LoopText { before: "", body: "", after: "" },
        };
        Ok(library::write_library(design, &[context]))
    }
}

fn register_name(register: Register) -> String {
    format!("{register:?}").to_lowercase()
}

/// Initial value of a general register. Areas are 64 KiB plus distinct odd multiples of 320 bytes
/// apart, so that they are not congruent, as in `run`.
fn initial_value(register: Register) -> String {
    let area = |number: usize| format!("(unsigned long)memory + {}", number * ((64 << 10) + 320));
    match register {
        Register::RDI => area(0),
        Register::RSI => area(1),
        Register::R14 => area(2),
        Register::RBP => area(3),
        Register::RCX => "3".to_string(),
        other => (65537 + 2 * other.number()).to_string(),
    }
}

fn write_loop_start(general: &[Register], vectors: &[usize]) -> String {
    let general = general.iter().map(|register| {
        // Not a compile-time constant: the compiler would store it in each iteration.
        let (name, value) = (register_name(*register), initial_value(*register));
        format!("unsigned long marker_{name} = {value}; asm volatile(\"\" : \"+r\"(marker_{name}));\n\t")
    });
    let vectors = vectors.iter().map(|number| {
        let one = 1f64.to_bits();
        format!(
            "asm volatile(\"movq %0, %%xmm{number}\\n\\tpunpcklqdq %%xmm{number}, %%xmm{number}\" \
             : : \"r\"({one}UL) : \"xmm{number}\");\n\t"
        )
    });
    general.chain(vectors).collect()
}

/// Variables in specific registers are guaranteed only within an `asm` statement (GCC's manual,
/// "Local Register Variables"), and the marker's calls would change them. So they are copies.
fn write_loop_body(listing: &Listing, general: &[Register], vectors: &[usize], x87: bool) -> String {
    let each = |text: &dyn Fn(String) -> String| -> String {
        general.iter().map(|register| text(register_name(*register))).collect()
    };
    let bytes: Vec<String> = listing.bytes().iter().map(|byte| format!("{byte:#04x}")).collect();
    let into = each(&|name| format!("register unsigned long in_{name} asm(\"{name}\") = marker_{name}; "));
    let back = each(&|name| format!("marker_{name} = in_{name}; "));
    let operands: Vec<String> =
        general.iter().map(|register| format!("\"+r\"(in_{})", register_name(*register))).collect();
    let mut lost = vec!["cc".to_string(), "memory".to_string()];
    lost.extend(vectors.iter().map(|number| format!("xmm{number}")));
    if x87 {
        lost.push("st".to_string());
        lost.extend((1..8).map(|number| format!("st({number})")));
    }
    format!(
        "{{ {into}asm volatile(\".byte {}\" : {} : : \"{}\"); {back}}}",
        bytes.join(", "),
        operands.join(", "),
        lost.join("\", \"")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::design;
    use cyclescope_code::asm::parse_assembly;

    fn design(name: &str) -> &'static SiteDesign {
        design::ALL.iter().find(|design| design.name == name).unwrap()
    }

    #[test]
    fn registers_of_a_snippet_become_variables_of_the_loop() {
        let Ok(CustomLoop::Snippet { before, body }) =
            CustomLoop::from_snippet(&parse_assembly("imul rax, rbp; push rax; pop rcx").unwrap())
        else {
            panic!("a snippet")
        };
        assert!(before.contains("marker_rax = 65537;") && before.contains("marker_rcx = 3;"), "{before}");
        assert!(before.contains("marker_rbp = (unsigned long)memory + "), "{before}");
        assert!(!body.contains("rsp"), "{body}");
        assert!(body.contains(r#"".byte 0x48, 0x0f, 0xaf, 0xc5, 0x50, 0x59""#), "{body}");
        assert!(body.contains(r#""+r"(in_rax), "+r"(in_rcx), "+r"(in_rbp)"#), "{body}");
        assert!(body.contains(r#": : "cc", "memory")"#), "{body}");
    }

    #[test]
    fn vector_registers_are_initialised_and_clobbered() {
        let Ok(CustomLoop::Snippet { before, body }) =
            CustomLoop::from_snippet(&parse_assembly("vaddpd ymm3, ymm1, [rsi]; fld1").unwrap())
        else {
            panic!("a snippet")
        };
        assert!(before.contains("punpcklqdq %%xmm3, %%xmm3"), "{before}");
        assert!(body.contains(r#""xmm1", "xmm3", "st", "st(1)""#), "{body}");
        assert_eq!(CustomLoop::from_snippet(&parse_assembly("").unwrap()), Err(UnfitLoop::Empty));
    }

    #[test]
    fn a_custom_file_contains_each_marker_at_its_place() {
        let it = CustomLoop::from_file(Path::new("/a b/loop.c")).unwrap();
        let text = it.write_library(design("flag")).unwrap();
        assert_eq!(text.matches("#include \"/a b/loop.c\"\n").count(), 1);
        let macro_line = text.lines().find(|line| line.starts_with("#define MARKER()")).unwrap();
        for which in 0..3 {
            assert!(macro_line.contains(&format!("if (marker_in_around == {which})")), "{macro_line}");
            assert!(text.contains(&format!("marker_around((void *)memory, {which});")));
        }
        assert_eq!(macro_line.matches("if (marker_unlikely(marker_enabled))").count(), 2, "{macro_line}");
        assert!(text.contains("unsigned long marker_grace_period = 1;"));
        assert!(it.write_library(design("log")).is_err());
        assert_eq!(CustomLoop::from_file(Path::new("/a\"b.c")), Err(UnfitLoop::Path));
    }
}
