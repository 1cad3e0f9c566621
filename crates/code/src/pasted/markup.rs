//! Markup around code: typeset characters, colors of terminals, HTML, Markdown and its relatives.

use super::instruction_text::begins_with_instruction;

/// Typeset characters and their plain equivalents.
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

pub(super) fn replace_characters(text: &str) -> String {
    let replace = |c: char| TYPESET.iter().find(|(typeset, _)| *typeset == c).map_or(c, |(_, plain)| *plain);
    text.chars().filter(|c| !INVISIBLE.contains(c)).map(replace).collect()
}

/// Removes the escape sequences that color a terminal.
pub(super) fn strip_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}

/// Replaces HTML's entities, and its elements by blanks.
pub(super) fn blank_elements(text: &str) -> String {
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
pub(super) fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    if line.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return false;
    }
    let line = line.to_ascii_lowercase();
    FENCES.iter().any(|fence| line.starts_with(fence))
}

/// Replaces links of Markdown, `[code](https://…)`, by their texts.
pub(super) fn strip_links(line: &mut String) {
    while let Some(middle) = line.find("](http") {
        let Some(open) = line[..middle].rfind('[') else { return };
        let Some(close) = line[middle..].find(')') else { return };
        line.replace_range(middle..=middle + close, "");
        line.replace_range(open..=open, " ");
    }
}

/// Blanks the backticks around code in a table or a message.
pub(super) fn strip_backticks(line: &mut String) {
    if line.split('`').skip(1).step_by(2).any(begins_with_instruction) && line.matches('`').count().is_multiple_of(2) {
        *line = line.replace('`', " ");
    }
}
