//! The call of a measured function, and its caveat.

use crate::result::caveat::{Caveat, CaveatKind};
use crate::result::quantity::Quantity;
use serde::{Deserialize, Serialize};

/// The call of a measured function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The call with its arguments, such as `f(buffer, 1000)`.
    pub text: String,
    /// The call of the function that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus: Option<String>,
    /// The function's declaration, if known.
    pub signature: Option<String>,
    /// The names of the parameters that got the buffer because they had no value.
    pub implied: Vec<String>,
    /// The largest number among the arguments, if the buffer is one too; otherwise 0.
    pub largest: u64,
}

/// Numbers from here on may count bytes of a large buffer.
const LARGE_NUMBER: u64 = 4096;
/// A call that takes fewer core cycles does nothing with a large buffer. A core reads at most two or
/// three times 64 bytes per cycle.
const FEW_CYCLES: f64 = 16.0;

impl CallRecord {
    /// Returns a caveat if the function got a buffer and a large number, and returned after few
    /// cycles.
    pub fn find_caveat(&self, cost: &Quantity) -> Option<Caveat> {
        let high = cost.high.filter(|high| *high < FEW_CYCLES && self.largest >= LARGE_NUMBER)?;
        let text = format!(
            "{} takes at most {high:.1} core cycles, too few to work on data of the size {}",
            self.text, self.largest
        );
        Some(Caveat { code: CaveatKind::ReturnedAtOnce, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::unit::Unit;

    #[test]
    fn call_that_returns_at_once_is_noted() {
        let call = |largest| CallRecord {
            text: "f(buffer, 4096)".into(),
            versus: None,
            signature: None,
            implied: Vec::new(),
            largest,
        };
        let cost = |high| Quantity { value: Some(1.0), low: Some(0.0), high: Some(high), unit: Unit::CoreCycles };
        assert!(call(4096).find_caveat(&cost(3.0)).is_some_and(|caveat| caveat.text.contains("f(buffer, 4096)")));
        assert!(call(4096).find_caveat(&cost(200.0)).is_none());
        assert!(call(64).find_caveat(&cost(3.0)).is_none());
        assert!(call(4096).find_caveat(&Quantity::refused(Unit::CoreCycles)).is_none());
    }
}
