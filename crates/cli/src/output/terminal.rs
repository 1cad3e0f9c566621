//! Makes text safe for a terminal, whatever a file, a name or another program contains.
//!
//! All printed text passes through here, and colours are added afterwards. A text can show any
//! words, but can't move the cursor or change colours, the title, the clipboard or the writing
//! direction.

use crate::output::charset::spell_for_locale;
use std::borrow::Cow;
use std::fmt::Write;

/// Styles, and the characters that mark their start in an unrendered line. These noncharacters
/// never occur in valid text (Unicode, 23.7).
const STYLES: [(char, &str); 3] = [(BOLD, "1"), (FAINT, "2"), (YELLOW, "33")];
/// Starts bold text.
pub const BOLD: char = '\u{fdd0}';
/// Starts faint text.
pub const FAINT: char = '\u{fdd1}';
/// Starts a warning.
pub const YELLOW: char = '\u{fdd2}';
/// Ends a style.
const STYLE_END: char = '\u{fdd3}';

/// Whether a terminal would obey a character rather than show it: control characters (ISO 6429)
/// except line ends and tabs, and characters that change the writing direction (Unicode Standard
/// Annex 9) or end a line.
fn is_terminal_command(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && c != '\n' && c != '\t'
}

fn is_style_mark(c: char) -> bool {
    c == STYLE_END || STYLES.iter().any(|(mark, _)| *mark == c)
}

fn push_escaped(c: char, text: &mut String) {
    let written = match u32::from(c) {
        code @ ..0x100 => write!(text, "\\x{code:02x}"),
        code => write!(text, "\\u{{{code:x}}}"),
    };
    written.expect("text grows");
}

/// Escapes a text so that the terminal shows every character: characters that it would obey become
/// escapes such as `\x1b`. Line ends stay. Other characters are spelled for the user's locale.
pub fn escape_controls(text: &str) -> String {
    escape_commands(&spell_for_locale(text))
}

/// Escapes the same characters for a file, whose other characters do not depend on the locale.
pub fn escape_commands(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_terminal_command(c) || is_style_mark(c) { push_escaped(c, &mut shown) } else { shown.push(c) }
    }
    shown
}

/// Marks a text with a style.
pub fn mark_style(style: char, text: &str) -> String {
    format!("{style}{}{STYLE_END}", escape_controls(text))
}

/// Renders a line for printing: safe, except for the styles that [`mark_style`] added, which end
/// with the line.
pub fn render_line(text: &str, colours: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut is_open = false;
    for c in spell_for_locale(text).chars() {
        let style = STYLES.iter().find(|(mark, _)| *mark == c);
        match style {
            _ if is_terminal_command(c) => push_escaped(c, &mut shown),
            None if c != STYLE_END => shown.push(c),
            Some((_, code)) if colours => write!(shown, "\x1b[{code}m").expect("text grows"),
            None if is_open => shown.push_str("\x1b[0m"),
            _ => {}
        }
        is_open = if style.is_some() { colours } else { is_open && c != STYLE_END };
    }
    if is_open {
        shown.push_str("\x1b[0m");
    }
    shown
}

/// Makes a JSON line safe without changing its meaning. JSON itself escapes only some characters in
/// strings (RFC 8259, 7).
pub fn escape_json(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_terminal_command) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len());
    for c in line.chars() {
        // All of them are below 2^16.
        let written =
            if is_terminal_command(c) { write!(shown, "\\u{:04x}", u32::from(c)) } else { shown.write_char(c) };
        written.expect("text grows");
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVIL: &str = "a\x1b]0;title\x07b\u{9b}2J\r\u{7f}\u{202e}c\u{2028}\u{fdd0}";

    fn obeys(text: &str) -> bool {
        text.chars().any(is_terminal_command)
    }

    #[test]
    fn terminal_commands_are_escaped() {
        let shown = r"a\x1b]0;title\x07b\x9b2J\x0d\x7f\u{202e}c\u{2028}\u{fdd0}";
        assert_eq!(escape_controls(EVIL), shown);
        assert_eq!(escape_controls(&escape_controls(EVIL)), shown);
        assert_eq!(escape_controls("µ\tb\n"), "µ\tb\n");
        for code in 0..=0x10_ffff {
            let Some(c) = char::from_u32(code) else { continue };
            assert!(
                !obeys(&escape_controls(&c.to_string())) && !obeys(&render_line(&c.to_string(), false)),
                "{code:x}"
            );
        }
    }

    #[test]
    fn only_marked_styles_pass_and_end_with_the_line() {
        let text = format!("{EVIL} {} x", mark_style(BOLD, EVIL));
        let [coloured, plain] = [true, false].map(|colours| render_line(&text, colours));
        assert!(!obeys(&plain) && !plain.chars().any(is_style_mark), "{plain}");
        // The style in the text, the program's own style, and its end.
        let sequences: Vec<&str> = coloured.split('\x1b').skip(1).map(|rest| &rest[..3]).collect();
        assert_eq!(sequences, ["[1m", "[1m", "[0m"], "{coloured}");
        assert!(!obeys(&coloured.replace("\x1b[1m", "").replace("\x1b[0m", "")));
        assert_eq!(render_line("\u{fdd2}open", true), "\x1b[33mopen\x1b[0m");
        assert_eq!(render_line(&mark_style(YELLOW, "x"), true), "\x1b[33mx\x1b[0m");
    }

    #[test]
    fn escaped_json_keeps_its_meaning() {
        let text = serde_json::to_string(EVIL).expect("plain data");
        let shown = escape_json(&text);
        assert!(obeys(&text) && !obeys(&shown), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), EVIL);
        assert!(matches!(escape_json(r#"{"a":"µ"}"#), Cow::Borrowed(_)));
    }
}
