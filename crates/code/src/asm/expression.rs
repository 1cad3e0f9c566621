//! Constant expressions and addresses, as linear forms.

use super::cursor::Cursor;
use super::lexer::{Kind, Position};
use super::registers::named;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// Deeper parentheses are refused, so that hostile text cannot exhaust the stack.
const DEEPEST: u32 = 64;

/// A name for a place in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Symbol {
    /// A named label.
    Label(String),
    /// The nearest numeric label ahead or behind.
    Local { number: u32, ahead: bool },
    /// `$`: the start of the instruction.
    Here,
}

/// Registers with factors, a symbol and a constant.
#[derive(Debug, Clone, Default)]
pub(super) struct Linear {
    pub(super) registers: Vec<(Register, i128, Position, bool)>,
    pub(super) symbol: Option<(Symbol, Position)>,
    pub(super) constant: i128,
}

impl Linear {
    fn is_constant(&self) -> bool {
        self.registers.is_empty() && self.symbol.is_none()
    }

    /// The sum with `sign` times another one.
    pub(super) fn plus(mut self, other: Linear, sign: i128, at: Position) -> Result<Linear, BadSnippet> {
        if sign < 0
            && let Some(place) =
                other.registers.first().map(|r| r.2).or(other.symbol.as_ref().map(|(_, place)| *place))
        {
            return Err(place.error("only a constant can be subtracted"));
        }
        let constant = other.constant.checked_mul(sign).and_then(|c| self.constant.checked_add(c));
        self.constant = constant.ok_or_else(|| at.error("this constant is too large"))?;
        self.registers.extend(other.registers);
        match (&self.symbol, other.symbol) {
            (Some(_), Some((_, place))) => return Err(place.error("places in the code cannot be added")),
            (None, Some(symbol)) => self.symbol = Some(symbol),
            _ => {}
        }
        Ok(self)
    }

    fn times(mut self, other: Linear, at: Position) -> Result<Linear, BadSnippet> {
        if self.is_constant() && !other.is_constant() {
            return other.times(self, at);
        }
        if !other.is_constant() || self.symbol.is_some() {
            return Err(at.error("only a register and a constant, or two constants, can be multiplied"));
        }
        let too_large = || at.error("this constant is too large");
        for (_, factor, _, scaled) in &mut self.registers {
            *factor = factor.checked_mul(other.constant).ok_or_else(too_large)?;
            *scaled = true;
        }
        self.constant = self.constant.checked_mul(other.constant).ok_or_else(too_large)?;
        Ok(self)
    }

    fn over(mut self, other: &Linear, at: Position) -> Result<Linear, BadSnippet> {
        if !self.is_constant() || !other.is_constant() {
            return Err(at.error("only constants can be divided"));
        }
        self.constant =
            self.constant.checked_div(other.constant).ok_or_else(|| at.error("division by zero"))?;
        Ok(self)
    }
}

impl Cursor<'_> {
    /// Reads a sum; `in_address` only words the error.
    pub(super) fn expression(&mut self, in_address: bool) -> Result<Linear, BadSnippet> {
        self.sum(in_address, 0)
    }

    fn sum(&mut self, in_address: bool, depth: u32) -> Result<Linear, BadSnippet> {
        let mut left = self.product(in_address, depth)?;
        loop {
            let sign = match self.peek().kind {
                Kind::Punct('+') => 1,
                Kind::Punct('-') => -1,
                _ => return Ok(left),
            };
            let at = self.take().at;
            left = left.plus(self.product(in_address, depth)?, sign, at)?;
        }
    }

    fn product(&mut self, in_address: bool, depth: u32) -> Result<Linear, BadSnippet> {
        let mut left = self.factor(in_address, depth)?;
        loop {
            let times = match self.peek().kind {
                Kind::Punct('*') => true,
                Kind::Punct('/') => false,
                _ => return Ok(left),
            };
            let at = self.take().at;
            let right = self.factor(in_address, depth)?;
            left = if times { left.times(right, at)? } else { left.over(&right, at)? };
        }
    }

    fn factor(&mut self, in_address: bool, depth: u32) -> Result<Linear, BadSnippet> {
        let token = self.peek().clone();
        if depth > DEEPEST {
            return Err(token.at.error("this expression is nested too deeply"));
        }
        match token.kind {
            Kind::Number(constant) => {
                self.take();
                Ok(Linear { constant, ..Linear::default() })
            }
            Kind::Local { number, ahead } => {
                self.take();
                Ok(place(Symbol::Local { number, ahead }, token.at))
            }
            Kind::Punct('$') => {
                self.take();
                Ok(place(Symbol::Here, token.at))
            }
            Kind::Punct('-') => {
                self.take();
                Linear::default().plus(self.factor(in_address, depth + 1)?, -1, token.at)
            }
            Kind::Punct('+') => {
                self.take();
                self.factor(in_address, depth + 1)
            }
            Kind::Punct('(') => {
                self.take();
                let inside = self.sum(in_address, depth + 1)?;
                if !self.at_punct(')') {
                    return Err(token.at.error_expecting("this `(` is not closed", "a `)` after it"));
                }
                self.take();
                Ok(inside)
            }
            Kind::Word => self.name(),
            _ => Err(self.unexpected(if in_address { "a register or a number" } else { "an operand" })),
        }
    }

    /// A register or a place in the code.
    pub(super) fn name(&mut self) -> Result<Linear, BadSnippet> {
        let token = self.take();
        if token.text == "." {
            return Ok(place(Symbol::Here, token.at));
        }
        let Some(register) = named(&token.text) else {
            return Ok(place(Symbol::Label(token.text), token.at));
        };
        let register = if token.text.eq_ignore_ascii_case("st") { self.stack_register()? } else { register };
        Ok(Linear { registers: vec![(register, 1, token.at, false)], ..Linear::default() })
    }

    /// The `(1)` of `st(1)`.
    fn stack_register(&mut self) -> Result<Register, BadSnippet> {
        if !self.at_punct('(') {
            return Ok(Register::ST0);
        }
        self.take();
        let number = self.take();
        let Kind::Number(n @ 0..=7) = number.kind else {
            return Err(number.at.error_expecting("there is no such x87 register", "st(0) to st(7)"));
        };
        if !self.at_punct(')') {
            return Err(self.unexpected("`)`"));
        }
        self.take();
        Ok(Register::ST0 + n as u32)
    }
}

fn place(symbol: Symbol, at: Position) -> Linear {
    Linear { symbol: Some((symbol, at)), ..Linear::default() }
}
