//! From statements to bytes: places labels, chooses branch lengths, and encodes.
//!
//! Branches start short and only grow, so that the layout settles.

use super::CodeMode;
use super::expression::CodeSymbol;
use super::instruction_builder::LabelFixup;
use super::instruction_choice::{ChosenInstruction, choose_instruction};
use super::lexer::TextPosition;
use super::listing::Listing;
use super::operand::{OperandValue, SymbolicConstant};
use super::snippet_data::SnippetData;
use super::snippet_reader::read_items;
use super::statement::{InstructionSyntax, SnippetItem, Statement};
use super::suggest;
use cyclescope_core::error::BadSnippet;
use iced_x86::{Encoder, Instruction, Register};
use std::collections::HashMap;

/// Assembles text. `;` and line ends separate statements; `#` and `//` start comments. The syntax
/// is Intel's, or AT&T's if a register follows a `%` or a number follows a `$`.
///
/// An empty text gives a snippet without bytes.
pub fn parse_assembly(text: &str) -> Result<Listing, BadSnippet> {
    assemble_text(text, CodeMode::default(), None, None)
}

/// Assembles text in this syntax.
pub fn parse_with_syntax(text: &str, syntax: InstructionSyntax) -> Result<Listing, BadSnippet> {
    assemble_text(text, CodeMode::default(), Some(syntax), None)
}

/// Assembles text for a mode, in this syntax if it is known.
pub fn parse_for_mode(text: &str, mode: CodeMode, syntax: Option<InstructionSyntax>) -> Result<Listing, BadSnippet> {
    assemble_text(text, mode, syntax, None)
}

/// Assembles text for the mode of this data, whose labels it may use, at
/// [`DATA_BASE`](super::DATA_BASE).
pub fn parse_with_data(
    text: &str,
    syntax: Option<InstructionSyntax>,
    data: &SnippetData,
) -> Result<Listing, BadSnippet> {
    assemble_text(text, data.mode, syntax, Some(data))
}

fn assemble_text(
    text: &str,
    mode: CodeMode,
    syntax: Option<InstructionSyntax>,
    data: Option<&SnippetData>,
) -> Result<Listing, BadSnippet> {
    let mut layout = AssemblyDraft { mode, data, ..AssemblyDraft::default() };
    let mut statements = Vec::new();
    for item in read_items(text, mode, syntax)? {
        match item {
            SnippetItem::Label(name, at) => {
                if layout.labels.insert(name.clone(), statements.len()).is_some() {
                    return Err(at.error(format!("the label `{name}` already exists")));
                }
            }
            SnippetItem::Local(number) => layout.locals.push((number, statements.len())),
            SnippetItem::Statement(statement) => statements.push(statement),
        }
    }
    for (number, statement) in statements.iter().enumerate() {
        layout.check_symbols(statement, number)?;
        let statement = &layout.address_data(statement);
        let fit = choose_instruction(statement)?;
        layout.refuse_number_of_label(statement, &fit.fixup)?;
        let place = fixup_target(&fit.fixup);
        let at = place.and_then(|p| p.symbol.as_ref()).map(|(_, at)| *at);
        let blame = at.or(statement.operands.first().map(|o| o.at)).unwrap_or(statement.at);
        let length = encode_instruction(&fit, &fit.instruction, 0, blame)?.len() as u64;
        layout.lines.push(DraftLine { instruction: fit.instruction, fit, at: statement.at, blame, length });
    }
    layout.grow_branches()?;
    layout.encode_lines()
}

struct DraftLine {
    fit: ChosenInstruction,
    instruction: Instruction,
    at: TextPosition,
    /// Position for an error about an unreachable target.
    blame: TextPosition,
    length: u64,
}

#[derive(Default)]
struct AssemblyDraft<'a> {
    mode: CodeMode,
    /// Data whose labels the text may use.
    data: Option<&'a SnippetData>,
    lines: Vec<DraftLine>,
    /// Number of the line after each label.
    labels: HashMap<String, usize>,
    locals: Vec<(u32, usize)>,
}

