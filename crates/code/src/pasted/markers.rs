//! Marks around the code to measure: comments of llvm-mca and OSACA, and the bytes of IACA.

use super::machine_code::PlacedCode;
use super::pasted_text::DroppedLine;
use super::text_words::{line_start, strip_comment};
use cyclescope_core::error::BadSnippet;
use std::ops::Range;

/// Why code outside of marks is dropped.
pub(super) const OUTSIDE: &str = "it is outside of the marked region";

/// Comments that begin or end a region.
const COMMENT_MARKS: [(&str, &str); 2] = [("LLVM-MCA", "llvm-mca"), ("OSACA", "OSACA")];
/// IACA's marks load one of these numbers into EBX, in front of a NOP with prefixes.
const BYTE_MARKS: [(u32, bool); 2] = [(111, true), (222, false)];
const BYTE_MARK_NOP: [u8; 3] = [0x64, 0x67, 0x90];
/// Instructions of a mark: the load and the NOP.
const MARK_INSTRUCTIONS: usize = 2;

/// A marked region of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MarkedRegion {
    /// Its name; empty if the mark has none.
    pub(super) name: String,
    /// The program whose marks they are.
    pub(super) source: &'static str,
    /// Its lines, from 0.
    pub(super) lines: Range<usize>,
}

/// A mark in a text.
struct RegionMark<'a> {
    source: &'static str,
    name: &'a str,
    begins: bool,
    /// Number of lines of the mark.
    lines: usize,
}

/// Finds the marked regions of a text; empty if it has no marks.
pub(super) fn find_marked_regions(lines: &[&str]) -> Result<Vec<MarkedRegion>, BadSnippet> {
    let mut open: Vec<(RegionMark, usize)> = Vec::new();
    let mut regions = Vec::new();
    for index in 0..lines.len() {
        let Some(mark) = parse_mark(&lines[index..]) else { continue };
        let at = line_start(index as u32 + 1);
        if mark.lines == 1
            && !strip_comment(lines[index]).trim().trim_start_matches([';', '/']).is_empty()
            && !is_whole_comment(lines[index])
        {
            return Err(at.error_expecting("this line has a mark and code", "put the mark on a line of its own"));
        }
        let same = |(other, _): &(RegionMark, usize)| other.source == mark.source && other.name == mark.name;
        // LLVM's mark of an end may leave out the name of the only open region.
        let only = match &open[..] {
            [(other, _)] if !mark.begins && mark.name.is_empty() && other.source == mark.source => Some(0),
            _ => None,
        };
        match (mark.begins, open.iter().rposition(same).or(only)) {
            (true, None) => {
                let start = index + mark.lines;
                open.push((mark, start));
            }
            (true, Some(_)) => {
                let what = "a region begins inside of one with the same name";
                return Err(at.error_expecting(what, "end the first one, or name both"));
            }
            (false, Some(number)) => {
                let (mark, start) = open.remove(number);
                let (name, source) = (mark.name.to_string(), mark.source);
                regions.push(MarkedRegion { name, source, lines: start..index });
            }
            (false, None) => {
                return Err(
                    at.error_expecting("this mark ends a region that no mark begins", "add the mark of its begin")
                );
            }
        }
    }
    match open.first() {
        Some((_, start)) => {
            Err(line_start(*start as u32).error_expecting("this marked region does not end", "add the mark of its end"))
        }
        None => {
            regions.sort_by_key(|region| region.lines.start);
            Ok(regions)
        }
    }
}

/// Whether a line is a comment of some assembler.
fn is_whole_comment(line: &str) -> bool {
    line.trim_start().starts_with([';', '#', '@']) || line.trim_start().starts_with("//")
}

fn parse_mark<'a>(lines: &[&'a str]) -> Option<RegionMark<'a>> {
    let line = lines[0];
    for (word, source) in COMMENT_MARKS {
        let Some(at) = line.find(word).filter(|at| line[..*at].contains(['#', ';', '/', '@'])) else { continue };
        let after = &line[at + word.len()..];
        let begins = after.starts_with("-BEGIN");
        if let Some(name) = after.strip_prefix("-BEGIN").or_else(|| after.strip_prefix("-END")) {
            return Some(RegionMark { source, name: name.trim(), begins, lines: 1 });
        }
    }
    let number = loaded_number(line)?;
    let (_, begins) = *BYTE_MARKS.iter().find(|(mark, _)| *mark == number)?;
    let mut bytes = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(1).take(2 + BYTE_MARK_NOP.len()) {
        let text = strip_comment(line).trim();
        if text.is_empty() {
            continue;
        }
        bytes.extend(data_bytes(text)?);
        if bytes.len() >= BYTE_MARK_NOP.len() {
            return (bytes == BYTE_MARK_NOP).then_some(RegionMark {
                source: "IACA",
                name: "",
                begins,
                lines: index + 1,
            });
        }
    }
    None
}

/// The number that an instruction loads into EBX.
fn loaded_number(line: &str) -> Option<u32> {
    let text: String = strip_comment(line).chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase();
    let number = text
        .strip_prefix("mov")
        .and_then(|rest| rest.strip_prefix('l').unwrap_or(rest).strip_prefix('$')?.strip_suffix(",%ebx"))
        .or_else(|| text.strip_prefix("movebx,"))?;
    parse_small(number)
}

fn parse_small(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => match text.strip_suffix('h') {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
    }
}

/// Whether an instruction or directive is a part of IACA's marks.
pub(super) fn is_part_of_mark(code: &str) -> bool {
    let loads = loaded_number(code).is_some_and(|number| BYTE_MARKS.iter().any(|(mark, _)| *mark == number));
    loads || data_bytes(code).is_some()
}

