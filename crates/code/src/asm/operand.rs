//! Operands as written: registers, constants, memory references and their decorations.
//!
//! Every expression, in brackets or not, is read as a linear form (registers with factors, one symbol, a
//! constant), so that `[8+rax*2+rbx]`, `8[rbx+rax*2]` and `[rbx][rax*2+8]` come out the same.

use super::cursor::Cursor;
use super::expression::{Linear, Symbol};
use super::lexer::{Kind, Position};
use super::registers::named;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// One operand with its place.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    pub(super) value: Value,
    pub(super) at: Position,
    /// `{k1}`, `{z}`, `{1to16}`, `{rn-sae}` behind it.
    pub(super) decorators: Vec<(String, Position)>,
}

/// An operand.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A register.
    Register(Register),
    /// The first register of a group, `zmm4+3`: the number counts the others.
    Group(Register, u32),
    /// A constant or, for branches, a place.
    Constant(Place),
    /// Memory.
    Memory(Memory),
    /// Only decorators, as `{sae}` in its own place.
    Nothing,
}

/// A constant, with a symbol where it is a place in the code.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub(super) symbol: Option<(Symbol, Position)>,
    pub(super) constant: i128,
    /// `short` (8) or `near` (32), where written.
    pub(super) width: Option<u32>,
}

/// A memory reference.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    pub(super) segment: Register,
    pub(super) base: Register,
    pub(super) index: Register,
    pub(super) scale: u32,
    pub(super) place: Place,
    /// Bytes that a size keyword names.
    pub(super) size: Option<u32>,
    pub(super) broadcast: bool,
    /// `far` was written.
    pub(super) far: bool,
}

const SIZES: [(&str, u32); 16] = [
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

/// The bytes that a size keyword means.
pub(super) fn size_bytes(keyword: &str) -> Option<u32> {
    SIZES.iter().find(|(name, _)| *name == keyword).map(|(_, bytes)| *bytes)
}

/// The size keyword for a number of bytes.
pub(super) fn size_name(bytes: u32) -> Option<&'static str> {
    SIZES.iter().find(|(_, size)| *size == bytes).map(|(name, _)| *name)
}

/// What is written before an operand.
#[derive(Default)]
pub(super) struct Keywords {
    size: Option<u32>,
    broadcast: bool,
    far: bool,
    width: Option<u32>,
    memory: Option<Position>,
}

impl Cursor<'_> {
    /// Reads one operand with its decorators.
    pub(super) fn operand(&mut self) -> Result<Operand, BadSnippet> {
        let at = self.peek().at;
        let mut decorators = self.decorators();
        if !decorators.is_empty() && self.at_operand_end() {
            return Ok(Operand { value: Value::Nothing, at, decorators });
        }
        let keywords = self.keywords();
        let value = self.value(at, &keywords)?;
        decorators.extend(self.decorators());
        if let (Some(keyword), Value::Register(_) | Value::Group(..)) = (keywords.memory, &value) {
            return Err(keyword
                .error_expecting("a size does not go with a register", "memory, as in dword ptr [rax]"));
        }
        Ok(Operand { value, at, decorators })
    }

    pub(super) fn decorators(&mut self) -> Vec<(String, Position)> {
        let mut decorators = Vec::new();
        while let Kind::Decorator(text) = &self.peek().kind {
            decorators.push((text.clone(), self.peek().at));
            self.take();
        }
        decorators
    }

    fn keywords(&mut self) -> Keywords {
        let mut found = Keywords::default();
        while self.peek().kind == Kind::Word {
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
            self.take();
        }
        found
    }

    fn value(&mut self, at: Position, keywords: &Keywords) -> Result<Value, BadSnippet> {
        let mut segment = Register::None;
        if self.peek().kind == Kind::Word && self.peek_second().kind == Kind::Punct(':') {
            segment = self.segment()?;
        }
        let mut outside = Linear::default();
        let bare = !self.at_punct('[');
        if bare {
            outside = self.expression(false)?;
        }
        let mut inside: Option<Linear> = None;
        while self.at_punct('[') {
            let (more, override_inside) = self.brackets()?;
            if override_inside != Register::None {
                segment = override_inside;
            }
            inside = Some(match inside {
                Some(first) => first.plus(more, 1, at)?,
                None => more,
            });
        }
        match inside {
            Some(inside) => {
                if let Some((register, _, place, _)) = outside.registers.first() {
                    let message = format!("`{register:?}` cannot be before a bracket").to_lowercase();
                    return Err(place.error_expecting(message, "write it inside the brackets"));
                }
                memory(inside.plus(outside, 1, at)?, segment, keywords, at)
            }
            None if segment != Register::None || keywords.memory.is_some() => {
                if outside.registers.is_empty() {
                    memory(outside, segment, keywords, at)
                } else {
                    bare_value(outside, keywords, at)
                }
            }
            None => bare_value(outside, keywords, at),
        }
    }

    fn segment(&mut self) -> Result<Register, BadSnippet> {
        let token = self.take();
        let register = named(&token.text).filter(|r| r.is_segment_register());
        self.take();
        register.ok_or_else(|| {
            token.at.error_expecting(
                format!("`{}` is not a segment register", token.text),
                "one of cs, ds, es, fs, gs, ss",
            )
        })
    }

    /// `[...]`, read from the bracket on; also the segment where it is written inside.
    fn brackets(&mut self) -> Result<(Linear, Register), BadSnippet> {
        let open = self.take().at;
        let mut segment = Register::None;
        if self.peek().kind == Kind::Word && self.peek_second().kind == Kind::Punct(':') {
            segment = self.segment()?;
        }
        let mut relative = false;
        if self.peek().kind == Kind::Word
            && self.peek_second().kind != Kind::Punct(']')
            && matches!(self.peek().text.to_ascii_lowercase().as_str(), "rel" | "abs")
        {
            relative = self.take().text.eq_ignore_ascii_case("rel");
        }
        let mut linear = self.expression(true)?;
        if relative {
            linear.registers.push((Register::RIP, 1, open, false));
        }
        if !self.at_punct(']') {
            return Err(if matches!(self.peek().kind, Kind::End | Kind::Punct(',') | Kind::Decorator(_)) {
                open.error_expecting("this `[` is not closed", "a `]` belongs at the end of the address")
            } else {
                self.unexpected("an operator or `]`")
            });
        }
        self.take();
        Ok((linear, segment))
    }
}

