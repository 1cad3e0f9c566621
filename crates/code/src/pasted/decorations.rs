//! Removes what mail, web pages, terminals, editors and diffs put around a text.
//!
//! Lines keep their numbers. What stands in front of code becomes blanks, so that columns stay too.
//! A mark is removed only if all lines with content have it.

use super::directives::Directive;
use super::foreign_text::begins_with_instruction;
use super::listing_line::begins_like_code_line;
use super::text_words::line_start;
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

/// Most marks of quoted mail in front of a line.
const QUOTES_MOST: usize = 16;

/// Removes decorations.
///
/// # Errors
///
/// Fails if the text is a diff with lines of two versions.
pub(super) fn strip_decorations(text: &str) -> Result<String, BadSnippet> {
    let clear = blank_elements(&strip_colors(&replace_characters(text)));
    let mut lines: Vec<String> = clear.split('\n').map(str::to_string).collect();
    for line in lines.iter_mut().filter(|line| is_fence(line) || is_prompt(line)) {
        line.clear();
    }
    for _ in 0..QUOTES_MOST {
        if !strip_quotes(&mut lines) {
            break;
        }
    }
    strip_bullets(&mut lines);
    strip_numbers(&mut lines);
    strip_diff(&mut lines)?;
    Ok(lines.join("\n"))
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

/// Whether a line begins or ends a code block of Markdown.
fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// Whether a line is a command after a prompt.
fn is_prompt(line: &str) -> bool {
    let line = line.trim_start();
    // WinDbg: `0:000> u`.
    let is_windbg = line.split_once("> ").is_some_and(|(before, _)| {
        before.contains(':') && before.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    });
    is_windbg || PROMPTS.iter().any(|prompt| line.starts_with(prompt))
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
fn strip_diff(lines: &mut [String]) -> Result<(), BadSnippet> {
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
    for line in lines.iter_mut() {
        match is_header(line) || line.starts_with('\\') {
            true => line.clear(),
            false if line.starts_with('+') => line.replace_range(..1, " "),
            false => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strip(text: &str) -> String {
        let plain = strip_decorations(text).expect(text);
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
        ] {
            assert_eq!(strip(text), plain, "{text}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in
            ["1: nop\n2: jmp 1b", "> nop\npause", "1 0000 90 nop\n2 0001 90 nop", "-8(%rdi)", "nop <f+1>", "0 <div>:"]
        {
            assert_eq!(strip_decorations(text).as_deref(), Ok(text), "{text}");
        }
        assert!(strip_decorations(" nop\n-pause\n+nop").is_err());
    }

    #[test]
    fn columns_stay_where_they_are() {
        assert_eq!(strip_decorations("> nop").as_deref(), Ok("  nop"));
        assert_eq!(strip_decorations("1 nop\n2 nop").as_deref(), Ok("  nop\n  nop"));
    }
}
