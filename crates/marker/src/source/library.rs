//! C text for libraries that are compiled at run time: one file a design, and one library each, for what a user's file
//! defines may be defined once in a library only.

use super::c::{self, MarkedFunction};
use super::context::{CUSTOM_LOOP_AIM, LoopContext, LoopText, MemoryFootprint};
use super::design::SiteDesign;

/// The name of the context that a user's own loop is.
pub const CUSTOM_LOOP_NAME: &str = "around";

/// What a program has once and each such library for itself. The probe is never called: a program's own takes its place
/// before anything runs.
const OWN: &str = "
unsigned long marker_grace_period = 1;
__thread unsigned long marker_reader;
__attribute__((visibility(\"hidden\"))) void marker_probe_empty(const char *format, ...) { }
";

/// Before the user's file. `MARKER_PLACED` becomes 1 where MARKER() is expanded, and 2 where it is once more: macros can't
/// define others, but they can take them from a stack.
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

/// The beginning of what MARKER() expands to.
const MARKER: &str = "#define MARKER() do { _Pragma(\"pop_macro(\\\"MARKER_PLACED\\\")\")";

/// Behind it. What is expanded from here on is this file's own.
const BEHIND: &str = "
#undef around
#if MARKER_PLACED > 1
#error \"MARKER() may stand in one place only\"
#endif
";

/// A design's library with these contexts.
pub fn write_library(design: &SiteDesign, contexts: &[LoopContext]) -> String {
    format!("{}{OWN}", c::write_unit(design, design.guards(), contexts))
}

/// What a user's file can be compiled behind by itself, so that what is wrong with it is reported with its own lines
/// and no others.
pub fn write_user_prologue() -> String {
    format!("{}{BEFORE}{MARKER} (void)marker_in_around; }} while (0)\n", super::HEADER)
}

/// A design's library with a user's file, which is included once.
///
/// The file defines `void around(void *memory)`, the loop's body; the marker follows it, unless MARKER() in `around`
/// says where it is to be. All functions have the same body: which marker is meant is an argument that a macro gives
/// `around` behind the user's, and since `around` is always inlined, it is a constant wherever it is looked at.
pub(crate) fn write_user_library(design: &SiteDesign, include: &str) -> String {
    let context = [LoopContext {
        name: CUSTOM_LOOP_NAME,
        about: "a loop of the user's",
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
        // As in the other contexts: what memory holds is asked anew each time around.
        let body = format!("marker_around((void *)memory, {which}); asm volatile(\"\" : : : \"memory\");");
        text.push_str(&function.function_text_with(&body, &site));
    }
    text.push_str(&c::write_table(design, &functions));
    text.push_str(OWN);
    text
}
