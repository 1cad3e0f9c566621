//! Globs: `*` matches any text, `?` matches one character.

/// Whether a glob matches the whole of a text.
pub fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // Position of the last star, and the end of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[place] => (at, place) = (at + 1, place + 1),
            _ => match star.as_mut() {
                Some((stars, reach)) => {
                    *reach += 1;
                    (at, place) = (*stars + 1, *reach);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_the_whole_text() {
        let cases = [
            ("vpadd*", "vpaddb", true),
            ("vpadd?", "vpaddb", true),
            ("vpadd?", "vpaddsb", false),
            ("*add*", "vpaddsb", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("", "", true),
            ("", "a", false),
            ("**", "", true),
            ("[b+i*s]", "[b+i*s]", true),
        ];
        for (pattern, text, matches) in cases {
            assert_eq!(matches_glob(pattern, text), matches, "{pattern} {text}");
        }
    }
}
