//! Reads ports as this study writes them: `1*A0123+1*L012`.

use std::str::FromStr;

/// µops that may use the same ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedUops {
    /// Number of µops.
    pub count: u64,
    /// The names of the ports.
    pub ports: Vec<String>,
}

/// Upper limit of µops in a text.
const UOPS_MOST: u64 = 1000;

/// Reads a list of µops, with ports of this notation. `None` if the text has another form.
pub fn read_uops(text: &str, read_ports: fn(&str) -> Option<Vec<String>>) -> Option<Vec<NamedUops>> {
    let read_term = |term: &str| {
        let (count, ports) = term.trim().split_once('*')?;
        let count = u64::from_str(count.trim()).ok().filter(|count| (1..=UOPS_MOST).contains(count))?;
        Some(NamedUops { count, ports: read_ports(ports.trim())? })
    };
    text.split('+').map(read_term).collect()
}

/// Reads ports in this study's notation: a capital letter, and a digit or small letter for each port.
pub fn read_port_labels(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut unit = None;
    let mut is_open = true;
    for c in text.chars() {
        match (c, unit) {
            ('A'..='Z', None) => unit = Some(c),
            ('A'..='Z', Some(_)) if !is_open => unit = Some(c),
            ('0'..='9' | 'a'..='z', Some(unit)) => names.push(format!("{unit}{c}")),
            _ => return None,
        }
        is_open = c.is_ascii_uppercase();
    }
    (!is_open).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uops_are_read_as_they_are_written() {
        let read = |text: &str| {
            let uops = read_uops(text, read_port_labels)?;
            Some(uops.into_iter().map(|uops| (uops.count, uops.ports.join(" "))).collect::<Vec<_>>())
        };
        let text = |text: &str| text.to_string();
        assert_eq!(read("2*P0+1*A019aV3"), Some(vec![(2, text("P0")), (1, text("A0 A1 A9 Aa V3"))]));
        for bad in ["", "1*", "A0", "0*A0", "1*A", "1*AV0", "1*0", "1*A0+", "1*A 0", "-1*A0", "99999*A0"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
