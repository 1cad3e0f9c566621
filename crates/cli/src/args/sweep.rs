//! The variable and values of a sweep: numbers, such as `N=64..1M*2`, `N=0..100+20` or `N=64,100,4K`,
//! or words, such as `F=-O2|-O3 -march=native`.

use super::size::parse_size;
use std::fmt;
use std::str::FromStr;

/// A variable and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The variable's name.
    pub variable: String,
    /// The values: numbers in ascending order and without duplicates, or words as given.
    pub values: Vec<SweepValue>,
    /// Whether plots use a logarithmic axis: equal ratios are equally far apart.
    pub is_geometric: bool,
}

/// A value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SweepValue {
    /// A number.
    Number(u64),
    /// Any text.
    Word(String),
}

impl SweepValue {
    /// The value for readers, who would not see an empty word.
    pub fn describe(&self) -> String {
        match self {
            SweepValue::Word(word) if word.is_empty() => "''".to_string(),
            value => value.to_string(),
        }
    }
}

impl fmt::Display for SweepValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SweepValue::Number(number) => number.fmt(f),
            SweepValue::Word(word) => word.fmt(f),
        }
    }
}

/// Maximum number of values.
const VALUES_MOST: usize = 10_000;
/// A list is plotted on a logarithmic axis if its largest value exceeds its smallest by this
/// factor.
const LINEAR_RATIO_MOST: u64 = 16;
/// Names with another meaning in a snippet or in --arg: masks, decorations, encodings, keywords.
const RESERVED_NAMES: [&str; 8] = ["z", "sae", "vex", "vex3", "evex", "rex", "buffer", "size"];

/// Whether a word in braces is assembly syntax or a keyword, so it can't name a variable.
pub fn is_reserved_name(name: &str) -> bool {
    let mask = name.strip_prefix(['k', 'K']).is_some_and(|rest| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit());
    mask || RESERVED_NAMES.iter().any(|taken| taken.eq_ignore_ascii_case(name))
}

/// Whether a word is a valid variable name.
pub fn is_variable_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Sweep, String> {
        let form = "write a name and its values, as in N=64..1M*2, N=0..100+20, N=64,100,4K or F=-O2|-O3";
        let (variable, values) = text.split_once('=').ok_or(form)?;
        let variable = variable.trim();
        if !is_variable_name(variable) {
            return Err(form.to_string());
        }
        if is_reserved_name(variable) {
            return Err(format!("{{{variable}}} already means something else; use another name, such as N"));
        }
        if let Some(words) = split_words(values)? {
            let values = words.into_iter().map(SweepValue::Word).collect();
            return Ok(Sweep { variable: variable.to_string(), values, is_geometric: false });
        }
        let parts: Vec<SweepPart> = values.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let mut all = Vec::new();
        for part in &parts {
            part.push_values(&mut all)?;
        }
        all.sort_unstable();
        all.dedup();
        let (first, last) = (all[0], all[all.len() - 1]);
        let ratios = parts.iter().any(|part| matches!(part, SweepPart::Factor(..)));
        let steps = parts.iter().any(|part| matches!(part, SweepPart::Step(..)));
        let wide = !steps && last / LINEAR_RATIO_MOST > first;
        let (variable, values) = (variable.to_string(), all.into_iter().map(SweepValue::Number).collect());
        Ok(Sweep { variable, values, is_geometric: first > 0 && (ratios || wide) })
    }
}

/// Splits a list of words at its bars. A bar in quotes or after a backslash belongs to its word, whose
/// quotes stay. `None` without a bar between words.
fn split_words(text: &str) -> Result<Option<Vec<String>>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '\\') if characters.peek() == Some(&'|') => word.extend(characters.next()),
            (None, '|') => words.push(std::mem::take(&mut word)),
            (None, '"' | '\'') => {
                quote = Some(character);
                word.push(character);
            }
            _ => {
                quote = quote.filter(|quote| *quote != character);
                word.push(character);
            }
        }
    }
    words.push(word);
    if words.len() == 1 && quote.is_none() {
        return Ok(None);
    }
    match quote {
        Some(quote) => {
            Err(format!("the quote {quote} is not closed; close it, and write \\| for a bar that belongs to a word"))
        }
        None if words.len() > VALUES_MOST => Err(format!("more than {VALUES_MOST} words; leave some out")),
        None => Ok(Some(words.iter().map(|word| word.trim().to_string()).collect())),
    }
}

