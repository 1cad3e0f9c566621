//! Encodings as text: `rUUEE` and `event=0xc2,umask=0x02,cmask=1,inv,edge`.

use super::event_code::{EventCode, event_type};
use cyclescope_core::machine::fact::SystemFiles;

/// Fields of an x86 core's event (Intel SDM vol. 3B, figure 20-6; AMD APM vol. 2, section 13.2.1;
/// the kernel's `format` folder). AMD has four more bits of the event at 32.
const CORE_FIELDS: &[(&str, &str)] = &[
    ("event", "config:0-7,32-35"),
    ("umask", "config:8-15"),
    ("edge", "config:18"),
    ("pc", "config:19"),
    ("any", "config:21"),
    ("inv", "config:23"),
    ("cmask", "config:24-31"),
];

/// Parses `r` and hexadecimal digits; `None` for other text.
pub(crate) fn parse_raw(text: &str) -> Option<EventCode> {
    let digits = text.strip_prefix('r').filter(|digits| digits.len() >= 2)?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let config = digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok());
    config.flatten().map(|config| EventCode::new(event_type::RAW, config))
}

/// Parses the fields of an event of a unit. The unit's `format` files give their places; those of
/// cores are known without them.
///
/// # Errors
///
/// What is wrong.
pub(crate) fn parse_fields(unit: &str, text: &str, files: &SystemFiles) -> Result<EventCode, String> {
    let is_core = is_core_unit(unit);
    let number = files.read_number::<u32>(&format!("/sys/bus/event_source/devices/{unit}/type")).known().copied();
    let unit_type = match number {
        Some(number) => number,
        None if is_core => event_type::RAW,
        None => return Err(format!("there is no unit {unit}")),
    };
    let mut code = EventCode::new(unit_type, 0);
    for field in text.split(',').map(str::trim).filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, "1"));
        let number = parse_number(value).ok_or_else(|| format!("{value} is no number"))?;
        let format = files.read_text(&format!("/sys/bus/event_source/devices/{unit}/format/{name}"));
        let known = CORE_FIELDS.iter().find(|(field, _)| is_core && *field == name).map(|(_, format)| *format);
        let format = match (format.known(), known, name) {
            (Some(format), ..) => format.trim().to_string(),
            (None, Some(format), _) => format.to_string(),
            (None, None, "config" | "config1" | "config2") => format!("{name}:0-63"),
            _ => return Err(format!("{unit} has no field {name}")),
        };
        set_field(&mut code, &format, number).map_err(|()| format!("{name}={value} does not fit {format}"))?;
    }
    Ok(code)
}

/// Whether a unit is that of a core.
pub(crate) fn is_core_unit(unit: &str) -> bool {
    matches!(unit, "cpu" | "cpu_core" | "cpu_atom")
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Puts a number into the bits of a format, such as `config:0-7,32-35`, lowest bits first.
fn set_field(code: &mut EventCode, format: &str, number: u64) -> Result<(), ()> {
    let (word, bits) = format.split_once(':').ok_or(())?;
    let word = match word {
        "config" => &mut code.config,
        "config1" => &mut code.config1,
        "config2" => &mut code.config2,
        _ => return Err(()),
    };
    let mut left = number;
    for range in bits.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().map_err(drop)?, last.parse::<u32>().map_err(drop)?);
        if last > 63 || first > last {
            return Err(());
        }
        let width = last - first + 1;
        let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
        *word |= (left & mask) << first;
        left = left.checked_shr(width).unwrap_or(0);
    }
    if left == 0 { Ok(()) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_go_to_their_bits() {
        let files = SystemFiles::rooted_at("/nonexistent");
        let config = |text: &str| parse_fields("cpu", text, &files).map(|code| code.config);
        assert_eq!(config("event=0xc3,umask=0x01,cmask=1,edge"), Ok(0x0104_01c3));
        assert_eq!(config("event=0x1c1,inv"), Ok(0x1_0080_00c1));
        assert_eq!(config("config=0x1234"), Ok(0x1234));
        for (text, part) in
            [("event=0x1000", "fit"), ("umask=0x100", "fit"), ("event=x", "number"), ("evnt=1", "no field evnt")]
        {
            assert!(config(text).is_err_and(|error| error.contains(part)), "{text}");
        }
        assert!(parse_fields("gpu", "event=1", &files).is_err_and(|error| error.contains("no unit gpu")));
    }

    #[test]
    fn raw_codes_are_hexadecimal() {
        assert_eq!(parse_raw("r02c2").map(|code| (code.unit, code.config)), Some((4, 0x02c2)));
        for text in ["r", "r0", "retired", "ref-cycles", "rzz"] {
            assert_eq!(parse_raw(text), None, "{text}");
        }
    }
}
