//! The value of --call: a function's name, or a call as C code writes it.

use super::arg_value::CallArgument;
use super::value_reader::parse_arguments;

/// A function to call, and its arguments if the text has parentheses.
///
/// The last group of parentheses holds the arguments, as in `f(buffer, 5)`. A demangled name may
/// have parentheses too, as in `f(char const*, int)`. Whether a function has that name is known
/// only when the file is read, so both readings are kept.
#[derive(Debug, Clone)]
pub struct CallTarget {
    /// The whole text.
    pub text: String,
    /// The text before the last group of parentheses.
    pub name: String,
    /// The arguments, or what is wrong with them; `None` without parentheses.
    pub arguments: Option<Result<Vec<CallArgument>, String>>,
}

impl CallTarget {
    /// Reads the text. Its errors are reported where the arguments are used.
    pub fn new(text: &str) -> CallTarget {
        let text = text.trim();
        let (name, arguments) = match find_argument_list(text) {
            ArgumentList::Missing => (text, None),
            ArgumentList::Open(open) => (&text[..open], Some(Err("expected `)` at the end".to_string()))),
            ArgumentList::From(open) => (&text[..open], Some(read_list(&text[open + 1..text.len() - 1]))),
        };
        CallTarget { text: text.to_string(), name: name.trim().to_string(), arguments }
    }
}

/// Reads the text between the parentheses.
fn read_list(list: &str) -> Result<Vec<CallArgument>, String> {
    parse_arguments(list).map_err(|error| error.replace("at the end", "at `)`"))
}

impl serde::Serialize for CallTarget {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text)
    }
}

/// Parses the option's value; for clap.
pub fn parse_call_target(text: &str) -> Result<CallTarget, String> {
    Ok(CallTarget::new(text))
}

/// Where the arguments are in the text.
enum ArgumentList {
    /// There are none.
    Missing,
    /// From this parenthesis on, and it is never closed.
    Open(usize),
    /// From this parenthesis to the one that ends the text.
    From(usize),
}

/// Finds the group of parentheses that ends the text. A quote after a digit separates digits. The
/// parentheses of `operator()` and of `(anonymous namespace)` belong to a name.
fn find_argument_list(text: &str) -> ArgumentList {
    let (mut depth, mut last, mut quote, mut before) = (0usize, None, None, ' ');
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(within), c) if c == within => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if depth > 0 && !before.is_ascii_hexdigit() => quote = Some(c),
            (None, '(') => {
                last = if depth == 0 { Some(at) } else { last };
                depth += 1;
            }
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    let Some(open) = last.filter(|open| *open > 0) else { return ArgumentList::Missing };
    let is_operator = text[..open].trim_end().ends_with("operator") && text[open..].trim_end() == "()";
    match text.ends_with(')') && depth == 0 {
        true if !is_operator => ArgumentList::From(open),
        false if depth > 0 => ArgumentList::Open(open),
        _ => ArgumentList::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};

    #[test]
    fn any_call_is_read_or_refused() {
        let seeds = [
            "f(buffer, 5)",
            "ns::f<int>(out+8, \"a\\n\\x41\", {1, {2.5f, -3}}, size) ",
            "operator()(0x1p-3, buffer:4K, 'c')",
            "(anonymous namespace)::f(1e308, -0.0, n=7, 18446744073709551616)",
            "f",
        ];
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
        fuzz_reader("call", InputShape::Bytes, &seeds, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let CallTarget { text: whole, name, arguments } = CallTarget::new(&text);
            assert!(whole.len() <= text.len() && whole.starts_with(&name));
            let _ = arguments.map(|arguments| arguments.map_err(|error| assert!(!error.is_empty())));
        });
    }

    #[test]
    fn last_parentheses_hold_the_arguments() {
        for (text, name, count) in [
            ("f", "f", None),
            ("crc32(0, buffer, size)", "crc32", Some(3)),
            ("f()", "f", Some(0)),
            (" Foo::bar (1)", "Foo::bar", Some(1)),
            ("f(\"a)(b\", ')')", "f", Some(2)),
            ("f(1'000, 2)", "f", Some(2)),
            ("Foo::bar(int)(buffer, 5)", "Foo::bar(int)", Some(2)),
            ("Foo::operator()(5)", "Foo::operator()", Some(1)),
            ("Foo::operator()", "Foo::operator()", None),
            ("(anonymous namespace)::f", "(anonymous namespace)::f", None),
            ("Foo::bar(int) const", "Foo::bar(int) const", None),
        ] {
            let target = CallTarget::new(text);
            let found = target.arguments.as_ref().map(|arguments| arguments.as_ref().unwrap().len());
            assert_eq!((target.name.as_str(), found), (name, count), "{text}");
        }
        for open in ["f(", "f(1, \"a)\"", "ns::f(int)(3"] {
            let target = CallTarget::new(open);
            assert!(target.arguments.unwrap().unwrap_err().contains("`)`"), "{open}");
        }
        let typed = CallTarget::new("f(char const*, unsigned long)");
        assert!(typed.arguments.unwrap().unwrap_err().contains("`const*, unsigned long`"));
    }
}
