//! From assembly text to its regions: marked ones, or functions.

use super::assembly_lines::{AssemblyLines, AssemblyStatement, DATA_DROPPED, split_lines};
use super::dialect::{CodeDialect, recognize_syntax};
use super::exegesis::{self, read_exegesis};
use super::functions::{
    FEWER_FUNCTIONS, RETURN_DROPPED, is_end_text, is_padding_text, is_return_text, middle_return_error,
};
use super::machine_code::refuse_call;
use super::markers::{self, MarkedRegion, find_marked_regions};
use super::pasted_text::{DroppedLine, PastedRegion, PastedText, RegionCode};
use super::placed_text::PlacedText;
use super::semicolons::decide_semicolons;
use super::text_words::{blank_block_comments, first_word, names_in, require_count, require_regions};
use crate::asm::{CodeMode, DataStatement, InstructionSyntax, SnippetData, WHOLE_TEXT, data_names, read_data};
use cyclescope_core::error::BadSnippet;
use std::collections::BTreeSet;

/// Statements that are measured as one.
#[derive(Default)]
struct AssemblyRegion<'a> {
    name: &'a str,
    /// Whether it is a function, which returns at its end.
    is_function: bool,
    /// Whether the text says that a function begins here.
    is_declared: bool,
    /// Its last instruction so far.
    last_code: Option<&'a str>,
    statements: Vec<AssemblyStatement<'a>>,
}

/// Reads assembly text.
pub(super) fn read_assembly(
    text: &str,
    dialect: CodeDialect,
    shared: Option<&SnippetData>,
) -> Result<PastedText, BadSnippet> {
    let blanked = blank_block_comments(text);
    let lines: Vec<&str> = blanked.lines().collect();
    let init = read_exegesis(&lines)?;
    let marked = find_marked_regions(&lines)?;
    require_regions(marked.len(), FEWER_FUNCTIONS)?;
    let dialect = dialect.or_syntax(recognize_syntax(lines.iter().copied()));
    let AssemblyLines { statements, mut dropped, data, source, .. } =
        split_lines(&lines, decide_semicolons(&lines, dialect)?, dialect.mode)?;
    require_count(statements.iter().filter(|statement| !statement.code.is_empty()).count())?;
    let source = match (&init, marked.first()) {
        (Some(_), _) => "llvm-exegesis snippet",
        (None, Some(region)) => region.source,
        (None, None) => source.unwrap_or("assembly"),
    };
    let split = match marked.is_empty() {
        true => split_functions(statements)?,
        false => select_marked(&marked, &statements, &mut dropped),
    };
    let is_alone = split.len() == 1;
    let mut regions = Vec::new();
    for mut region in split {
        drop_return(&mut region, &mut dropped);
        let line = region.statements.first().map_or(1, |statement| statement.line);
        let name = if is_alone && !region.is_declared && marked.is_empty() { "" } else { region.name };
        let code = build_region(&region, dialect, init.as_deref(), (&data, shared));
        regions.push(PastedRegion { name: name.to_string(), line, code });
    }
    if regions.iter().any(|region| region.code.as_ref().is_ok_and(|code| code.data.is_some())) {
        dropped.retain(|dropped| dropped.why != DATA_DROPPED);
    }
    // Comments that became init code are not left out.
    dropped.retain(|dropped| !dropped.text.contains(exegesis::PREFIX));
    dropped.sort_by_key(|dropped| dropped.line);
    // A text without marks and functions stays as its author wrote it.
    if let [PastedRegion { code: Ok(code), .. }] = &mut regions[..]
        && dropped.iter().all(|dropped| dropped.why == "it is a comment")
        && init.is_none()
    {
        code.text = text.to_string();
    }
    let syntax = Some(dialect.syntax.unwrap_or(InstructionSyntax::Intel));
    Ok(PastedText { source, syntax, regions, dropped })
}

