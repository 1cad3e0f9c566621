//! From a listing to its regions: each function is one.

use super::dialect::{CodeDialect, recognize_syntax, shortest_length};
use super::directives::Directive;
use super::foreign_text::{
    GO_REMEDY, GO_TEXT, IDA_NAMES, IDA_REMEDY, NARROW_CODE, NARROW_PUSH, is_go_instruction, is_ida_line,
    is_narrow_push, is_prefix, is_source_line, looks_like_instruction,
};
use super::functions::{
    FEWER_FUNCTIONS, RETURN_DROPPED, is_end_text, is_padding_text, is_return_text, middle_return_error,
};
use super::listing_line::{
    CodeLine, ListingFormat, ListingLine, begins_like_code_line, cut_tail, has_code_behind_digits, is_name_of,
    is_one_instruction, take_address,
};
use super::listings::FORMATS;
use super::machine_code::{PlacedCode, build_from_bytes, is_absolute_datum, refuse_call, refuse_data, refuse_target};
use super::markers::{self, MarkedCode};
use super::pasted_text::{DroppedLine, PastedRegion, PastedText, RegionCode};
use super::placed_text::PlacedText;
use super::text_words::{
    first_word, is_name_character, line_start, names_in, position_in, require_count, require_regions, split_statements,
    strip_comment,
};
use crate::asm::registers::find_register;
use crate::asm::{CodeMode, InstructionSyntax, Listing};
use cyclescope_core::error::BadSnippet;
use std::collections::{BTreeSet, HashMap};

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

/// Assembles the text of a region, with its addresses as labels. Lines and columns are those of the
/// whole text.
fn build_from_text(
    code: &[PlacedCode],
    dialect: CodeDialect,
    dropped: &mut Vec<DroppedLine>,
) -> Result<RegionCode, BadSnippet> {
    if let Some(placed) = code.iter().find(|placed| !placed.code.bytes.is_empty()) {
        let what = "this line has bytes, and others of the same code have none";
        return Err(placed.at().error_expecting(what, "paste all lines with bytes, or all without them"));
    }
    let (code, end) = drop_end_text(code, dropped);
    if let Some(placed) = code.iter().find(|placed| is_return_text(placed.code.text)) {
        return Err(middle_return_error(placed.at()));
    }
    let narrow_push = code.iter().find(|placed| is_narrow_push(placed.code.text.trim()));
    if let Some(placed) = narrow_push.filter(|_| dialect.mode == CodeMode::Bits64) {
        return Err(placed.at().error_expecting(NARROW_PUSH, NARROW_CODE));
    }
    let names_no_index = |placed: &&PlacedCode| names_in(placed.code.text).any(|name| matches!(name, "eiz" | "riz"));
    if let Some(placed) = code.iter().find(names_no_index) {
        let what = "eiz and riz stand for no register, in an encoding that the text does not tell";
        return Err(placed.at().error_expecting(what, "paste the listing with its bytes"));
    }
    if let Some(placed) = code.iter().find(|placed| is_go_instruction(instruction_of(placed.code.text))) {
        return Err(placed.at().error_expecting(GO_TEXT, GO_REMEDY));
    }
    let places = PlaceLabels::new(code, end);
    let mut written = PlacedText::default();
    for placed in code {
        let text = places.rewrite_target(placed)?;
        let label = places.label_of(&placed.code).map_or(String::new(), |label| format!("{label}: "));
        let column = position_in(placed.line, placed.whole, placed.code.text).column as usize - 1;
        let blanks = column.saturating_sub(label.chars().count());
        *written.line_mut(placed.line) = format!("{}{label}{text}", " ".repeat(blanks));
    }
    if let Some((placed, label)) = end.and_then(|end| Some((end, places.label_of(&end.code)?))) {
        *written.line_mut(placed.line) = format!("{label}:");
    }
    let mut listing = written.assemble(dialect)?;
    let lengths = listed_lengths(code, end);
    if fit_lengths(&mut written, &listing, &lengths, dialect) {
        listing = written.assemble(dialect)?;
    }
    let found = line_lengths(&listing);
    refuse_gaps(code, &lengths, &found)?;
    let reencoded = lengths.iter().filter(|(line, length)| found.get(line) != Some(length));
    let reencoded = reencoded.map(|(line, _)| *line).collect();
    for (index, instruction) in listing.instructions().iter().enumerate() {
        if instruction.is_ip_rel_memory_operand() || is_absolute_datum(instruction) {
            let at = listing.position(index).unwrap_or(line_start(1));
            let text = code.iter().find(|placed| placed.line == at.line).map_or("", |placed| placed.code.text);
            return Err(refuse_data(at, text));
        }
    }
    let address = code.first().and_then(|placed| placed.code.address);
    Ok(RegionCode { text: written.to_clean_text(), listing, address, reencoded, ..RegionCode::default() })
}

