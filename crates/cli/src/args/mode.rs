//! The mode of the measured code, of all commands that take code.

use clap::Args;
use cyclescope::asm::CodeMode;

/// The mode of the measured code.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct ModeArgs {
    /// Mode of the measured code: 64, or 32 for 32-bit code, in which EBX points to the memory of R14
    /// [default: 64]
    #[arg(long, value_name = "BITS", value_parser = parse_bits)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<CodeMode>,
}

impl ModeArgs {
    /// The requested mode, or 64-bit mode.
    pub fn mode(&self) -> CodeMode {
        self.bits.unwrap_or_default()
    }
}

/// Parses the bits of code.
fn parse_bits(text: &str) -> Result<CodeMode, String> {
    let bits = text.trim().parse::<u32>().map_err(|_| "expected 64 or 32".to_string())?;
    CodeMode::try_from(bits)
}
