//! Text of .NET's compiler: names of sizes that only it has, and numbers without a mark.
//!
//! BenchmarkDotNet writes all numbers in hexadecimal, without a prefix or suffix: `add rsp,28`.

use super::instruction_text::begins_with_instruction;
use super::text_words::is_name_character;

/// Sizes of references in .NET, and their name elsewhere.
const REFERENCES: [(&str, &str); 2] = [("gword ptr", "qword ptr"), ("bword ptr", "qword ptr")];

/// Rewrites a text of .NET's compiler. Lines keep their numbers, other texts stay as they are.
pub(super) fn translate_runtime_text(text: &str) -> String {
    let mut plain = text.to_string();
    for (reference, name) in REFERENCES {
        if plain.contains(reference) {
            plain = plain.replace(reference, name);
        }
    }
    if !is_benchmark_text(&plain) {
        return plain;
    }
    let lines: Vec<String> = plain.split('\n').map(mark_code).collect();
    lines.join("\n")
}

/// Whether BenchmarkDotNet wrote a text: by its labels such as `M00_L01`, or by its last line.
fn is_benchmark_text(text: &str) -> bool {
    let has_label = text.split(|c| !is_name_character(c)).any(|word| {
        let (method, place) = word.strip_prefix('M').and_then(|word| word.split_once("_L")).unwrap_or_default();
        let is_number = |digits: &str| digits.len() >= 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_number(method) && is_number(place)
    });
    let is_other_listing = ["Assembly listing", "G_M", ";; "].iter().any(|mark| text.contains(mark));
    let codes = text.lines().map(|line| line.split(';').next().unwrap_or_default());
    let mut instructions = codes.filter(|code| begins_with_instruction(code));
    // Only .NET's own listings have blanks behind commas.
    let has_own_numbers =
        instructions.any(|code| code.contains(", ") || words_of(code).any(|(_, word)| is_marked_number(word)));
    (has_label || text.contains("; Total bytes of code") && !is_other_listing) && !has_own_numbers
}

fn mark_code(line: &str) -> String {
    let end = line.find(';').unwrap_or(line.len());
    format!("{}{}", mark_hexadecimal(&line[..end]), &line[end..])
}

fn words_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c| !is_name_character(c))
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// Whether a number shows that it is hexadecimal: `0x64`, or `64h`.
fn is_marked_number(word: &str) -> bool {
    let digits = word.strip_suffix(['h', 'H']).or_else(|| word.strip_prefix("0x"));
    word.starts_with(|c: char| c.is_ascii_digit())
        && digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Adds an `h` to each number that has digits only.
pub(super) fn mark_hexadecimal(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut end = 0;
    for (at, word) in words_of(text) {
        let is_number = word.len() > 1
            && word.starts_with(|c: char| c.is_ascii_digit())
            && word.bytes().all(|digit| digit.is_ascii_hexdigit());
        if is_number {
            marked.push_str(&text[end..at + word.len()]);
            marked.push('h');
            end = at + word.len();
        }
    }
    marked.push_str(&text[end..]);
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_benchmarkdotnet_are_hexadecimal() {
        for (text, plain) in [
            (
                "       sub       rsp,28 ; 40 bytes\n; Total bytes of code 9",
                "       sub       rsp,28h ; 40 bytes\n; Total bytes of code 9",
            ),
            ("M00_L00:\n cmp edx,0C\n jl short M00_L00", "M00_L00:\n cmp edx,0Ch\n jl short M00_L00"),
            ("## .NET 8, X64\nM00_L00:\n cmp edx,64", "## .NET 8, X64\nM00_L00:\n cmp edx,64h"),
            ("M00_L00:\n cmp edx,8", "M00_L00:\n cmp edx,8"),
            ("mov rax, gword ptr [rcx+16]", "mov rax, qword ptr [rcx+16]"),
        ] {
            assert_eq!(translate_runtime_text(text), plain, "{text}");
        }
        for text in
            ["sub rsp,28", "M00_L00:\n cmp edx,64h", "; Assembly listing\n sub rsp, 40\n; Total bytes of code 9"]
        {
            assert_eq!(translate_runtime_text(text), text);
        }
    }
}
