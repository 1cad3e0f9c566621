//! Splits text into tokens, each with its line and column.
//!
//! A statement ends at `;` or at the end of a line, so that several instructions fit on one command
//! line. Comments therefore start with `#` or `//`.

use cyclescope_core::error::BadSnippet;

/// Position in the snippet's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl TextPosition {
    pub(crate) fn error(self, message: impl Into<String>) -> BadSnippet {
        BadSnippet { line: self.line, column: self.column, message: message.into(), expected: None }
    }

    pub(crate) fn error_expecting(self, message: impl Into<String>, expected: impl Into<String>) -> BadSnippet {
        BadSnippet { expected: Some(expected.into()), ..self.error(message) }
    }
}

/// Kind of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name in lower case; `Token::text` keeps the original case for labels.
    Word,
    /// A number.
    Number(i128),
    /// `1b` or `1f`: a numeric label behind or ahead of here.
    Local { number: u32, ahead: bool },
    /// One character of punctuation.
    Punct(char),
    /// `{...}`, its content in lower case without blanks.
    Decorator(String),
    /// `;`, or the end of a line or of the text.
    End,
}

/// A token with its position.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) text: String,
    pub(super) at: TextPosition,
}

/// Splits the text; the last token is always `End`.
pub(super) fn split_tokens(text: &str) -> Result<Vec<Token>, BadSnippet> {
    let mut lexer = Lexer { rest: text.chars().peekable(), at: TextPosition { line: 1, column: 1 } };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next_token()? {
        tokens.push(token);
    }
    tokens.push(Token { kind: TokenKind::End, text: String::new(), at: lexer.at });
    Ok(tokens)
}

struct Lexer<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    at: TextPosition,
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@' | '?')
}

impl Lexer<'_> {
    fn take_character(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.at = TextPosition { line: self.at.line + 1, column: 1 };
        } else {
            self.at.column += 1;
        }
        Some(c)
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(&c) = self.rest.peek() {
            if !keep(c) {
                break;
            }
            taken.push(c);
            self.take_character();
        }
        taken
    }

    fn next_token(&mut self) -> Result<Option<Token>, BadSnippet> {
        self.take_while(|c| c != '\n' && c.is_whitespace());
        let at = self.at;
        let Some(&c) = self.rest.peek() else { return Ok(None) };
        let (kind, text) = match c {
            '#' => return self.skip_comment().map(Some),
            '0'..='9' => {
                let text = self.take_while(is_word_character);
                (parse_number_or_label(&text, at)?, text)
            }
            c if is_word_character(c) => (TokenKind::Word, self.take_while(is_word_character)),
            '{' => (TokenKind::Decorator(self.read_decorator(at)?), String::from("{")),
            '\'' => (TokenKind::Number(self.read_character(at)?), String::from("'")),
            _ => {
                self.take_character();
                match c {
                    '\n' | ';' => (TokenKind::End, c.to_string()),
                    '/' if self.rest.peek() == Some(&'/') => return self.skip_comment().map(Some),
                    '[' | ']' | '(' | ')' | '+' | '-' | '*' | '/' | ',' | ':' | '$' | '%' => {
                        (TokenKind::Punct(c), c.to_string())
                    }
                    '<' => {
                        let expected = "a target such as <f+0x10> needs a listing with addresses, or a label";
                        return Err(at.error_expecting("`<` has no meaning here", expected));
                    }
                    _ => return Err(at.error(format!("`{}` has no meaning here", c.escape_default()))),
                }
            }
        };
        Ok(Some(Token { kind, text, at }))
    }

    fn skip_comment(&mut self) -> Result<Token, BadSnippet> {
        self.take_while(|c| c != '\n');
        let at = self.at;
        self.take_character();
        Ok(Token { kind: TokenKind::End, text: String::new(), at })
    }

    fn read_decorator(&mut self, at: TextPosition) -> Result<String, BadSnippet> {
        self.take_character();
        let inside = self.take_while(|c| !matches!(c, '}' | '\n' | ';' | '{'));
        if self.rest.peek() != Some(&'}') {
            return Err(at.error_expecting("this `{` is not closed", "a `}` belongs here"));
        }
        self.take_character();
        Ok(inside.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase())
    }

    fn read_character(&mut self, at: TextPosition) -> Result<i128, BadSnippet> {
        self.take_character();
        let c = self.take_character().filter(char::is_ascii_graphic);
        match (c, self.rest.peek()) {
            (Some(c), Some('\'')) => {
                self.take_character();
                Ok(c as i128)
            }
            _ => Err(at.error_expecting("this is not a character", "one ASCII character between quotes, like 'a'")),
        }
    }
}

/// Parses `12`, `0x1f`, `1fh`, `0b101`, `0o17`, `1_000`; `1b` and `1f` are numeric labels.
fn parse_number_or_label(text: &str, at: TextPosition) -> Result<TokenKind, BadSnippet> {
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_suffix(['b', 'f'])
        && digits.bytes().all(|b| b.is_ascii_digit())
        && let Ok(number) = digits.parse()
    {
        return Ok(TokenKind::Local { number, ahead: lower.ends_with('f') });
    }
    let plain = lower.replace('_', "");
    let (digits, radix) = match plain.as_bytes() {
        [b'0', b'x', ..] => (&plain[2..], 16),
        [.., b'h'] => (&plain[..plain.len() - 1], 16),
        [b'0', b'b', ..] => (&plain[2..], 2),
        [b'0', b'o', ..] => (&plain[2..], 8),
        _ => (&plain[..], 10),
    };
    let octal_to_some = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    if octal_to_some && digits.bytes().any(|b| b != b'0') {
        return Err(at.error_expecting(
            format!("`{text}` is octal to some assemblers and decimal to others"),
            "write it without leading zeros, or as 0o… or 0x…",
        ));
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) if !digits.starts_with('+') => Ok(TokenKind::Number(i128::from(value))),
        Err(e) if *e.kind() == std::num::IntErrorKind::PosOverflow => {
            Err(at.error(format!("`{text}` does not fit in 64 bits")))
        }
        _ => {
            Err(at
                .error_expecting(format!("`{text}` is not a number"), "numbers look like 12, 0x1f, 1fh, 0b101 or 0o17"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Option<i128> {
        match split_tokens(text).ok()?.first()?.kind {
            TokenKind::Number(n) => Some(n),
            _ => None,
        }
    }

    #[test]
    fn every_number_notation_is_read() {
        for (text, value) in [
            ("255", 255),
            ("0xff", 255),
            ("0FFh", 255),
            ("0b1111_1111", 255),
            ("0o377", 255),
            ("1_000", 1000),
            ("'a'", 97),
            ("0", 0),
            ("18446744073709551615", u64::MAX as i128),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        for text in ["0x", "0xg", "12q", "010", "18446744073709551616", "'ab'", "0b2"] {
            assert!(split_tokens(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numeric_labels_are_not_hexadecimal() {
        assert_eq!(split_tokens("1b").unwrap()[0].kind, TokenKind::Local { number: 1, ahead: false });
        assert_eq!(split_tokens("1f").unwrap()[0].kind, TokenKind::Local { number: 1, ahead: true });
        assert_eq!(number("1fh"), Some(31));
    }

    #[test]
    fn positions_count_characters() {
        let tokens = split_tokens("nop ; é").unwrap_err();
        assert_eq!((tokens.line, tokens.column), (1, 7));
        let tokens = super::split_tokens("nop # c\n  ud2").unwrap();
        assert_eq!(tokens[2].at, TextPosition { line: 2, column: 3 });
    }
}
