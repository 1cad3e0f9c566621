//! A number of core cycles as published tables write it.

use std::fmt;

/// A published number of core cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// `3`
    Exact(f64),
    /// `<=7`: an upper bound.
    AtMost(f64),
    /// `14-18`: from one to the other, depending on what the table does not tell.
    Range(f64, f64),
}

impl Figure {
    /// Reads a number, a bound or a range.
    pub(crate) fn parse(text: &str) -> Option<Figure> {
        let text = text.trim();
        if let Some(most) = ["<=", "≤"].iter().find_map(|sign| text.strip_prefix(sign)) {
            return number(most).map(Figure::AtMost);
        }
        // Noise makes a cost of nothing a little less than nothing, as exports of results show.
        if let Some(size) = text.strip_prefix('-') {
            return number(size).map(|size| Figure::Exact(-size));
        }
        // Typesetters write an en dash.
        if let Some((low, high)) = text.split_once(['-', '\u{2013}']) {
            let (low, high) = (number(low)?, number(high)?);
            return (low <= high).then_some(Figure::Range(low, high));
        }
        number(text).map(Figure::Exact)
    }

    /// The same as an upper bound.
    pub(crate) fn at_most(self) -> Figure {
        Figure::AtMost(self.range().1)
    }

    /// The lowest and the highest number that it allows.
    pub(crate) fn range(self) -> (f64, f64) {
        match self {
            Figure::Exact(value) => (value, value),
            Figure::AtMost(most) => (f64::NEG_INFINITY, most),
            Figure::Range(low, high) => (low, high),
        }
    }
}

fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    // The standard parser takes `inf`, `nan` and `+1` too.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Exact(value) => write!(f, "{value}"),
            Figure::AtMost(most) => write!(f, "≤{most}"),
            Figure::Range(low, high) => write!(f, "{low}-{high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_bounds_and_ranges_are_read() {
        let cases = [
            ("3", Figure::Exact(3.0)),
            (" 3.5 ", Figure::Exact(3.5)),
            (".25", Figure::Exact(0.25)),
            ("-0.0012", Figure::Exact(-0.0012)),
            ("<=7", Figure::AtMost(7.0)),
            ("≤ 7", Figure::AtMost(7.0)),
            ("14-18", Figure::Range(14.0, 18.0)),
            ("14 – 18.5", Figure::Range(14.0, 18.5)),
        ];
        for (text, figure) in cases {
            assert_eq!(Figure::parse(text), Some(figure), "{text}");
            assert_eq!(Figure::parse(&figure.to_string()), Some(figure), "{figure}");
        }
    }

    #[test]
    fn all_else_is_refused() {
        for text in [
            "", "-", "--1", "-1-2", "inf", "nan", "1e999", "one", "<7", "<=", "18-14", "1-2-3", "3;4", "3,5",
            "+1",
        ] {
            assert_eq!(Figure::parse(text), None, "{text}");
        }
    }
}
