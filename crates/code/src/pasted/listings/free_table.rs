//! Tables of any program: marks, addresses, counts and bytes in columns, and an instruction behind
//! them.
//!
//! ```text
//!   >│0x555555555134 <f+11>            imul   eax, eax
//! 401136  mov     eax, edi
//! INS 0x401136             AVX     vpaddd ymm0, ymm1, ymm2     | YMM0=0
//! | 0x1139 | 48 89 f8 | mov rax, rdi | copy |
//! ```
//!
//! All lines decide what a column is: addresses rise by the length of an instruction, and bytes are
//! one instruction a line. A table with two instructions in a line is none of these.

use crate::pasted::instruction_text::{begins_like_operand, is_instruction_name, is_prefix, looks_like_instruction};
use crate::pasted::listing_line::{
    CodeLine, ListingFormat, ListingLine, cut_tail, has_instruction_inside, is_name_of, is_one_instruction,
    take_address, take_byte_pairs, take_byte_word,
};
use std::collections::BTreeSet;

pub(super) const FORMAT: ListingFormat = ListingFormat { name: "table of instructions", read: read_lines };

/// Longest instruction in bytes.
const INSTRUCTION_BYTES_MOST: u64 = 15;
/// Most columns in front of an instruction.
const COLUMNS_MOST: usize = 24;
/// Words that mark a line.
const MARKS: [&str; 21] =
    [".", "=>", "->", "-->", ">", "*", "b+", "B+", "b", "B", "H", "/$", "|.", "\\.", "$", "^", "X", "P", "M", "@", "-"];

/// The columns of a line with an instruction.
struct TableLine<'a> {
    /// Words in front of the instruction.
    columns: Vec<&'a str>,
    text: &'a str,
}

impl TableLine<'_> {
    /// The first column that can be nothing but an address.
    fn address(&self) -> Option<u64> {
        let is_wide = |word: &&&str| word.starts_with("0x") || word.len() >= 8 || word.ends_with(':');
        self.columns.iter().filter(is_wide).find_map(|word| take_whole_address(word))
    }

    /// The bytes right in front of the instruction: the longest run of digits that is one.
    fn bytes(&self) -> Vec<u8> {
        self.bytes_behind(0)
    }

    /// The bytes right in front of the instruction, without the first columns.
    fn bytes_behind(&self, columns: usize) -> Vec<u8> {
        let digits = |word: &&str| {
            let digits = word.replace(':', "");
            (!word.ends_with(':')).then(|| take_byte_word(&digits)).flatten().map(|(bytes, _)| bytes)
        };
        let words: Vec<Vec<u8>> = self.columns[columns..].iter().rev().map_while(digits).collect();
        let runs = (1..=words.len()).rev().map(|count| words[..count].iter().rev().flatten().copied().collect());
        runs.into_iter().find(|bytes: &Vec<u8>| is_one_instruction(bytes)).unwrap_or_default()
    }
}

/// An address that is a whole word, with or without a colon.
fn take_whole_address(word: &str) -> Option<u64> {
    // Cheat Engine: `program.exe+10E0`.
    let offset = word.split_once('+').filter(|(program, _)| program.contains('.')).map(|(_, offset)| offset);
    let (address, rest) = take_address(offset.unwrap_or(word))?;
    matches!(rest, "" | ":").then_some(address)
}

fn read_lines<'a>(lines: &[&'a str]) -> Vec<ListingLine<'a>> {
    let none = || vec![ListingLine::Unknown; lines.len()];
    if let Some(rows) = read_byte_rows(lines) {
        return rows;
    }
    let shared = find_shared_words(lines);
    let mut parsed = Vec::with_capacity(lines.len());
    for line in lines {
        let Ok(line) = parse_line(line, &shared) else { return none() };
        parsed.push(line);
    }
    let codes: Vec<&TableLine> = parsed.iter().flatten().collect();
    if codes.is_empty() || codes.iter().any(|code| code.columns.is_empty()) && !is_framed(lines, &parsed) {
        return none();
    }
    let (addresses, bytes) = match find_placed_bytes(&codes) {
        Some((addresses, bytes)) => (Some(addresses), bytes),
        None => (find_addresses(&codes), codes.iter().map(|code| code.bytes()).collect()),
    };
    let are_bytes = bytes.iter().all(|bytes| is_one_instruction(bytes))
        && (codes.iter().zip(&bytes).all(|(code, bytes)| is_name_of(code.text, bytes))
            || addresses.as_ref().is_none_or(|all| counts(all, &bytes)));
    let mut rows = (0..codes.len()).map(|index| CodeLine {
        address: addresses.as_ref().map(|all| all[index]),
        bytes: if are_bytes { bytes[index].clone() } else { Vec::new() },
        text: codes[index].text,
        ..CodeLine::default()
    });
    let line = |(whole, line): (&&str, &Option<TableLine>)| match line {
        Some(_) => ListingLine::Code(rows.next().expect("one for each")),
        None if whole.chars().any(char::is_alphanumeric) => ListingLine::Unknown,
        None => ListingLine::Frame,
    };
    lines.iter().zip(&parsed).map(line).collect()
}

