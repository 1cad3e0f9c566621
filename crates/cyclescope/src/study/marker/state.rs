//! States: a marker that is dormant, or enabled with some probe behind it.
//!
//! They follow the document on Linux kernel markers: each enabled state does one thing more than the one that it is
//! `over`, so that the difference of their costs is the price of that thing.

use super::source::design::{Design, Enabling};

/// What a marker may be found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Its name in records and on the command line.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// The guard around the call of the probe.
    pub guard: &'static str,
    /// What is called, if anything.
    pub probe: Option<Probe>,
    /// Whether the marker is enabled.
    pub enabled: bool,
    /// The state that it goes one step further than; none is the loop without the marker.
    pub over: Option<&'static str>,
}

/// What an enabled marker calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe {
    /// Does nothing.
    Empty,
    /// Takes its arguments from where the calling convention has them.
    Direct,
    /// Takes them by `va_arg`, knowing what they are.
    Varargs,
    /// Takes them by `va_arg` as it reads in the format string.
    Format,
    /// Counts how often it is called.
    Count,
}

unsafe extern "C" {
    static mut marker_hits: u64;
}

impl Probe {
    /// All of them.
    pub const ALL: [Probe; 5] = [Probe::Empty, Probe::Direct, Probe::Varargs, Probe::Format, Probe::Count];

    /// Its name in `probes.c`.
    pub fn name(self) -> &'static str {
        match self {
            Probe::Empty => "empty",
            Probe::Direct => "direct",
            Probe::Varargs => "varargs",
            Probe::Format => "format",
            Probe::Count => "count",
        }
    }

    /// The address of what [`Probe::Count`] counts in.
    pub fn hits() -> u64 {
        (&raw const marker_hits) as u64
    }
}

const DORMANT: State = State {
    name: "dormant",
    about: "nobody listens",
    guard: "read-lock",
    probe: Some(Probe::Empty),
    enabled: false,
    over: None,
};

const fn enabled(name: &'static str, about: &'static str, over: &'static str, probe: Probe) -> State {
    State { name, about, guard: "none", probe: Some(probe), enabled: true, over: Some(over) }
}

const fn guarded(state: State) -> State {
    State { guard: "read-lock", ..state }
}

const CALLING: [State; 9] = [
    DORMANT,
    enabled("empty", "a call of an empty probe", "dormant", Probe::Empty),
    enabled("direct", "the probe takes its arguments", "empty", Probe::Direct),
    enabled("varargs", "the probe takes them by va_arg", "direct", Probe::Varargs),
    enabled("format", "the probe reads in a format string what to take", "varargs", Probe::Format),
    guarded(enabled(
        "guarded-empty",
        "an empty probe, a read-side lock around its call",
        "empty",
        Probe::Empty,
    )),
    guarded(enabled("guarded-direct", "arguments, in the lock", "guarded-empty", Probe::Direct)),
    guarded(enabled("guarded-varargs", "va_arg, in the lock", "guarded-direct", Probe::Varargs)),
    guarded(enabled("guarded-format", "a format string, in the lock", "guarded-varargs", Probe::Format)),
];

/// The states of a design, each behind the one that it is over.
pub fn states(design: &Design) -> Vec<State> {
    let bare = State { guard: "none", probe: None, ..DORMANT };
    match design.enabling {
        Enabling::Tracer => vec![bare],
        Enabling::Variable(_) if !design.calls() => vec![
            bare,
            State {
                name: "raised",
                about: "the semaphore is raised, and no breakpoint is there",
                enabled: true,
                over: Some("dormant"),
                ..bare
            },
        ],
        // An empty probe is what it has when it is dormant.
        Enabling::Probe => {
            let over = |over: &'static str| if over == "empty" { "dormant" } else { over };
            let others = CALLING.iter().filter(|state| state.enabled && state.name != "empty");
            let others = others.map(|state| State { over: state.over.map(over), ..*state });
            std::iter::once(State { guard: "none", ..DORMANT }).chain(others).collect()
        }
        _ => CALLING.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::marker::source::design;

    #[test]
    fn every_step_is_over_a_state_before_it() {
        for design in design::ALL {
            let states = states(design);
            assert_eq!((states[0].name, states[0].over), ("dormant", None), "{}", design.name);
            for (index, state) in states.iter().enumerate() {
                let before = &states[..index];
                assert!(before.iter().all(|other| other.name != state.name), "{} twice", state.name);
                let over = |over| before.iter().any(|other| other.name == over);
                assert!(state.over.is_none_or(over), "{} of {}", state.name, design.name);
            }
        }
    }
}
