//! Characters beyond ASCII, spelt in ASCII where the user's locale has no UTF-8. JSON and files are UTF-8 everywhere.

use std::borrow::Cow;
use std::sync::OnceLock;

/// Spellings. A number and its error keep their width, so that tables do.
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

/// A text as the user's locale can show it.
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

/// Whether the locale's characters are UTF-8: the first of these variables that is set and not empty names it (POSIX.1,
/// 8.2). Where none is, nobody has asked for other characters.
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
    fn the_locale_is_the_first_variable_that_is_set() {
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
    fn a_number_and_its_error_keep_their_width() {
        let text = "3.000 ± 0.002 core cycles";
        assert_eq!(spell_in_ascii(text), "3.000 +-0.002 core cycles");
        assert_eq!(spell_in_ascii(text).chars().count(), text.chars().count());
        assert_eq!(spell_in_ascii("~op1→flags ≤1…2"), "~op1->flags <=1..2");
    }

    /// Lines of a source file without comments, up to its tests.
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
            // What is drawn goes to files. The simulated machine prints nothing.
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
    fn every_character_that_the_program_prints_has_a_spelling() {
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