/// The bytes of `.byte 100, 103, 144` or `db 64h, 67h, 90h`.
fn data_bytes(text: &str) -> Option<Vec<u8>> {
    let lower = text.to_ascii_lowercase();
    let list = lower.strip_prefix(".byte").or_else(|| lower.strip_prefix("db "))?;
    list.split(',').map(|byte| u8::try_from(parse_small(byte.trim())?).ok()).collect()
}

/// Code of a listing, between marks if it has any.
pub(super) struct MarkedCode<'a> {
    /// Name of the region; `None` without marks.
    pub(super) mark: Option<String>,
    /// Its instructions.
    pub(super) code: Vec<PlacedCode<'a>>,
}

/// Splits the code of a listing at IACA's marks. Without marks, all of it is one region.
pub(super) fn split_by_marker_bytes<'a>(
    code: Vec<PlacedCode<'a>>,
    dropped: &mut Vec<DroppedLine>,
) -> Result<Vec<MarkedCode<'a>>, BadSnippet> {
    let mut marks = Vec::new();
    let mut index = 0;
    while index < code.len() {
        let mark = mark_at(&code[index..]);
        marks.extend(mark.map(|begins| (index, begins)));
        index += if mark.is_some() { MARK_INSTRUCTIONS } else { 1 };
    }
    if marks.is_empty() {
        return Ok(vec![MarkedCode { mark: None, code }]);
    }
    let mut regions = Vec::new();
    let mut next = 0;
    for pair in marks.chunks(2) {
        let &[(begin, true), (end, false)] = pair else {
            let (index, _) = pair[0];
            let what = "IACA's marks don't alternate between begin and end";
            return Err(code[index].at().error_expecting(what, "paste the code with both marks, or without them"));
        };
        for placed in code[next..begin].iter() {
            dropped.push(DroppedLine::new_code(placed.line, placed.code.text, OUTSIDE));
        }
        next = end + MARK_INSTRUCTIONS;
        let mark = Some(format!("IACA region at line {}", code[begin].line));
        regions.push(MarkedCode { mark, code: code[begin + MARK_INSTRUCTIONS..end].to_vec() });
    }
    for placed in &code[next..] {
        dropped.push(DroppedLine::new_code(placed.line, placed.code.text, OUTSIDE));
    }
    Ok(regions)
}

/// Whether a mark is at the start of this code: whether it begins a region.
fn mark_at(code: &[PlacedCode]) -> Option<bool> {
    let [load, nop, ..] = code else { return None };
    let number = loaded_number(load.code.text)?;
    let is_nop = match nop.code.bytes.is_empty() {
        true => nop.code.text.contains("addr32") && nop.code.text.contains("nop"),
        false => nop.code.bytes == BYTE_MARK_NOP,
    };
    BYTE_MARKS.iter().find(|(mark, _)| *mark == number).filter(|_| is_nop).map(|(_, begins)| *begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pasted::listing_line::CodeLine;

    fn found(text: &str) -> Result<Vec<(String, Range<usize>)>, String> {
        let regions = find_marked_regions(&text.lines().collect::<Vec<_>>()).map_err(|error| error.message)?;
        Ok(regions.into_iter().map(|region| (region.name, region.lines)).collect())
    }

    #[test]
    fn marks_of_all_programs_are_found() {
        for text in [
            "nop\n# LLVM-MCA-BEGIN\nnop\n# LLVM-MCA-END\nnop",
            "nop\n# OSACA-BEGIN\nnop\n# OSACA-END",
            "nop\n; OSACA-BEGIN\nnop\n; OSACA-END",
        ] {
            assert_eq!(found(text), Ok(vec![(String::new(), 2..3)]), "{text}");
        }
        let iaca = "movl $111, %ebx\n.byte 100\n.byte 103\n.byte 144\nnop\nmov ebx, 222\n.byte 0x64, 0x67, 0x90\n";
        assert_eq!(found(iaca), Ok(vec![(String::new(), 4..5)]));
        let named = "# LLVM-MCA-BEGIN a\nnop\n# LLVM-MCA-BEGIN b\nnop\n# LLVM-MCA-END a\nnop\n# LLVM-MCA-END b";
        assert_eq!(found(named), Ok(vec![("a".to_string(), 1..4), ("b".to_string(), 3..6)]));
    }

    #[test]
    fn marks_of_bytes_do_not_overlap() {
        let line = |text: &'static str, bytes: &[u8]| PlacedCode {
            line: 1,
            whole: text,
            code: CodeLine { text, bytes: bytes.to_vec(), ..CodeLine::default() },
        };
        let begin = [line("mov $0x6f,%ebx", &[0xbb, 0x6f, 0, 0, 0]), line("fs addr32 nop", &BYTE_MARK_NOP)];
        let end = [line("mov $0xde,%ebx", &[0xbb, 0xde, 0, 0, 0]), line("mov $0x6f,%ebx", &BYTE_MARK_NOP)];
        let code = [&begin[..], &[line("nop", &[0x90])], &end, &begin[1..]].concat();
        let regions = split_by_marker_bytes(code, &mut Vec::new()).expect("one pair");
        assert_eq!(regions.iter().map(|region| region.code.len()).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn marks_come_in_pairs() {
        for text in [
            "# LLVM-MCA-BEGIN\nnop",
            "nop\n# LLVM-MCA-END",
            "# LLVM-MCA-BEGIN\n# LLVM-MCA-BEGIN\nnop\n# LLVM-MCA-END",
            "nop # LLVM-MCA-BEGIN\nnop\n# LLVM-MCA-END",
        ] {
            assert!(found(text).is_err(), "{text}");
        }
        assert_eq!(found("movl $111, %ebx\nnop"), Ok(vec![]));
    }
}
