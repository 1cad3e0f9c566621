//! Assembled code: its bytes, its instructions, and their positions in the text.

use super::CodeMode;
use super::lexer::TextPosition;
use cyclescope_core::error::BadSnippet;
use iced_x86::{CpuidFeature, Decoder, DecoderOptions, Instruction};

/// Assembled code with its instructions.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    mode: CodeMode,
    bytes: Vec<u8>,
    instructions: Vec<Instruction>,
    positions: Vec<TextPosition>,
}

impl Listing {
    /// The mode of the code.
    pub fn mode(&self) -> CodeMode {
        self.mode
    }

    /// Instructions in order; their addresses count from the snippet's start.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Machine code. It runs at any address, because branches and RIP-relative operands are
    /// relative.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Position of an instruction in the text. For machine code without text: line 1 and the byte
    /// from 1.
    pub fn position(&self, instruction: usize) -> Option<TextPosition> {
        self.positions.get(instruction).copied()
    }

    /// Changes the line numbers of all positions.
    pub(crate) fn map_lines(mut self, number: impl Fn(u32) -> u32) -> Listing {
        for position in &mut self.positions {
            position.line = number(position.line);
        }
        self
    }

    /// The same instructions with other bytes, of the same lengths.
    pub(super) fn replace_bytes(&self, bytes: Vec<u8>) -> Listing {
        Listing { positions: self.positions.clone(), ..Listing::from_code(&bytes, self.mode) }
    }

    /// Instructions as Intel-syntax text, one per line, which [`super::parse_assembly`] accepts.
    pub fn text(&self) -> String {
        let lines: Vec<String> = self.instructions.iter().map(super::instruction_text::format_instruction).collect();
        lines.join("\n")
    }

    /// Takes machine code as it is. Bytes that do not decode are kept, because the CPU may know
    /// more than the decoder. The list of instructions then ends with an invalid one.
    pub fn from_bytes(code: &[u8]) -> Listing {
        Listing::from_code(code, CodeMode::default())
    }

    /// The same for code of a mode.
    pub fn from_code(code: &[u8], mode: CodeMode) -> Listing {
        Listing::from_parts(code.to_vec(), &[], mode)
    }

    /// `places` holds the offsets and positions of statements.
    pub(crate) fn from_parts(bytes: Vec<u8>, places: &[(u64, TextPosition)], mode: CodeMode) -> Listing {
        let mut instructions = Vec::new();
        let mut positions = Vec::new();
        let mut decoder = Decoder::with_ip(mode.bits(), &bytes, 0, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            let ip = instruction.ip();
            // One statement can be two instructions (FINIT is WAIT and FNINIT): both get its
            // position.
            let before = places.partition_point(|(start, _)| *start <= ip);
            let by_byte = TextPosition { line: 1, column: ip as u32 + 1 };
            positions.push(before.checked_sub(1).map_or(by_byte, |index| places[index].1));
            instructions.push(instruction);
            if instruction.is_invalid() {
                break;
            }
        }
        Listing { mode, bytes, instructions, positions }
    }
}

/// CPU features that the instruction needs.
pub fn required_features(instruction: &Instruction) -> &'static [CpuidFeature] {
    instruction.cpuid_features()
}

/// Formats bytes in hexadecimal, separated by spaces; [`parse_hex`] reads them.
pub fn to_hex(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

/// Parses machine code in hexadecimal: `4801c0`, `48 01 c0`, `0x48, 0x01, 0xc0` or `\x48\x01\xc0`.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, BadSnippet> {
    let mut bytes = Vec::new();
    for (line, content) in (1..).zip(text.split('\n')) {
        let chars: Vec<char> = content.chars().collect();
        let mut next = 0;
        while next < chars.len() {
            let at = TextPosition { line, column: next as u32 + 1 };
            if chars[next].is_whitespace() || matches!(chars[next], ',' | ';') {
                next += 1;
                continue;
            }
            if matches!(chars[next..], ['0', 'x' | 'X', ..] | ['\\', 'x' | 'X', ..]) {
                next += 2;
            }
            let digits: Vec<u8> = chars[next..].iter().map_while(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
            let end = next + digits.len();
            let separates = |c: &char| c.is_whitespace() || matches!(c, ',' | ';' | '\\');
            if digits.is_empty() || !chars.get(end).is_none_or(separates) {
                let found = chars.get(end).map_or_else(String::new, |c| c.escape_default().to_string());
                let at = TextPosition { line, column: end as u32 + 1 };
                return Err(at.error_expecting(format!("`{found}` is not a hexadecimal digit"), "two digits a byte"));
            }
            if digits.len() % 2 == 1 {
                return Err(at.error_expecting("an odd number of hexadecimal digits", "two digits a byte"));
            }
            bytes.extend(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]));
            next += digits.len();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_code_is_read_in_every_notation() {
        for text in ["4801c0", "48 01 c0", "0x48,0x01, 0xC0", "\\x48\\x01\\xc0", "4801\n c0", "0x4801c0"] {
            assert_eq!(parse_hex(text).as_deref(), Ok(&[0x48, 0x01, 0xc0][..]), "{text}");
        }
        assert_eq!(parse_hex(""), Ok(vec![]));
        let error = |text| parse_hex(text).map_err(|e| (e.line, e.column)).unwrap_err();
        assert_eq!(error("48 0"), (1, 4));
        assert_eq!(error("48\n01 cg"), (2, 5));
        assert_eq!(error("zz"), (1, 1));
        assert_eq!(error("0x"), (1, 3));
    }

    #[test]
    fn undecodable_bytes_are_kept() {
        let listing = Listing::from_bytes(&[0x90, 0x06, 0x90]);
        assert_eq!(listing.bytes(), [0x90, 0x06, 0x90]);
        assert_eq!(listing.instructions().len(), 2);
        assert!(listing.instructions()[1].is_invalid());
        assert_eq!(listing.position(1), Some(TextPosition { line: 1, column: 2 }));
    }
}
