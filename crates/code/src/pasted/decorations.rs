//! Removes what mail, web pages, terminals, editors and diffs put around a text.
//!
//! Lines keep their numbers. What stands in front of code becomes blanks, so that columns stay too.
//! A mark is removed only if all lines with content have it.

use super::directives::Directive;
use super::foreign_text::{begins_with_instruction, looks_like_instruction};
use super::listing_line::begins_like_code_line;
use super::pasted_text::DroppedLine;
use super::text_words::{first_word, line_start};
use cyclescope_core::error::BadSnippet;

/// Characters of typesetting, and what they stand for.
const TYPESET: [(char, char); 9] = [
    ('\u{2212}', '-'),
    ('\u{2013}', '-'),
    ('\u{2018}', '\''),
    ('\u{2019}', '\''),
    ('\u{201c}', '"'),
    ('\u{201d}', '"'),
    ('\u{ff0c}', ','),
    ('\u{ff1b}', ';'),
    ('\u{a0}', ' '),
];
/// Characters that nobody sees.
const INVISIBLE: [char; 6] = ['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}', '\u{ad}'];
/// Entities of HTML that occur in code.
const ENTITIES: [(&str, &str); 7] =
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&nbsp;", " "), ("&amp;", "&")];
/// Elements of HTML around code.
const ELEMENTS: [&str; 7] = ["pre", "code", "br", "div", "span", "p", "samp"];
/// Prompts of debuggers and shells, with a command after them.
const PROMPTS: [&str; 8] = ["(gdb)", "(lldb)", "(rr)", "julia>", "pwndbg>", "gef\u{27a4}", "$ ", "# objdump "];

/// What begins or ends a block of code in a markup language, in small letters.
const FENCES: [&str; 18] = [
    "```",
    "~~~",
    "\\begin{",
    "\\end{",
    "{code",
    "{noformat",
    "[code",
    "[/code",
    "#+begin_",
    "#+end_",
    ".. code",
    "[source",
    ".. highlight",
    "<!--",
    "{%",
    "<details",
    "<summary",
    "</details",
];
/// Fewest lines that show a mark in front of each.
const MARKED_LINES_LEAST: usize = 3;

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

fn replace_characters(text: &str) -> String {
    let replace = |c: char| TYPESET.iter().find(|(typeset, _)| *typeset == c).map_or(c, |(_, plain)| *plain);
    text.chars().filter(|c| !INVISIBLE.contains(c)).map(replace).collect()
}

/// Removes the escape sequences that color a terminal.
fn strip_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}

/// Replaces HTML's entities, and its elements by blanks.
fn blank_elements(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    // A function may have the name of an element.
    let has_elements = text.contains("</");
    while let Some(at) = rest.find('<').filter(|_| has_elements) {
        plain.push_str(&rest[..at]);
        let name = rest[at + 1..].trim_start_matches('/');
        let name = &name[..name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len())];
        let after = &rest[at + 1..];
        let end = after.find(['>', '<', '\n']).filter(|end| after[*end..].starts_with('>'));
        let length = match end {
            Some(end) if ELEMENTS.contains(&name.to_ascii_lowercase().as_str()) => end + 2,
            _ => 0,
        };
        match length {
            0 => plain.push('<'),
            _ => plain.push_str(&" ".repeat(rest[at..at + length].chars().count())),
        }
        rest = &rest[at + length.max(1)..];
    }
    plain.push_str(rest);
    for (entity, character) in ENTITIES {
        if plain.contains(entity) {
            plain = plain.replace(entity, character);
        }
    }
    plain
}

/// Whether a line begins or ends a block of code in a markup language.
fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return false;
    }
    let line = line.to_ascii_lowercase();
    FENCES.iter().any(|fence| line.starts_with(fence))
}

/// Replaces what `cat -A` writes for tabs and ends of lines.
fn strip_ends(lines: &mut [String]) {
    let mut filled = lines.iter().filter(|line| has_content(line));
    if lines.len() < MARKED_LINES_LEAST || !filled.all(|line| line.ends_with('$')) {
        return;
    }
    for line in lines {
        *line = line.strip_suffix('$').unwrap_or(line).replace("^I", "\t");
    }
}

