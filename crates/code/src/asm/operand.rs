//! Written operands: registers, constants, memory references and their decorators.
//!
//! Every expression, in brackets or not, is read as a linear form: registers with factors, one
//! symbol, a constant. So `[8+rax*2+rbx]`, `8[rbx+rax*2]` and `[rbx][rax*2+8]` are equal.

use super::CodeMode;
use super::cursor::TokenCursor;
use super::expression::{CodeSymbol, LinearForm};
use super::lexer::{TextPosition, TokenKind};
use super::registers::find_register;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// One operand with its position.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) value: OperandValue,
    pub(super) at: TextPosition,
    /// `{k1}`, `{z}`, `{1to16}`, `{rn-sae}` after it.
    pub(super) decorators: Vec<(String, TextPosition)>,
}

/// An operand.
#[derive(Debug, Clone)]
pub(super) enum OperandValue {
    /// A register.
    Register(Register),
    /// The first register of a group, such as `zmm4+3`; the number counts the others.
    Group(Register, u32),
    /// A constant or, for branches, a position.
    Constant(SymbolicConstant),
    /// Memory.
    Memory(MemoryReference),
    /// Only decorators, such as `{sae}` as a separate operand.
    Nothing,
}

/// A constant, with a symbol if it is a position in the code.
#[derive(Debug, Clone, Default)]
pub(super) struct SymbolicConstant {
    pub(super) symbol: Option<(CodeSymbol, TextPosition)>,
    pub(super) constant: i128,
    /// `short` (8) or `near` (32), if written.
    pub(super) width: Option<u32>,
}

/// A memory reference.
#[derive(Debug, Clone)]
pub(super) struct MemoryReference {
    pub(super) segment: Register,
    pub(super) base: Register,
    pub(super) index: Register,
    pub(super) scale: u32,
    pub(super) place: SymbolicConstant,
    /// Bytes named by a size keyword.
    pub(super) size: Option<u32>,
    pub(super) broadcast: bool,
    /// Whether `far` was written.
    pub(super) far: bool,
    /// Whether its place is a label of data.
    pub(super) names_data: bool,
}

const SIZE_KEYWORDS: [(&str, u32); 16] = [
    ("byte", 1),
    ("word", 2),
    ("dword", 4),
    ("fword", 6),
    ("pword", 6),
    ("qword", 8),
    ("mmword", 8),
    ("tbyte", 10),
    ("tword", 10),
    ("oword", 16),
    ("xmmword", 16),
    ("yword", 32),
    ("ymmword", 32),
    ("zword", 64),
    ("zmmword", 64),
    ("dqword", 16),
];

/// Bytes that a size keyword means.
pub(super) fn size_bytes(keyword: &str) -> Option<u32> {
    SIZE_KEYWORDS.iter().find(|(name, _)| *name == keyword).map(|(_, bytes)| *bytes)
}

/// Size keyword for a number of bytes.
pub(super) fn size_name(bytes: u32) -> Option<&'static str> {
    SIZE_KEYWORDS.iter().find(|(_, size)| *size == bytes).map(|(name, _)| *name)
}

/// Keywords written before an operand.
#[derive(Default)]
pub(super) struct OperandKeywords {
    size: Option<u32>,
    broadcast: bool,
    far: bool,
    width: Option<u32>,
    memory: Option<TextPosition>,
}

