//! AT&T syntax: `addl $1, 8(%rax,%rbx,4)`.
//!
//! Statements are read into what the Intel parser makes of its own: the operands in Intel's order, and the size that a
//! suffix gives on the operand in memory. What is then chosen and encoded is the same for both. Not read: far jumps and
//! calls (`ljmp`, `lcall`), and two immediates in one instruction (`extrq`, `insertq`) other than those of `enter`.

mod names;

use super::cursor::Cursor;
use super::expression::Linear;
use super::fit::fit;
use super::lexer::{Kind, Position, Token};
use super::operand::{Keywords, Operand, Place, Value, memory};
use super::registers::named;
use super::statement::Statement;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;
use names::Name;

/// Whether a text is plainly AT&T syntax: a register after `%`, or a number after `$`, neither of which Intel's has.
pub(super) fn is_plain(tokens: &[Token]) -> bool {
    tokens.windows(2).any(|pair| match (&pair[0].kind, &pair[1].kind) {
        (Kind::Punct('%'), Kind::Word) => named(&pair[1].text).is_some(),
        (Kind::Punct('$'), Kind::Number(_)) => pair[0].at.line == pair[1].at.line,
        _ => false,
    })
}

impl Cursor<'_> {
    /// Reads the operands of a statement whose mnemonic and prefixes are read, and finds the instruction's Intel name.
    pub(super) fn att_operands(&mut self, mut statement: Statement) -> Result<Statement, BadSnippet> {
        let branch = is_branch(&statement.mnemonic);
        self.operands(&mut statement, |cursor| cursor.att_operand(branch))?;
        if !statement.mnemonic.starts_with("enter") {
            statement.operands.reverse();
        }
        translated(statement)
    }

    fn att_operand(&mut self, branch: bool) -> Result<Operand, BadSnippet> {
        let at = self.peek().at;
        let mut decorators = self.decorators();
        if !decorators.is_empty() && self.at_operand_end() {
            return Ok(Operand { value: Value::Nothing, at, decorators });
        }
        let indirect = self.at_punct('*');
        if indirect {
            self.take();
        }
        let value = self.att_value(at, branch && !indirect)?;
        decorators.extend(self.decorators());
        if branch && !indirect && matches!(value, Value::Register(_)) {
            return Err(at.error_expecting("an indirect jump or call has a `*`", "such as jmp *%rax"));
        }
        // Masks are registers: `{%k1}`.
        for (text, _) in &mut decorators {
            text.retain(|c| c != '%');
        }
        Ok(Operand { value, at, decorators })
    }

    fn att_value(&mut self, at: Position, target: bool) -> Result<Value, BadSnippet> {
        if self.at_punct('$') {
            self.take();
            let Linear { symbol, constant, .. } = self.att_expression()?;
            return Ok(Value::Constant(Place { symbol, constant, width: None }));
        }
        let mut segment = Register::None;
        if self.at_punct('%') {
            let (register, _) = self.att_register()?;
            if !self.at_punct(':') {
                return Ok(Value::Register(register));
            }
            let colon = self.take().at;
            if !register.is_segment_register() {
                return Err(colon.error_expecting("this is not a segment register", "one of %fs and %gs"));
            }
            segment = register;
        }
        let mut linear = if self.at_address() { Linear::default() } else { self.att_expression()? };
        let plain = !self.at_punct('(');
        if !plain {
            self.take();
            if self.att_registers(&mut linear)? {
                return Ok(Value::Register(Register::DX));
            }
        }
        if plain && target {
            return Ok(Value::Constant(Place {
                symbol: linear.symbol,
                constant: linear.constant,
                width: None,
            }));
        }
        memory(linear, segment, &Keywords::default(), at)
    }

    /// A number, a label, or a sum of them. The Intel parser takes a bare name of a register for one.
    fn att_expression(&mut self) -> Result<Linear, BadSnippet> {
        let linear = self.expression(false)?;
        match linear.registers[..] {
            [] => Ok(linear),
            [(register, _, at, _), ..] => {
                let name = format!("{register:?}").to_lowercase();
                let message = format!("`{name}` is a register, which has a `%` in AT&T syntax");
                Err(at.error_expecting(message, format!("write %{name}, or read it with --syntax intel")))
            }
        }
    }

    /// Whether an address without displacement begins here: `(`, and a register or a comma in it.
    fn at_address(&self) -> bool {
        self.at_punct('(') && matches!(self.peek_second().kind, Kind::Punct('%' | ','))
    }

    fn att_register(&mut self) -> Result<(Register, Position), BadSnippet> {
        let percent = self.take().at;
        if self.peek().kind != Kind::Word || named(&self.peek().text).is_none() {
            return Err(self.unexpected("a register"));
        }
        let linear = self.name()?;
        match linear.registers[..] {
            [(register, ..)] => Ok((register, percent)),
            _ => Err(percent.error("this is not a register")),
        }
    }

    /// Reads `base,index,scale)` into an address that has no registers yet; true where it is the port `(%dx)` instead.
    fn att_registers(&mut self, linear: &mut Linear) -> Result<bool, BadSnippet> {
        let found = &mut linear.registers;
        let mut scaled = false;
        if self.at_punct('%') {
            let (base, at) = self.att_register()?;
            if base == Register::DX && self.at_punct(')') {
                self.take();
                return Ok(true);
            }
            found.push((base, 1, at, false));
        }
        if self.at_punct(',') {
            self.take();
            if self.at_punct('%') {
                let (index, at) = self.att_register()?;
                found.push((index, 1, at, true));
                scaled = true;
            }
            if self.at_punct(',') {
                self.take();
                let Kind::Number(scale) = self.peek().kind else { return Err(self.unexpected("a scale")) };
                let at = self.take().at;
                match found.last_mut().filter(|_| scaled) {
                    Some(index) => index.1 = scale,
                    None => {
                        return Err(at.error_expecting("there is no index to scale", "such as (%rax,%rbx,4)"));
                    }
                }
            }
        }
        if !self.at_punct(')') {
            return Err(self.unexpected("`)`"));
        }
        self.take();
        Ok(false)
    }
}

