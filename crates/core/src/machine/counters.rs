//! Performance counters as facts: whether this process may count core cycles, and what prevents it.
//!
//! The crate `events` finds them out. They are not part of [`Machine`](super::Machine), because that
//! can be slow.

use serde::Serialize;

use super::fact::Fact;
use crate::unit::Hertz;

/// Available counters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CounterFacts {
    /// Counter of core cycles in user mode (`PERF_COUNT_HW_CPU_CYCLES`), or why it is missing.
    pub core_cycles: Fact<CycleCounterAccess>,
    /// The kind of reason why user mode cannot read it, as `counters list` names it.
    pub cause: Option<String>,
    /// What would make the counter available.
    pub remedy: Option<String>,
    /// `kernel.perf_event_paranoid`. Above 2, some distributions forbid ordinary users every use.
    pub paranoid: Fact<i32>,
    /// APERF through RDPRU (AMD): actual core cycles, readable in user mode.
    pub rdpru_aperf: Fact<()>,
    /// Events of the `msr` device, which may include `aperf`.
    pub msr_events: Fact<Vec<String>>,
    /// The TSC's rate from the conversion in the perf page.
    pub page_rate: Fact<Hertz>,
}

/// How the core-cycles counter can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CycleCounterAccess {
    /// Whether RDPMC works in user mode (`cap_user_rdpmc`). Otherwise only read(2) does.
    pub rdpmc: bool,
    /// Width of the counter in bits; 0 if RDPMC does not work.
    pub width: u16,
}

#[cfg(test)]
impl CounterFacts {
    /// Facts that are all unknown for this reason.
    pub(crate) fn unknown(why: &str) -> CounterFacts {
        CounterFacts {
            core_cycles: Fact::unknown(why),
            cause: None,
            remedy: None,
            paranoid: Fact::unknown(why),
            rdpru_aperf: Fact::unknown(why),
            msr_events: Fact::unknown(why),
            page_rate: Fact::unknown(why),
        }
    }
}
