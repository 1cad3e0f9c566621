//! A cursor over the tokens of a snippet.

use super::CodeMode;
use super::lexer::{Token, TokenKind};
use cyclescope_core::error::BadSnippet;

/// Cursor over tokens.
pub(super) struct TokenCursor<'a> {
    tokens: &'a [Token],
    next: usize,
    mode: CodeMode,
}

impl<'a> TokenCursor<'a> {
    /// Starts before the first token; the last one must be [`TokenKind::End`].
    pub(super) fn new(tokens: &'a [Token], mode: CodeMode) -> TokenCursor<'a> {
        TokenCursor { tokens, next: 0, mode }
    }

    /// The mode that the text is assembled for.
    pub(super) fn mode(&self) -> CodeMode {
        self.mode
    }

    /// Whether all tokens have been taken.
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

    /// Error for a next token that does not belong here.
    pub(super) fn unexpected_token(&self, expected: &str) -> BadSnippet {
        let token = self.peek();
        let message = match token.kind {
            TokenKind::End => String::from("the instruction ends too early"),
            _ => format!("`{}` does not belong here", token.text),
        };
        token.at.error_expecting(message, format!("{expected} was expected"))
    }
}
