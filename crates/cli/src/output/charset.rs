//! Spells non-ASCII characters in ASCII if the user's locale isn't UTF-8. JSON and files are always
//! UTF-8.

use std::borrow::Cow;
use std::sync::OnceLock;

/// ASCII spellings. A number and its error keep their width, and so do tables.
const SPELLINGS: [(&str, &str); 12] = [
    ("± ", "+-"),
    ("±", "+-"),
    ("→", "->"),
    ("≤", "<="),
    ("≥", ">="),
    ("…", ".."),
    ("²", "^2"),
    ("×", "x"),
    ("µ", "u"),
    ("μ", "u"),
    ("−", "-"),
    ("–", "-"),
];

/// Spells a text for the user's locale.
pub fn spell_for_locale(text: &str) -> Cow<'_, str> {
    static UTF8: OnceLock<bool> = OnceLock::new();
    match *UTF8.get_or_init(|| is_utf8_locale(|name| std::env::var(name).ok())) {
        true => Cow::Borrowed(text),
        false => spell_in_ascii(text),
    }
}

fn spell_in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(SPELLINGS.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to)))
}

/// Whether the locale uses UTF-8. The first of these variables that is set and not empty names the
/// locale (POSIX.1, 8.2). If none is set, UTF-8 is not assumed.
fn is_utf8_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| variable(name));
    let locale = set.into_iter().find(|locale| !locale.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn locale_comes_from_the_first_set_variable() {
        let utf8 = |all: &str, ctype: &str, lang: &str| {
            is_utf8_locale(|name| {
                let value = match name {
                    "LC_ALL" => all,
                    "LC_CTYPE" => ctype,
                    _ => lang,
                };
                (value != "-").then(|| value.to_string())
            })
        };
        assert!(utf8("-", "-", "-") && utf8("", "", "") && utf8("-", "-", "de_DE.utf8@euro"));
        assert!(utf8("C.UTF-8", "C", "C") && utf8("", "C.UTF-8", "C"));
        assert!(!utf8("C", "C.UTF-8", "C.UTF-8") && !utf8("-", "-", "POSIX") && !utf8("-", "-", "en_US"));
    }

    #[test]
    fn ascii_spelling_keeps_the_width_of_a_number_and_its_error() {
        let text = "3.000 ± 0.002 core cycles";
        assert_eq!(spell_in_ascii(text), "3.000 +-0.002 core cycles");
        assert_eq!(spell_in_ascii(text).chars().count(), text.chars().count());
        assert_eq!(spell_in_ascii("~op1→flags ≤1…2"), "~op1->flags <=1..2");
    }

    /// The lines of a source file up to its tests, without comments.
    fn lines(file: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        code.map(str::to_string).collect()
    }

    fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // Drawings go to files, and the simulated machine prints nothing.
            if path.is_dir() && !["tests", "plot", "sim"].contains(&name.as_str()) {
                files(&path, found);
            } else if name.ends_with(".rs")
                && !["tests.rs", "plots.rs", "graphs.rs", "charset.rs"].contains(&name.as_str())
            {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_printed_character_has_an_ascii_spelling() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        files(&own.join("src"), &mut found);
        files(&own.join(".."), &mut found);
        assert!(found.len() > 100);
        for file in found {
            for line in lines(&file) {
                assert!(spell_in_ascii(&line).is_ascii(), "{}: {line}", file.display());
            }
        }
    }
}
