//! Finds text that something would obey rather than show, in what a program printed or wrote.

/// The first character that a terminal obeys, as text: control characters other than line ends and
/// tabs (ISO 6429), characters that change the writing direction or end a line (Unicode Standard
/// Annex 9), and bytes that are no UTF-8.
pub fn find_terminal_command(printed: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(printed) else { return Some("invalid UTF-8".to_string()) };
    let turns =
        |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let found = text.char_indices().find(|(_, c)| turns(*c) || c.is_control() && !matches!(c, '\n' | '\t'));
    found.map(|(at, c)| format!("{c:?} behind {:?}", text[..at].chars().rev().take(40).collect::<Vec<_>>()))
}

/// The first cell of a CSV file that a spreadsheet computes: text that begins as a formula does
/// (OWASP, "CSV Injection").
pub fn find_formula(csv: &[u8]) -> Option<String> {
    let is_formula = |cell: &String| cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    split_cells(&String::from_utf8_lossy(csv)).into_iter().find(is_formula)
}

/// The cells of a CSV file, without their quotes (RFC 4180). Lines of a quoted cell count as cells,
/// since some programs split the file there first.
fn split_cells(csv: &str) -> Vec<String> {
    let (mut cells, mut is_quoted) = (vec![String::new()], false);
    for c in csv.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            '\n' => cells.push(String::new()),
            c => cells.last_mut().expect("there is one").push(c),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_formulas_are_found() {
        for text in ["a\u{1b}[2J", "\u{9b}2J", "\u{202e}", "\r", "\u{7f}", "\0"] {
            assert!(find_terminal_command(text.as_bytes()).is_some(), "{text:?}");
        }
        assert!(find_terminal_command(b"\xff").is_some());
        assert_eq!(find_terminal_command("µ ≤ 3\tx\n".as_bytes()), None);
        for (csv, is) in [
            ("a,=1", true),
            ("\"{\"\"a\"\",=1}\"", false),
            ("\"a\n=1\"", true),
            ("\"@x\",1", true),
            ("-1.5,+2", false),
            ("a,'=1", false),
            ("-1+2", true),
        ] {
            assert_eq!(find_formula(csv.as_bytes()).is_some(), is, "{csv}");
        }
    }
}