fn bare_value(linear: Linear, keywords: &Keywords, at: Position) -> Result<Value, BadSnippet> {
    match linear.registers[..] {
        [] => Ok(Value::Constant(Place {
            symbol: linear.symbol,
            constant: linear.constant,
            width: keywords.width,
        })),
        [(register, 1, _, _)] if linear.symbol.is_none() => match linear.constant {
            0 => Ok(Value::Register(register)),
            others @ (1 | 3) => Ok(Value::Group(register, others as u32)),
            _ => {
                Err(at.error_expecting("registers add up only inside an address", "brackets, as in [rax+8]"))
            }
        },
        _ => Err(at.error_expecting("registers add up only inside an address", "brackets, as in [rax+rbx]")),
    }
}

/// A memory reference to this address.
pub(super) fn memory(
    linear: Linear,
    segment: Register,
    keywords: &Keywords,
    at: Position,
) -> Result<Value, BadSnippet> {
    let (mut base, mut index, mut scale) = (Register::None, Register::None, 1);
    for &(register, factor, place, scaled) in &linear.registers {
        let vector = register.is_vector_register();
        let address = register.is_gpr32() || register.is_gpr64() || register.is_ip();
        if !vector && !address {
            return Err(place.error_expecting(
                format!("`{register:?}` cannot be part of an address").to_lowercase(),
                "a 64-bit or 32-bit register, or a vector register as index",
            ));
        }
        if !matches!(factor, 1 | 2 | 4 | 8) {
            return Err(
                place.error_expecting(format!("an index cannot be scaled by {factor}"), "1, 2, 4 or 8")
            );
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
    if let Some(&(register, _, place, _)) = linear.registers.iter().find(|r| bad_index(r.0, index, base)) {
        return Err(place.error_expecting(
            format!("`{register:?}` cannot be used that way in an address").to_lowercase(),
            "rsp and rip are never an index, rip has no other register with it, and both registers have the same width",
        ));
    }
    let limit = linear.constant;
    if linear.symbol.is_none() && !(-(1i128 << 63)..1i128 << 64).contains(&limit) {
        return Err(at.error("the displacement does not fit in 64 bits"));
    }
    Ok(Value::Memory(Memory {
        segment,
        base,
        index,
        scale,
        place: Place { symbol: linear.symbol, constant: limit, width: None },
        size: keywords.size,
        broadcast: keywords.broadcast,
        far: keywords.far,
    }))
}

/// The stack pointer cannot be an index, but an unscaled pair of registers is symmetric.
fn settle_stack_pointer(base: &mut Register, index: &mut Register, scale: u32) {
    if matches!(*index, Register::RSP | Register::ESP) && scale == 1 {
        std::mem::swap(base, index);
    }
}

fn bad_index(register: Register, index: Register, base: Register) -> bool {
    let is_index = register == index;
    let mixed = !index.is_vector_register()
        && index != Register::None
        && base != Register::None
        && index.size() != base.size();
    let never = matches!(index, Register::RSP | Register::ESP) || index.is_ip() || base.is_ip();
    is_index && (never || mixed)
}
