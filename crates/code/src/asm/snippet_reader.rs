//! Turns tokens into statements: labels, prefixes, the mnemonic and its operands.

use super::CodeMode;
use super::att;
use super::cursor::TokenCursor;
use super::lexer::{TextPosition, TokenKind, split_tokens};
use super::registers::find_register;
use super::statement::{InstructionSyntax, SnippetItem, Statement, StatementPrefix};
use cyclescope_core::error::BadSnippet;

/// Reads a whole snippet.
pub(super) fn read_items(
    text: &str,
    mode: CodeMode,
    syntax: Option<InstructionSyntax>,
) -> Result<Vec<SnippetItem>, BadSnippet> {
    let tokens = split_tokens(text)?;
    let recognized = || if att::is_att_syntax(&tokens) { InstructionSyntax::Att } else { InstructionSyntax::Intel };
    let syntax = syntax.unwrap_or_else(recognized);
    let mut cursor = TokenCursor::new(&tokens, mode);
    let mut items = Vec::new();
    while !cursor.is_at_end() {
        match cursor.peek().kind {
            TokenKind::End => drop(cursor.take_token()),
            TokenKind::Word if cursor.peek_second().kind == TokenKind::Punct(':') => {
                let label = cursor.take_token();
                cursor.take_token();
                if find_register(&label.text).is_some() {
                    return Err(label.at.error(format!("`{}` is a register, not a label", label.text)));
                }
                items.push(SnippetItem::Label(label.text, label.at));
            }
            TokenKind::Number(number) if cursor.peek_second().kind == TokenKind::Punct(':') => {
                let label = cursor.take_token();
                cursor.take_token();
                let number = u32::try_from(number).map_err(|_| label.at.error("this label is too large"))?;
                items.push(SnippetItem::Local(number));
            }
            _ => items.push(SnippetItem::Statement(cursor.read_statement(syntax)?)),
        }
    }
    Ok(items)
}

impl TokenCursor<'_> {
    fn read_statement(&mut self, syntax: InstructionSyntax) -> Result<Statement, BadSnippet> {
        let mut prefixes = Vec::new();
        loop {
            let token = self.peek().clone();
            match &token.kind {
                TokenKind::Decorator(text) => {
                    prefixes.push((parse_hint(text, token.at)?, token.at));
                    self.take_token();
                }
                TokenKind::Word => match parse_prefix(&token.text) {
                    Some(prefix) if self.peek_second().kind == TokenKind::Word => {
                        prefixes.push((prefix, token.at));
                        self.take_token();
                    }
                    Some(_) if token.text.len() > 2 => {
                        let what = format!("the prefix `{}` has no instruction", token.text);
                        return Err(token.at.error_expecting(what, "an instruction after it"));
                    }
                    _ => break,
                },
                _ => return Err(self.unexpected_token("an instruction")),
            }
        }
        let mnemonic = self.take_token();
        let mut statement = Statement {
            mode: self.mode(),
            mnemonic: mnemonic.text.to_ascii_lowercase(),
            at: mnemonic.at,
            prefixes,
            operands: Vec::new(),
            decorators: Vec::new(),
        };
        match syntax {
            InstructionSyntax::Intel => self.read_operands(&mut statement, TokenCursor::read_operand)?,
            InstructionSyntax::Att => return self.read_att_operands(statement),
        }
        Ok(statement)
    }
}

fn parse_prefix(word: &str) -> Option<StatementPrefix> {
    Some(match word.to_ascii_lowercase().as_str() {
        "lock" => StatementPrefix::Lock,
        "rep" | "repe" | "repz" => StatementPrefix::Rep,
        "repne" | "repnz" => StatementPrefix::Repne,
        "xacquire" => StatementPrefix::Xacquire,
        "xrelease" => StatementPrefix::Xrelease,
        "bnd" => StatementPrefix::Bnd,
        "notrack" => StatementPrefix::Notrack,
        "data16" => StatementPrefix::Data(16),
        "data64" => StatementPrefix::Data(64),
        "addr32" => StatementPrefix::Addr(32),
        "addr16" => StatementPrefix::Addr(16),
        other => StatementPrefix::Segment(find_register(other).filter(|r| r.is_segment_register())?),
    })
}

fn parse_hint(text: &str, at: TextPosition) -> Result<StatementPrefix, BadSnippet> {
    Ok(match text {
        "vex" | "vex2" => StatementPrefix::Vex,
        "vex3" => StatementPrefix::Vex3,
        "evex" => StatementPrefix::Evex,
        "load" => StatementPrefix::Load,
        "store" => StatementPrefix::Store,
        "disp8" => StatementPrefix::Disp8,
        "disp32" => StatementPrefix::Disp32,
        _ => {
            return Err(at.error_expecting(
                format!("`{{{text}}}` is not an encoding hint"),
                "one of {vex}, {vex3}, {evex}, {load}, {store}, {disp8}, {disp32}",
            ));
        }
    })
}
