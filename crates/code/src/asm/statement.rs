//! One written instruction, in either syntax.

use super::CodeMode;
use super::cursor::TokenCursor;
use super::lexer::{TextPosition, TokenKind};
use super::operand::{Operand, OperandValue};
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// Assembly syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSyntax {
    /// Intel's: `add dword ptr [rax+8], 1`.
    Intel,
    /// AT&T's: `addl $1, 8(%rax)`.
    Att,
}

/// Meaning of a prefix word or an encoding hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementPrefix {
    Lock,
    Rep,
    Repne,
    Xacquire,
    Xrelease,
    Bnd,
    Notrack,
    Segment(Register),
    /// `data16` or `data64`: operands of this many bits.
    Data(u32),
    /// `addr32` or `addr16`: addresses of this many bits.
    Addr(u32),
    Vex,
    Vex3,
    Evex,
    Load,
    Store,
    Disp8,
    Disp32,
}

/// One written instruction.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    /// The mode that it is assembled for.
    pub(super) mode: CodeMode,
    pub(super) mnemonic: String,
    pub(super) at: TextPosition,
    pub(super) prefixes: Vec<(StatementPrefix, TextPosition)>,
    pub(super) operands: Vec<Operand>,
    /// `{...}` as a separate operand.
    pub(super) decorators: Vec<(String, TextPosition)>,
}

/// Item of a snippet, in order.
#[derive(Debug, Clone)]
pub(super) enum SnippetItem {
    Label(String, TextPosition),
    Local(u32),
    Statement(Statement),
}

impl TokenCursor<'_> {
    /// Reads the operands of a statement to its end, each with `operand`.
    pub(super) fn read_operands(
        &mut self,
        statement: &mut Statement,
        mut operand: impl FnMut(&mut Self) -> Result<Operand, BadSnippet>,
    ) -> Result<(), BadSnippet> {
        while self.peek().kind != TokenKind::End {
            let operand = operand(self)?;
            match operand.value {
                OperandValue::Nothing => statement.decorators.extend(operand.decorators),
                _ => statement.operands.push(operand),
            }
            match self.peek().kind {
                TokenKind::End => break,
                TokenKind::Punct(',') => {
                    self.take_token();
                    if self.peek().kind == TokenKind::End {
                        return Err(self.unexpected_token("an operand"));
                    }
                }
                _ => return Err(self.unexpected_token("a comma or the end of the instruction")),
            }
        }
        Ok(())
    }
}
