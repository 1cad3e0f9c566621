//! Walks over a snippet's tokens.

use super::lexer::{Token, TokenKind};
use cyclescope_core::error::BadSnippet;

/// Walks over the tokens.
pub(super) struct TokenCursor<'a> {
    tokens: &'a [Token],
    next: usize,
}

impl<'a> TokenCursor<'a> {
    /// Before the first of the tokens, which end with [`TokenKind::End`].
    pub(super) fn new(tokens: &'a [Token]) -> TokenCursor<'a> {
        TokenCursor { tokens, next: 0 }
    }

    /// Whether all tokens were taken.
    pub(super) fn is_at_end(&self) -> bool {
        self.next >= self.tokens.len()
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    pub(super) fn peek_second(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)]
    }

    pub(super) fn take_token(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    pub(super) fn is_at_punct(&self, punct: char) -> bool {
        self.peek().kind == TokenKind::Punct(punct)
    }

    pub(super) fn is_at_operand_end(&self) -> bool {
        matches!(self.peek().kind, TokenKind::End | TokenKind::Punct(','))
    }

    /// The error that something else than the next token belongs here.
    pub(super) fn unexpected_token(&self, expected: &str) -> BadSnippet {
        let token = self.peek();
        let message = match token.kind {
            TokenKind::End => String::from("the instruction ends too early"),
            _ => format!("`{}` does not belong here", token.text),
        };
        token.at.error_expecting(message, format!("{expected} was expected"))
    }
}