/// One part of a list of values, between two commas.
#[derive(Debug, Clone, Copy)]
enum SweepPart {
    One(u64),
    /// First value, limit and factor.
    Factor(u64, u64, f64),
    /// First value, limit and step.
    Step(u64, u64, u64),
}

impl FromStr for SweepPart {
    type Err = String;

    fn from_str(text: &str) -> Result<SweepPart, String> {
        let number = |text: &str| {
            let text = text.trim();
            let expected = format!(
                "`{text}` is not a whole number; write one such as 100, 64K or 1M, or words with bars, as in F=-O2|-O3"
            );
            parse_size(text).filter(|number| *number <= EXACT_MOST).ok_or(expected)
        };
        let Some((from, rest)) = text.split_once("..") else { return Ok(SweepPart::One(number(text)?)) };
        let (to, by) = match rest.find(['*', '+']) {
            Some(at) => (&rest[..at], Some((rest.as_bytes()[at], &rest[at + 1..]))),
            None => (rest, None),
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!("the range {from}..{to} is empty; write the smaller number first"));
        }
        match by {
            None => Ok(SweepPart::Step(from, to, 1)),
            Some((b'+', step)) => match number(step)? {
                0 => Err("the step is 0; use 1 or more, as in 0..100+20".to_string()),
                step => Ok(SweepPart::Step(from, to, step)),
            },
            Some((_, factor)) => {
                let known = factor.trim().parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 1.0);
                let factor = known.ok_or("the factor is not above 1; use one such as 2 or 1.5, as in 64..1M*2")?;
                match from {
                    0 => {
                        Err("multiples of 0 are all 0; start at 1 or more, or use a step, as in 0..100+20".to_string())
                    }
                    _ => Ok(SweepPart::Factor(from, to, factor)),
                }
            }
        }
    }
}

/// Floating point numbers represent whole numbers up to this exactly.
const EXACT_MOST: u64 = 1 << 53;

