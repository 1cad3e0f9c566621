//! `--assembly`: prints the compiled code of each design, with and without the marker.

use crate::output::page::{TextPage, print_note};
use crate::output::{Failure, WIDTH, wrap_text};
use cyclescope::study::marker::anatomy::{AssemblyLine, CodePath};
use cyclescope::study::marker::record::CaseCode;

/// Widths of the columns offset, path and bytes.
const OFFSET_WIDTH: usize = 8;
const PATH_WIDTH: usize = 10;
const BYTES_WIDTH: usize = 22;
const LINE_INDENT: usize = 2;
const TEXT_WIDTH: usize = WIDTH - LINE_INDENT - OFFSET_WIDTH - PATH_WIDTH - BYTES_WIDTH - 1;

/// Prints the functions; one that several states share is printed once.
pub fn print_assembly(page: &mut TextPage, codes: &[CaseCode]) -> Result<(), Failure> {
    let mut last: Option<&CaseCode> = None;
    for (index, record) in codes.iter().enumerate() {
        let same = |other: &&CaseCode| {
            (other.design, &other.context, &other.guard) == (record.design, &record.context, &record.guard)
        };
        if codes[..index].iter().any(|other| same(&other)) {
            continue;
        }
        let states: Vec<&str> = codes.iter().filter(same).map(|record| record.state.as_str()).collect();
        let guard = if record.guard == "none" { String::new() } else { format!(", guard {}", record.guard) };
        page.begin_section(&format!("{} in {}{guard}", record.design, record.context))?;
        for text in wrap_text(&states.join(", "), WIDTH - LINE_INDENT) {
            page.output.write_line(format!("  {text}"))?;
        }
        print_function(page, &record.code.assembly)?;
        let known = last.is_some_and(|last| (last.design, &last.context) == (record.design, &record.context));
        if !known && !record.code.base_assembly.is_empty() {
            page.output.write_line("  without the marker:")?;
            print_function(page, &record.code.base_assembly)?;
        }
        last = Some(record);
    }
    print_note(page, "*: instructions of the marker itself. The code is dormant; names mark addresses outside it.")
}

fn print_function(page: &mut TextPage, code: &[AssemblyLine]) -> Result<(), Failure> {
    code.iter().flat_map(format_line).try_for_each(|text| page.output.write_line(text))
}

/// Formats an instruction in as many lines as it needs.
fn format_line(line: &AssemblyLine) -> Vec<String> {
    let path = match line.path {
        CodePath::Likely if line.aligning => "aligns",
        CodePath::Likely => "likely",
        CodePath::Unlikely => "unlikely",
        CodePath::Padding => "padding",
    };
    let path = format!("{path}{}", if line.site { "*" } else { "" });
    let bytes: Vec<char> = line.bytes.chars().collect();
    let bytes: Vec<String> = bytes.chunks(BYTES_WIDTH).map(|part| part.iter().collect()).collect();
    let text = wrap_text(&line.text, TEXT_WIDTH);
    let part = |parts: &[String], index: usize| parts.get(index).cloned().unwrap_or_default();
    (0..bytes.len().max(text.len()))
        .map(|index| {
            let (offset, path) =
                if index == 0 { (format!("+{:#x}", line.offset), path.as_str()) } else { (String::new(), "") };
            let (bytes, text) = (part(&bytes, index), part(&text, index));
            format!("  {offset:<OFFSET_WIDTH$}{path:<PATH_WIDTH$}{bytes:<BYTES_WIDTH$} {text}").trim_end().to_string()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_instructions_take_several_lines() {
        let long = AssemblyLine {
            offset: 0x1234,
            bytes: "48b8".to_string() + &"01".repeat(13),
            text: "mov qword ptr [rip+probe_of_a_design_with_a_long_name], a_very_long_operand".to_string(),
            path: CodePath::Unlikely,
            site: true,
            aligning: false,
        };
        let lines = format_line(&long);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert!(lines[0].starts_with("  +0x1234unlikely* 48b8") || lines[0].contains("unlikely*"), "{lines:?}");
    }
}
