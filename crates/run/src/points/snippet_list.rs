//! A list of snippets: a CSV file with column names in its first line, or a text with one snippet
//! per line.
//!
//! Columns: `snippet` (assembly) or `hex` (machine code), and optionally `name` and `init`
//! (assembly that runs once before). If the first line names neither `snippet` nor `hex`, the file
//! is a text in which each line is a snippet. In both formats a line that begins with `#` is a
//! comment, and empty lines are skipped.

use cyclescope_measure::study::csv_list::{BadList, for_each_row};

const COLUMNS: [&str; 4] = ["name", "snippet", "hex", "init"];
/// Columns of which a list has at least one.
const SUBJECT_COLUMNS: [&str; 2] = ["snippet", "hex"];

/// A snippet of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSnippet {
    /// Its line number, from 1.
    pub line: u64,
    /// Its name from the list, otherwise its text.
    pub name: String,
    /// Assembly; `None` for machine code.
    pub snippet: Option<String>,
    /// Machine code in hexadecimal.
    pub hex: Option<String>,
    /// Assembly that runs once before.
    pub init: Option<String>,
}

/// Reads the content of a file.
///
/// # Errors
///
/// If a line has neither a snippet nor machine code, or both; the error has the line. If there are
/// no snippets; that error has no line.
pub fn read_list(content: &str) -> Result<Vec<ListedSnippet>, BadList> {
    let mut all = Vec::new();
    if has_columns(content) {
        for_each_row(content.as_bytes(), &COLUMNS, &SUBJECT_COLUMNS, |[name, snippet, hex, init], line| {
            let given = |text: &str| (!text.is_empty()).then(|| text.to_string());
            let (snippet, hex, init) = (given(snippet), given(hex), given(init));
            let text = match (&snippet, &hex) {
                (Some(text), None) | (None, Some(text)) => text.clone(),
                _ => {
                    let text = "it has neither a snippet nor machine code, or both".to_string();
                    return Err((text, "fill one of the columns `snippet` and `hex`".to_string()));
                }
            };
            all.push(ListedSnippet { line, name: given(name).unwrap_or(text), snippet, hex, init });
            Ok(())
        })?;
    } else {
        let snippets = content_lines(content).map(|(line, text)| {
            let (name, snippet) = (text.to_string(), Some(text.to_string()));
            ListedSnippet { line, name, snippet, hex: None, init: None }
        });
        all.extend(snippets);
    }
    match all.is_empty() {
        false => Ok(all),
        true => Err(BadList {
            line: None,
            message: "it has no snippets".to_string(),
            remedy: format!("write one per line, or a CSV file with the columns {}", COLUMNS.join(", ")),
        }),
    }
}

/// Whether the first line contains column names.
fn has_columns(content: &str) -> bool {
    let names = |line: &str| line.split(',').any(|name| SUBJECT_COLUMNS.contains(&name.trim().to_lowercase().as_str()));
    content_lines(content).next().is_some_and(|(_, line)| names(line))
}

/// The lines that are neither empty nor comments, with their numbers from 1.
fn content_lines(content: &str) -> impl Iterator<Item = (u64, &str)> {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let lines = content.lines().enumerate().map(|(index, line)| (index as u64 + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(content: &str) -> Vec<(u64, String)> {
        read_list(content).expect("a list").into_iter().map(|listed| (listed.line, listed.name)).collect()
    }

    #[test]
    fn a_list_may_be_a_table_or_a_text() {
        let text = "\u{feff}# three\nadd rax, rbx\n\n  imul rax, rax; nop\nsnippet: nop\n";
        let expected = [(2, "add rax, rbx"), (4, "imul rax, rax; nop"), (5, "snippet: nop")];
        assert_eq!(names(text), expected.map(|(line, name)| (line, name.to_string())));
        let table = "Name, snippet, init, hex\nsum,\"add rax, rbx\",\"mov ebx, 1\",\n# none\n,,,90\n";
        assert_eq!(names(table), [(2, "sum".to_string()), (4, "90".to_string())]);
        let found = read_list(table).expect("a list");
        assert_eq!((found[0].init.as_deref(), found[1].init.as_deref()), (Some("mov ebx, 1"), None));
        assert_eq!((found[0].hex.as_deref(), found[1].hex.as_deref()), (None, Some("90")));
    }

    #[test]
    fn errors_have_a_line_and_a_remedy() {
        for (content, line, remedy) in [
            ("", None, "one per line"),
            ("# nothing\n\n", None, "one per line"),
            ("snippet\n", None, "one per line"),
            ("snippet,hex\nnop,90\n", Some(2), "fill one of"),
            ("snippet,hex,name\nnop,,\n,,x\n", Some(3), "fill one of"),
            ("snippet,names\n", Some(1), "did you mean `name`"),
            ("snippet\nadd rax, rbx\n", Some(2), "double quotes"),
        ] {
            let bad = read_list(content).expect_err("it is no list");
            assert_eq!(bad.line, line, "{content}");
            assert!(bad.remedy.contains(remedy), "{content}: {bad:?}");
        }
    }
}