/// Whether an operand without a sigil is a place in the code.
fn is_branch(mnemonic: &str) -> bool {
    let jump = mnemonic.starts_with('j') || mnemonic.starts_with("loop") || mnemonic == "xbegin";
    jump || matches!(mnemonic, "call" | "callq")
}

/// The first meaning of the mnemonic that the operands fit. Where none does, the Intel parser says what is wrong.
fn translated(statement: Statement) -> Result<Statement, BadSnippet> {
    let mut meanings = Vec::new();
    for name in names::meanings(&statement.mnemonic) {
        meanings.push(meaning(&statement, &name));
    }
    let fits = |one: &Result<Statement, BadSnippet>| one.as_ref().is_ok_and(|one| fit(one).is_ok());
    match meanings.iter().position(fits) {
        Some(index) => meanings.swap_remove(index),
        None => meanings.pop().unwrap_or(Ok(statement)),
    }
}

fn meaning(statement: &Statement, name: &Name) -> Result<Statement, BadSnippet> {
    let mut found = Statement { mnemonic: name.mnemonic.clone(), ..statement.clone() };
    if swaps(&found.mnemonic, &found.operands)
        && let Some(other) = names::other_direction(&found.mnemonic)
    {
        found.mnemonic = other.to_string();
    }
    let Some(size) = name.size else { return Ok(found) };
    for operand in &mut found.operands {
        match &mut operand.value {
            Value::Memory(memory) if !found.mnemonic.starts_with("lea") => {
                memory.size = memory.size.or(Some(size))
            }
            Value::Register(register) if name.registers && contradicts(&name.mnemonic, *register, size) => {
                let text = format!("`%{register:?}` does not have the size of the suffix").to_lowercase();
                return Err(operand.at.error_expecting(text, format!("a register of {size} bytes")));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Whether a register is of another size than the suffix says. A count, a port and the target of `crc32` have their own.
fn contradicts(mnemonic: &str, register: Register, size: u32) -> bool {
    let own = matches!(register, Register::CL | Register::DX) || mnemonic == "crc32";
    register.is_gpr() && register.size() != size as usize && !own
}

/// Whether AT&T's name of an x87 subtraction or division means the other direction: where the destination is not the top.
fn swaps(mnemonic: &str, operands: &[Operand]) -> bool {
    let registers: Vec<Register> = operands
        .iter()
        .filter_map(|operand| match operand.value {
            Value::Register(register) => Some(register),
            _ => None,
        })
        .collect();
    match registers[..] {
        [] => operands.is_empty(),
        [_] => mnemonic.ends_with('p'),
        [destination, ..] => destination != Register::ST0 || mnemonic.ends_with('p'),
    }
}
