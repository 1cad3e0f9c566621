//! Text for a terminal: what a file, a name or another program says must not command the terminal that shows it.
//!
//! Everything that is printed passes here, and colours are added behind it. So a text can show any words, and can neither move
//! the cursor nor change colours, the title, the clipboard or the direction of writing.

use crate::output::charset::spell_for_locale;
use std::borrow::Cow;
use std::fmt::Write;

/// Styles, by the characters that mark their beginning in a line under way: noncharacters, which no text is to contain
/// (Unicode, 23.7).
const STYLES: [(char, &str); 3] = [(BOLD, "1"), (FAINT, "2"), (YELLOW, "33")];
/// Marks the beginning of bold text.
pub const BOLD: char = '\u{fdd0}';
/// Marks the beginning of faint text.
pub const FAINT: char = '\u{fdd1}';
/// Marks the beginning of a warning.
pub const YELLOW: char = '\u{fdd2}';
/// Marks the end of a style.
const STYLE_END: char = '\u{fdd3}';

/// Whether a character would not be shown, but obeyed: control characters (ISO 6429) but line ends and tabs, and those that turn
/// the direction of writing (Unicode Standard Annex 9) or end a line.
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

/// A text whose characters are all shown, in those of the user's locale: what would be obeyed is written as an escape, such as
/// `\x1b`. Lines stay.
pub fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in spell_for_locale(text).chars() {
        if is_terminal_command(c) || is_style_mark(c) { push_escaped(c, &mut shown) } else { shown.push(c) }
    }
    shown
}

/// A text in a style, for a line.
pub fn mark_style(style: char, text: &str) -> String {
    format!("{style}{}{STYLE_END}", escape_controls(text))
}

/// A line as it is printed: harmless but for the styles that [`painted`] marked, which end with it.
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

/// A line of JSON that says the same and is harmless: JSON escapes only some of the characters in its strings (RFC 8259, 7).
pub fn escape_json(line: &str) -> Cow<'_, str> {
    if !line.chars().any(is_terminal_command) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len());
    for c in line.chars() {
        // All of them are in the first 2^16.
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
    fn what_would_be_obeyed_is_shown() {
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
    fn only_own_styles_pass_and_end_with_the_line() {
        let text = format!("{EVIL} {} x", mark_style(BOLD, EVIL));
        let [coloured, plain] = [true, false].map(|colours| render_line(&text, colours));
        assert!(!obeys(&plain) && !plain.chars().any(is_style_mark), "{plain}");
        // The style that the text itself marked, that of the program, and its end.
        let sequences: Vec<&str> = coloured.split('\x1b').skip(1).map(|rest| &rest[..3]).collect();
        assert_eq!(sequences, ["[1m", "[1m", "[0m"], "{coloured}");
        assert!(!obeys(&coloured.replace("\x1b[1m", "").replace("\x1b[0m", "")));
        assert_eq!(render_line("\u{fdd2}open", true), "\x1b[33mopen\x1b[0m");
        assert_eq!(render_line(&mark_style(YELLOW, "x"), true), "\x1b[33mx\x1b[0m");
    }

    #[test]
    fn json_says_the_same() {
        let text = serde_json::to_string(EVIL).expect("plain data");
        let shown = escape_json(&text);
        assert!(obeys(&text) && !obeys(&shown), "{shown}");
        assert_eq!(serde_json::from_str::<String>(&shown).expect("JSON"), EVIL);
        assert!(matches!(escape_json(r#"{"a":"µ"}"#), Cow::Borrowed(_)));
    }
}
