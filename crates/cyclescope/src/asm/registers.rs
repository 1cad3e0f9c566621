//! Registers by name, and which registers and which vector state instructions touch.

use iced_x86::Register;
use std::collections::HashMap;
use std::sync::LazyLock;

static NAMES: LazyLock<HashMap<String, Register>> = LazyLock::new(|| {
    let mut names: HashMap<String, Register> = Register::values()
        .filter(|r| *r != Register::None && r.size() != 0)
        .map(|r| (format!("{r:?}").to_lowercase(), r))
        .collect();
    for number in 8..16 {
        names.insert(format!("r{number}b"), Register::R8L + (number - 8));
    }
    names.insert(String::from("st"), Register::ST0);
    names
});

/// The register of that name, in any case; `st(1)` is put together by the reader of expressions.
pub(super) fn named(text: &str) -> Option<Register> {
    NAMES.get(text.to_ascii_lowercase().as_str()).copied()
}

/// All register names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.keys().map(String::as_str)
}
