//! From a listing to its regions: each function is one.

use super::dialect::{CodeDialect, recognize_syntax, shortest_length};
use super::directives::Directive;
use super::foreign_text::{IDA_NAMES, IDA_REMEDY, is_ida_line, is_source_line};
use super::functions::FEWER_FUNCTIONS;
use super::instruction_text::{instruction_of, is_branch_name, is_prefix, looks_like_instruction};
use super::listed_assembly::build_from_text;
use super::listing_line::{
    CodeLine, ListingFormat, ListingLine, begins_like_code_line, cut_tail, has_code_behind_digits, is_name_of,
    is_one_instruction,
};
use super::listings::FORMATS;
use super::machine_code::{PlacedCode, build_from_bytes};
use super::markers::{self, MarkedCode};
use super::pasted_text::{DroppedLine, PastedRegion, PastedText};
use super::text_words::{first_word, line_start, names_in, position_in, require_count, require_regions, strip_comment};
use crate::asm::InstructionSyntax;
use cyclescope_core::error::BadSnippet;

/// Longest instruction in bytes.
const INSTRUCTION_BYTES_MOST: u64 = 15;

/// Lines of a function.
#[derive(Default)]
struct ListedFunction<'a> {
    name: &'a str,
    code: Vec<PlacedCode<'a>>,
    /// The first line that can't be measured, and why.
    error: Option<BadSnippet>,
    /// Line of bytes that were left out, if no code followed yet.
    gap: Option<u32>,
    /// Name of the place of the next instruction.
    place: Option<&'a str>,
}

/// Reads a listing; `None` if the text is none.
pub(super) fn read_listing(lines: &[&str], dialect: CodeDialect) -> Result<Option<PastedText>, BadSnippet> {
    let Some((format, parsed)) = recognize_format(lines) else { return Ok(None) };
    require_count(parsed.iter().filter(|line| matches!(line, ListingLine::Code(_))).count())?;
    refuse_unmarked_numbers(lines, &parsed)?;
    let mut dropped = Vec::new();
    let functions = split_functions(lines, &parsed, &mut dropped)?;
    require_regions(functions.len(), FEWER_FUNCTIONS)?;
    let texts = functions.iter().flat_map(|function| function.code.iter().map(|placed| placed.code.text));
    let dialect = dialect.or_syntax(recognize_syntax(texts));
    let mut regions = Vec::new();
    for ListedFunction { name, code, error, .. } in functions {
        for MarkedCode { mark, code } in markers::split_by_marker_bytes(code, &mut dropped)? {
            let code = join_prefixes(code);
            let Some(first) = code.first() else { continue };
            let has_bytes = code.iter().all(|placed| !placed.code.bytes.is_empty());
            let built = match &error {
                Some(error) => Err(error.clone()),
                None if has_bytes => build_from_bytes(&code, dialect, &mut dropped),
                None => build_from_text(&code, dialect, &mut dropped),
            };
            let name = mark.unwrap_or_else(|| name.to_string());
            regions.push(PastedRegion { name, line: first.line, code: built });
        }
    }
    dropped.sort_by_key(|dropped| dropped.line);
    let is_code = |line: &ListingLine| matches!(line, ListingLine::Code(code) if code.bytes.is_empty());
    let syntax = parsed.iter().any(is_code).then_some(dialect.syntax.unwrap_or(InstructionSyntax::Intel));
    Ok(Some(PastedText { source: format.name, syntax, regions, dropped }))
}

/// The format with the most instructions in the text.
fn recognize_format<'a>(lines: &[&'a str]) -> Option<(&'static ListingFormat, Vec<ListingLine<'a>>)> {
    let count = |parsed: &[ListingLine]| parsed.iter().filter(|line| matches!(line, ListingLine::Code(_))).count();
    let mut best: Option<(&ListingFormat, Vec<ListingLine>)> = None;
    for format in FORMATS {
        // A format that explains every line leaves nothing to the others.
        let explains = |parsed: &[ListingLine]| !parsed.contains(&ListingLine::Unknown);
        if best.as_ref().is_some_and(|(_, parsed)| explains(parsed)) {
            break;
        }
        let parsed = (format.read)(lines);
        if count(&parsed) > best.as_ref().map_or(0, |(_, best)| count(best)) {
            best = Some((format, parsed));
        }
    }
    let (format, mut parsed) = best.filter(|(format, parsed)| is_plausible(format, lines, parsed))?;
    for line in &mut parsed {
        if let ListingLine::Code(code) = line
            && code.bytes.is_empty()
        {
            code.text = cut_tail(code.text);
        }
    }
    Some((format, parsed))
}

