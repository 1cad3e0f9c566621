//! C text: one file a design, with a function for each guard and context.

use super::BASE;
use super::context::Context;
use super::design::{Design, Enabling};
use super::guard::Guard;
use std::fmt::Write;

/// Where the compiler notes the entries that can be patched.
const ENTRIES: &str = "\
extern void *const __start___patchable_function_entries[] __attribute__((visibility(\"hidden\")));
extern void *const __stop___patchable_function_entries[] __attribute__((visibility(\"hidden\")));
";

/// The C file of a design.
pub fn unit(design: &Design, guards: &[Guard], contexts: &[Context]) -> String {
    let mut text = String::from(super::HEADER);
    let identifier = design.identifier();
    text.push_str("\nvoid marker_probe_empty(const char *format, ...);\n");
    text.push_str(
        "static marker_probe marker_probe_now __attribute__((aligned(64))) = marker_probe_empty;\n",
    );
    let enabled = matches!(design.enabling, Enabling::Variable(_));
    let mut table = String::new();
    let mut count = 0;
    if enabled {
        writeln!(text, "{}", design.declarations.replace("ENABLED", "marker_enabled")).expect("a string");
    }
    for context in contexts {
        let base = std::iter::once((BASE, design.base, None));
        let sites = guards.iter().map(|guard| (guard.name, design.site, Some(guard)));
        for (name, site, guard) in base.chain(sites) {
            let function = format!("cyclescope_{identifier}_{}_{}", name.replace('-', "_"), context.name);
            let (enter, leave) = guard.map_or(("", ""), |guard| (guard.enter, guard.leave));
            let probe = format!("{enter} marker_probe_now(\"%d %p\", 1, NULL); {leave}");
            let fill = |text: &str| {
                let attributes = format!("__attribute__((section(\"in_{function}\"), noipa, used))");
                let traced = match guard {
                    Some(_) => format!("__attribute__((patchable_function_entry(5))) {attributes}"),
                    None => attributes,
                };
                text.replace("TRACED", &traced)
                    .replace("PROBE", &probe)
                    .replace("ENABLED", "marker_enabled")
                    .replace("NAME", &function)
            };
            writeln!(text, "\nSECTION(in_{function})").expect("a string");
            if !enabled {
                writeln!(text, "{}", fill(design.declarations)).expect("a string");
            }
            writeln!(
                text,
                "static __attribute__((section(\"in_{function}\"), noipa, used)) void {function}(long loops, char *memory)\n\
                 {{\n\t{before}\n\tfor (long loop = 0; loop < loops; loop++) {{\n\t\t{body}\n\t\t{site}\n\t}}\n\t{after}\n}}",
                before = context.c.before,
                body = context.c.body,
                site = fill(site),
                after = context.c.after,
            )
            .expect("a string");
            let target = match (design.enabling, guard) {
                (Enabling::Entry, Some(_)) => format!("{function}_target"),
                _ => "NULL".to_string(),
            };
            writeln!(
                table,
                "\t\t{{ \"{name}\", \"{}\", __start_in_{function}, __stop_in_{function}, {function}, {target} }},",
                context.name
            )
            .expect("a string");
            count += 1;
        }
    }
    let records = matches!(design.enabling, Enabling::Immediate | Enabling::Jump | Enabling::Tracer);
    let entries = design.enabling == Enabling::Entry;
    if records {
        text.push_str("RECORDS\n");
    }
    if entries {
        text.push_str(ENTRIES);
    }
    let range = |used: bool, start: &str, end: &str| match used {
        true => format!("{start}, {end}"),
        false => "NULL, NULL".to_string(),
    };
    writeln!(
        text,
        "\nconst struct marker_design cyclescope_marker_{identifier} = {{\n\t\"{}\", __VERSION__, {}, &marker_probe_now, NULL,\n\
         \t{}, {}, {count},\n\t{{\n{table}\t}},\n}};",
        design.name,
        if enabled { "&marker_enabled" } else { "NULL" },
        range(records, "marker_records_start", "marker_records_end"),
        range(entries, "__start___patchable_function_entries", "__stop___patchable_function_entries"),
    )
    .expect("a string");
    text
}
