//! Assembly in the strings of a C or Rust program.
//!
//! ```text
//! asm volatile("mov %%rdi, %%rax\n\t"
//!              "imul %%rsi, %%rax");
//! ```

use super::instruction_text::begins_with_instruction;
use super::text_words::line_start;
use cyclescope_core::error::BadSnippet;

/// Removes the quotes of strings; `None` if the text is something else. Lines keep their numbers.
///
/// # Errors
///
/// Fails if the compiler fills in operands.
pub(super) fn read_inline_assembly(lines: &[&str]) -> Result<Option<String>, BadSnippet> {
    let strings: Vec<Option<&str>> = lines.iter().map(|line| find_string(line)).collect();
    let filled = lines.iter().zip(&strings).filter(|(line, _)| !line.trim().is_empty());
    let is_statement = filled.clone().any(|(line, _)| opens_statement(line));
    let all_strings = filled.clone().all(|(line, string)| string.is_some() || is_around(line));
    let mut texts = strings.iter().flatten();
    if !(all_strings && texts.any(|text| is_code(text))) {
        return Ok(None);
    }
    let mut code = String::new();
    for (number, (line, string)) in (1..).zip(lines.iter().zip(&strings)) {
        let is_constraint = line.trim_start().starts_with(':');
        if let Some(text) = string.filter(|_| !is_constraint) {
            refuse_operands(number, text, is_statement)?;
            let column = text.as_ptr() as usize - line.as_ptr() as usize;
            code.push_str(&" ".repeat(line[..column].chars().count()));
            code.push_str(&unescape(text));
        }
        code.push('\n');
    }
    Ok(Some(code))
}

/// The text between the first quote of a line and the last one.
fn find_string(line: &str) -> Option<&str> {
    let start = line.find('"')? + 1;
    let before = line[..start - 1].trim();
    if is_rust_option(line.trim()) {
        return None;
    }
    let close = unescaped_quote(&line[start..]).map(|end| start + end)?;
    // Several strings in a line. Rust has commas between them.
    let mut end = close;
    while let Some(next) = line[end + 1..].trim_start_matches([' ', '\t', ',']).strip_prefix('"') {
        end = line.len() - next.len() + unescaped_quote(next)?;
    }
    let is_beginning = before.is_empty() || before.ends_with('(') || before.starts_with(':');
    let is_whole =
        line[end + 1..].trim_start().is_empty() || line[end + 1..].trim_start().starts_with([')', ',', ';', '/', ':']);
    (is_beginning && is_whole).then_some(&line[start..end])
}

/// The place of the quote that ends a string.
fn unescaped_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|at| bytes[*at] == b'"' && (*at == 0 || bytes[at - 1] != b'\\'))
}

fn opens_statement(line: &str) -> bool {
    let line = line.trim_start();
    ["asm", "__asm", "unsafe", "core::arch::", "std::arch::", "global_asm!", "naked_asm!"]
        .iter()
        .any(|word| line.starts_with(word))
}

/// Whether a line without a string may stand around strings.
fn is_around(line: &str) -> bool {
    let line = line.trim();
    opens_statement(line) || line.starts_with([':', ')', '}', '{']) || line.starts_with("//") || is_rust_option(line)
}

/// `in("rax") x,`, `out(reg) y,` and `options(nostack)` of Rust.
fn is_rust_option(line: &str) -> bool {
    ["in(", "out(", "inout(", "lateout(", "inlateout(", "options(", "clobber_abi("].iter().any(|word| {
        line.starts_with(word) || line.split_once('=').is_some_and(|(_, value)| value.trim().starts_with(word))
    })
}

fn is_code(text: &str) -> bool {
    let is_label = |c: char| c.is_whitespace() || c.is_ascii_digit() || matches!(c, ':' | ';');
    begins_with_instruction(unescape(text).trim_start_matches(is_label))
}

/// The code of strings, with what stands between them.
fn unescape(text: &str) -> String {
    let mut parts = text.split('"');
    let mut joined = parts.next().unwrap_or_default().to_string();
    while let (Some(between), Some(string)) = (parts.next(), parts.next()) {
        joined.push_str(if between.contains(',') { "; " } else { "" });
        joined.push_str(string);
    }
    let text = joined.replace("\\n", "; ").replace("\\t", "  ").replace("%%", "%");
    text.trim_end().trim_end_matches(|c: char| c == ';' || c.is_whitespace()).to_string()
}

/// Fails at `%0`, `%[n]` or `{n}`, which the compiler replaces.
fn refuse_operands(line: u32, text: &str, is_statement: bool) -> Result<(), BadSnippet> {
    let plain = text.replace("%%", "");
    let is_operand = |rest: &str| {
        let rest = rest.trim_start_matches(['b', 'w', 'k', 'q', 'h', 'c', 'a', 'x', 't', 'g']);
        rest.starts_with('[') || rest.starts_with(|c: char| c.is_ascii_digit())
    };
    let in_c = plain.split('%').skip(1).any(is_operand);
    let in_rust =
        is_statement && plain.contains('{') && plain.contains('}') && !plain.contains("{%") && !plain.contains("{k");
    if !(in_c || in_rust) {
        return Ok(());
    }
    let what = "the compiler fills in the operands of this string";
    let remedy = "write registers instead, such as %rax for %0, or measure the C function with --c FILE --call NAME";
    Err(line_start(line).error_expecting(what, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        let found = read_inline_assembly(&text.lines().collect::<Vec<_>>()).expect(text)?;
        Some(found.lines().map(str::trim).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn strings_become_code() {
        for (text, code) in [
            ("\"mov %rdi, %rax\\n\\t\"\n\"nop\\n\"", "mov %rdi, %rax|nop"),
            ("asm volatile(\"mov %%rdi, %%rax\\n\"\n\"nop\");", "mov %rdi, %rax|nop"),
            ("asm(\"nop\\n\" : \"+r\"(x) : : \"rax\");", "nop"),
            ("asm!(\n\"mov rax, rdi\",\nout(\"rax\") _,\n);", "|mov rax, rdi||"),
            ("asm!(\n\"mov rax, rdi\",\n\"nop\",\n);", "|mov rax, rdi|nop|"),
            ("global_asm!(\"2:\", \"dec rcx\", \"jnz 2b\", in(\"rcx\") n);", "2:; dec rcx; jnz 2b"),
        ] {
            assert_eq!(read(text).as_deref(), Some(code), "{text}");
        }
        for text in ["mov al, '\"'", ".string \"nop\"", "nop", "\"4801c0\""] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn operands_of_the_compiler_are_refused() {
        for text in
            ["\"add %1, %0\\n\"", "asm(\"sub $1, %[n]\"\n: [n] \"+r\"(n));", "asm!(\"add {0}, 1\", inout(reg) x);"]
        {
            let lines: Vec<&str> = text.lines().collect();
            assert!(read_inline_assembly(&lines).is_err(), "{text}");
        }
    }
}
