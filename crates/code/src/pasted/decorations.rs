//! Removes what mail, web pages, terminals, editors and diffs put around a text.
//!
//! Lines keep their numbers. What stands in front of code becomes blanks, so that columns stay too.
//! A mark is removed only if all lines with content have it.

use super::instruction_text::{begins_with_instruction, looks_like_instruction};
use super::line_marks::{strip_arrow, strip_bullets, strip_diff, strip_ends, strip_marks, strip_numbers, strip_quotes};
use super::listing_line::begins_like_code_line;
use super::markup::{blank_elements, is_fence, replace_characters, strip_backticks, strip_colors, strip_links};
use super::pasted_text::DroppedLine;
use super::text_words::{first_word, has_content};
use cyclescope_core::error::BadSnippet;

/// Prompts of debuggers and shells, with a command after them.
const PROMPTS: [&str; 8] = ["(gdb)", "(lldb)", "(rr)", "julia>", "pwndbg>", "gef\u{27a4}", "$ ", "# objdump "];

/// Most marks of quoted mail in front of a line.
const QUOTES_MOST: usize = 16;

/// A text without decorations.
#[derive(Debug)]
pub(super) struct PlainText {
    pub(super) text: String,
    /// Lines that were cleared.
    pub(super) dropped: Vec<DroppedLine>,
}

/// Removes decorations.
///
/// # Errors
///
/// Fails if the text is a diff with lines of two versions.
pub(super) fn strip_decorations(text: &str) -> Result<PlainText, BadSnippet> {
    let clear = blank_elements(&strip_colors(&replace_characters(text)));
    let mut lines: Vec<String> = clear.split('\n').map(str::to_string).collect();
    let mut dropped = Vec::new();
    strip_ends(&mut lines);
    strip_marks(&mut lines);
    // Its lines of dashes begin and end blocks.
    let is_asciidoc = text.contains("[source");
    let has_links = text.contains("](http");
    for (number, line) in (1..).zip(&mut lines) {
        if has_links {
            strip_links(line);
        }
        let is_delimiter = is_asciidoc && line.len() > 3 && line.trim_end().bytes().all(|byte| byte == b'-');
        if is_delimiter || is_fence(line) || is_prompt(line) {
            dropped.push(DroppedLine::new_noise(number, line, "it is not code"));
            line.clear();
        }
    }
    for _ in 0..QUOTES_MOST {
        if !strip_quotes(&mut lines) {
            break;
        }
    }
    strip_bullets(&mut lines);
    strip_numbers(&mut lines);
    strip_diff(&mut lines, &mut dropped)?;
    strip_sources(&mut lines, &mut dropped);
    split_cells(&mut lines);
    for line in &mut lines {
        strip_arrow(line);
        strip_backticks(line);
    }
    strip_blocks(&mut lines, &mut dropped);
    Ok(PlainText { text: lines.join("\n"), dropped })
}

/// Whether a line is a command after a prompt.
fn is_prompt(line: &str) -> bool {
    let line = line.trim_start();
    // WinDbg: `0:000> u`.
    let is_windbg = line.split_once("> ").is_some_and(|(before, _)| {
        before.contains(':') && before.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    });
    // radare2: `[0x00401110]> pi 8`.
    let is_radare = line.starts_with("[0x") && line.contains("]> ");
    is_windbg || is_radare || PROMPTS.iter().any(|prompt| line.starts_with(prompt))
}

/// Clears the source line that cargo-show-asm writes under `// file.rs:3`.
fn strip_sources(lines: &mut [String], dropped: &mut Vec<DroppedLine>) {
    let names_place = |line: &str| {
        let place = line.trim().strip_prefix("//").and_then(|place| place.rsplit_once(".rs:"));
        place.is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    for index in 1..lines.len() {
        if names_place(&lines[index - 1]) && !looks_like_instruction(&lines[index]) && has_content(&lines[index]) {
            dropped.push(DroppedLine::new_noise(index as u32 + 1, &lines[index], "it is source code"));
            lines[index].clear();
        }
    }
}

/// The places of the characters between the cells of a row of CSV.
fn find_separators(line: &str, separator: u8) -> Vec<usize> {
    let mut is_quoted = false;
    let mut places = Vec::new();
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            byte if byte == separator && !is_quoted => places.push(at),
            _ => {}
        }
    }
    places
}

