#![no_main]
#![allow(dead_code, unused_imports, reason = "the program itself uses the rest of its modules")]
//! The readers of the command line: machine code with debug information, and texts of options.

#[path = "../../crates/cli/src/args/mod.rs"]
mod args;
#[path = "../../crates/cli/src/input/mod.rs"]
mod input;
#[path = "../../crates/cli/src/output/mod.rs"]
mod output;
#[path = "../../crates/cli/src/process/mod.rs"]
mod process;
#[path = "../../crates/cli/src/session/mod.rs"]
mod session;
#[path = "../../crates/cli/src/studies/mod.rs"]
mod studies;

/// Addresses near the start of the code of small libraries.
const FUNCTION_ADDRESSES: std::ops::Range<u64> = 0x1000..0x1200;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"\x7fELF") {
        for address in FUNCTION_ADDRESSES.step_by(16).chain([0]) {
            let _ = input::debug_info::read_signature(bytes, address, "f");
        }
    } else if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = args::CallTarget::new(text);
        let _ = text.parse::<args::Sweep>();
        let _ = args::template::parse_variant_words(text);
        let _ = args::parse_size(text);
    }
});