/// Whether all lines with an instruction have a bar in front of it, as the rows of a table.
fn is_framed(lines: &[&str], parsed: &[Option<TableLine>]) -> bool {
    let is_bar = |c: char| matches!(c, '|' | '\u{2502}' | '\u{2503}');
    let has_bar = |(line, code): (&&str, &Option<TableLine>)| {
        code.as_ref().is_none_or(|code| line.split(code.text).next().is_some_and(|before| before.contains(is_bar)))
    };
    lines.iter().zip(parsed).all(has_bar)
}

/// Words that are in each line with an instruction: names of programs, files and events.
fn find_shared_words<'a>(lines: &[&'a str]) -> BTreeSet<&'a str> {
    const LINES_LEAST: usize = 3;
    let codes: Vec<&&str> =
        lines.iter().filter(|line| line.trim().contains(char::is_whitespace) && has_instruction_inside(line)).collect();
    let words = |line: &'a str| line.split_whitespace().take(COLUMNS_MOST).collect::<BTreeSet<&str>>();
    let Some(first) = codes.first().filter(|_| codes.len() >= LINES_LEAST) else { return BTreeSet::new() };
    let mut shared: BTreeSet<&str> = words(first);
    shared.retain(|word| !is_instruction_name(&word.to_ascii_lowercase()) && !is_prefix(word) && word.len() > 1);
    for line in codes {
        let words = words(line);
        shared.retain(|word| words.contains(word));
    }
    shared
}

/// Reads rows that end with the bytes of one instruction, if a column of addresses counts them.
fn read_byte_rows<'a>(lines: &[&'a str]) -> Option<Vec<ListingLine<'a>>> {
    const ROWS_LEAST: usize = 2;
    const WORDS_MOST: usize = 40;
    let is_pair = |word: &&str| word.len() == 2 && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code_of = |line: &'a str| line.split(['#', ';']).next().unwrap_or_default().trim_end();
    let ends_with_pair =
        |line: &&&'a str| is_pair(&code_of(line).rsplit(char::is_whitespace).next().unwrap_or_default());
    if lines.iter().filter(ends_with_pair).take(ROWS_LEAST).count() < ROWS_LEAST {
        return None;
    }
    let mut rows = Vec::new();
    for line in lines {
        let code = code_of(line);
        let words: Vec<&str> = code.split_whitespace().take(WORDS_MOST).collect();
        let pairs = words.iter().rev().take_while(|word| is_pair(word)).count();
        let text = words.get(words.len() - pairs..).and_then(|pairs| pairs.first());
        let text = text.map_or("", |first| &code[first.as_ptr() as usize - code.as_ptr() as usize..]);
        rows.push((words[..words.len() - pairs].to_vec(), text));
    }
    let filled: Vec<&(Vec<&str>, &str)> = rows.iter().filter(|(_, text)| !text.is_empty()).collect();
    let bytes: Vec<Vec<u8>> = filled.iter().map(|(_, text)| take_byte_pairs(text).0).collect();
    if filled.len() < ROWS_LEAST || !bytes.iter().all(|bytes| is_one_instruction(bytes)) {
        return None;
    }
    let columns = filled.iter().map(|(words, _)| words.len()).min()?;
    let addresses = (0..columns).find_map(|index| {
        let column: Option<Vec<u64>> = filled.iter().map(|(words, _)| take_whole_address(words[index])).collect();
        column.filter(|all| counts(all, &bytes))
    })?;
    let others = lines.iter().zip(&rows).filter(|(_, (_, text))| text.is_empty());
    if others.clone().any(|(line, _)| has_instruction_inside(line) || looks_like_instruction(line)) {
        return None;
    }
    let mut codes = addresses.into_iter().zip(bytes);
    let row = |(_, text): &(Vec<&str>, &'a str)| match text.is_empty() {
        true => ListingLine::Frame,
        false => {
            let (address, bytes) = codes.next().expect("one for each");
            ListingLine::Code(CodeLine { address: Some(address), bytes, text, ..CodeLine::default() })
        }
    };
    Some(rows.iter().map(row).collect())
}

