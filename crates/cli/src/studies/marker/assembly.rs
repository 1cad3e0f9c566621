//! `--assembly`: what each design was compiled to, with the marker and without.

use crate::output::page::{Page, note};
use crate::output::{Failure, WIDTH, wrapped};
use cyclescope::study::marker::anatomy::{Line, Path};
use cyclescope::study::marker::record::MarkerRecord;

/// Characters of the columns: offset, path, bytes.
const OFFSET: usize = 8;
const PATH: usize = 10;
const BYTES: usize = 22;
const INDENT: usize = 2;
const TEXT: usize = WIDTH - INDENT - OFFSET - PATH - BYTES - 1;

/// Prints the functions: those that several states have in common, once.
pub fn assembly(page: &mut Page, records: &[MarkerRecord]) -> Result<(), Failure> {
    let mut last: Option<&MarkerRecord> = None;
    for (index, record) in records.iter().enumerate() {
        let same = |other: &&MarkerRecord| {
            (other.design, &other.context, &other.guard) == (record.design, &record.context, &record.guard)
        };
        if records[..index].iter().any(|other| same(&other)) {
            continue;
        }
        let states: Vec<&str> = records.iter().filter(same).map(|record| record.state.as_str()).collect();
        let guard = if record.guard == "none" { String::new() } else { format!(", guard {}", record.guard) };
        page.section(&format!("{} in {}{guard}", record.design, record.context))?;
        for text in wrapped(&states.join(", "), WIDTH - INDENT) {
            page.output.line(format!("  {text}"))?;
        }
        function(page, &record.code.assembly)?;
        let known = last.is_some_and(|last| (last.design, &last.context) == (record.design, &record.context));
        if !known && !record.code.base_assembly.is_empty() {
            page.output.line("  without the marker:")?;
            function(page, &record.code.base_assembly)?;
        }
        last = Some(record);
    }
    note(page, "*: the marker's own instructions. The code is dormant; names mark addresses outside of it.")
}

fn function(page: &mut Page, code: &[Line]) -> Result<(), Failure> {
    code.iter().flat_map(line).try_for_each(|text| page.output.line(text))
}

/// An instruction in as many lines as it takes.
fn line(line: &Line) -> Vec<String> {
    let path = match line.path {
        Path::Likely if line.aligning => "aligns",
        Path::Likely => "likely",
        Path::Unlikely => "unlikely",
        Path::Padding => "padding",
    };
    let path = format!("{path}{}", if line.site { "*" } else { "" });
    let bytes: Vec<char> = line.bytes.chars().collect();
    let bytes: Vec<String> = bytes.chunks(BYTES).map(|part| part.iter().collect()).collect();
    let text = wrapped(&line.text, TEXT);
    let part = |parts: &[String], index: usize| parts.get(index).cloned().unwrap_or_default();
    (0..bytes.len().max(text.len()))
        .map(|index| {
            let (offset, path) = if index == 0 {
                (format!("+{:#x}", line.offset), path.as_str())
            } else {
                (String::new(), "")
            };
            let (bytes, text) = (part(&bytes, index), part(&text, index));
            format!("  {offset:<OFFSET$}{path:<PATH$}{bytes:<BYTES$} {text}").trim_end().to_string()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_instructions_take_several_lines() {
        let long = Line {
            offset: 0x1234,
            bytes: "48b8".to_string() + &"01".repeat(13),
            text: "mov qword ptr [rip+probe_of_a_design_with_a_long_name], a_very_long_operand".to_string(),
            path: Path::Unlikely,
            site: true,
            aligning: false,
        };
        let lines = line(&long);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
        assert!(
            lines[0].starts_with("  +0x1234unlikely* 48b8") || lines[0].contains("unlikely*"),
            "{lines:?}"
        );
    }
}
