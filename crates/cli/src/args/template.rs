//! Replaces `{N}` in the words of a command by a value of the variable N, of `--sweep` or
//! `--versus`.
//!
//! Braces hold the variable alone, or the variable of numbers, one of `+`, `-`, `*` and `/`, and a
//! whole number. Another name in braces is an error, except for assembly syntax such as `{k1}` and
//! `{z}`. Braces with blanks, such as `{ x }`, stay unchanged.

use crate::args::{Sweep, SweepValue, is_reserved_name, is_variable_name, parse_size};
use crate::output::Failure;
use std::ffi::OsString;

/// Options that take a number and therefore also accept the variable without braces.
const NUMBER_OPTIONS: [&str; 7] = ["--buffer", "--stack", "--arg", "--loop", "--unroll", "--warm-up", "--samples"];

/// A variable and one of its values.
#[derive(Debug, Clone, Copy)]
pub struct BoundVariable<'a> {
    /// The variable.
    pub variable: &'a str,
    /// Its value.
    pub value: &'a SweepValue,
    /// The option that gives the variable its values.
    pub option: &'static str,
    /// Another variable of the command, whose braces stay.
    pub other: Option<&'a str>,
}

/// A text whose variable has been replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledText {
    /// The text with the value in it.
    pub text: String,
    /// Whether the text contained the variable.
    pub is_changed: bool,
}

impl BoundVariable<'_> {
    /// Inserts the value into a text.
    pub fn fill_text(self, text: &str) -> Result<FilledText, Failure> {
        let mut filled = FilledText { text: String::new(), is_changed: false };
        let mut rest = text;
        while let Some(begin) = rest.find('{') {
            let (before, braced) = rest.split_at(begin);
            filled.text.push_str(before);
            let inner = braced[1..].find('}').map(|end| &braced[1..=end]);
            let number = inner.map(|inner| self.evaluate_braces(inner)).transpose()?.flatten();
            match (inner, number) {
                (Some(inner), Some(number)) => {
                    filled.text.push_str(&number);
                    filled.is_changed = true;
                    rest = &braced[inner.len() + 2..];
                }
                _ => {
                    filled.text.push('{');
                    rest = &braced[1..];
                }
            }
        }
        filled.text.push_str(rest);
        Ok(filled)
    }

    /// Evaluates the text between braces; `None` if it isn't a variable.
    fn evaluate_braces(self, inner: &str) -> Result<Option<String>, Failure> {
        let (name, by) = match inner.find(['+', '-', '*', '/']) {
            Some(at) => (&inner[..at], Some((inner.as_bytes()[at], &inner[at + 1..]))),
            None => (inner, None),
        };
        let operand = by.map(|(_, number)| parse_size(number));
        if !is_variable_name(name) || is_reserved_name(name) || operand == Some(None) && name != self.variable {
            return Ok(None);
        }
        let BoundVariable { variable, option, .. } = self;
        if name != variable && self.other == Some(name) {
            return Ok(None);
        }
        if name != variable {
            let remedy = format!("write {{{variable}}}, or {{ {inner} }} for literal braces");
            return Err(Failure::usage(
                format!("unknown variable in {{{inner}}}; {option} defines {variable}"),
                Some(&remedy),
            ));
        }
        let number = match (self.value, by) {
            (SweepValue::Number(number), _) => *number,
            (SweepValue::Word(word), None) => return Ok(Some(word.clone())),
            (SweepValue::Word(_), Some(_)) => {
                let remedy = format!("write {{{variable}}} alone");
                let text = format!("{{{inner}}} computes a number, but the values of {variable} are words");
                return Err(Failure::usage(text, Some(&remedy)));
            }
        };
        let wrong = |why: &str| {
            let remedy = format!(
                "write {{{variable}}}, or one of {{{variable}+1}}, {{{variable}-1}}, {{{variable}*8}} and \
                 {{{variable}/64}}"
            );
            Failure::usage(format!("{{{inner}}} {why} at {variable} = {}", self.value), Some(&remedy))
        };
        let (sign, operand) = match (by, operand.flatten()) {
            (None, _) => return Ok(Some(number.to_string())),
            (Some((sign, _)), Some(operand)) => (sign, operand),
            (Some(_), None) => return Err(wrong("has an operand that is not a whole number")),
        };
        let result = match sign {
            b'+' => number.checked_add(operand),
            b'-' => number.checked_sub(operand),
            b'*' => number.checked_mul(operand),
            _ => number.checked_rem(operand).filter(|rest| *rest == 0).map(|_| number / operand),
        };
        match result {
            Some(result) => Ok(Some(result.to_string())),
            None => Err(wrong("is not a whole number of 0 or more")),
        }
    }

    /// Inserts the value into the words of a command, and reports whether any word contained the
    /// variable.
    pub fn fill_words(self, words: &[OsString]) -> Result<(Vec<OsString>, bool), Failure> {
        let mut is_changed = false;
        let mut filled = brace_variable(words, self.variable);
        for index in 0..filled.len() {
            let before = index.checked_sub(1).and_then(|before| filled[before].to_str());
            // A word that isn't UTF-8 contains no variable.
            let text = filled[index].to_str();
            let text = text.filter(|text| before != Some("--sweep") && !text.starts_with("--sweep="));
            let Some(text) = text else { continue };
            let found = self.fill_text(text)?;
            is_changed |= found.is_changed;
            filled[index] = found.text.into();
        }
        Ok((filled, is_changed))
    }
}