/// Splits statements at the functions that the text declares, and at names after the end of code.
fn split_functions(statements: Vec<AssemblyStatement>) -> Result<Vec<AssemblyRegion>, BadSnippet> {
    let mut regions: Vec<AssemblyRegion> = vec![AssemblyRegion::default()];
    for statement in statements {
        let current = regions.last_mut().expect("there is one");
        if let Some(function) = statement.function {
            let last = current.last_code;
            let starts = match last {
                None => current.name.is_empty() || function.is_declared,
                Some(last) => function.is_declared || is_return_text(last) || first_word(last) == "ud2",
            };
            if starts {
                let region = AssemblyRegion {
                    name: function.name,
                    is_function: true,
                    is_declared: function.is_declared,
                    ..AssemblyRegion::default()
                };
                match last {
                    None => *current = AssemblyRegion { statements: std::mem::take(&mut current.statements), ..region },
                    Some(_) => regions.push(region),
                }
            }
        }
        let current = regions.last_mut().expect("there is one");
        current.last_code = Some(statement.code).filter(|code| !code.is_empty()).or(current.last_code);
        current.statements.push(statement);
    }
    require_regions(regions.len(), FEWER_FUNCTIONS)?;
    let mut merged: Vec<AssemblyRegion> = Vec::new();
    for region in regions {
        match merged.last_mut() {
            Some(before) if !region.is_declared && are_connected(before, &region) => {
                before.statements.extend(region.statements);
            }
            _ => merged.push(region),
        }
    }
    if merged.len() > 1 {
        merged.retain(|region| region.statements.iter().any(|statement| !statement.code.is_empty()));
    }
    if merged.is_empty() {
        merged.push(AssemblyRegion::default());
    }
    Ok(merged)
}

/// Whether one region uses a label of the other.
fn are_connected(one: &AssemblyRegion, other: &AssemblyRegion) -> bool {
    let uses = |from: &AssemblyRegion, to: &AssemblyRegion| {
        let labels: BTreeSet<&str> = to.statements.iter().flat_map(|statement| names_in(statement.labels)).collect();
        from.statements.iter().any(|statement| names_in(statement.code).any(|name| labels.contains(name)))
    };
    uses(one, other) || uses(other, one)
}

/// The statements of marked regions.
fn select_marked<'a>(
    marked: &'a [MarkedRegion],
    statements: &[AssemblyStatement<'a>],
    dropped: &mut Vec<DroppedLine>,
) -> Vec<AssemblyRegion<'a>> {
    let is_in =
        |region: &MarkedRegion, statement: &AssemblyStatement| region.lines.contains(&(statement.line as usize - 1));
    for statement in statements.iter().filter(|statement| !statement.code.is_empty()) {
        if !marked.iter().any(|region| is_in(region, statement)) && !markers::is_part_of_mark(statement.code) {
            dropped.push(DroppedLine::new_code(statement.line, statement.code, markers::OUTSIDE));
        }
    }
    let region = |marked: &'a MarkedRegion| AssemblyRegion {
        name: if marked.name.is_empty() { marked.source } else { &marked.name },
        statements: statements.iter().filter(|statement| is_in(marked, statement)).cloned().collect(),
        ..AssemblyRegion::default()
    };
    marked.iter().map(region).collect()
}

/// Drops the return at the end of a function, and what fills the space after it.
fn drop_return(region: &mut AssemblyRegion, dropped: &mut Vec<DroppedLine>) {
    if !region.is_function && !ends_like_function(region) {
        return;
    }
    let code: Vec<usize> = (0..region.statements.len()).filter(|at| !region.statements[*at].code.is_empty()).collect();
    let padding = code.iter().rev().take_while(|at| is_padding_text(region.statements[**at].code)).count();
    let (before, padding) = code.split_at(code.len() - padding);
    let Some(&last) = before.last() else { return };
    if !is_end_text(region.statements[last].code) {
        return;
    }
    for &at in padding {
        let statement = &mut region.statements[at];
        dropped.push(DroppedLine::new_noise(statement.line, statement.code, "it fills the space after the code"));
        statement.code = "";
    }
    let statement = &mut region.statements[last];
    if is_return_text(statement.code) {
        dropped.push(DroppedLine::new_code(statement.line, statement.code, RETURN_DROPPED));
        statement.code = "";
    }
}

/// Whether code without a name is a function's: lines with a return at their end, which nothing
/// before it prepares.
fn ends_like_function(region: &AssemblyRegion) -> bool {
    let code: Vec<&AssemblyStatement> =
        region.statements.iter().filter(|statement| !statement.code.is_empty()).collect();
    let code = &code[..code.len() - code.iter().rev().take_while(|statement| is_padding_text(statement.code)).count()];
    let [first, .., before, last] = code else { return false };
    let prepares = |statement: &&AssemblyStatement| {
        let word = first_word(statement.code);
        word.starts_with("call") || is_return_text(statement.code)
    };
    is_return_text(last.code)
        && first.line != last.line
        && !first_word(before.code).starts_with("push")
        && !code[..code.len() - 1].iter().any(prepares)
}

