//! Finds syntax of a shell in the text of a program.
//!
//! No shell runs a compared program. Its text is split into words as `sh` splits it. All else that
//! `sh` acts on would reach the program as an argument, and other work would be measured than the
//! text says. Rules: POSIX.1-2024, "Shell Command Language", 2.2 (quoting) and 2.6 (expansions).

/// Syntax that only a shell understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSyntax {
    /// The characters as written.
    pub text: String,
    /// What they are to a shell.
    pub kind: ShellSyntaxKind,
}

/// Kinds of shell syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellSyntaxKind {
    /// `&&`, `|`, `;`, `>` and others, and a line break.
    Operator,
    /// `$NAME`, `$(…)`, backticks and `~`.
    Expansion,
    /// `*`, `?` and `[…]`, which match file names.
    Pattern,
    /// `NAME=value` before the program.
    Assignment,
    /// The rest of the line after `#`.
    Comment,
}

impl ShellSyntaxKind {
    /// The kind with its article.
    pub fn name(self) -> &'static str {
        match self {
            ShellSyntaxKind::Operator => "an operator",
            ShellSyntaxKind::Expansion => "an expansion",
            ShellSyntaxKind::Pattern => "a file name pattern",
            ShellSyntaxKind::Assignment => "an assignment",
            ShellSyntaxKind::Comment => "a comment",
        }
    }
}

/// Characters that are operators, alone or in a row.
const OPERATORS: &str = "&|;<>()\n";

impl ShellSyntax {
    /// Finds the first syntax of a shell outside quotes, or `$` and a backtick in double quotes.
    pub fn find_first(text: &str) -> Option<ShellSyntax> {
        let text = text.trim();
        let found = |text: &str, kind| Some(ShellSyntax { text: text.to_string(), kind });
        if let Some(name) = assigned_name(text) {
            return found(&text[..=name.len()], ShellSyntaxKind::Assignment);
        }
        let (mut quoted, mut begins_word) = (false, true);
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            let rest = &text[at..];
            match character {
                '\\' => drop(characters.next()),
                '"' => quoted = !quoted,
                '\'' if !quoted => drop(characters.find(|(_, other)| *other == '\'')),
                '$' if begins_expansion(rest) => {
                    let name = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    return found(&rest[..name.map_or(rest.len(), |end| 1 + end.max(1))], ShellSyntaxKind::Expansion);
                }
                '`' => return found("`", ShellSyntaxKind::Expansion),
                _ if quoted => {}
                '~' if begins_word => return found("~", ShellSyntaxKind::Expansion),
                '#' if begins_word => return found("#", ShellSyntaxKind::Comment),
                '*' | '?' => return found(&rest[..1], ShellSyntaxKind::Pattern),
                '[' if closes_in_word(rest) => return found("[", ShellSyntaxKind::Pattern),
                _ if OPERATORS.contains(character) => {
                    let end = rest.find(|c| !OPERATORS.contains(c)).unwrap_or(rest.len());
                    return found(&rest[..end].replace('\n', "\\n"), ShellSyntaxKind::Operator);
                }
                _ => {}
            }
            begins_word = !quoted && character.is_whitespace();
        }
        None
    }
}

/// The name that a text assigns a value to before it names the program.
fn assigned_name(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_name)).then_some(name)
}

/// Whether the `$` at the start of a text begins an expansion. Otherwise it is an ordinary
/// character.
fn begins_expansion(text: &str) -> bool {
    text[1..].starts_with(|c: char| c.is_ascii_alphanumeric() || "_({@*#?$!-".contains(c))
}

/// Whether the `[` at the start of a text has its `]` in the same word. A lone `[` is a program.
fn closes_in_word(text: &str) -> bool {
    text.split(char::is_whitespace).next().is_some_and(|word| word.contains(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_syntax_of_a_shell_is_found() {
        use ShellSyntaxKind::*;
        for (text, characters, kind) in [
            ("./bench && ./bench", "&&", Operator),
            ("./bench || true", "||", Operator),
            ("./bench; ./bench", ";", Operator),
            ("./bench | sort", "|", Operator),
            ("./bench &", "&", Operator),
            ("./bench > file", ">", Operator),
            ("./bench 2>&1", ">&", Operator),
            ("./bench >> file", ">>", Operator),
            ("./bench < file", "<", Operator),
            ("./bench <<< text", "<<<", Operator),
            ("(./bench)", "(", Operator),
            ("./bench\n./bench", "\\n", Operator),
            ("./bench $(nproc)", "$(", Expansion),
            ("./bench \"$(nproc)\"", "$(", Expansion),
            ("./bench `nproc`", "`", Expansion),
            ("./bench \"`nproc`\"", "`", Expansion),
            ("./bench $HOME/file", "$HOME", Expansion),
            ("./bench ${N}", "${", Expansion),
            ("$PROGRAM 1", "$PROGRAM", Expansion),
            ("./bench $?", "$?", Expansion),
            ("~/bench", "~", Expansion),
            ("./bench ~/file", "~", Expansion),
            ("./bench *.txt", "*", Pattern),
            ("./bench file?", "?", Pattern),
            ("./bench file[12]", "[", Pattern),
            ("N=3 ./bench", "N=", Assignment),
            ("  N= ./bench", "N=", Assignment),
            ("./bench # twice", "#", Comment),
        ] {
            let found = ShellSyntax::find_first(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.text.as_str(), found.kind), (characters, kind), "{text}");
        }
    }

    #[test]
    fn quoted_text_and_ordinary_characters_are_passed_on() {
        for text in [
            "./bench --size=3 a=b",
            "sh -c './bench && ./bench | sort > $FILE; N=1 ./bench `x` *.c ~'",
            "sh -c \"echo '&&' \\$HOME \\`x\\` ; < > *\"",
            "grep 'a*' \"b?\" c\\* d\\&",
            "./sort-{build} {a,b}",
            "[ 1 -lt 2 ]",
            "./bench a#b c~ 5$ $ %",
            "./bench\n",
            "'N=3' ./bench",
            "-x=1",
            "./bench 'it'\"'\"'s'",
            "",
        ] {
            assert_eq!(ShellSyntax::find_first(text), None, "{text}");
        }
    }
    #[test]
    fn any_text_is_read_without_a_panic() {
        let seeds = ["N=3 ./bench \"$(x) \\\"µ\" 'a' | b[1] ~ # c", "./bench $µ `x` \\µ *"];
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
        cyclescope_fuzz::fuzz_reader("shell", cyclescope_fuzz::InputShape::Bytes, &seeds, |bytes| {
            let _ = ShellSyntax::find_first(&String::from_utf8_lossy(bytes));
        });
    }
}