/// Whether addresses count bytes.
fn counts(addresses: &[u64], bytes: &[Vec<u8>]) -> bool {
    addresses.windows(2).zip(bytes).all(|(pair, bytes)| pair[1].checked_sub(pair[0]) == Some(bytes.len() as u64))
}

/// The addresses and the bytes, if a column of addresses counts the bytes behind it.
fn find_placed_bytes(codes: &[&TableLine]) -> Option<(Vec<u64>, Vec<Vec<u8>>)> {
    let columns = codes.iter().map(|code| code.columns.len()).min().filter(|_| codes.len() > 1)?;
    (0..columns).find_map(|index| {
        let addresses = codes.iter().map(|code| take_whole_address(code.columns[index]));
        let addresses = addresses.collect::<Option<Vec<u64>>>()?;
        let bytes: Vec<Vec<u8>> = codes.iter().map(|code| code.bytes_behind(index + 1)).collect();
        let fits = counts(&addresses, &bytes) && bytes.iter().all(|bytes| is_one_instruction(bytes));
        fits.then_some((addresses, bytes))
    })
}

/// The addresses, if one column has them in all lines.
fn find_addresses(codes: &[&TableLine]) -> Option<Vec<u64>> {
    if let Some(wide) = codes.iter().map(|code| code.address()).collect::<Option<Vec<u64>>>() {
        return Some(wide);
    }
    let most = codes.iter().map(|code| code.columns.len()).min()?;
    let rises = |all: &Vec<u64>| {
        all.len() > 1
            && all.windows(2).all(|pair| {
                pair[1].checked_sub(pair[0]).is_some_and(|step| (1..=INSTRUCTION_BYTES_MOST).contains(&step))
            })
    };
    // The column of the bytes may rise too.
    let has_bytes =
        |index: usize| codes.iter().any(|code| index + 1 == code.columns.len() && is_name_of(code.text, &code.bytes()));
    (0..most).filter(|index| !has_bytes(*index)).find_map(|index| {
        let column = codes.iter().map(|code| take_whole_address(code.columns[index]));
        column.collect::<Option<Vec<u64>>>().filter(rises)
    })
}

/// Parses a line; `None` if it has no instruction.
///
/// # Errors
///
/// Fails if it has two.
fn parse_line<'a>(line: &'a str, shared: &BTreeSet<&str>) -> Result<Option<TableLine<'a>>, ()> {
    let mut columns = Vec::new();
    if !line.trim().contains(char::is_whitespace) {
        return Ok(None);
    }
    let mut rest = line;
    for _ in 0..COLUMNS_MOST {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || !c.is_ascii() || matches!(c, '|' | '`'));
        // Intel's tracer begins a line with `INS`.
        let cell =
            rest.split(['|', '\t', '\u{2502}']).next().and_then(|cell| cell.split("  ").next()).unwrap_or_default();
        if (looks_like_instruction(rest) || looks_like_instruction(cell)) && !rest.starts_with("INS ") {
            let text = cut_tail(rest);
            let is_other = has_instruction_inside(&rest[text.len()..]);
            return if is_other { Err(()) } else { Ok(Some(TableLine { columns, text: text.trim_end() })) };
        }
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '|' | '\u{2502}')).unwrap_or(rest.len());
        let word = &rest[..end];
        if word.is_empty() || !(is_column(word) || shared.contains(word)) {
            return if has_code(rest, &columns) { Err(()) } else { Ok(None) };
        }
        if !MARKS.contains(&word) && !word.starts_with('<') {
            columns.push(word);
        }
        rest = &rest[end..];
    }
    Ok(None)
}