/// Assembles a region. Lines and columns are those of the whole text.
fn build_region(
    region: &AssemblyRegion,
    dialect: CodeDialect,
    init: Option<&str>,
    (own, shared): (&[DataStatement], Option<&SnippetData>),
) -> Result<RegionCode, BadSnippet> {
    let mut written = PlacedText::default();
    let used: BTreeSet<&str> = region.statements.iter().flat_map(|statement| names_in(statement.code)).collect();
    let odd_labels = find_odd_labels(&region.statements);
    for statement in &region.statements {
        if region.is_function && is_return_text(statement.code) {
            let remedy = format!("{WHOLE_TEXT}, or paste only a part without returns, such as its loop");
            return Err(BadSnippet { expected: Some(remedy), ..middle_return_error(statement.at) });
        }
        // Its return would be dropped, if it is in the text.
        if region.is_function && first_word(statement.code).starts_with("call") {
            let remedy = format!("{WHOLE_TEXT}, or leave this line out");
            return Err(BadSnippet { expected: Some(remedy), ..refuse_call(statement.at, statement.code) });
        }
        // Names of functions may have characters that only their assembler knows.
        let is_used = !region.is_function || names_in(statement.labels).any(|name| used.contains(name));
        let labels = if is_used { statement.labels } else { "" };
        let text = [labels, statement.code].map(str::trim).join(" ");
        let text = rename_labels(&text, &odd_labels);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let line = written.line_mut(statement.line);
        if !line.is_empty() {
            line.push(';');
        }
        let blanks = (statement.at.column as usize - 1).saturating_sub(line.chars().count());
        line.push_str(&" ".repeat(blanks));
        line.push_str(text);
    }
    let own_syntax = CodeDialect { syntax: region_syntax(region)?, ..dialect };
    let dialect = own_syntax.or_syntax(dialect.syntax);
    let data = find_data(own, &used, dialect.mode)?;
    let listing = match data.as_ref().or(shared) {
        Some(data) => written.assemble_with_data(dialect, data)?,
        None => written.assemble(dialect)?,
    };
    let init = init.unwrap_or_default().to_string();
    Ok(RegionCode { listing, text: written.to_clean_text(), init, data, ..RegionCode::default() })
}

/// The data of a text. Data that no code uses may be anything; init code may use what can be read.
fn find_data(
    statements: &[DataStatement],
    used: &BTreeSet<&str>,
    mode: CodeMode,
) -> Result<Option<SnippetData>, BadSnippet> {
    let is_used = statements.iter().flat_map(data_names).any(|name| used.contains(name));
    match read_data(statements, mode) {
        Ok(data) => Ok(Some(data).filter(|data| !data.labels.is_empty())),
        Err(error) if is_used => Err(error),
        Err(_) => Ok(None),
    }
}

/// Labels with characters that only their assembler knows, such as `$LL4@sum`.
fn find_odd_labels<'a>(statements: &[AssemblyStatement<'a>]) -> BTreeSet<&'a str> {
    let labels = statements.iter().flat_map(|statement| names_in(statement.labels));
    labels.filter(|label| label.contains(['$', '@', '?'])).collect()
}

/// A text with plain names in place of odd labels. Columns stay.
fn rename_labels(text: &str, odd: &BTreeSet<&str>) -> String {
    let mut renamed = text.to_string();
    for name in names_in(text).filter(|name| odd.contains(name)) {
        let at = name.as_ptr() as usize - text.as_ptr() as usize;
        renamed.replace_range(at..at + name.len(), &name.replace(['$', '@', '?'], "_"));
    }
    renamed
}

/// The syntax that directives set for a region.
fn region_syntax(region: &AssemblyRegion) -> Result<Option<InstructionSyntax>, BadSnippet> {
    let mut code = region.statements.iter().filter(|statement| !statement.code.is_empty());
    let Some(first) = code.next() else { return Ok(None) };
    match code.find(|statement| statement.syntax != first.syntax) {
        Some(other) => {
            let remedy = "paste the parts on their own, or assemble the text with --assembler as";
            Err(other.at.error_expecting("the syntax changes inside of the code", remedy))
        }
        None => Ok(first.syntax),
    }
}
