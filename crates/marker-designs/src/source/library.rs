//! C text for libraries compiled at run time. Each design has its own file and library, because a
//! library may contain the definitions of a user's file only once.

use super::c::{self, MarkedFunction};
use super::context::{CUSTOM_LOOP_AIM, LoopContext, LoopText, MemoryFootprint};
use super::design::SiteDesign;

/// Name of a custom loop's context.
pub const CUSTOM_LOOP_NAME: &str = "around";

/// Compiler flags for a program of 32-bit code that needs no library. Its addresses are in the code, as
/// in i386 kernels.
pub const NARROW_FLAGS: &[&str] = &[
    "-m32",
    "-O2",
    "-fno-pic",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-reorder-blocks-and-partition",
    "-fno-jump-tables",
];

/// Flags that link such a program, besides its address.
pub const NARROW_LINK_FLAGS: &[&str] =
    &["-static", "-nostdlib", "-no-pie", "-Wl,-e,0", "-Wl,--build-id=none", "-Wl,-z,noexecstack"];

/// The probes of a program, with the data that it has once.
pub fn write_probes() -> String {
    include_str!("probes.c").replace("#include \"marker.h\"\n", super::HEADER)
}

/// A design's part of a program.
pub fn write_program_part(design: &SiteDesign, contexts: &[LoopContext]) -> String {
    c::write_unit(design, design.guards(), contexts)
}

/// Definitions that a program has once, and each such library for itself. The probe is never
/// called: one of the program's replaces it before anything runs.
const OWN: &str = "
unsigned long marker_grace_period = 1;
MARKER_THREAD unsigned long marker_reader;
__attribute__((visibility(\"hidden\"))) void marker_probe_empty(const char *format, ...) { }
";

/// Text before the user's file. `MARKER_PLACED` becomes 1 at the first expansion of MARKER(), and 2
/// at the second. Macros cannot define others, but they can pop them from a stack.
const BEFORE: &str = "
#define MARKER_PLACED 2
#pragma push_macro(\"MARKER_PLACED\")
#undef MARKER_PLACED
#define MARKER_PLACED 1
#pragma push_macro(\"MARKER_PLACED\")
#undef MARKER_PLACED
#define MARKER_PLACED 0
#define around(...) __attribute__((always_inline)) marker_around(__VA_ARGS__, const int marker_in_around)
#undef barrier
";

/// The beginning of MARKER()'s expansion.
const MARKER: &str = "#define MARKER() do { _Pragma(\"pop_macro(\\\"MARKER_PLACED\\\")\")";

/// Text after it. Later expansions belong to this file.
const BEHIND: &str = "
#undef around
#if MARKER_PLACED > 1
#error \"MARKER() may only appear once\"
#endif
";

/// A prologue with which a user's file compiles on its own, so that errors are reported with its
/// own lines only.
pub fn write_library(design: &SiteDesign, contexts: &[LoopContext]) -> String {
    format!("{}{OWN}", c::write_unit(design, design.guards(), contexts))
}

/// A design's library with a user's file, which is included once.
pub fn write_user_prologue() -> String {
    format!("{}{BEFORE}{MARKER} (void)marker_in_around; }} while (0)\n", super::HEADER)
}

/// A design's library with a user's file, which is included once.
///
/// The file defines `void around(void *memory)`, the loop's body. The marker follows it, unless
/// MARKER() in `around` gives its place. All functions have the same body. A macro adds an argument
/// to `around` that identifies the marker. Since `around` is always inlined, that argument is a
/// constant.
pub fn write_user_library(design: &SiteDesign, include: &str) -> String {
    let context = [LoopContext {
        name: CUSTOM_LOOP_NAME,
        about: "a custom loop",
        usual: false,
        aim: CUSTOM_LOOP_AIM,
        memory: MemoryFootprint::Scratch,
        c: LoopText { before: "", body: "", after: "" },
        rust: LoopText { before: "", body: "", after: "" },
    }];
    let functions = c::list_functions(design, design.guards(), &context);
    let mut text = c::write_opening(design);
    text.extend(functions.iter().map(MarkedFunction::text_before));
    text.push_str(BEFORE);
    text.push_str(MARKER);
    for (which, function) in functions.iter().enumerate() {
        // A macro is one line.
        let site = function.site_text().replace('\n', " ");
        text.push_str(&format!(" if (marker_in_around == {which}) {{ {site} }}"));
    }
    text.push_str(&format!(" }} while (0)\n#include \"{include}\"\n{BEHIND}"));
    for (which, function) in functions.iter().enumerate() {
        let site = format!("\n#if !MARKER_PLACED\n\t\t{}\n#endif", function.site_text());
        // As in the other contexts, each iteration reloads the contents of memory.
        let body = format!("marker_around((void *)memory, {which}); asm volatile(\"\" : : : \"memory\");");
        text.push_str(&function.function_text_with(&body, &site));
    }
    text.push_str(&c::write_table(design, &functions));
    text.push_str(OWN);
    text
}
