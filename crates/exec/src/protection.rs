//! What keeps measured code from the rest of the system: a table, for `doctor` and for tests.

use serde::Serialize;

/// One barrier around measured code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeProtection {
    /// Its name in records.
    pub what: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether it holds here.
    pub holds: bool,
    /// Reason why it does not hold.
    pub why_not: Option<String>,
}
