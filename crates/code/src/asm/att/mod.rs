//! AT&T syntax: `addl $1, 8(%rax,%rbx,4)`.
//!
//! Statements are converted to the form that the Intel parser produces. Operands are in Intel's
//! order, and a suffix gives the size of the operand in memory. Choice and encoding are then the
//! same for both syntaxes.
//!
//! Limits: far jumps and calls (`ljmp`, `lcall`) are not supported. Nor are two immediates in one
//! instruction (`extrq`, `insertq`), except those of `enter`.

mod intel_names;

use super::CodeMode;
use super::cursor::TokenCursor;
use super::expression::LinearForm;
use super::instruction_choice::choose_instruction;
use super::lexer::{TextPosition, Token, TokenKind};
use super::mnemonic;
use super::operand::{Operand, OperandKeywords, OperandValue, SymbolicConstant, build_memory_reference};
use super::registers::find_register;
use super::statement::Statement;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;
use intel_names::IntelName;

/// Whether a text is clearly AT&T syntax: a register after `%`, or a number after `$`, which Intel
/// syntax never has.
pub(super) fn is_att_syntax(tokens: &[Token]) -> bool {
    tokens.windows(2).any(|pair| match (&pair[0].kind, &pair[1].kind) {
        (TokenKind::Punct('%'), TokenKind::Word) => find_register(&pair[1].text).is_some(),
        (TokenKind::Punct('$'), TokenKind::Number(_)) => pair[0].at.line == pair[1].at.line,
        _ => false,
    })
}

/// Whether a word in lower case is AT&T's name of an instruction.
pub(crate) fn is_att_mnemonic(word: &str) -> bool {
    let mode = CodeMode::default();
    let names = intel_names::find_intel_names(word, mode);
    names.iter().any(|name| !mnemonic::find_patterns(&name.mnemonic, mode).is_empty())
}

impl TokenCursor<'_> {
    /// Reads the operands of a statement after its mnemonic and prefixes, and finds the
    /// instruction's Intel name.
    pub(super) fn read_att_operands(&mut self, mut statement: Statement) -> Result<Statement, BadSnippet> {
        let branch = is_branch_mnemonic(&statement.mnemonic);
        self.read_operands(&mut statement, |cursor| cursor.read_att_operand(branch))?;
        if !statement.mnemonic.starts_with("enter") {
            statement.operands.reverse();
        }
        translate_statement(statement)
    }

    fn read_att_operand(&mut self, branch: bool) -> Result<Operand, BadSnippet> {
        let at = self.peek().at;
        let mut decorators = self.read_decorators();
        if !decorators.is_empty() && self.is_at_operand_end() {
            return Ok(Operand { value: OperandValue::Nothing, at, decorators });
        }
        let indirect = self.is_at_punct('*');
        if indirect {
            self.take_token();
        }
        let value = self.read_att_value(at, branch && !indirect)?;
        decorators.extend(self.read_decorators());
        if branch && !indirect && matches!(value, OperandValue::Register(_)) {
            return Err(at.error_expecting("an indirect jump or call has a `*`", "such as jmp *%rax"));
        }
        // Masks are registers: `{%k1}`.
        for (text, _) in &mut decorators {
            text.retain(|c| c != '%');
        }
        Ok(Operand { value, at, decorators })
    }

    fn read_att_value(&mut self, at: TextPosition, target: bool) -> Result<OperandValue, BadSnippet> {
        if self.is_at_punct('$') {
            self.take_token();
            let LinearForm { symbol, constant, .. } = self.read_att_expression()?;
            return Ok(OperandValue::Constant(SymbolicConstant { symbol, constant, width: None }));
        }
        let mut segment = Register::None;
        if self.is_at_punct('%') {
            let (register, _) = self.read_att_register()?;
            if !self.is_at_punct(':') {
                return Ok(OperandValue::Register(register));
            }
            let colon = self.take_token().at;
            if !register.is_segment_register() {
                return Err(colon.error_expecting("this is not a segment register", "one of %fs and %gs"));
            }
            segment = register;
        }
        let mut linear = if self.is_at_address() { LinearForm::default() } else { self.read_att_expression()? };
        let plain = !self.is_at_punct('(');
        if !plain {
            self.take_token();
            if self.read_att_address(&mut linear)? {
                return Ok(OperandValue::Register(Register::DX));
            }
        }
        if plain && target {
            return Ok(OperandValue::Constant(SymbolicConstant {
                symbol: linear.symbol,
                constant: linear.constant,
                width: None,
            }));
        }
        build_memory_reference(linear, segment, &OperandKeywords::default(), (at, self.mode()))
    }

    /// Reads a number, a label, or a sum of them. The Intel parser would take a bare register name
    /// as a register.
    fn read_att_expression(&mut self) -> Result<LinearForm, BadSnippet> {
        let linear = self.read_expression(false)?;
        match linear.registers[..] {
            [] => Ok(linear),
            [(register, _, at, _), ..] => {
                let name = format!("{register:?}").to_lowercase();
                let message = format!("`{name}` is a register, which has a `%` in AT&T syntax");
                Err(at.error_expecting(message, format!("write %{name}, or read it with --syntax intel")))
            }
        }
    }

    /// Whether an address without displacement begins here: `(` followed by a register or a comma.
    fn is_at_address(&self) -> bool {
        self.is_at_punct('(') && matches!(self.peek_second().kind, TokenKind::Punct('%' | ','))
    }

    fn read_att_register(&mut self) -> Result<(Register, TextPosition), BadSnippet> {
        let percent = self.take_token().at;
        if self.peek().kind != TokenKind::Word || find_register(&self.peek().text).is_none() {
            return Err(self.unexpected_token("a register"));
        }
        let linear = self.read_name()?;
        match linear.registers[..] {
            [(register, ..)] => Ok((register, percent)),
            _ => Err(percent.error("this is not a register")),
        }
    }

    /// Reads `base,index,scale)` into an address without registers. Returns true for the port
    /// `(%dx)` instead.
    fn read_att_address(&mut self, linear: &mut LinearForm) -> Result<bool, BadSnippet> {
        let found = &mut linear.registers;
        let mut scaled = false;
        if self.is_at_punct('%') {
            let (base, at) = self.read_att_register()?;
            if base == Register::DX && self.is_at_punct(')') {
                self.take_token();
                return Ok(true);
            }
            found.push((base, 1, at, false));
        }
        if self.is_at_punct(',') {
            self.take_token();
            if self.is_at_punct('%') {
                let (index, at) = self.read_att_register()?;
                found.push((index, 1, at, true));
                scaled = true;
            }
            if self.is_at_punct(',') {
                self.take_token();
                let TokenKind::Number(scale) = self.peek().kind else {
                    return Err(self.unexpected_token("a scale"));
                };
                let at = self.take_token().at;
                match found.last_mut().filter(|_| scaled) {
                    Some(index) => index.1 = scale,
                    None => {
                        return Err(at.error_expecting("there is no index to scale", "such as (%rax,%rbx,4)"));
                    }
                }
            }
        }
        if !self.is_at_punct(')') {
            return Err(self.unexpected_token("`)`"));
        }
        self.take_token();
        Ok(false)
    }
}