/// Replaces the characters between the cells of CSV by tabs, and quotes by blanks. Commas need
/// instructions in quotes. Semicolons need numbers in front of instructions.
fn split_cells(lines: &mut [String]) {
    const SEPARATORS_LEAST: usize = 2;
    let count = |line: &str, separator: u8| find_separators(line, separator).len();
    let is_balanced = |line: &str| line.matches('"').count().is_multiple_of(2) && !line.contains("(\"");
    let has_quoted = |line: &String| {
        count(line, b',') >= SEPARATORS_LEAST
            && !line.trim_start().starts_with(['{', '['])
            && line.split('"').skip(1).step_by(2).any(looks_like_instruction)
            && is_balanced(line)
    };
    let has_numbered = |line: &String| {
        if !line.contains(';') {
            return false;
        }
        let cells: Vec<&str> = line.split(';').collect();
        let codes = cells.iter().filter(|cell| looks_like_instruction(cell)).count();
        let is_number = cells[0].trim().trim_start_matches("0x").bytes().all(|digit| digit.is_ascii_hexdigit());
        cells.len() > SEPARATORS_LEAST && codes == 1 && is_number && !cells[0].trim().is_empty() && is_balanced(line)
    };
    for (separator, is_row) in [(b',', &has_quoted as &dyn Fn(&String) -> bool), (b';', &has_numbered)] {
        let is_other = |line: &String| {
            !has_content(line) || count(line, separator) >= SEPARATORS_LEAST || !may_be_code(line.trim())
        };
        if !lines.iter().any(is_row) || !lines.iter().all(is_other) {
            continue;
        }
        for line in lines.iter_mut().filter(|line| count(line, separator) >= SEPARATORS_LEAST) {
            for at in find_separators(line, separator) {
                line.replace_range(at..=at, "\t");
            }
            *line = line.replace('"', " ");
        }
        return;
    }
}

/// Whether a line may be an instruction or name a place.
fn may_be_code(line: &str) -> bool {
    begins_with_instruction(line) || begins_like_code_line(line) || line.ends_with(':')
}