/// Whether a text may hold an instruction: at some word, or one without a known name behind columns.
fn has_code(text: &str, columns: &[&str]) -> bool {
    if !text.trim().contains(char::is_whitespace) {
        return false;
    }
    let operands = text.trim().split_once(char::is_whitespace).map_or("", |(_, operands)| operands.trim());
    let is_unknown = !columns.is_empty() && begins_like_operand(operands) && !text.trim().ends_with(':');
    is_unknown || has_instruction_inside(text)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a word may be a mark, an address, a symbol, a count, a share, bytes, or the name of a
/// class of instructions.
fn is_column(word: &str) -> bool {
    let is_class = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let is_symbol = word.starts_with('<') && (word.ends_with('>') || word.ends_with(">:"));
    let is_place = word.split_once("+0x").is_some_and(|(_, offset)| is_digits(offset));
    let is_time = word.starts_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ+".contains(&byte));
    let word = word.trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
    let number = word.trim_end_matches(['%', 's', 'm', 'u', 'n']).replace(',', "");
    let is_number = number.starts_with(|c: char| c.is_ascii_digit()) && number.parse::<f64>().is_ok();
    let is_offset = word.trim_end_matches(':').starts_with("<+");
    let is_bytes = take_byte_word(&word.replace(':', "")).is_some();
    MARKS.contains(&word)
        || is_class
        || is_symbol
        || is_number
        || is_offset
        || is_place
        || is_time
        || is_bytes
        || take_whole_address(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Option<u64>, usize, &str)> {
        let lines: Vec<&str> = text.lines().collect();
        let code = |line| if let ListingLine::Code(code) = line { Some(code) } else { None };
        let codes = read_lines(&lines).into_iter().filter_map(code);
        codes.map(|code| (code.address, code.bytes.len(), code.text)).collect()
    }

    #[test]
    fn all_lines_decide_what_a_column_is() {
        assert_eq!(
            read("401136  mov eax, edi\n401138  imul eax, esi"),
            [(Some(0x40_1136), 0, "mov eax, edi"), (Some(0x40_1138), 0, "imul eax, esi")]
        );
        assert_eq!(
            read("4801c0  add rax, rax\n4801c8  add rax, rcx"),
            [(None, 3, "add rax, rax"), (None, 3, "add rax, rcx")]
        );
        assert_eq!(
            read("401136  89 f8  mov eax, edi\n40113b  90  nop"),
            [(Some(0x40_1136), 2, "mov eax, edi"), (Some(0x40_113b), 1, "nop")]
        );
        assert_eq!(read(" 12 (50.0%)  imul eax, ebx"), [(None, 0, "imul eax, ebx")]);
        assert_eq!(
            read("00401000  /$  83C0 10  add eax, 10\n00401003  |.  90  nop"),
            [(Some(0x40_1000), 3, "add eax, 10"), (Some(0x40_1003), 1, "nop")]
        );
        assert_eq!(
            read("| 0x10 | 48 01 c0 | add rax, rax | copy |\n| 0x13 | 90 | nop | |"),
            [(Some(16), 3, "add rax, rax"), (Some(19), 1, "nop")]
        );
        assert_eq!(read("INS 0x10  AVX  add eax, ebx  | EAX=1"), [(Some(16), 0, "add eax, ebx")]);
        assert_eq!(read(" 2  01 c0  add eax, eax\n 4  c3  ret"), [(Some(2), 2, "add eax, eax"), (Some(4), 1, "ret")]);
        assert_eq!(
            read("p 7 [0] 1.5: 10 f+0x0 (/p) insn: 48 01 c0\np 7 [0] 1.6: 13 f+0x3 (/p) insn: 90 # PRED"),
            [(Some(16), 3, "48 01 c0"), (Some(19), 1, "90")]
        );
        assert_eq!(
            read("jit INFO: nop eax\njit INFO: add eax, ebx\njit INFO: shl eax, 3"),
            [(None, 0, "nop eax"), (None, 0, "add eax, ebx"), (None, 0, "shl eax, 3")]
        );
        assert_eq!(read("  12,000 0.5% imul eax, ebx\t1.203s\t12,000"), [(None, 0, "imul eax, ebx")]);
    }

    #[test]
    fn plain_assembly_and_two_instructions_a_line_are_no_table() {
        for text in ["add rax, rbx\nnop", "foo: nop", "3 words here", "401136 nop\n401137 foo eax, esi"] {
            assert_eq!(read(text), [], "{text}");
        }
    }
}