/// Whether an operand without a sigil is a position in the code.
fn is_branch_mnemonic(mnemonic: &str) -> bool {
    let jump = mnemonic.starts_with('j') || mnemonic.starts_with("loop") || mnemonic == "xbegin";
    jump || matches!(mnemonic, "call" | "callq")
}

/// The first meaning of the mnemonic that the operands fit. If none fits, the Intel parser reports
/// the error.
fn translate_statement(statement: Statement) -> Result<Statement, BadSnippet> {
    let mut meanings = Vec::new();
    for name in intel_names::find_intel_names(&statement.mnemonic, statement.mode) {
        meanings.push(apply_intel_name(&statement, &name));
    }
    let fits = |meaning: &Result<Statement, BadSnippet>| {
        meaning.as_ref().is_ok_and(|meaning| choose_instruction(meaning).is_ok())
    };
    match meanings.iter().position(fits) {
        Some(index) => meanings.swap_remove(index),
        None => meanings.pop().unwrap_or(Ok(statement)),
    }
}

fn apply_intel_name(statement: &Statement, name: &IntelName) -> Result<Statement, BadSnippet> {
    let mut found = Statement { mnemonic: name.mnemonic.clone(), ..statement.clone() };
    if swaps_x87_direction(&found.mnemonic, &found.operands)
        && let Some(reversed) = intel_names::reverse_x87_direction(&found.mnemonic)
    {
        found.mnemonic = reversed.to_string();
    }
    let Some(size) = name.size else { return Ok(found) };
    for operand in &mut found.operands {
        match &mut operand.value {
            OperandValue::Memory(memory) if !found.mnemonic.starts_with("lea") => {
                memory.size = memory.size.or(Some(size))
            }
            OperandValue::Register(register)
                if name.registers && contradicts_suffix(&name.mnemonic, *register, size) =>
            {
                let text = format!("`%{register:?}` does not have the size of the suffix").to_lowercase();
                return Err(operand.at.error_expecting(text, format!("a register of {size} bytes")));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Whether a register has a different size than the suffix. A count, a port and the target of
/// `crc32` have their own size.
fn contradicts_suffix(mnemonic: &str, register: Register, size: u32) -> bool {
    let has_own_size = matches!(register, Register::CL | Register::DX) || mnemonic == "crc32";
    register.is_gpr() && register.size() != size as usize && !has_own_size
}

/// Whether AT&T's name of an x87 subtraction or division means the opposite direction: if the
/// destination is not the top.
fn swaps_x87_direction(mnemonic: &str, operands: &[Operand]) -> bool {
    let registers: Vec<Register> = operands
        .iter()
        .filter_map(|operand| match operand.value {
            OperandValue::Register(register) => Some(register),
            _ => None,
        })
        .collect();
    match registers[..] {
        [] => operands.is_empty(),
        [_] => mnemonic.ends_with('p'),
        [destination, ..] => destination != Register::ST0 || mnemonic.ends_with('p'),
    }
}