/// Clears the lines around a block of assembly in C or Delphi: `__asm {` and `}`, or from
/// `function` to `asm`, and `end;`.
fn strip_blocks(lines: &mut [String], dropped: &mut Vec<DroppedLine>) {
    let is_opening = |line: &String| {
        let line = line.trim();
        matches!(line, "asm" | "__asm {" | "_asm {" | "__asm" | "__asm{" | "asm {")
    };
    let Some(open) = lines.iter().position(is_opening) else { return };
    let is_closing = |line: &str| matches!(line, "}" | "end;" | "end");
    let Some(close) = lines.iter().skip(open).position(|line| is_closing(line.trim())) else { return };
    let close = open + close;
    let is_declaration = |line: &String| {
        let word = first_word(line);
        !has_content(line) || matches!(word.as_str(), "function" | "procedure" | "begin")
    };
    if !lines[..open].iter().all(is_declaration) || lines[close + 1..].iter().any(|line| has_content(line)) {
        return;
    }
    let is_pascal = lines[close].trim().starts_with("end");
    let around = (0..=open).chain([close]).chain(open + 1..=open + 1);
    for index in
        around.filter(|index| *index <= open || *index == close || lines[*index].trim() == "{").collect::<Vec<_>>()
    {
        if has_content(&lines[index]) {
            dropped.push(DroppedLine::new_noise(index as u32 + 1, &lines[index], "it is not code"));
        }
        lines[index].clear();
    }
    for line in lines.iter_mut().filter(|_| is_pascal) {
        *line = line.replace('$', "0x");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(text: &str) -> String {
        let plain = strip_decorations(text).expect(text).text;
        let lines: Vec<&str> = plain.lines().map(str::trim).collect();
        lines.join("|")
    }

    #[test]
    fn decorations_are_removed_from_all_lines() {
        for (text, plain) in [
            ("> nop\n> pause", "nop|pause"),
            ("On Tue, A wrote:\n> > nop\n> > pause", "|nop|pause"),
            ("* nop\n* pause", "nop|pause"),
            ("1  nop\n2\n3  pause", "nop||pause"),
            (" 9 | nop\n10 | pause", "nop|pause"),
            ("+nop\n+\tpause", "nop|pause"),
            ("@@ -1 +1 @@\n nop\n+pause", "|nop|pause"),
            ("<pre><code>nop\npause</code></pre>", "nop|pause"),
            ("jne 4 &lt;f+0x4&gt;", "jne 4 <f+0x4>"),
            ("\u{1b}[33mnop\u{1b}[0m", "nop"),
            ("mov\u{a0}al, [rdi\u{2212}8]\u{200b}", "mov al, [rdi-8]"),
            ("```asm\nnop\n```", "|nop"),
            ("(gdb) x/i $pc\nnop", "|nop"),
            ("nop\n \u{2192} pause\n => nop", "nop|pause|nop"),
            ("1,\"add eax, ebx\",2", "1\t add eax, ebx \t2"),
            ("A B\n0x1;add eax, ebx;2", "A B|0x1\tadd eax, ebx\t2"),
            ("nop^Ieax$\nnop$\nnop$", "nop\teax|nop|nop"),
            ("[0x10]> pi 2\nnop", "|nop"),
            ("; f\n; 66: 90 NOP\n; 67: 90 NOP\n; 68: C3 RET", "f|66: 90 NOP|67: 90 NOP|68: C3 RET"),
            ("// /a/lib.rs:3\n fn f() {\nnop", "// /a/lib.rs:3||nop"),
            ("`add eax, ebx; nop`", "add eax, ebx; nop"),
            ("__asm {\n nop\n}", "|nop"),
            ("\\begin{verbatim}\nnop\n\\end{verbatim}", "|nop"),
            ("#+BEGIN_SRC asm\nnop\n#+END_SRC", "|nop"),
            ("a.txt- 10: nop\na.txt- 11: nop\na.txt- 12: ret", "10: nop|11: nop|12: ret"),
            ("// nop\n// pause\n// nop", "nop|pause|nop"),
            ("7: 10: nop\n8- 11: nop\n9- 12: ret", "10: nop|11: nop|12: ret"),
            ("| [nop](https://a.b/c) |", "|  nop |"),
            ("function F: Int64;\nasm\n add eax, $10\nend;", "||add eax, 0x10"),
        ] {
            assert_eq!(strip(text), plain, "{text}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "{vex3} nop\n{vex3} nop\n{vex3} nop",
            "1: nop\n2: nop\n3: jmp 1b",
            "; nop\n; nop\n; nop",
            "1: nop\n2: jmp 1b",
            "> nop\npause",
            "1 0000 90 nop\n2 0001 90 nop",
            "-8(%rdi)",
            "nop <f+1>",
            "0 <div>:",
        ] {
            assert_eq!(strip_decorations(text).expect(text).text, text);
        }
        assert!(strip_decorations(" nop\n-pause\n+nop").is_err());
    }

    #[test]
    fn columns_stay_where_they_are() {
        assert_eq!(strip_decorations("> nop").expect("plain").text, "  nop");
        assert_eq!(strip_decorations("1 nop\n2 nop").expect("plain").text, "  nop\n  nop");
    }
}