/// Replaces links of Markdown, `[code](https://…)`, by their texts.
fn strip_links(line: &mut String) {
    while let Some(middle) = line.find("](http") {
        let Some(open) = line[..middle].rfind('[') else { return };
        let Some(close) = line[middle..].find(')') else { return };
        line.replace_range(middle..=middle + close, "");
        line.replace_range(open..=open, " ");
    }
}

/// Blanks what stands in front of each line in the same way, such as a file's name of grep or the
/// mark of a comment, and grep's numbers of lines, if code is behind it.
fn strip_marks(lines: &mut [String]) {
    let filled: Vec<&str> = lines.iter().map(|line| line.trim_end()).filter(|line| has_content(line)).collect();
    if filled.len() < MARKED_LINES_LEAST {
        return;
    }
    let is_code = |text: &str| looks_like_instruction(text) || begins_like_code_line(text.trim_start());
    let shared = filled.iter().fold(filled[0], |shared, line| {
        let differs = shared.bytes().zip(line.bytes()).position(|(one, other)| one != other);
        let mut end = differs.unwrap_or(shared.len().min(line.len()));
        while !shared.is_char_boundary(end) {
            end -= 1;
        }
        &shared[..end]
    });
    // The mark ends with a character that is in no name. A comment of NASM may be an instruction
    // that someone left out.
    let ends = |c: char| !c.is_alphanumeric() && !"_%$([{<.".contains(c);
    let end = shared.char_indices().rfind(|(_, c)| ends(*c)).map_or(0, |(at, c)| at + c.len_utf8());
    let length = shared[..end].trim_end().len();
    // A comment that has addresses is a listing of SBCL.
    let begins_codes = |line: &&&str| begins_like_code_line(line[length..].trim_start());
    let is_listing = shared.starts_with(';') && filled.iter().filter(begins_codes).count() >= MARKED_LINES_LEAST;
    let is_mark = is_listing
        || shared[..length].ends_with(|c: char| !c.is_alphanumeric())
            && !shared.trim_start().starts_with([';', '{', '<', '"', '|']);
    if is_mark && filled.iter().any(|line| is_code(&line[length..])) && !filled.iter().any(|line| is_code(line)) {
        for line in lines.iter_mut().filter(|line| has_content(line)) {
            let blanks = " ".repeat(line[..length].chars().count());
            line.replace_range(..length, &blanks);
        }
        return;
    }
    // `118:` in a line that grep found, and `119-` around it. A number and a colon may be a label.
    let number_length = |line: &str| {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let code = line[digits..].strip_prefix([':', '-'])?.trim_start();
        let fits = code.is_empty() || begins_like_code_line(code) || code.ends_with(':');
        (digits > 0 && fits).then_some(digits + 1)
    };
    let lengths: Option<Vec<usize>> = filled.iter().map(|line| number_length(line)).collect();
    let Some(lengths) = lengths.filter(|_| filled.iter().any(|line| line.matches(':').count() > 1)) else { return };
    for (line, length) in lines.iter_mut().filter(|line| has_content(line)).zip(lengths) {
        line.replace_range(..length, &" ".repeat(length));
    }
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

fn has_content(line: &str) -> bool {
    !line.trim().is_empty()
}

/// Blanks the `>` of quoted mail. Returns whether there were any.
fn strip_quotes(lines: &mut [String]) -> bool {
    let is_quoted = |line: &String| line.trim_start().starts_with('>');
    let is_introduction = |line: &String| line.trim_end().ends_with("wrote:");
    let mut filled = lines.iter().filter(|line| has_content(line));
    if !lines.iter().any(is_quoted) || !filled.all(|line| is_quoted(line) || is_introduction(line)) {
        return false;
    }
    for line in lines.iter_mut() {
        match is_quoted(line) {
            true => *line = line.replacen('>', " ", 1),
            false => line.clear(),
        }
    }
    true
}

/// Blanks the marks of a list.
fn strip_bullets(lines: &mut [String]) {
    for mark in ["* ", "- ", "\u{2022} "] {
        let is_item = |line: &String| line.trim_start().strip_prefix(mark).is_some_and(begins_with_instruction);
        let mut filled = lines.iter().filter(|line| has_content(line)).peekable();
        if filled.peek().is_some() && filled.all(is_item) {
            for line in lines.iter_mut() {
                *line = line.replacen(mark, "  ", 1);
            }
        }
    }
}

/// Length of a line's number with the character after it, if the rest may be code.
fn number_length(line: &str, number: usize) -> Option<usize> {
    let blanks = line.len() - line.trim_start().len();
    let digits = number.to_string();
    let rest = line[blanks..].strip_prefix(&digits)?;
    let marked = rest.trim_start().strip_prefix(['.', '|', ')', '\u{2502}']);
    let code = match marked {
        Some(code) => code,
        None if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest,
        None => return None,
    };
    let text = code.trim();
    let is_code = text.is_empty()
        || text.starts_with(['#', ';', '<'])
        || text.ends_with(':')
        || begins_like_code_line(text)
        || begins_with_instruction(text)
        || Directive::parse(text).is_some();
    is_code.then_some(line.len() - code.len())
}

/// Blanks the line numbers of an editor: they count all lines.
fn strip_numbers(lines: &mut [String]) {
    let mut filled = lines.iter().enumerate().filter(|(_, line)| has_content(line));
    let Some((first, line)) = filled.next() else { return };
    let digits: String = line.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let Ok(start) = digits.parse::<usize>() else { return };
    let number = |index: usize| start.saturating_add(index - first);
    let last = filled.next_back().map_or(first, |(index, _)| index);
    if last == first {
        return;
    }
    let lengths: Option<Vec<usize>> = (first..=last).map(|index| number_length(&lines[index], number(index))).collect();
    for (line, length) in lines[first..=last].iter_mut().zip(lengths.unwrap_or_default()) {
        let blanks = " ".repeat(line[..length].chars().count());
        line.replace_range(..length, &blanks);
    }
}

/// Blanks the marks of a diff.
fn strip_diff(lines: &mut [String], dropped: &mut Vec<DroppedLine>) -> Result<(), BadSnippet> {
    const HEADERS: [&str; 5] = ["diff ", "index ", "--- ", "+++ ", "@@"];
    let is_header = |line: &str| HEADERS.iter().any(|header| line.starts_with(header));
    let marks = |line: &str, mark: char| {
        let code = line.strip_prefix(mark).map(str::trim);
        let is_code = |code: &str| begins_with_instruction(code) || code.ends_with(':') || begins_like_code_line(code);
        !is_header(line) && code.is_some_and(is_code)
    };
    let is_diff = |line: &String| {
        !has_content(line) || is_header(line) || line.starts_with([' ', '\t', '+', '-']) || line.starts_with("\\ No")
    };
    let added = lines.iter().any(|line| marks(line, '+'));
    let removed = lines.iter().position(|line| marks(line, '-'));
    if !(added || removed.is_some()) || !lines.iter().all(is_diff) {
        return Ok(());
    }
    if let Some(at) = removed {
        let what = "this is a diff, which holds two versions of the code";
        let remedy = "delete the lines that begin with `-`, or those that begin with `+` and each `-`";
        return Err(line_start(at as u32 + 1).error_expecting(what, remedy));
    }
    for (number, line) in (1..).zip(lines) {
        match is_header(line) || line.starts_with('\\') {
            true => {
                dropped.push(DroppedLine::new_noise(number, line, "it is not code"));
                line.clear();
            }
            false if line.starts_with('+') => line.replace_range(..1, " "),
            false => {}
        }
    }
    Ok(())
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

/// Blanks an arrow in front of an instruction, which marks the line of interest.
fn strip_arrow(line: &mut String) {
    const ARROWS: [&str; 7] = ["\u{2192}", "\u{25ba}", "\u{25b6}", "\u{279c}", "=>", "-->", "->"];
    let blanks = line.len() - line.trim_start().len();
    let Some(arrow) = ARROWS.iter().find(|arrow| line[blanks..].starts_with(**arrow)) else { return };
    let end = blanks + arrow.len();
    if looks_like_instruction(&line[end..]) {
        line.replace_range(blanks..end, &" ".repeat(arrow.chars().count()));
    }
}

/// Blanks the backticks around code in a table or a message.
fn strip_backticks(line: &mut String) {
    if line.split('`').skip(1).step_by(2).any(begins_with_instruction) && line.matches('`').count().is_multiple_of(2) {
        *line = line.replace('`', " ");
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