/// Refuses code whose addresses leave room behind an instruction: a line may be missing there. Code
/// that only jumps reach may be apart, and fillers have many encodings.
fn refuse_gaps(code: &[PlacedCode], lengths: &[(u32, u64)], found: &HashMap<u32, u64>) -> Result<(), BadSnippet> {
    for &(line, length) in lengths {
        let own = found.get(&line).copied().unwrap_or(length);
        let Some(placed) = code.iter().find(|placed| placed.line == line).filter(|_| own < length) else { continue };
        if is_padding_text(placed.code.text) || is_end_text(placed.code.text) {
            continue;
        }
        let what = format!(
            "this instruction has {own} bytes, and the next address is {length} bytes further: a line may be missing"
        );
        return Err(placed.at().error_expecting(what, "paste all lines, or a listing that has the bytes"));
    }
    Ok(())
}

/// Lengths of instructions by the addresses of a listing, each with its line.
fn listed_lengths(code: &[PlacedCode], end: Option<&PlacedCode>) -> Vec<(u32, u64)> {
    let all: Vec<&PlacedCode> = code.iter().chain(end).collect();
    let length = |pair: &[&PlacedCode]| Some((pair[0].line, pair[1].code.address?.checked_sub(pair[0].code.address?)?));
    all.windows(2).filter_map(length).collect()
}

/// Number of bytes that each line became.
fn line_lengths(listing: &Listing) -> HashMap<u32, u64> {
    let mut lengths = HashMap::new();
    for (index, instruction) in listing.instructions().iter().enumerate() {
        let line = listing.position(index).map_or(0, |at| at.line);
        *lengths.entry(line).or_default() += instruction.len() as u64;
    }
    lengths
}

/// Adds hints to instructions whose encoding has another length than in the listing. Returns
/// whether there are any.
fn fit_lengths(written: &mut PlacedText, listing: &Listing, lengths: &[(u32, u64)], dialect: CodeDialect) -> bool {
    const HINTS: [&str; 4] = ["{disp8}", "{disp32}", "data16", "{vex3}"];
    let mut is_changed = false;
    let found = line_lengths(listing);
    for &(line, length) in lengths {
        if found.get(&line) == Some(&length) {
            continue;
        }
        let text = written.line_mut(line);
        let code = text.trim_start();
        let code = code.split_once(": ").map_or(code, |(_, code)| code);
        let label = &text[..text.len() - code.len()];
        let mut hinted = HINTS.iter().map(|hint| format!("{hint} {code}"));
        let fits = |hinted: &String| {
            let mut alone = PlacedText::default();
            alone.line_mut(line).push_str(hinted);
            alone.assemble(dialect).is_ok_and(|listing| listing.bytes().len() as u64 == length)
        };
        if let Some(hinted) = hinted.find(fits) {
            *text = format!("{label}{hinted}");
            is_changed = true;
        }
    }
    is_changed
}

