//! From statements to bytes: places labels, chooses branch lengths, encodes.
//!
//! Branches start short and only ever grow, so that the layout settles.

use super::expression::Symbol;
use super::fit::{Fit, fit};
use super::lexer::Position;
use super::listing::Listing;
use super::operand::{Place, Value};
use super::place::Fixup;
use super::reader::items;
use super::statement::{Item, Statement, Syntax};
use super::suggest;
use cyclescope_core::error::BadSnippet;
use iced_x86::{Encoder, Instruction};
use std::collections::HashMap;

/// Assembles text; `;` and line ends separate statements, `#` and `//` start comments. It is Intel syntax, or AT&T
/// syntax where a register after `%` or a number after `$` shows it.
///
/// The empty text is a snippet of no bytes.
pub fn parse(text: &str) -> Result<Listing, BadSnippet> {
    assemble(text, None)
}

/// Assembles text of this syntax.
pub fn parse_as(text: &str, syntax: Syntax) -> Result<Listing, BadSnippet> {
    assemble(text, Some(syntax))
}

fn assemble(text: &str, syntax: Option<Syntax>) -> Result<Listing, BadSnippet> {
    let mut layout = Layout::default();
    let mut statements = Vec::new();
    for item in items(text, syntax)? {
        match item {
            Item::Label(name, at) => {
                if layout.labels.insert(name.clone(), statements.len()).is_some() {
                    return Err(at.error(format!("the label `{name}` already exists")));
                }
            }
            Item::Local(number) => layout.locals.push((number, statements.len())),
            Item::Statement(statement) => statements.push(statement),
        }
    }
    for (number, statement) in statements.iter().enumerate() {
        layout.check_symbols(statement, number)?;
        let fit = fit(statement)?;
        let place = target(&fit.fixup);
        let at = place.and_then(|p| p.symbol.as_ref()).map(|(_, at)| *at);
        let blame = at.or(statement.operands.first().map(|o| o.at)).unwrap_or(statement.at);
        let length = encode(&fit, &fit.instruction, 0, blame)?.len() as u64;
        layout.lines.push(Line { instruction: fit.instruction, fit, at: statement.at, blame, length });
    }
    layout.settle()?;
    layout.bytes()
}

struct Line {
    fit: Fit,
    instruction: Instruction,
    at: Position,
    /// Where to point when the target is out of reach.
    blame: Position,
    length: u64,
}

#[derive(Default)]
struct Layout {
    lines: Vec<Line>,
    /// Number of the line that follows each label.
    labels: HashMap<String, usize>,
    locals: Vec<(u32, usize)>,
}

fn target(fixup: &Fixup) -> Option<&Place> {
    match fixup {
        Fixup::None => None,
        Fixup::Branch(place) | Fixup::Relative(place) => Some(place),
    }
}

impl Layout {
    fn check_symbols(&self, statement: &Statement, number: usize) -> Result<(), BadSnippet> {
        for operand in &statement.operands {
            let place = match &operand.value {
                Value::Constant(place) => place,
                Value::Memory(memory) => &memory.place,
                _ => continue,
            };
            let Some((symbol, at)) = &place.symbol else { continue };
            match symbol {
                Symbol::Label(name) if !self.labels.contains_key(name) => {
                    let labels: Vec<&str> = self.labels.keys().map(String::as_str).collect();
                    return Err(suggest::unknown_name(name, *at, &labels));
                }
                Symbol::Local { number: label, ahead } if self.local(*label, *ahead, number).is_none() => {
                    let side = if *ahead { "ahead" } else { "behind" };
                    return Err(at.error(format!("there is no label `{label}:` {side}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The line that follows a numeric label, as referred to from another line.
    fn local(&self, label: u32, ahead: bool, from: usize) -> Option<usize> {
        let mut lines = self.locals.iter().filter(|(number, _)| *number == label).map(|(_, line)| *line);
        if ahead { lines.find(|line| *line > from) } else { lines.rfind(|line| *line <= from) }
    }

    /// Start addresses of all lines, and the end.
    fn starts(&self) -> Vec<u64> {
        let mut starts = vec![0];
        for line in &self.lines {
            starts.push(starts[starts.len() - 1] + line.length);
        }
        starts
    }

    fn address(&self, number: usize, starts: &[u64], place: &Place) -> i128 {
        let line = match &place.symbol {
            Some((Symbol::Label(name), _)) => self.labels.get(name).copied(),
            Some((Symbol::Local { number: label, ahead }, _)) => self.local(*label, *ahead, number),
            Some((Symbol::Here, _)) => Some(number),
            None => None,
        };
        line.map_or(0, |line| i128::from(starts[line])) + place.constant
    }

    /// Lets branches grow until all of them reach their targets.
    fn settle(&mut self) -> Result<(), BadSnippet> {
        loop {
            let starts = self.starts();
            let mut grown = Vec::new();
            for (number, line) in self.lines.iter().enumerate() {
                let Fixup::Branch(place) = &line.fit.fixup else { continue };
                let to = self.address(number, &starts, place);
                let end = i128::from(starts[starts.len() - 1]);
                let movable =
                    line.fit.far_reach.is_some() && line.instruction.code() == line.fit.instruction.code();
                let distance = to - i128::from(starts[number + 1]);
                if movable && !(-128..128).contains(&distance) {
                    grown.push(number);
                } else if !(0..=end).contains(&to) && grown.is_empty() {
                    return Err(line.blame.error_expecting(
                        "this branch leaves the snippet",
                        format!("a place between 0 and {end}, or a label"),
                    ));
                }
            }
            if grown.is_empty() {
                return Ok(());
            }
            for number in grown {
                let line = &mut self.lines[number];
                line.instruction = line.fit.far_reach.unwrap_or(line.instruction);
                line.length = encode(&line.fit, &line.instruction, 0, line.blame)?.len() as u64;
            }
        }
    }

    fn bytes(&self) -> Result<Listing, BadSnippet> {
        let starts = self.starts();
        let mut bytes = Vec::new();
        let mut positions = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let mut instruction = line.instruction;
            match &line.fit.fixup {
                Fixup::None => {}
                Fixup::Branch(place) => {
                    instruction.set_near_branch64(self.address(number, &starts, place) as u64);
                }
                Fixup::Relative(place) => {
                    // A number without a symbol is the displacement itself, counted from the next instruction.
                    let from = if place.symbol.is_none() { i128::from(starts[number + 1]) } else { 0 };
                    let to = from + self.address(number, &starts, place);
                    instruction.set_memory_displacement64(to as u64);
                }
            }
            bytes.extend(encode(&line.fit, &instruction, starts[number], line.blame)?);
            positions.push((starts[number], line.at));
        }
        Ok(Listing::from_parts(bytes, &positions))
    }
}

fn encode(fit: &Fit, instruction: &Instruction, ip: u64, at: Position) -> Result<Vec<u8>, BadSnippet> {
    let mut encoder = Encoder::new(64);
    encoder.set_prevent_vex2(fit.long_vex);
    match encoder.encode(instruction, ip) {
        Ok(_) => Ok(encoder.take_buffer()),
        Err(_) => Err(at.error("the target is out of reach of this instruction")),
    }
}
