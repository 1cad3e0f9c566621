//! States: a marker that is dormant, or enabled with some probe behind it.
//!
//! They follow the document on Linux kernel markers: each enabled state does one thing more than the one that it is
//! `over`, so that the difference of their costs is the price of that thing.

use super::source::design::{self, Design, Enabling};

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
    /// Whether a tracer's breakpoint is at the site.
    pub traced: bool,
    /// Of a library's marker: the number of the library's state, and who listens in it. A process has one listener.
    pub library: Option<Library>,
}

/// What a library is switched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// The state's number, as the design's switch takes it.
    pub number: u32,
    /// Who listens: nobody in world 0.
    pub world: u32,
    /// Whether its listener counts, and how often a loop.
    pub hits: Option<u64>,
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

impl Probe {
    /// All of them.
    pub(crate) const ALL: [Probe; 5] =
        [Probe::Empty, Probe::Direct, Probe::Varargs, Probe::Format, Probe::Count];

    /// Its name in `probes.c`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Probe::Empty => "empty",
            Probe::Direct => "direct",
            Probe::Varargs => "varargs",
            Probe::Format => "format",
            Probe::Count => "count",
        }
    }
}

const DORMANT: State = State {
    name: "dormant",
    about: "nobody listens",
    guard: "read-lock",
    probe: Some(Probe::Empty),
    enabled: false,
    over: None,
    traced: false,
    library: None,
};

const fn enabled(name: &'static str, about: &'static str, over: &'static str, probe: Probe) -> State {
    State {
        name,
        about,
        guard: "none",
        probe: Some(probe),
        enabled: true,
        over: Some(over),
        traced: false,
        library: None,
    }
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
pub(crate) fn states(design: &Design) -> Vec<State> {
    let mut states = possible(design);
    states.retain(|state| design.only.is_empty() || design.only.contains(&state.name));
    states
}

/// All states that a design can be in.
fn possible(design: &Design) -> Vec<State> {
    let bare = State { guard: "none", probe: None, ..DORMANT };
    match design.enabling {
        Enabling::Never if design.site.is_empty() => {
            vec![State { name: "base", about: "the loop against a copy of itself", ..bare }]
        }
        Enabling::Never => {
            vec![State { name: "control", about: "something else in the marker's place", ..bare }]
        }
        // It would cost what it costs in the design of ours.
        Enabling::Tracer if design.package.is_some() => vec![bare],
        Enabling::Tracer => vec![
            bare,
            State {
                name: "attached",
                about: "a tracer's breakpoint at the site: a uprobe that counts",
                enabled: true,
                traced: true,
                over: Some("dormant"),
                ..bare
            },
        ],
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
        Enabling::Switch(states) => {
            libraries(states).filter(|(state, _)| state.measured).map(|(_, one)| one).collect()
        }
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

/// The states of a library's marker.
fn libraries(
    states: &'static [design::definition::State],
) -> impl Iterator<Item = (&'static design::definition::State, State)> {
    let bare = State { guard: "none", probe: None, ..DORMANT };
    states.iter().enumerate().map(move |(number, state)| {
        let library = Library { number: number as u32, world: state.world, hits: state.hits };
        let enabled = state.passes && state.hits != Some(0);
        let (name, about, over) = (state.name, state.about, state.over);
        (state, State { name, about, over, enabled, library: Some(library), ..bare })
    })
}

/// The state in which a marker that is enabled, or dormant, as this one is, has its calls counted; none where it calls
/// nothing.
pub(crate) fn counting(design: &Design, state: &State) -> Option<State> {
    match design.enabling {
        _ if state.probe.is_some() => Some(State { probe: Some(Probe::Count), ..*state }),
        Enabling::Switch(_) if state.library.is_some_and(|library| library.hits.is_some()) => Some(*state),
        Enabling::Switch(states) => libraries(states)
            .find(|(listed, one)| !listed.measured && one.enabled == state.enabled)
            .map(|(_, one)| one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::design;

    #[test]
    fn every_step_is_over_a_state_before_it() {
        for design in design::ALL {
            let states = states(design);
            let first = match design.enabling {
                Enabling::Never if design.site.is_empty() => "base",
                Enabling::Never => "control",
                _ => "dormant",
            };
            assert_eq!((states[0].name, states[0].over), (first, None), "{}", design.name);
            for (index, state) in states.iter().enumerate() {
                let before = &states[..index];
                assert!(before.iter().all(|other| other.name != state.name), "{} twice", state.name);
                let over = |over| before.iter().any(|other| other.name == over);
                assert!(state.over.is_none_or(over), "{} of {}", state.name, design.name);
                let counting = counting(design, state);
                let switched = matches!(design.enabling, Enabling::Switch(_)) && design.package.is_none();
                let calls = design.calls() || switched;
                assert_eq!(counting.is_some(), calls, "{} of {}", state.name, design.name);
                assert!(counting.is_none_or(|one| one.enabled == state.enabled));
            }
        }
    }
}