/// Drops the return at the end, and what fills the space up to the next function. Also returns the
/// first dropped line, where the code ends.
fn drop_end_text<'a, 'b>(
    code: &'b [PlacedCode<'a>],
    dropped: &mut Vec<DroppedLine>,
) -> (&'b [PlacedCode<'a>], Option<&'b PlacedCode<'a>>) {
    let padding = code.iter().rev().take_while(|placed| is_padding_text(placed.code.text)).count();
    let (before, after) = code.split_at(code.len() - padding);
    let Some(last) = before.last().filter(|last| is_end_text(last.code.text)) else {
        return (code, None);
    };
    for placed in after {
        dropped.push(DroppedLine::new_noise(placed.line, placed.code.text, "it fills the space after the code"));
    }
    if !is_return_text(last.code.text) {
        return (before, after.first());
    }
    dropped.push(DroppedLine::new_code(last.line, last.code.text, RETURN_DROPPED));
    (&before[..before.len() - 1], Some(last))
}

/// The places that branches lead to, by address or by the listing's own labels.
struct PlaceLabels {
    /// Places that an instruction is at, or that follow the last one.
    places: BTreeSet<u64>,
    /// Places that a branch leads to.
    targets: BTreeSet<u64>,
    has_addresses: bool,
    /// Labels on lines of their own.
    names: BTreeSet<String>,
    /// Names of places that a branch leads to, as in `jle <L0>`.
    named: BTreeSet<String>,
}

impl PlaceLabels {
    /// `end` is what follows the code.
    fn new(code: &[PlacedCode], end: Option<&PlacedCode>) -> PlaceLabels {
        let has_addresses = code.iter().all(|placed| placed.code.address.is_some());
        let place = |code: &CodeLine| match has_addresses {
            true => code.address,
            false => code.label.and_then(take_address).map(|(address, _)| address),
        };
        let places = code.iter().chain(end).filter_map(|placed| place(&placed.code)).collect();
        let names = code.iter().filter_map(|placed| placed.code.text.strip_suffix(':')).map(str::to_string);
        let is_address = |name: &str| take_address(name).is_some_and(|(_, rest)| rest.is_empty());
        let labels: BTreeSet<&str> = code.iter().chain(end).filter_map(|placed| placed.code.label).collect();
        let named = code.iter().filter_map(|placed| named_target(instruction_of(placed.code.text)));
        let named = named.map(|(name, _)| name).filter(|name| labels.contains(name) && !is_address(name));
        let named = named.map(str::to_string).collect();
        let mut found = PlaceLabels { places, targets: BTreeSet::new(), has_addresses, names: names.collect(), named };
        let target = |placed: &PlacedCode| Some(found.target_of(instruction_of(placed.code.text))?.0);
        found.targets = code.iter().filter_map(target).collect();
        found
    }

    /// The address that a direct branch leads to, and the text before it. Disassemblers name places
    /// by their addresses: `loc_401136`, `LAB_00401136`.
    fn target_of<'t>(&self, text: &'t str) -> Option<(u64, &'t str)> {
        branch_target(text).or_else(|| {
            let (name, before) = named_target(text)?;
            let (address, rest) = take_address(name.rsplit(['_', '.', '!']).next()?)?;
            (rest.is_empty() && self.places.contains(&address) && !self.names.contains(name))
                .then_some((address, before))
        })
    }

    /// Whether a branch leads to a name that is no label of the text.
    fn is_unknown_name(&self, text: &str) -> bool {
        let operand = text.split_whitespace().last().unwrap_or_default();
        let is_name = operand.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '.' | '_'))
            && operand.chars().all(is_name_character);
        is_name && find_register(operand).is_none() && !self.names.contains(operand)
    }

    /// The label of an instruction, if a branch leads to it.
    fn label_of(&self, code: &CodeLine) -> Option<String> {
        let place =
            if self.has_addresses { code.address } else { code.label.and_then(take_address).map(|place| place.0) };
        let place = place.filter(|place| self.targets.contains(place)).map(name_place);
        let named = code.label.filter(|name| self.named.contains(*name)).map(name_label);
        match (place, named) {
            (Some(place), Some(named)) => Some(format!("{place}: {named}")),
            (place, named) => place.or(named),
        }
    }

    /// The text of an instruction with a label as its target.
    fn rewrite_target(&self, placed: &PlacedCode) -> Result<String, BadSnippet> {
        let full = placed.full_text();
        let text = instruction_of(&full);
        if let Some((name, before)) = named_target(text).filter(|(name, _)| self.named.contains(*name)) {
            return Ok(format!("{before}{}", name_label(name)));
        }
        let Some((target, before)) = self.target_of(text) else {
            let is_direct = is_branch_name(&first_word(text)) && (text.contains('<') || self.is_unknown_name(text));
            return match is_direct {
                true if first_word(text).starts_with("call") => Err(refuse_call(placed.at(), text)),
                true => Err(placed.at().error_expecting(
                    format!("`{text}` leads to a place that the text doesn't show"),
                    "paste the text with its addresses, bytes or labels, or leave this line out",
                )),
                false => Ok(text.to_string()),
            };
        };
        if first_word(text).starts_with("call") {
            return Err(refuse_call(placed.at(), text));
        }
        if self.places.contains(&target) {
            return Ok(format!("{before}{}", name_place(target)));
        }
        let inside = self.places.first().is_some_and(|first| *first < target)
            && self.places.last().is_some_and(|last| target < *last);
        Err(refuse_target(placed.at(), text, inside))
    }
}