/// Adds braces to a variable that is the value of an option for numbers.
fn brace_variable(words: &[OsString], variable: &str) -> Vec<OsString> {
    let takes_number = |option: &str| NUMBER_OPTIONS.contains(&option);
    let brace = |(index, word): (usize, &OsString)| {
        let before = index.checked_sub(1).and_then(|before| words[before].to_str());
        match word.to_str().map(|text| (text, text.split_once('='))) {
            Some((text, _)) if text == variable && before.is_some_and(takes_number) => format!("{{{variable}}}").into(),
            Some((_, Some((option, value)))) if value == variable && takes_number(option) => {
                format!("{option}={{{variable}}}").into()
            }
            _ => word.clone(),
        }
    };
    words.iter().enumerate().map(brace).collect()
}

/// Adds braces to the variable of `--versus` where it is the value of an option for numbers.
pub fn brace_variant_variable(words: Vec<OsString>) -> Vec<OsString> {
    match find_variant_variable(&words) {
        Some(variable) => brace_variable(&words, &variable),
        None => words,
    }
}

/// Inserts the first value of the command's sweep, so that the words can be parsed. Returns them
/// unchanged if the command has no sweep.
pub fn fill_first_value(words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let texts = find_option_values(&words, "--sweep");
    let Some(text) = texts.first() else { return Ok(words) };
    let sweep: Sweep = text.parse().map_err(|expected| {
        Failure::usage(format!("--sweep '{text}' is invalid: {expected}"), Some("see cyclescope run --help"))
    })?;
    let other = find_variant_variable(&words);
    let first = BoundVariable {
        variable: &sweep.variable,
        value: &sweep.values[0],
        option: "--sweep",
        other: other.as_deref(),
    };
    Ok(first.fill_words(&words)?.0)
}

/// The variable that `--versus` gives words, in the words of a `run` command.
pub fn find_variant_variable(words: &[OsString]) -> Option<String> {
    find_option_values(words, "--versus").into_iter().find_map(|text| Some(parse_variant_words(text)?.ok()?.variable))
}

/// The variable and its words in a value of `--versus`; `None` if the value is code or names a file.
/// Words are separated by bars, which neither has.
pub fn parse_variant_words(text: &str) -> Option<Result<Sweep, String>> {
    let (name, words) = text.split_once('=')?;
    (is_variable_name(name) && words.contains('|')).then(|| text.parse())
}

/// The values of an option in the words of a `run` command.
fn find_option_values<'a>(words: &'a [OsString], option: &str) -> Vec<&'a str> {
    let texts = words.iter().map(|word| word.to_str().unwrap_or_default()).take_while(|word| *word != "--");
    let mut texts = texts.skip_while(|word| *word != "run").peekable();
    let mut values = Vec::new();
    while let Some(word) = texts.next() {
        match word.strip_prefix(option) {
            // The option parser reports a missing value.
            Some("") => values.extend(texts.next()),
            Some(rest) => values.extend(rest.strip_prefix('=')),
            None => {}
        }
    }
    values
}

/// Finds a sweep variable in braces; names that assembly uses are skipped.
pub fn find_variable(text: &str) -> Option<&str> {
    let inside = text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inner, _)| inner);
    inside.filter(|inner| !is_reserved_name(inner)).find(|inner| {
        let name = inner.split(['+', '-', '*', '/']).next().unwrap_or_default();
        is_variable_name(name) && (name == *inner || inner.ends_with(|last: char| last.is_ascii_digit()))
    })
}

/// The remedy for a variable without a sweep.
pub fn sweep_remedy(variable: &str) -> String {
    format!("give {{{variable}}} values with --sweep, as in --sweep 'N=64..1M*2' or --sweep 'F=-O2|-O3'")
}