impl TokenCursor<'_> {
    /// Reads one operand with its decorators.
    pub(super) fn read_operand(&mut self) -> Result<Operand, BadSnippet> {
        let at = self.peek().at;
        let mut decorators = self.read_decorators();
        if !decorators.is_empty() && self.is_at_operand_end() {
            return Ok(Operand { value: OperandValue::Nothing, at, decorators });
        }
        let keywords = self.read_keywords();
        let value = self.read_value(at, &keywords)?;
        decorators.extend(self.read_decorators());
        if let (Some(keyword), OperandValue::Register(_) | OperandValue::Group(..)) = (keywords.memory, &value) {
            return Err(keyword.error_expecting("a size does not go with a register", "memory, as in dword ptr [rax]"));
        }
        Ok(Operand { value, at, decorators })
    }

    pub(super) fn read_decorators(&mut self) -> Vec<(String, TextPosition)> {
        let mut decorators = Vec::new();
        while let TokenKind::Decorator(text) = &self.peek().kind {
            decorators.push((text.clone(), self.peek().at));
            self.take_token();
        }
        decorators
    }

    fn read_keywords(&mut self) -> OperandKeywords {
        let mut found = OperandKeywords::default();
        while self.peek().kind == TokenKind::Word {
            let (word, at) = (self.peek().text.to_ascii_lowercase(), self.peek().at);
            match (word.as_str(), size_bytes(&word)) {
                (_, Some(bytes)) => found.size = Some(bytes),
                ("ptr", _) => {}
                ("bcst", _) => found.broadcast = true,
                ("far", _) => found.far = true,
                ("short", _) => found.width = Some(8),
                ("near", _) => found.width = Some(32),
                _ => break,
            }
            if !matches!(word.as_str(), "short" | "near" | "far") {
                found.memory = Some(at);
            }
            self.take_token();
        }
        found
    }

    fn read_value(&mut self, at: TextPosition, keywords: &OperandKeywords) -> Result<OperandValue, BadSnippet> {
        let mut segment = Register::None;
        if self.peek().kind == TokenKind::Word && self.peek_second().kind == TokenKind::Punct(':') {
            segment = self.read_segment()?;
        }
        let mut outside = LinearForm::default();
        let bare = !self.is_at_punct('[');
        if bare {
            outside = self.read_expression(false)?;
        }
        let mut inside: Option<LinearForm> = None;
        while self.is_at_punct('[') {
            let (more, override_inside) = self.read_brackets()?;
            if override_inside != Register::None {
                segment = override_inside;
            }
            inside = Some(match inside {
                Some(first) => first.add_scaled(more, 1, at)?,
                None => more,
            });
        }
        match inside {
            Some(inside) => {
                if let Some((register, _, place, _)) = outside.registers.first() {
                    let message = format!("`{register:?}` cannot be before a bracket").to_lowercase();
                    return Err(place.error_expecting(message, "write it inside the brackets"));
                }
                build_memory_reference(inside.add_scaled(outside, 1, at)?, segment, keywords, (at, self.mode()))
            }
            None if segment != Register::None || keywords.memory.is_some() => {
                if outside.registers.is_empty() {
                    build_memory_reference(outside, segment, keywords, (at, self.mode()))
                } else {
                    bare_value(outside, keywords, at)
                }
            }
            None => bare_value(outside, keywords, at),
        }
    }

    fn read_segment(&mut self) -> Result<Register, BadSnippet> {
        let token = self.take_token();
        let register = find_register(&token.text).filter(|r| r.is_segment_register());
        self.take_token();
        register.ok_or_else(|| {
            token
                .at
                .error_expecting(format!("`{}` is not a segment register", token.text), "one of cs, ds, es, fs, gs, ss")
        })
    }

    /// Reads `[...]` from the bracket on; also returns the segment if it is written inside.
    fn read_brackets(&mut self) -> Result<(LinearForm, Register), BadSnippet> {
        let open = self.take_token().at;
        let mut segment = Register::None;
        if self.peek().kind == TokenKind::Word && self.peek_second().kind == TokenKind::Punct(':') {
            segment = self.read_segment()?;
        }
        let mut relative = false;
        if self.peek().kind == TokenKind::Word
            && self.peek_second().kind != TokenKind::Punct(']')
            && matches!(self.peek().text.to_ascii_lowercase().as_str(), "rel" | "abs")
        {
            relative = self.take_token().text.eq_ignore_ascii_case("rel");
        }
        let mut linear = self.read_expression(true)?;
        if relative {
            linear.registers.push((Register::RIP, 1, open, false));
        }
        if !self.is_at_punct(']') {
            return Err(
                if matches!(self.peek().kind, TokenKind::End | TokenKind::Punct(',') | TokenKind::Decorator(_)) {
                    open.error_expecting("this `[` is not closed", "a `]` belongs at the end of the address")
                } else {
                    self.unexpected_token("an operator or `]`")
                },
            );
        }
        self.take_token();
        Ok((linear, segment))
    }
}

