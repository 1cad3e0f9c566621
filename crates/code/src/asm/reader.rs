//! Tokens to statements: labels, prefixes, the mnemonic and its operands.

use super::att;
use super::cursor::Cursor;
use super::lexer::{Kind, Position, tokens};
use super::registers::named;
use super::statement::{Item, Prefix, Statement, Syntax};
use cyclescope_core::error::BadSnippet;

/// Reads a whole snippet.
pub(super) fn items(text: &str, syntax: Option<Syntax>) -> Result<Vec<Item>, BadSnippet> {
    let tokens = tokens(text)?;
    let recognized = || if att::is_plain(&tokens) { Syntax::Att } else { Syntax::Intel };
    let syntax = syntax.unwrap_or_else(recognized);
    let mut cursor = Cursor::new(&tokens);
    let mut items = Vec::new();
    while !cursor.at_end() {
        match cursor.peek().kind {
            Kind::End => drop(cursor.take()),
            Kind::Word if cursor.peek_second().kind == Kind::Punct(':') => {
                let label = cursor.take();
                cursor.take();
                if named(&label.text).is_some() {
                    return Err(label.at.error(format!("`{}` is a register, not a label", label.text)));
                }
                items.push(Item::Label(label.text, label.at));
            }
            Kind::Number(number) if cursor.peek_second().kind == Kind::Punct(':') => {
                let label = cursor.take();
                cursor.take();
                let number = u32::try_from(number).map_err(|_| label.at.error("this label is too large"))?;
                items.push(Item::Local(number));
            }
            _ => items.push(Item::Statement(cursor.statement(syntax)?)),
        }
    }
    Ok(items)
}

impl Cursor<'_> {
    fn statement(&mut self, syntax: Syntax) -> Result<Statement, BadSnippet> {
        let mut prefixes = Vec::new();
        loop {
            let token = self.peek().clone();
            match &token.kind {
                Kind::Decorator(text) => {
                    prefixes.push((hint(text, token.at)?, token.at));
                    self.take();
                }
                Kind::Word => match prefix(&token.text) {
                    Some(prefix) if self.peek_second().kind == Kind::Word => {
                        prefixes.push((prefix, token.at));
                        self.take();
                    }
                    Some(_) if token.text.len() > 2 => {
                        let what = format!("the prefix `{}` has no instruction", token.text);
                        return Err(token.at.error_expecting(what, "an instruction after it"));
                    }
                    _ => break,
                },
                _ => return Err(self.unexpected("an instruction")),
            }
        }
        let mnemonic = self.take();
        let mut statement = Statement {
            mnemonic: mnemonic.text.to_ascii_lowercase(),
            at: mnemonic.at,
            prefixes,
            operands: Vec::new(),
            decorators: Vec::new(),
        };
        match syntax {
            Syntax::Intel => self.operands(&mut statement, Cursor::operand)?,
            Syntax::Att => return self.att_operands(statement),
        }
        Ok(statement)
    }
}

fn prefix(word: &str) -> Option<Prefix> {
    Some(match word.to_ascii_lowercase().as_str() {
        "lock" => Prefix::Lock,
        "rep" | "repe" | "repz" => Prefix::Rep,
        "repne" | "repnz" => Prefix::Repne,
        "xacquire" => Prefix::Xacquire,
        "xrelease" => Prefix::Xrelease,
        "bnd" => Prefix::Bnd,
        "notrack" => Prefix::Notrack,
        "data16" => Prefix::Data(16),
        "data64" => Prefix::Data(64),
        "addr32" => Prefix::Addr32,
        other => Prefix::Segment(named(other).filter(|r| r.is_segment_register())?),
    })
}

fn hint(text: &str, at: Position) -> Result<Prefix, BadSnippet> {
    Ok(match text {
        "vex" | "vex2" => Prefix::Vex,
        "vex3" => Prefix::Vex3,
        "evex" => Prefix::Evex,
        "load" => Prefix::Load,
        "store" => Prefix::Store,
        "disp8" => Prefix::Disp8,
        "disp32" => Prefix::Disp32,
        _ => {
            return Err(at.error_expecting(
                format!("`{{{text}}}` is not an encoding hint"),
                "one of {vex}, {vex3}, {evex}, {load}, {store}, {disp8}, {disp32}",
            ));
        }
    })
}