/// Whether addresses without bytes can be addresses. Otherwise they are the labels of assembly.
fn is_plausible(format: &ListingFormat, lines: &[&str], parsed: &[ListingLine]) -> bool {
    let codes: Vec<&CodeLine> =
        parsed.iter().filter_map(|line| if let ListingLine::Code(code) = line { Some(code) } else { None }).collect();
    if codes.iter().any(|code| !code.bytes.is_empty()) {
        return true;
    }
    // Only this format's addresses look like labels.
    if format.name != "objdump" || codes.iter().any(|code| code.address.is_none()) {
        return true;
    }
    if codes.iter().any(|code| names_numeric_label(code, &codes)) {
        return false;
    }
    let mut unexplained = lines.iter().zip(parsed).filter(|(_, line)| **line == ListingLine::Unknown);
    let rises = codes.windows(2).all(|pair| {
        let (Some(from), Some(to)) = (pair[0].address, pair[1].address) else { return false };
        let length = shortest_length(pair[0].text).unwrap_or(1);
        // A function may be followed by another one anywhere.
        to.checked_sub(from).is_none_or(|step| step >= length.min(INSTRUCTION_BYTES_MOST))
    });
    rises && !unexplained.any(|(line, _)| is_assembly(strip_comment(line)))
}

/// Whether a branch names a numeric label of the text, as in `1: loop 1b`, and no address.
fn names_numeric_label(code: &CodeLine, all: &[&CodeLine]) -> bool {
    let Some(operand) = code.text.split_whitespace().last() else { return false };
    let Some(label) = operand.strip_suffix(['b', 'f']) else { return false };
    let has_address = |text: &str| {
        let address = u64::from_str_radix(text, 16).ok();
        address.is_some() && all.iter().any(|code| code.address == address)
    };
    label.bytes().all(|digit| digit.is_ascii_digit()) && has_address(label) && !has_address(operand)
}

/// Whether a line looks like an instruction or a directive, with or without a label.
fn is_assembly(line: &str) -> bool {
    let statement = line.rsplit_once(": ").map_or(line, |(_, statement)| statement).trim();
    looks_like_instruction(statement) || Directive::parse(statement).is_some() && !is_source_line(line.trim())
}

fn split_functions<'a>(
    lines: &[&'a str],
    parsed: &[ListingLine<'a>],
    dropped: &mut Vec<DroppedLine>,
) -> Result<Vec<ListedFunction<'a>>, BadSnippet> {
    let mut functions: Vec<ListedFunction> = vec![ListedFunction::default()];
    // Addresses and bytes together show that no instruction is missing.
    let is_exact = |line: &ListingLine| match line {
        ListingLine::Code(code) => code.address.is_some() && !code.bytes.is_empty(),
        _ => true,
    };
    let is_exact = parsed.iter().all(is_exact);
    let addresses: Vec<u64> =
        parsed.iter().filter_map(|line| if let ListingLine::Code(code) = line { code.address } else { None }).collect();
    for (number, (whole, line)) in (1..).zip(lines.iter().zip(parsed)) {
        let current = functions.last_mut().expect("there is one");
        match line {
            ListingLine::Header { name } => functions.push(ListedFunction { name, ..ListedFunction::default() }),
            ListingLine::End => functions.push(ListedFunction::default()),
            ListingLine::Code(code) => {
                if let Some(name) = code.function {
                    functions.push(ListedFunction { name, ..ListedFunction::default() });
                }
                let current = functions.last_mut().expect("there is one");
                if let Some(line) = current.gap {
                    let remedy = "paste the bytes that `...` stands for (objdump -z), or each part on its own";
                    let missing = line_start(line).error_expecting("bytes are left out here", remedy);
                    current.error.get_or_insert(missing);
                }
                let label = current.place.take().or(code.label);
                current.code.push(PlacedCode { line: number, whole, code: CodeLine { label, ..code.clone() } });
            }
            ListingLine::MoreBytes(bytes) => match current.code.last_mut() {
                Some(placed) if !placed.code.bytes.is_empty() => placed.code.bytes.extend(bytes),
                // bpftool writes the bytes below the instruction.
                Some(placed) if is_one_instruction(bytes) && is_name_of(placed.code.text, bytes) => {
                    placed.code.bytes.extend(bytes);
                }
                _ => {
                    let what = "these bytes have no instruction in front of them";
                    let error = line_start(number).error_expecting(what, "paste the line before it too");
                    current.error.get_or_insert(error);
                }
            },
            ListingLine::Relocation => {
                let text = current.code.last().map_or("", |placed| placed.code.text);
                let what = format!("the linker fills in an operand of `{text}`");
                let remedy = "paste the code of the linked program, or measure it with --elf FILE --call NAME";
                current.error.get_or_insert(line_start(number).error_expecting(what, remedy));
            }
            ListingLine::Gap => current.gap = Some(number),
            ListingLine::Place { name } => current.place = Some(name),
            ListingLine::Frame if whole.trim().is_empty() => {}
            ListingLine::Frame => dropped.push(DroppedLine::new_noise(number, whole, "it is not code")),
            ListingLine::Unknown => {
                let may_be_code = may_make_code(strip_comment(whole)) || has_code_behind_digits(whole);
                let begins = begins_like_code_line(whole.trim_start()) && !is_numbered_source(whole, &addresses);
                if !is_exact && may_be_code || begins {
                    return Err(refuse_line(number, whole));
                }
                dropped.push(DroppedLine::new_noise(number, whole, "it is not code"));
            }
        }
    }
    functions.retain(|function| !function.code.is_empty());
    Ok(functions)
}