/// The instruction of a line without comments. A line has one instruction, so that `;` starts a
/// comment.
fn instruction_of(text: &str) -> &str {
    split_statements(strip_comment(text))[0].trim_end()
}

/// Name of the label at an address. It is as long as the address with its `0x` at most.
fn name_place(address: u64) -> String {
    format!("L{address:x}")
}

/// Label for a place that the listing names.
fn name_label(name: &str) -> String {
    format!("P_{name}")
}

/// The name that a direct branch leads to, without its brackets, and the text before it.
fn named_target(text: &str) -> Option<(&str, &str)> {
    let operand = text.split_whitespace().last().filter(|_| is_branch_name(&first_word(text)))?;
    let before = &text[..text.rfind(operand)?];
    let name = operand.strip_prefix('<').and_then(|name| name.strip_suffix('>')).unwrap_or(operand);
    let is_name = !name.is_empty() && name.chars().all(is_name_character) && find_register(name).is_none();
    (is_name && !before.trim().is_empty()).then_some((name, before.strip_suffix("short ").unwrap_or(before)))
}

fn is_branch_name(word: &str) -> bool {
    word.starts_with('j') || word.starts_with("loop") || word.starts_with("call") || word == "xbegin"
}

/// The address that a direct branch leads to, and the text before it.
fn branch_target(text: &str) -> Option<(u64, &str)> {
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let word_start = start + rest.len() - rest.trim_start().len();
        let word_end = text[word_start..].find(char::is_whitespace).map(|end| word_start + end)?;
        let word = text[word_start..word_end].to_ascii_lowercase();
        if is_branch_name(&word) {
            start = word_end;
            break;
        }
        if !matches!(word.as_str(), "bnd" | "notrack" | "cs" | "ds") {
            return None;
        }
        start = word_end;
    }
    let mut operand_start = start + text[start..].len() - text[start..].trim_start().len();
    for keyword in ["short ", "near ", "SHORT ", "NEAR "] {
        if text[operand_start..].starts_with(keyword) {
            operand_start += keyword.len();
        }
    }
    let (address, after) = take_address(&text[operand_start..])?;
    // MASM's mark of hexadecimal numbers.
    let after = after.strip_prefix(['h', 'H']).unwrap_or(after).trim_start();
    let is_whole =
        after.is_empty() || after.starts_with(['<', '#']) || ["//", "->"].iter().any(|mark| after.starts_with(mark));
    is_whole.then(|| (address, &text[..operand_start]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hexadecimal_addresses() {
        assert_eq!(branch_target("jle    30 <sum+0x30>"), Some((0x30, "jle    ")));
        assert_eq!(branch_target("bnd jmp 0x401136"), Some((0x40_1136, "bnd jmp ")));
        for text in ["jmp *%rax", "jmp rax", "jne .L3", "mov $0x30,%eax", "call *0x8(%rax)", "ret"] {
            assert_eq!(branch_target(text), None, "{text}");
        }
    }
}
