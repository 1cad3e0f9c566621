//! The states of a marker: dormant, or enabled with some probe.
//!
//! They follow the document on Linux kernel markers. Each enabled state does one thing more than
//! the state that it is `over`. The difference of their costs is the price of that thing.

use crate::ProbeKind;
use crate::source::design::{self, Enabling, SiteDesign};

/// A state of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkerState {
    /// Name in records and on the command line.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Guard around the probe call.
    pub guard: &'static str,
    /// The called probe, if any.
    pub probe: Option<ProbeKind>,
    /// Whether the marker is enabled.
    pub enabled: bool,
    /// The state with one step less; `None` for the loop without the marker.
    pub over: Option<&'static str>,
    /// Whether a tracer's breakpoint is at the site.
    pub traced: bool,
    /// For a library's marker, the library's state and its listener. A process has one listener.
    pub library: Option<LibrarySwitch>,
}

/// A state of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibrarySwitch {
    /// Number of the state, as passed to the design's switch.
    pub number: u32,
    /// The listener of this process. World 0 has none.
    pub world: u32,
    /// Expected hits per loop, if its listener counts.
    pub hits: Option<u64>,
}

const DORMANT: MarkerState = MarkerState {
    name: "dormant",
    about: "no listener",
    guard: "read-lock",
    probe: Some(ProbeKind::Empty),
    enabled: false,
    over: None,
    traced: false,
    library: None,
};

const fn enabled_state(name: &'static str, about: &'static str, over: &'static str, probe: ProbeKind) -> MarkerState {
    MarkerState {
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

const fn guarded_state(state: MarkerState) -> MarkerState {
    MarkerState { guard: "read-lock", ..state }
}

const CALLING: [MarkerState; 9] = [
    DORMANT,
    enabled_state("empty", "a call of an empty probe", "dormant", ProbeKind::Empty),
    enabled_state("direct", "the probe reads its arguments", "empty", ProbeKind::Direct),
    enabled_state("varargs", "the probe reads them with va_arg", "direct", ProbeKind::Varargs),
    enabled_state("format", "the probe reads them according to a format string", "varargs", ProbeKind::Format),
    guarded_state(enabled_state(
        "guarded-empty",
        "an empty probe, with a read-side lock around its call",
        "empty",
        ProbeKind::Empty,
    )),
    guarded_state(enabled_state(
        "guarded-direct",
        "the probe reads its arguments, in the lock",
        "guarded-empty",
        ProbeKind::Direct,
    )),
    guarded_state(enabled_state(
        "guarded-varargs",
        "the probe reads them with va_arg, in the lock",
        "guarded-direct",
        ProbeKind::Varargs,
    )),
    guarded_state(enabled_state(
        "guarded-format",
        "the probe reads them according to a format string, in the lock",
        "guarded-varargs",
        ProbeKind::Format,
    )),
];

/// The measured states of a design, each after the one that it is over.
pub(crate) fn list_states(design: &SiteDesign) -> Vec<MarkerState> {
    let mut states = possible_states(design);
    states.retain(|state| design.only.is_empty() || design.only.contains(&state.name));
    states
}

/// All possible states of a design.
fn possible_states(design: &SiteDesign) -> Vec<MarkerState> {
    let bare = MarkerState { guard: "none", probe: None, ..DORMANT };
    match design.enabling {
        Enabling::Never if design.site.is_empty() => {
            vec![MarkerState { name: "base", about: "the loop against a copy of itself", ..bare }]
        }
        Enabling::Never => {
            vec![MarkerState { name: "control", about: "other code in the marker's place", ..bare }]
        }
        // It would cost the same as in our own design.
        Enabling::Tracer if design.package.is_some() => vec![bare],
        Enabling::Tracer => vec![
            bare,
            MarkerState {
                name: "attached",
                about: "a tracer's breakpoint at the site: a uprobe that counts",
                enabled: true,
                traced: true,
                over: Some("dormant"),
                ..bare
            },
        ],
        Enabling::Variable(_) if !design.calls_probe() => vec![
            bare,
            MarkerState {
                name: "raised",
                about: "the semaphore is raised, without a breakpoint",
                enabled: true,
                over: Some("dormant"),
                ..bare
            },
        ],
        Enabling::Switch(states) => {
            library_states(states).filter(|(state, _)| state.measured).map(|(_, one)| one).collect()
        }
        // The dormant state already has an empty probe.
        Enabling::Probe => {
            let over = |over: &'static str| if over == "empty" { "dormant" } else { over };
            let others = CALLING.iter().filter(|state| state.enabled && state.name != "empty");
            let others = others.map(|state| MarkerState { over: state.over.map(over), ..*state });
            std::iter::once(MarkerState { guard: "none", ..DORMANT }).chain(others).collect()
        }
        _ => CALLING.to_vec(),
    }
}

/// The states of a library's marker.
fn library_states(
    states: &'static [design::definition::LibraryState],
) -> impl Iterator<Item = (&'static design::definition::LibraryState, MarkerState)> {
    let bare = MarkerState { guard: "none", probe: None, ..DORMANT };
    states.iter().enumerate().map(move |(number, state)| {
        let library = LibrarySwitch { number: number as u32, world: state.world, hits: state.hits };
        let enabled = state.passes && state.hits != Some(0);
        let (name, about, over) = (state.name, state.about, state.over);
        (state, MarkerState { name, about, over, enabled, library: Some(library), ..bare })
    })
}

/// The state for counting the calls of a marker that is enabled, or dormant, like this one; `None`
/// if it calls nothing.
pub(crate) fn counting_state(design: &SiteDesign, state: &MarkerState) -> Option<MarkerState> {
    match design.enabling {
        _ if state.probe.is_some() => Some(MarkerState { probe: Some(ProbeKind::Count), ..*state }),
        Enabling::Switch(_) if state.library.is_some_and(|library| library.hits.is_some()) => Some(*state),
        Enabling::Switch(states) => library_states(states)
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
    fn every_step_is_over_an_earlier_state() {
        for design in design::ALL {
            let states = list_states(design);
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
                let counting = counting_state(design, state);
                let switched = matches!(design.enabling, Enabling::Switch(_)) && design.package.is_none();
                let calls = design.calls_probe() || switched;
                assert_eq!(counting.is_some(), calls, "{} of {}", state.name, design.name);
                assert!(counting.is_none_or(|one| one.enabled == state.enabled));
            }
        }
    }
}