impl SweepPart {
    fn push_values(self, all: &mut Vec<u64>) -> Result<(), String> {
        let mut add = |value: u64| match all.len() < VALUES_MOST {
            true => {
                all.push(value);
                Ok(())
            }
            false => Err(format!("more than {VALUES_MOST} values; use a larger step or factor")),
        };
        match self {
            SweepPart::One(value) => add(value),
            SweepPart::Step(from, to, step) => (from..=to).step_by(step as usize).try_for_each(add),
            SweepPart::Factor(from, to, factor) => {
                let values = (0..).map(|power| (from as f64 * factor.powi(power)).round());
                // A small factor can round to the same whole number several times.
                let mut last = None;
                for value in values.take_while(|value| *value <= to as f64) {
                    if last.replace(value) != Some(value) {
                        add(value as u64)?;
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> (Vec<u64>, bool) {
        let sweep: Sweep = text.parse().unwrap();
        let number = |value: &SweepValue| match value {
            SweepValue::Number(number) => *number,
            SweepValue::Word(word) => panic!("{word} is a word"),
        };
        (sweep.values.iter().map(number).collect(), sweep.is_geometric)
    }

    fn words(text: &str) -> Vec<String> {
        text.parse::<Sweep>().unwrap().values.iter().map(SweepValue::to_string).collect()
    }

    #[test]
    fn bars_separate_words() {
        assert_eq!(words("F=-O2|-O3 -march=native"), ["-O2", "-O3 -march=native"]);
        assert_eq!(words("F = -O2 | -O2 |"), ["-O2", "-O2", ""]);
        assert_eq!(words("N=1|2K"), ["1", "2K"]);
        assert_eq!(words("S=vaddps zmm0{k1}, zmm1, zmm2|nop; nop"), ["vaddps zmm0{k1}, zmm1, zmm2", "nop; nop"]);
        // The quotes stay, because the option that takes the word may need them.
        assert_eq!(words(r#"F=-DX="a|b" -g|-DX='"|'"#), [r#"-DX="a|b" -g"#, r#"-DX='"|'"#]);
        assert_eq!(words(r"E=mov eax, 1 \| 2|mov eax, \n"), ["mov eax, 1 | 2", r"mov eax, \n"]);
        for (text, says) in [
            ("F=-DX=\"a|-O2", "quote \" is not closed"),
            ("F='a|b", "write \\| for a bar"),
            ("F=-O2", "F=-O2|-O3"),
            ("k1=a|b", "something else"),
            ("-O2|-O3", "a name and its values"),
        ] {
            let said = text.parse::<Sweep>().unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
        assert!(format!("F={}", "a|".repeat(10_000)).parse::<Sweep>().is_err());
    }

    #[test]
    fn ranges_accept_steps_and_factors_and_include_both_ends() {
        assert_eq!(values("N=64..1K*2"), (vec![64, 128, 256, 512, 1024], true));
        assert_eq!(values("N=64..1000*2"), (vec![64, 128, 256, 512], true));
        assert_eq!(values("N=0..100+20"), (vec![0, 20, 40, 60, 80, 100], false));
        assert_eq!(values("N=0..90+40"), (vec![0, 40, 80], false));
        assert_eq!(values("N=3..5"), (vec![3, 4, 5], false));
        assert_eq!(values(" N = 4K .. 6K + 1K "), (vec![4096, 5120, 6144], false));
        assert_eq!(values("N=7..7*2"), (vec![7], true));
        // Rounded to the nearest whole number, without duplicates.
        assert_eq!(values("N=1..10*1.5"), (vec![1, 2, 3, 5, 8], true));
        assert_eq!(values("N=1..3*1.1").0, [1, 2, 3]);
    }

    #[test]
    fn lists_are_sorted_without_duplicates() {
        assert_eq!(values("N=64,100,4K"), (vec![64, 100, 4096], true));
        assert_eq!(values("N=100,64,64"), (vec![64, 100], false));
        assert_eq!(values("N=1..4*2,8..24+8"), (vec![1, 2, 4, 8, 16, 24], true));
        assert_eq!(values("N=0,1K"), (vec![0, 1024], false));
        assert_eq!(values("n_2=0"), (vec![0], false));
    }

    #[test]
    fn invalid_sweeps_explain_what_is_expected() {
        for (text, says) in [
            ("", "a name and its values"),
            ("64..1M*2", "a name and its values"),
            ("2N=1", "a name and its values"),
            ("N=", "not a whole number"),
            ("N=1,,2", "not a whole number"),
            ("N=-1..5", "not a whole number"),
            ("N=1..x", "not a whole number"),
            ("N=1...5", "not a whole number"),
            ("N=1.5", "not a whole number"),
            ("N=64..32", "smaller number first"),
            ("N=64..1K*1", "not above 1"),
            ("N=64..1K*0.5", "not above 1"),
            ("N=64..1K*", "not above 1"),
            ("N=64..1K*inf", "not above 1"),
            ("N=64..1K+0", "step is 0"),
            ("N=64..1K+", "not a whole number"),
            ("N=0..1K*2", "start at 1"),
            ("N=1..10001", "more than 10000"),
            ("N=1..1G*1.000001", "more than 10000"),
            ("N=99999999999G", "not a whole number"),
            ("k1=1", "something else"),
            ("Z=1", "something else"),
            ("size=1", "something else"),
        ] {
            let said = text.parse::<Sweep>().unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
        assert_eq!(values("N=1..10000").0.len(), 10_000);
    }
}
