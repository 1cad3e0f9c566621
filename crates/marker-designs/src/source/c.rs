//! C text: one file per design, with a function for each guard and context.

use super::BASE;
use super::call_guard::CallGuard;
use super::context::LoopContext;
use super::design::{Enabling, SiteDesign};
use std::fmt::Write;

/// The section in which the compiler lists patchable entries.
const ENTRY_DECLARATIONS: &str = "\
extern void *const __start___patchable_function_entries[] __attribute__((visibility(\"hidden\")));
extern void *const __stop___patchable_function_entries[] __attribute__((visibility(\"hidden\")));
";

/// Name of a design's table.
pub fn table_symbol(design: &SiteDesign) -> String {
    format!("cyclescope_marker_{}", design.identifier())
}

/// The C file of a design.
pub(crate) fn write_unit(design: &SiteDesign, guards: &[CallGuard], contexts: &[LoopContext]) -> String {
    let functions = list_functions(design, guards, contexts);
    let mut text = write_opening(design);
    for function in &functions {
        text.push_str(&function.text_before());
        text.push_str(&function.function_text());
    }
    text.push_str(&write_table(design, &functions));
    text
}

/// One function: a loop with the design's marker and a guard, or without a marker.
pub(super) struct MarkedFunction<'a> {
    design: &'a SiteDesign,
    guard: Option<&'a CallGuard>,
    context: &'a LoopContext<'a>,
}

/// All functions of a design.
pub(super) fn list_functions<'a>(
    design: &'a SiteDesign,
    guards: &'a [CallGuard],
    contexts: &'a [LoopContext<'a>],
) -> Vec<MarkedFunction<'a>> {
    let each = |context| {
        let guards = std::iter::once(None).chain(guards.iter().map(Some));
        guards.map(move |guard| MarkedFunction { design, guard, context })
    };
    contexts.iter().flat_map(each).collect()
}

/// The beginning of a design's file.
pub(super) fn write_opening(design: &SiteDesign) -> String {
    let mut text = String::from(super::HEADER);
    text.push_str("\nvoid marker_probe_empty(const char *format, ...);\n");
    text.push_str("static marker_probe marker_probe_now __attribute__((aligned(64))) = marker_probe_empty;\n");
    if is_declared_once(design) {
        writeln!(text, "{}", design.declarations.replace("ENABLED", "marker_enabled")).expect("a string");
    }
    text
}

/// Whether a design's declarations appear once per file, not once per function.
fn is_declared_once(design: &SiteDesign) -> bool {
    matches!(design.enabling, Enabling::Variable(_)) || design.package.is_some()
}

impl MarkedFunction<'_> {
    fn guard_name(&self) -> &str {
        self.guard.map_or(BASE, |guard| guard.name)
    }

    fn name(&self) -> String {
        let guard = self.guard_name().replace('-', "_");
        format!("cyclescope_{}_{guard}_{}", self.design.identifier(), self.context.name)
    }

    fn fill_template(&self, text: &str) -> String {
        let function = self.name();
        let (enter, leave) = self.guard.map_or(("", ""), |guard| (guard.enter, guard.leave));
        let attributes = format!("__attribute__((section(\"in_{function}\"), noipa, used))");
        let traced = match self.guard {
            Some(_) => format!("__attribute__((patchable_function_entry(5))) {attributes}"),
            None => attributes,
        };
        text.replace("TRACED", &traced)
            .replace("CALL_PROBE", &format!("{enter} marker_probe_now(\"%d %p\", 1, NULL); {leave}"))
            .replace("ENABLED", "marker_enabled")
            .replace("NAME", &function)
    }

    /// The code in the marker's place.
    pub(super) fn site_text(&self) -> String {
        self.fill_template(if self.guard.is_some() { self.design.site } else { self.design.base })
    }

    /// The code before the function.
    pub(super) fn text_before(&self) -> String {
        let section = format!("\nMARKER_SECTION(in_{})\n", self.name());
        match is_declared_once(self.design) {
            true => section,
            false => format!("{section}{}\n", self.fill_template(self.design.declarations)),
        }
    }

    /// The function itself.
    pub(super) fn function_text(&self) -> String {
        self.function_text_with(self.context.c.body, &self.site_text())
    }

    /// The function with this loop body and this code in the marker's place.
    pub(super) fn function_text_with(&self, body: &str, site: &str) -> String {
        format!(
            "static __attribute__((section(\"in_{function}\"), noipa, used)) void {function}(long loops, char *memory)\n\
             {{\n\t{before}\n\tfor (long loop = 0; loop < loops; loop++) {{\n\t\t{body}\n\t\t{site}\n\t}}\n\t{after}\n}}\n",
            function = self.name(),
            before = self.context.c.before,
            after = self.context.c.after,
        )
    }

    /// Its entry in the table.
    fn table_row(&self) -> String {
        let function = self.name();
        let target = match (self.design.enabling, self.guard) {
            (Enabling::Entry, Some(_)) => format!("{function}_target"),
            _ => "NULL".to_string(),
        };
        format!(
            "\t\t{{ \"{}\", \"{}\", __start_in_{function}, __stop_in_{function}, {function}, {target} }},\n",
            self.guard_name(),
            self.context.name
        )
    }
}

/// The table of a design's functions, at the end of its file.
pub(super) fn write_table(design: &SiteDesign, functions: &[MarkedFunction]) -> String {
    let mut text = String::new();
    let records = matches!(design.enabling, Enabling::Immediate | Enabling::Jump | Enabling::Tracer);
    let entries = design.enabling == Enabling::Entry;
    if records {
        text.push_str("MARKER_RECORDS\n");
    }
    if entries {
        text.push_str(ENTRY_DECLARATIONS);
    }
    let range = |used: bool, start: &str, end: &str| match used {
        true => format!("{start}, {end}"),
        false => "NULL, NULL".to_string(),
    };
    let guarded = functions.iter().any(|function| function.guard.is_some_and(|guard| !guard.enter.is_empty()));
    writeln!(
        text,
        "\n__attribute__((visibility(\"default\")))\nconst struct marker_design {} = {{\n\t\"{}\", MARKER_COMPILER, {}, &marker_probe_now, NULL, {},\n\
         \t{}, {}, {},\n\t{{\n{}\t}},\n}};",
        table_symbol(design),
        design.name,
        if matches!(design.enabling, Enabling::Variable(_)) { "&marker_enabled" } else { "NULL" },
        if guarded { "&marker_grace_period" } else { "NULL" },
        range(records, "marker_records_start", "marker_records_end"),
        range(entries, "__start___patchable_function_entries", "__stop___patchable_function_entries"),
        functions.len(),
        functions.iter().map(MarkedFunction::table_row).collect::<String>(),
    )
    .expect("a string");
    text
}