/// The failure for an option value with a variable in braces but without a sweep.
pub fn unswept_failure(option: &str, value: &str) -> Failure {
    let remedy = find_variable(value).map(sweep_remedy);
    Failure::usage(format!("{option} does not accept `{value}`"), remedy.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: BoundVariable =
        BoundVariable { variable: "N", value: &SweepValue::Number(128), option: "--sweep", other: Some("V") };

    fn filled(text: &str) -> String {
        N.fill_text(text).unwrap().text
    }

    #[test]
    fn braces_evaluate_the_variable_and_one_operation() {
        assert_eq!(filled("mov rax, {N}; add rbx, {N*8}"), "mov rax, 128; add rbx, 1024");
        assert_eq!(filled("{N/64} {N+1} {N-1} {N*1K}{N}"), "2 129 127 131072128");
        for unchanged in ["vaddps zmm0{k1}{z}, zmm1, [rsi]{1to16}", "{rn-sae}", "{ N }", "{", "{N", "}{", "{}", "a{{b"]
        {
            assert_eq!(N.fill_text(unchanged).unwrap(), FilledText { text: unchanged.to_string(), is_changed: false });
        }
        assert_eq!(filled("{{N}}"), "{128}");
        for (wrong, says) in [
            ("{M}", "unknown variable in {M}"),
            ("{n}", "--sweep defines N"),
            ("{N/100}", "not a whole number"),
            ("{N/0}", "not a whole number"),
            ("{N-129}", "not a whole number"),
            ("{N*}", "operand that is not"),
            ("{N*M}", "operand that is not"),
        ] {
            let failure = N.fill_text(wrong).unwrap_err();
            assert!(failure.text().contains(says), "{wrong}: {failure:?}");
        }
    }

    #[test]
    fn words_replace_the_variable_as_they_are() {
        let value = SweepValue::Word("-DX={z} {N}".to_string());
        let words = BoundVariable { value: &value, ..N };
        assert_eq!(words.fill_text("a {N} {V} b").unwrap().text, "a -DX={z} {N} {V} b");
        assert_eq!(filled("{V} {N}"), "{V} 128");
        assert!(words.fill_text("{N*8}").unwrap_err().text().contains("are words"));
    }

    #[test]
    fn variants_have_a_variable_with_words() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (line, variable) in [
            ("run --versus F=-O2|-O3 --cflags {F}", Some("F")),
            ("run --versus=F=|-O3 --cflags {F}", Some("F")),
            ("run --versus a.c --versus b.c", None),
            ("run --versus-call F=a|b", None),
            ("run -- --versus F=a|b", None),
            ("ab --versus F=a|b", None),
        ] {
            assert_eq!(find_variant_variable(&words(line)).as_deref(), variable, "{line}");
        }
        for other in ["mov rax, 1", "./F=a|b", "x = 1|2", "F=a.c", "48 0f"] {
            assert!(parse_variant_words(other).is_none(), "{other}");
        }
        assert!(parse_variant_words("F='a|b").is_some_and(|parsed| parsed.is_err()));
        let bare = words("run --versus N=1|2 --arg N --buffer=N --loop 5 --call N");
        let braced = words("run --versus N=1|2 --arg {N} --buffer={N} --loop 5 --call N");
        assert_eq!(brace_variant_variable(bare), braced);
        let both = words("run --sweep N=2,3 --versus F=a{N}|b --init {F} {N}");
        assert_eq!(fill_first_value(both).unwrap(), words("run --sweep N=2,3 --versus F=a2|b --init {F} 2"));
    }

    #[test]
    fn numeric_options_accept_the_variable_without_braces() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let (found, is_changed) =
            N.fill_words(&words("run --sweep N=1 --buffer N --loop=N --arg={N/2} --call N x={N}")).unwrap();
        assert!(is_changed);
        assert_eq!(found, words("run --sweep N=1 --buffer 128 --loop=128 --arg=64 --call N x=128"));
        assert!(!N.fill_words(&words("run --sweep N=1 nop")).unwrap().1);
        assert_eq!(fill_first_value(words("run --sweep=N=5,7 --arg N")).unwrap(), words("run --sweep=N=5,7 --arg 5"));
        for unchanged in ["run --arg {N}", "run -- --sweep N=1 {N}", "instr --sweep N=1 {N}"] {
            assert_eq!(fill_first_value(words(unchanged)).unwrap(), words(unchanged));
        }
        assert!(fill_first_value(words("run --sweep N=5..1 nop")).is_err());
    }

    #[test]
    fn finds_a_variable_without_a_sweep() {
        assert_eq!(find_variable("mov rax, {N*8}"), Some("N*8"));
        assert_eq!(find_variable("{z} {size}"), None);
        assert_eq!(find_variable("vaddps zmm0{k1}{z}, zmm1, [rsi]{1to16}; vaddps zmm0, zmm1, zmm2, {rn-sae}"), None);
    }
    #[test]
    fn any_variable_and_any_text_are_read_without_a_panic() {
        let seeds = ["N=1..1M*2\nadd {N} {N/64} {k1}", "F=-O2|'a|µ'|b\\|\n{F} {F*8} {µ} {", "N=4K,5\n{N+1}"];
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
        cyclescope_fuzz::fuzz_reader("sweep", cyclescope_fuzz::InputShape::Bytes, &seeds, |bytes| {
            let input = String::from_utf8_lossy(bytes);
            let (values, text) = input.split_once('\n').unwrap_or((&input, "{N}"));
            let _ = parse_variant_words(values);
            if let Ok(Sweep { variable, values, .. }) = values.parse() {
                let _ = BoundVariable { variable: &variable, value: &values[0], ..N }.fill_text(text);
            }
        });
    }
}
