//! Finds syntax of a shell in the text of a program.
//!
//! No shell runs a compared program. Its text is split into words as `sh` splits it. All else that
//! `sh` acts on would reach the program as an argument, and other work would be measured than the
//! text says. Rules: POSIX.1-2024, "Shell Command Language", 2.2 (quoting) and 2.6 (expansions), and the
//! GNU Bash manual, 3.5.1 (brace expansion).

use std::ops::RangeInclusive;

/// Syntax that only a shell understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSyntax {
    /// The characters as written.
    pub text: String,
    /// What they are to a shell.
    pub kind: ShellSyntaxKind,
    /// A shell that understands all syntax of the text. POSIX has no brace expansion.
    pub shell: &'static str,
}

/// Kinds of shell syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellSyntaxKind {
    /// `&&`, `|`, `;`, `>` and others, and a line break.
    Operator,
    /// `$NAME`, `$(…)`, backticks and `~`.
    Expansion,
    /// `{a,b}` and `{1..3}`.
    Braces,
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
            ShellSyntaxKind::Braces => "a brace expansion",
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
        let characters = read_quotes(text);
        let braces = find_braces(text, &characters);
        let shell = if braces.is_some() { "bash" } else { "sh" };
        let found = |text: &str, kind| Some(ShellSyntax { text: text.to_string(), kind, shell });
        if let Some(name) = assigned_name(text) {
            return found(&text[..=name.len()], ShellSyntaxKind::Assignment);
        }
        let mut begins_word = true;
        for ShellCharacter { at, character, quoting } in characters {
            let rest = &text[at..];
            match character {
                _ if quoting == ShellQuoting::Literal => {}
                '$' if begins_expansion(rest) => {
                    let name = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    return found(&rest[..name.map_or(rest.len(), |end| 1 + end.max(1))], ShellSyntaxKind::Expansion);
                }
                '`' => return found("`", ShellSyntaxKind::Expansion),
                _ if quoting == ShellQuoting::Double => {}
                '{' if braces.as_ref().is_some_and(|braces| *braces.start() == at) => {
                    return found(&text[braces?], ShellSyntaxKind::Braces);
                }
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
            begins_word = quoting == ShellQuoting::None && character.is_whitespace();
        }
        None
    }
}

/// How a character is quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShellQuoting {
    /// Not at all.
    None,
    /// By double quotes, in which `$` and backticks keep their meaning.
    Double,
    /// Fully, or it is a quote itself.
    Literal,
}

/// A character of a text.
struct ShellCharacter {
    at: usize,
    character: char,
    quoting: ShellQuoting,
}

fn read_quotes(text: &str) -> Vec<ShellCharacter> {
    let (mut single, mut double, mut escaped) = (false, false, false);
    let read = |(at, character)| {
        let is_quote = match character {
            _ if escaped => false,
            '\\' => !single,
            '"' => !single,
            '\'' => !double,
            _ => false,
        };
        let quoting = match double {
            _ if is_quote || single || escaped => ShellQuoting::Literal,
            true => ShellQuoting::Double,
            false => ShellQuoting::None,
        };
        escaped = is_quote && character == '\\';
        single ^= is_quote && character == '\'';
        double ^= is_quote && character == '"';
        ShellCharacter { at, character, quoting }
    };
    text.char_indices().map(read).collect()
}

/// Finds a brace expansion: a list with commas, or a sequence such as `1..3`, in braces of one word.
/// `{a}` and `{}` are ordinary characters.
fn find_braces(text: &str, characters: &[ShellCharacter]) -> Option<RangeInclusive<usize>> {
    // The start of each open brace, and whether a comma follows it.
    let mut open: Vec<(usize, bool)> = Vec::new();
    for ShellCharacter { at, character, .. } in characters.iter().filter(|own| own.quoting == ShellQuoting::None) {
        match character {
            '{' if !text[..*at].ends_with('$') => open.push((*at, false)),
            ',' => open.iter_mut().next_back().into_iter().for_each(|(_, has_comma)| *has_comma = true),
            '}' => {
                let Some((start, has_comma)) = open.pop() else { continue };
                if has_comma || is_sequence(&text[start + 1..*at]) {
                    return Some(start..=*at);
                }
            }
            other if other.is_whitespace() || OPERATORS.contains(*other) => open.clear(),
            _ => {}
        }
    }
    None
}

/// Whether a text is a sequence of numbers or letters, such as `1..9`, `a..e` and `0..8..2`.
fn is_sequence(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    let is_letter = |text: &str| text.len() == 1 && text.starts_with(|c: char| c.is_ascii_alphabetic());
    match text.split("..").collect::<Vec<_>>().as_slice() {
        [first, last, step @ ..] if step.len() <= 1 && step.iter().all(|step| is_number(step)) => {
            is_number(first) && is_number(last) || is_letter(first) && is_letter(last)
        }
        _ => false,
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
            ("./bench {0,1}", "{0,1}", Braces),
            ("./bench -{a,b}x", "{a,b}", Braces),
            ("./bench x{,.old}", "{,.old}", Braces),
            ("./bench {1..3}", "{1..3}", Braces),
            ("./bench {-8..8..4} {a}", "{-8..8..4}", Braces),
            ("./bench {a..e}", "{a..e}", Braces),
            ("./bench {{a,b}}", "{a,b}", Braces),
            ("./bench-{build} {'a b',c}", "{'a b',c}", Braces),
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
            "./sort-{build} --filter={a} {} {a..} {1..2..3..4} {a..1} {a.b}",
            "./bench {a {b,c {d, e}",
            "./bench '{a,b}' \"{a,b}\" \\{a,b} {a\\,b} {a','b}",
            "./bench a,b} }{",
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
    fn shell_for_a_text_understands_all_of_it() {
        for (text, shell) in [("a && b", "sh"), ("a {0,1}", "bash"), ("a > b {0,1}", "bash"), ("a > {b}", "sh")] {
            assert_eq!(ShellSyntax::find_first(text).map(|found| found.shell), Some(shell), "{text}");
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic() {
        let seeds = ["N=3 ./bench \"$(x) \\\"µ\" 'a' | b[1] ~ # c", "{a,{µ..b}} {1..2..3} \\{", "./bench $µ `x` \\µ *"];
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
        cyclescope_fuzz::fuzz_reader("shell", cyclescope_fuzz::InputShape::Bytes, &seeds, |bytes| {
            let _ = ShellSyntax::find_first(&String::from_utf8_lossy(bytes));
        });
    }
}
