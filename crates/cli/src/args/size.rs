//! Whole numbers with a K, M or G suffix.

/// Parses a whole number; a suffix of K, M or G multiplies it by 2^10, 2^20 or 2^30.
pub fn parse_size(text: &str) -> Option<u64> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("", 0)];
    let (unit, shift) = *units.iter().find(|(unit, _)| text.ends_with(unit)).expect("the last fits all");
    let digits = text.strip_suffix(unit)?;
    // `parse` alone would accept a sign.
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())??;
    number.checked_mul(1 << shift)
}

/// Formats a number as [`parse_size`] reads it, with the largest unit that divides it.
pub fn format_size(number: u64) -> String {
    let units = [("G", 30), ("M", 20), ("K", 10)];
    match units.iter().find(|(_, shift)| number > 0 && number.is_multiple_of(1 << shift)) {
        Some((unit, shift)) => format!("{}{unit}", number >> shift),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_two() {
        let numbers = [0, 1000, 1 << 10, 1536, 3 << 20, 1 << 30];
        let texts = ["0", "1000", "1K", "1536", "3M", "1G"];
        assert_eq!(numbers.map(format_size), texts);
        assert_eq!(texts.map(parse_size), numbers.map(Some));
        for wrong in ["", "K", "+1", "-1", "1.5K", "1k", "1T", "99999999999G"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }
}