fn fixup_target(fixup: &LabelFixup) -> Option<&SymbolicConstant> {
    match fixup {
        LabelFixup::None => None,
        LabelFixup::Branch(place) | LabelFixup::Relative(place) | LabelFixup::Data(place) => Some(place),
    }
}

impl AssemblyDraft<'_> {
    fn check_symbols(&self, statement: &Statement, number: usize) -> Result<(), BadSnippet> {
        for operand in &statement.operands {
            let place = match &operand.value {
                OperandValue::Constant(place) => place,
                OperandValue::Memory(memory) => &memory.place,
                _ => continue,
            };
            let Some((symbol, at)) = &place.symbol else { continue };
            match symbol {
                CodeSymbol::Label(name) if !self.labels.contains_key(name) && self.data_address(name).is_none() => {
                    let labels: Vec<&str> = self.labels.keys().map(String::as_str).collect();
                    return Err(suggest::unknown_name(name, *at, &labels));
                }
                CodeSymbol::Local { number: label, ahead }
                    if self.find_local_label(*label, *ahead, number).is_none() =>
                {
                    let side = if *ahead { "ahead" } else { "behind" };
                    return Err(at.error(format!("there is no label `{label}:` {side}")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The statement with addresses of data as assemblers write them: in 64-bit code relative to RIP
    /// if they have no register.
    fn address_data(&self, statement: &Statement) -> Statement {
        let mut addressed = statement.clone();
        for operand in &mut addressed.operands {
            let OperandValue::Memory(memory) = &mut operand.value else { continue };
            let Some((CodeSymbol::Label(name), _)) = &memory.place.symbol else { continue };
            if self.labels.contains_key(name) || self.data_address(name).is_none() {
                continue;
            }
            let may_be_index = match self.mode {
                CodeMode::Bits64 => memory.base.is_gpr64() && memory.base != Register::RSP,
                CodeMode::Bits32 => memory.base.is_gpr32() && memory.base != Register::ESP,
            };
            if memory.base == Register::None && memory.index == Register::None {
                memory.base = if self.mode == CodeMode::Bits64 { Register::RIP } else { Register::None };
            } else if memory.index == Register::None && may_be_index {
                // A base takes the place of the data's register; an index of 1 does not.
                (memory.base, memory.index, memory.scale) = (Register::None, memory.base, 1);
            }
            memory.names_data = true;
        }
        addressed
    }

    /// Address of a label of data.
    fn data_address(&self, label: &str) -> Option<u64> {
        self.data.and_then(|data| data.find_address(label))
    }

    /// Fails if a branch's target is a byte of the snippet and also a label.
    fn refuse_number_of_label(&self, statement: &Statement, fixup: &LabelFixup) -> Result<(), BadSnippet> {
        let LabelFixup::Branch(SymbolicConstant { symbol: None, constant, .. }) = fixup else { return Ok(()) };
        if !self.locals.iter().any(|(label, _)| i128::from(*label) == *constant) {
            return Ok(());
        }
        let at = statement.operands.first().map_or(statement.at, |operand| operand.at);
        let message = format!("`{constant}` may be the label `{constant}:` or byte {constant} of the snippet");
        let remedy =
            format!("write {constant}b for the label behind, {constant}f for the one ahead, or $+N for a byte");
        Err(at.error_expecting(message, remedy))
    }

    /// Number of the line after a numeric label, as referred to from another line.
    fn find_local_label(&self, label: u32, ahead: bool, from: usize) -> Option<usize> {
        let mut lines = self.locals.iter().filter(|(number, _)| *number == label).map(|(_, line)| *line);
        if ahead { lines.find(|line| *line > from) } else { lines.rfind(|line| *line <= from) }
    }

    /// Start addresses of all lines, and the end address.
    fn line_starts(&self) -> Vec<u64> {
        let mut starts = vec![0];
        for line in &self.lines {
            starts.push(starts[starts.len() - 1] + line.length);
        }
        starts
    }

    fn resolve_address(&self, number: usize, starts: &[u64], place: &SymbolicConstant) -> i128 {
        let line = match &place.symbol {
            Some((CodeSymbol::Label(name), _)) if !self.labels.contains_key(name) => {
                return self.data_address(name).map_or(0, i128::from) + place.constant;
            }
            Some((CodeSymbol::Label(name), _)) => self.labels.get(name).copied(),
            Some((CodeSymbol::Local { number: label, ahead }, _)) => self.find_local_label(*label, *ahead, number),
            Some((CodeSymbol::Here, _)) => Some(number),
            None => None,
        };
        line.map_or(0, |line| i128::from(starts[line])) + place.constant
    }

    /// Makes branches longer until all of them reach their targets.
    fn grow_branches(&mut self) -> Result<(), BadSnippet> {
        loop {
            let starts = self.line_starts();
            let mut grown = Vec::new();
            for (number, line) in self.lines.iter().enumerate() {
                let LabelFixup::Branch(place) = &line.fit.fixup else { continue };
                let to = self.resolve_address(number, &starts, place);
                let end = i128::from(starts[starts.len() - 1]);
                let movable = line.fit.far_reach.is_some() && line.instruction.code() == line.fit.instruction.code();
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
                return self.check_targets(&starts);
            }
            for number in grown {
                let line = &mut self.lines[number];
                line.instruction = line.fit.far_reach.unwrap_or(line.instruction);
                line.length = encode_instruction(&line.fit, &line.instruction, 0, line.blame)?.len() as u64;
            }
        }
    }

    /// Fails if a branch leads into an instruction.
    fn check_targets(&self, starts: &[u64]) -> Result<(), BadSnippet> {
        for (number, line) in self.lines.iter().enumerate() {
            let LabelFixup::Branch(place) = &line.fit.fixup else { continue };
            let to = self.resolve_address(number, starts, place);
            if starts.binary_search_by(|start| i128::from(*start).cmp(&to)).is_err() {
                let message = format!("this branch leads to byte {to}, inside an instruction");
                return Err(line
                    .blame
                    .error_expecting(message, "write a label before the instruction, and its name here"));
            }
        }
        Ok(())
    }

    fn encode_lines(&self) -> Result<Listing, BadSnippet> {
        let starts = self.line_starts();
        let mut bytes = Vec::new();
        let mut positions = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let mut instruction = line.instruction;
            match &line.fit.fixup {
                LabelFixup::None => {}
                LabelFixup::Branch(place) => {
                    let to = self.resolve_address(number, &starts, place);
                    match self.mode {
                        CodeMode::Bits64 => instruction.set_near_branch64(to as u64),
                        CodeMode::Bits32 => instruction.set_near_branch32(to as u32),
                    }
                }
                LabelFixup::Data(place) => {
                    let to = self.resolve_address(number, &starts, place);
                    instruction.set_memory_displacement64(to as u64);
                }
                LabelFixup::Relative(place) => {
                    // A number without a symbol is the displacement itself, relative to the next
                    // instruction.
                    let from = if place.symbol.is_none() { i128::from(starts[number + 1]) } else { 0 };
                    let to = from + self.resolve_address(number, &starts, place);
                    instruction.set_memory_displacement64(to as u64);
                }
            }
            bytes.extend(encode_instruction(&line.fit, &instruction, starts[number], line.blame)?);
            positions.push((starts[number], line.at));
        }
        Ok(Listing::from_parts(bytes, &positions, self.mode))
    }
}

fn encode_instruction(
    fit: &ChosenInstruction,
    instruction: &Instruction,
    ip: u64,
    at: TextPosition,
) -> Result<Vec<u8>, BadSnippet> {
    let mut encoder = Encoder::new(CodeMode::from_instruction(instruction).bits());
    encoder.set_prevent_vex2(fit.long_vex);
    match encoder.encode(instruction, ip) {
        Ok(_) => Ok(encoder.take_buffer()),
        Err(_) => Err(at.error("the target is out of reach of this instruction")),
    }
}