fn bare_value(linear: LinearForm, keywords: &OperandKeywords, at: TextPosition) -> Result<OperandValue, BadSnippet> {
    match linear.registers[..] {
        [] => Ok(OperandValue::Constant(SymbolicConstant {
            symbol: linear.symbol,
            constant: linear.constant,
            width: keywords.width,
        })),
        [(register, 1, _, _)] if linear.symbol.is_none() => match linear.constant {
            0 => Ok(OperandValue::Register(register)),
            others @ (1 | 3) => Ok(OperandValue::Group(register, others as u32)),
            _ => Err(at.error_expecting("registers add up only inside an address", "brackets, as in [rax+8]")),
        },
        _ => Err(at.error_expecting("registers add up only inside an address", "brackets, as in [rax+rbx]")),
    }
}

/// Builds a memory reference to this address.
pub(super) fn build_memory_reference(
    linear: LinearForm,
    segment: Register,
    keywords: &OperandKeywords,
    (at, mode): (TextPosition, CodeMode),
) -> Result<OperandValue, BadSnippet> {
    let (mut base, mut index, mut scale) = (Register::None, Register::None, 1);
    for &(register, factor, place, scaled) in &linear.registers {
        let vector = register.is_vector_register();
        let (address, expected) = match mode {
            CodeMode::Bits64 => (
                register.is_gpr32() || register.is_gpr64() || register.is_ip(),
                "a 64-bit or 32-bit register, or a vector register as index",
            ),
            CodeMode::Bits32 => (
                register.is_gpr32() || is_short_address(register),
                "a 32-bit register, bx, bp, si or di, or a vector register as index",
            ),
        };
        if !vector && !address {
            return Err(
                place.error_expecting(format!("`{register:?}` cannot be part of an address").to_lowercase(), expected)
            );
        }
        if !matches!(factor, 1 | 2 | 4 | 8) {
            return Err(place.error_expecting(format!("an index cannot be scaled by {factor}"), "1, 2, 4 or 8"));
        }
        if !vector && !scaled && base == Register::None {
            base = register;
        } else if index == Register::None {
            (index, scale) = (register, factor as u32);
        } else {
            return Err(place.error_expecting("too many registers in this address", "a base and an index"));
        }
    }
    settle_stack_pointer(&mut base, &mut index, scale);
    settle_short_address(&mut base, &mut index);
    if let Some(&(register, _, place, _)) = linear.registers.iter().find(|r| is_bad_index(r.0, index, base)) {
        return Err(place.error_expecting(
            format!("`{register:?}` cannot be used that way in an address").to_lowercase(),
            "rsp and rip are never an index, rip has no other register with it, and both registers have the same width",
        ));
    }
    let limit = linear.constant;
    if linear.symbol.is_none() && !(-(1i128 << 63)..1i128 << 64).contains(&limit) {
        return Err(at.error("the displacement does not fit in 64 bits"));
    }
    Ok(OperandValue::Memory(MemoryReference {
        segment,
        base,
        index,
        scale,
        place: SymbolicConstant { symbol: linear.symbol, constant: limit, width: None },
        size: keywords.size,
        broadcast: keywords.broadcast,
        far: keywords.far,
        names_data: false,
    }))
}

/// The stack pointer cannot be an index, but an unscaled pair of registers is symmetric.
fn settle_stack_pointer(base: &mut Register, index: &mut Register, scale: u32) {
    if matches!(*index, Register::RSP | Register::ESP) && scale == 1 {
        std::mem::swap(base, index);
    }
}

/// Whether a register is part of 16-bit addresses.
fn is_short_address(register: Register) -> bool {
    matches!(register, Register::BX | Register::BP | Register::SI | Register::DI)
}

/// A 16-bit address has BX or BP as its base, if it has a base and an index.
fn settle_short_address(base: &mut Register, index: &mut Register) {
    if matches!(*index, Register::BX | Register::BP) && matches!(*base, Register::SI | Register::DI) {
        std::mem::swap(base, index);
    }
}

fn is_bad_index(register: Register, index: Register, base: Register) -> bool {
    let is_index = register == index;
    let mixed =
        !index.is_vector_register() && index != Register::None && base != Register::None && index.size() != base.size();
    let never = matches!(index, Register::RSP | Register::ESP) || index.is_ip() || base.is_ip();
    is_index && (never || mixed)
}
