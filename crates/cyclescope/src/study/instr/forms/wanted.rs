//! A form that a survey measures.

use super::constants::Constant;
use super::operands::Anatomy;
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
    /// The constant that it is measured with, and no other; none for the general one and others beside it.
    pub constant: Option<Constant>,
}

impl WantedForm {
    /// The form, taken apart, with the constant that is wanted; `None` where it has no such instance.
    pub fn anatomy(&self) -> Option<Anatomy> {
        let anatomy = Anatomy::of(self.form)?;
        match self.constant {
            Some(constant) => anatomy.with(constant),
            None => Some(anatomy),
        }
    }
}

impl From<Form> for WantedForm {
    fn from(form: Form) -> WantedForm {
        WantedForm { form, latency: true, throughput: true, init: Vec::new(), constant: None }
    }
}
