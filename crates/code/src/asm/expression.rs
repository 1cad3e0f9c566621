//! Constant expressions and addresses, read as linear forms.

use super::cursor::TokenCursor;
use super::lexer::{TextPosition, TokenKind};
use super::registers::find_register;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// Deeper nesting of parentheses is rejected, so that hostile text cannot exhaust the stack.
const DEEPEST_NESTING: u32 = 64;

/// Symbolic position in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CodeSymbol {
    /// A named label.
    Label(String),
    /// The nearest numeric label, ahead or behind.
    Local { number: u32, ahead: bool },
    /// `$`: the start of the instruction.
    Here,
}

/// Registers with factors, plus a symbol and a constant.
#[derive(Debug, Clone, Default)]
pub(super) struct LinearForm {
    pub(super) registers: Vec<(Register, i128, TextPosition, bool)>,
    pub(super) symbol: Option<(CodeSymbol, TextPosition)>,
    pub(super) constant: i128,
}

impl LinearForm {
    fn is_constant(&self) -> bool {
        self.registers.is_empty() && self.symbol.is_none()
    }

    /// Adds `sign` times another form.
    pub(super) fn add_scaled(
        mut self,
        other: LinearForm,
        sign: i128,
        at: TextPosition,
    ) -> Result<LinearForm, BadSnippet> {
        if sign < 0
            && let Some(place) = other.registers.first().map(|r| r.2).or(other.symbol.as_ref().map(|(_, place)| *place))
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

    fn multiply_by(mut self, other: LinearForm, at: TextPosition) -> Result<LinearForm, BadSnippet> {
        if self.is_constant() && !other.is_constant() {
            return other.multiply_by(self, at);
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

    fn divide_by(mut self, other: &LinearForm, at: TextPosition) -> Result<LinearForm, BadSnippet> {
        if !self.is_constant() || !other.is_constant() {
            return Err(at.error("only constants can be divided"));
        }
        self.constant = self.constant.checked_div(other.constant).ok_or_else(|| at.error("division by zero"))?;
        Ok(self)
    }
}

impl TokenCursor<'_> {
    /// Reads a sum; `in_address` only affects the error message.
    pub(super) fn read_expression(&mut self, in_address: bool) -> Result<LinearForm, BadSnippet> {
        self.read_sum(in_address, 0)
    }

    fn read_sum(&mut self, in_address: bool, depth: u32) -> Result<LinearForm, BadSnippet> {
        let mut left = self.read_product(in_address, depth)?;
        loop {
            let sign = match self.peek().kind {
                TokenKind::Punct('+') => 1,
                TokenKind::Punct('-') => -1,
                _ => return Ok(left),
            };
            let at = self.take_token().at;
            left = left.add_scaled(self.read_product(in_address, depth)?, sign, at)?;
        }
    }

    fn read_product(&mut self, in_address: bool, depth: u32) -> Result<LinearForm, BadSnippet> {
        let mut left = self.read_factor(in_address, depth)?;
        loop {
            let times = match self.peek().kind {
                TokenKind::Punct('*') => true,
                TokenKind::Punct('/') => false,
                _ => return Ok(left),
            };
            let at = self.take_token().at;
            let right = self.read_factor(in_address, depth)?;
            left = if times { left.multiply_by(right, at)? } else { left.divide_by(&right, at)? };
        }
    }

    fn read_factor(&mut self, in_address: bool, depth: u32) -> Result<LinearForm, BadSnippet> {
        let token = self.peek().clone();
        if depth > DEEPEST_NESTING {
            return Err(token.at.error("this expression is nested too deeply"));
        }
        match token.kind {
            TokenKind::Number(constant) => {
                self.take_token();
                Ok(LinearForm { constant, ..LinearForm::default() })
            }
            TokenKind::Local { number, ahead } => {
                self.take_token();
                Ok(symbol_form(CodeSymbol::Local { number, ahead }, token.at))
            }
            TokenKind::Punct('$') => {
                self.take_token();
                Ok(symbol_form(CodeSymbol::Here, token.at))
            }
            TokenKind::Punct('-') => {
                self.take_token();
                LinearForm::default().add_scaled(self.read_factor(in_address, depth + 1)?, -1, token.at)
            }
            TokenKind::Punct('+') => {
                self.take_token();
                self.read_factor(in_address, depth + 1)
            }
            TokenKind::Punct('(') => {
                self.take_token();
                let inside = self.read_sum(in_address, depth + 1)?;
                if !self.is_at_punct(')') {
                    return Err(token.at.error_expecting("this `(` is not closed", "a `)` after it"));
                }
                self.take_token();
                Ok(inside)
            }
            TokenKind::Word => self.read_name(),
            _ => Err(self.unexpected_token(if in_address { "a register or a number" } else { "an operand" })),
        }
    }

    /// Reads a register or a position in the code.
    pub(super) fn read_name(&mut self) -> Result<LinearForm, BadSnippet> {
        let token = self.take_token();
        if token.text == "." {
            return Ok(symbol_form(CodeSymbol::Here, token.at));
        }
        let Some(register) = find_register(&token.text) else {
            return Ok(symbol_form(CodeSymbol::Label(token.text), token.at));
        };
        let register = if token.text.eq_ignore_ascii_case("st") { self.read_stack_register()? } else { register };
        Ok(LinearForm { registers: vec![(register, 1, token.at, false)], ..LinearForm::default() })
    }

    /// Reads the `(1)` of `st(1)`.
    fn read_stack_register(&mut self) -> Result<Register, BadSnippet> {
        if !self.is_at_punct('(') {
            return Ok(Register::ST0);
        }
        self.take_token();
        let number = self.take_token();
        let TokenKind::Number(n @ 0..=7) = number.kind else {
            return Err(number.at.error_expecting("this x87 register does not exist", "st(0) to st(7)"));
        };
        if !self.is_at_punct(')') {
            return Err(self.unexpected_token("`)`"));
        }
        self.take_token();
        Ok(Register::ST0 + n as u32)
    }
}

fn symbol_form(symbol: CodeSymbol, at: TextPosition) -> LinearForm {
    LinearForm { symbol: Some((symbol, at)), ..LinearForm::default() }
}