/// Whether a line may be an instruction, or a directive that writes bytes.
fn may_make_code(line: &str) -> bool {
    let statement = line.rsplit_once(": ").map_or(line, |(_, statement)| statement).trim();
    let writes = Directive::parse(statement).is_some_and(|directive| directive != Directive::NoCode);
    looks_like_instruction(statement) || writes && !is_source_line(line.trim())
}

/// Error for a line of a listing that may be code.
fn refuse_line(number: u32, line: &str) -> BadSnippet {
    let (what, remedy) = match is_ida_line(line) {
        true => (IDA_NAMES, IDA_REMEDY),
        false => ("this line may be an instruction or source code", "delete it, or paste the instructions alone"),
    };
    line_start(number).error_expecting(what, remedy)
}

/// Whether a line is `12: source code`: its number is decimal and no address near the others.
fn is_numbered_source(line: &str, addresses: &[u64]) -> bool {
    /// Source lines have lower numbers than this, and addresses of programs higher ones.
    const LINE_NUMBERS_MOST: u64 = 1 << 16;
    let Some((digits, text)) = line.trim_start().split_once(':') else { return false };
    let is_low = digits.parse::<u64>().is_ok_and(|number| number < LINE_NUMBERS_MOST);
    let are_high = !addresses.is_empty() && addresses.iter().all(|address| *address > LINE_NUMBERS_MOST);
    is_low && are_high && !is_assembly(strip_comment(text)) && !has_code_behind_digits(text)
}

/// Fails if numbers without a mark may be hexadecimal, as x64dbg writes them, or decimal.
fn refuse_unmarked_numbers(lines: &[&str], parsed: &[ListingLine]) -> Result<(), BadSnippet> {
    let rows = || (1..).zip(lines.iter().zip(parsed));
    let codes = || {
        rows().filter_map(|(number, (whole, line))| match line {
            ListingLine::Code(code) if code.bytes.is_empty() => Some((number, *whole, code)),
            _ => None,
        })
    };
    let words = |code: &CodeLine| {
        let text = instruction_of(code.text);
        let is_target = is_branch_name(&first_word(text));
        names_in(if is_target { "" } else { text }).map(str::to_string).collect::<Vec<String>>()
    };
    let is_marked = |word: &String| {
        word.starts_with("0x") || word.starts_with(|c: char| c.is_ascii_digit()) && word.ends_with(['h', 'H'])
    };
    let is_unmarked = |word: &String| word.len() > 1 && word.bytes().all(|digit| digit.is_ascii_digit());
    // Other programs have `0x` in front of addresses, and number instructions.
    let is_bare = |whole: &str| {
        let digits = whole.trim_start().split(char::is_whitespace).next().unwrap_or_default();
        digits.len() >= 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit() || digit == b'`')
    };
    if !codes().all(|(_, whole, _)| is_bare(whole)) || codes().any(|(_, _, code)| words(code).iter().any(is_marked)) {
        return Ok(());
    }
    for (number, whole, code) in codes() {
        if let Some(word) = words(code).into_iter().find(is_unmarked) {
            let what = format!("`{word}` may be hexadecimal, as debuggers write it, or decimal");
            let remedy = "paste the bytes too, or write 0x in front of each hexadecimal number";
            return Err(position_in(number, whole, code.text).error_expecting(what, remedy));
        }
    }
    Ok(())
}

/// Joins prefixes and first bytes on lines of their own with the instructions after them.
fn join_prefixes(code: Vec<PlacedCode>) -> Vec<PlacedCode> {
    let mut joined: Vec<PlacedCode> = Vec::with_capacity(code.len());
    for mut placed in code {
        if let Some(before) = joined.pop_if(|before| {
            before.code.prefix.is_none() && (is_prefix(before.code.text) || before.code.text.is_empty())
        }) {
            placed.code.prefix = Some(before.code.text);
            placed.code.address = before.code.address;
            placed.code.bytes.splice(0..0, before.code.bytes);
        }
        joined.push(placed);
    }
    joined
}
