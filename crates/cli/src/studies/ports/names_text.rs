//! Prints the published names of ports.

use crate::output::page::{TextPage, print_note};
use crate::output::report_words::{format_count, to_one_line};
use crate::output::{Failure, Output};
use cyclescope::study::ports::port_aliases::{AliasGroup, PortAliases};

/// Prints the name of each port, or why it has none.
pub fn print_names(names: &PortAliases, output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    let mut page = TextPage::new(output);
    page.begin_section("Published names of ports")?;
    for AliasGroup { ports, names } in &names.groups {
        let order = match ports.len() {
            1 => "",
            2 => ", in either order: time can't tell",
            _ => ", in any order: time can't tell",
        };
        page.print_row(&ports.join(" "), &to_one_line(&format!("{}{order}", names.join(" "))))?;
    }
    for contradiction in &names.contradictions {
        let forms: Vec<String> = contradiction.forms.iter().map(|form| format!("`{form}`")).collect();
        page.print_row("contradiction", &to_one_line(&format!("{}: {}", forms.join(" and "), contradiction.why)))?;
    }
    let unused = match names.unused {
        0 => String::new(),
        unused => format!(", and {unused} don't: no class with certain ports has them"),
    };
    page.print_row("published", &format!("{} count{unused}", format_count(names.used as u64, "form")))?;
    match names.contradictions.is_empty() {
        true => Ok(()),
        false => print_note(&mut page, "Ports that are connected with those of a contradiction get no names."),
    }
}
