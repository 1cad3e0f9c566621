//! A figure in core cycles, as published tables write it.

use std::fmt;

/// A published figure in core cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PublishedFigure {
    /// `3`
    Exact(f64),
    /// `<=7`: an upper bound.
    AtMost(f64),
    /// `14-18`: within this range, depending on conditions that the table does not state.
    Range(f64, f64),
}

impl PublishedFigure {
    /// Parses a number, a bound or a range.
    pub(crate) fn parse(text: &str) -> Option<PublishedFigure> {
        let text = text.trim();
        if let Some(most) = ["<=", "≤"].iter().find_map(|sign| text.strip_prefix(sign)) {
            return parse_number(most).map(PublishedFigure::AtMost);
        }
        // Noise can make a zero cost slightly negative, as in exports of results.
        if let Some(size) = text.strip_prefix('-') {
            return parse_number(size).map(|size| PublishedFigure::Exact(-size));
        }
        // Typeset tables use an en dash.
        if let Some((low, high)) = text.split_once(['-', '\u{2013}']) {
            let (low, high) = (parse_number(low)?, parse_number(high)?);
            return (low <= high).then_some(PublishedFigure::Range(low, high));
        }
        parse_number(text).map(PublishedFigure::Exact)
    }

    /// The figure as an upper bound.
    pub(crate) fn to_upper_bound(self) -> PublishedFigure {
        PublishedFigure::AtMost(self.range().1)
    }

    /// The lowest and the highest cost that it permits.
    pub(crate) fn range(self) -> (f64, f64) {
        match self {
            PublishedFigure::Exact(value) => (value, value),
            PublishedFigure::AtMost(most) => (f64::NEG_INFINITY, most),
            PublishedFigure::Range(low, high) => (low, high),
        }
    }
}

fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    // The standard parser also accepts `inf`, `nan` and `+1`.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

impl fmt::Display for PublishedFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishedFigure::Exact(value) => write!(f, "{value}"),
            PublishedFigure::AtMost(most) => write!(f, "≤{most}"),
            PublishedFigure::Range(low, high) => write!(f, "{low}-{high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_bounds_and_ranges_are_parsed() {
        let cases = [
            ("3", PublishedFigure::Exact(3.0)),
            (" 3.5 ", PublishedFigure::Exact(3.5)),
            (".25", PublishedFigure::Exact(0.25)),
            ("-0.0012", PublishedFigure::Exact(-0.0012)),
            ("<=7", PublishedFigure::AtMost(7.0)),
            ("≤ 7", PublishedFigure::AtMost(7.0)),
            ("14-18", PublishedFigure::Range(14.0, 18.0)),
            ("14 – 18.5", PublishedFigure::Range(14.0, 18.5)),
        ];
        for (text, figure) in cases {
            assert_eq!(PublishedFigure::parse(text), Some(figure), "{text}");
            assert_eq!(PublishedFigure::parse(&figure.to_string()), Some(figure), "{figure}");
        }
    }

    #[test]
    fn other_text_is_rejected() {
        for text in
            ["", "-", "--1", "-1-2", "inf", "nan", "1e999", "one", "<7", "<=", "18-14", "1-2-3", "3;4", "3,5", "+1"]
        {
            assert_eq!(PublishedFigure::parse(text), None, "{text}");
        }
    }
}
