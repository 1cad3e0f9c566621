//! Rust text: one module per design, with a function for each context, compiled as part of this
//! library.
//!
//! The table at its end has the layout of `struct marker_design` in `marker.h`. Its pointers to the
//! functions' entries keep their sections: with `-z start-stop-gc` no linker counts `__start_` as a
//! use (ld's manual).

use super::BASE;
use super::context::LoopContext;
use super::design::SiteDesign;
use std::fmt::Write;

/// The beginning of a module. Unwinding passes through the functions, because protection against it
/// would add code.
const HEAD: &str = "\
    use super::{RawCode, RawDesign, Table};
    /// The marker's arguments. Constants, because the compiler would merge literals into the
    /// format. A design may ignore them.
    #[allow(dead_code)]
    const NUMBER: i32 = 1;
    #[allow(dead_code)]
    const POINTER: *const u8 = core::ptr::null();
    #[inline(always)]
    fn barrier() {
        unsafe { core::arch::asm!(\"\", options(nostack, preserves_flags)) }
    }
    #[inline(always)]
    fn nop() {
        unsafe { core::arch::asm!(\"nop\", options(nostack, preserves_flags)) }
    }
";

/// The Rust module of a design. `compiler` is the compiler's name for its table.
pub fn write_module(design: &SiteDesign, contexts: &[LoopContext], compiler: &str) -> String {
    let identifier = design.identifier();
    let mut text = format!(
        "#[allow(clippy::undocumented_unsafe_blocks, unused_unsafe, unused_variables)]\n\
         mod marker_{identifier} {{\n{HEAD}{}\n",
        design.declarations
    );
    let mut codes = String::new();
    let mut count = 0;
    for context in contexts {
        let sites = design.guards().iter().map(|guard| (guard.name, design.site));
        for (name, site) in std::iter::once((BASE, design.base)).chain(sites) {
            let function = format!("cyclescope_{identifier}_{}_{}", name.replace('-', "_"), context.name);
            let bound = |which: &str| format!("{}_{}", which.to_uppercase(), function.to_uppercase());
            let (start, stop) = (bound("start"), bound("stop"));
            let text_of = context.rust;
            write!(
                text,
                "    unsafe extern \"C\" {{\n        \
                     #[link_name = \"__start_in_{function}\"]\n        static {start}: u8;\n        \
                     #[link_name = \"__stop_in_{function}\"]\n        static {stop}: u8;\n    }}\n    \
                 #[unsafe(link_section = \"in_{function}\")]\n    #[inline(never)]\n    \
                 unsafe extern \"C-unwind\" fn {function}(loops: i64, memory: *mut u8) {{\n        unsafe {{\n            \
                     {before}\n            for _ in 0..loops {{\n                {body}\n                {site}\n            \
                     }}\n            {after}\n        }}\n    }}\n",
                before = text_of.before,
                body = text_of.body,
                after = text_of.after,
            )
            .expect("a string");
            writeln!(
                codes,
                "            RawCode {{ guard: c\"{name}\".as_ptr(), context: c\"{}\".as_ptr(), start: &raw const {start}, \
                 stop: &raw const {stop}, entry: {function} as *const u8, target: core::ptr::null() }},",
                context.name
            )
            .expect("a string");
            count += 1;
        }
    }
    write!(
        text,
        "    pub(super) static TABLE: Table<{count}> = Table {{\n        design: RawDesign {{\n            \
         name: c\"{}\".as_ptr(),\n            compiler: c\"{compiler}\".as_ptr(),\n            \
         switch_to: crate::listener::{identifier}::switch as *const u8,\n            \
         codes: {count},\n            ..RawDesign::NONE\n        }},\n        codes: [\n{codes}        ],\n    }};\n}}\n",
        design.name
    )
    .expect("a string");
    text
}
