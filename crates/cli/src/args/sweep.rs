//! The variable and values of a sweep, such as `N=64..1M*2`, `N=0..100+20` or `N=64,100,4K`.

use super::size::parse_size;
use std::str::FromStr;

/// A variable and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The variable's name.
    pub variable: String,
    /// The values in ascending order, without duplicates.
    pub values: Vec<u64>,
    /// Whether plots use a logarithmic axis: equal ratios are equally far apart.
    pub is_geometric: bool,
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
        let form = "write a name and its values, as in N=64..1M*2, N=0..100+20 or N=64,100,4K";
        let (variable, values) = text.split_once('=').ok_or(form)?;
        let variable = variable.trim();
        if !is_variable_name(variable) {
            return Err(form.to_string());
        }
        if is_reserved_name(variable) {
            return Err(format!("{{{variable}}} already means something else; use another name, such as N"));
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
        let variable = variable.to_string();
        Ok(Sweep { variable, values: all, is_geometric: first > 0 && (ratios || wide) })
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
            let expected = format!("`{}` is not a whole number; write one such as 100, 64K or 1M", text.trim());
            parse_size(text.trim()).filter(|number| *number <= EXACT_MOST).ok_or(expected)
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
        (sweep.values, sweep.is_geometric)
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
