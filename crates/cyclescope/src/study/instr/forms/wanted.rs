//! A form that a survey measures.

use crate::asm::forms::Form;

/// A form, and what to find out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedForm {
    /// The form.
    pub form: Form,
    /// Whether its latencies are wanted.
    pub latency: bool,
    /// Whether its reciprocal throughput is wanted. It is measured in any case, for a latency is judged by it.
    pub throughput: bool,
    /// Machine code that runs before each program's own.
    pub init: Vec<u8>,
}

impl From<Form> for WantedForm {
    fn from(form: Form) -> WantedForm {
        WantedForm { form, latency: true, throughput: true, init: Vec::new() }
    }
}
