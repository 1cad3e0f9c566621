//! Marks that programs and people put on lines: quotes, bullets, numbers, signs of a diff, arrows.

use super::directives::Directive;
use super::instruction_text::{begins_with_instruction, looks_like_instruction};
use super::listing_line::begins_like_code_line;
use super::pasted_text::DroppedLine;
use super::text_words::{has_content, line_start};
use cyclescope_core::error::BadSnippet;

/// Fewest lines that show a mark in front of each.
const MARKED_LINES_LEAST: usize = 3;

/// Replaces what `cat -A` writes for tabs and ends of lines.
pub(super) fn strip_ends(lines: &mut [String]) {
    let mut filled = lines.iter().filter(|line| has_content(line));
    if lines.len() < MARKED_LINES_LEAST || !filled.all(|line| line.ends_with('$')) {
        return;
    }
    for line in lines {
        *line = line.strip_suffix('$').unwrap_or(line).replace("^I", "\t");
    }
}

/// Blanks what stands in front of each line in the same way, such as a file's name of grep or the
/// mark of a comment, and grep's numbers of lines, if code is behind it.
pub(super) fn strip_marks(lines: &mut [String]) {
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

/// Blanks the `>` of quoted mail. Returns whether there were any.
pub(super) fn strip_quotes(lines: &mut [String]) -> bool {
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
pub(super) fn strip_bullets(lines: &mut [String]) {
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
pub(super) fn strip_numbers(lines: &mut [String]) {
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
pub(super) fn strip_diff(lines: &mut [String], dropped: &mut Vec<DroppedLine>) -> Result<(), BadSnippet> {
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

/// Blanks an arrow in front of an instruction, which marks the line of interest.
pub(super) fn strip_arrow(line: &mut String) {
    const ARROWS: [&str; 7] = ["\u{2192}", "\u{25ba}", "\u{25b6}", "\u{279c}", "=>", "-->", "->"];
    let blanks = line.len() - line.trim_start().len();
    let Some(arrow) = ARROWS.iter().find(|arrow| line[blanks..].starts_with(**arrow)) else { return };
    let end = blanks + arrow.len();
    if looks_like_instruction(&line[end..]) {
        line.replace_range(blanks..end, &" ".repeat(arrow.chars().count()));
    }
}
