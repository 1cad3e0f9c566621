//! The module's designs and their states. What a site looks like in C is in `kernel/markers/`, in a file of the
//! design's name; here is what records and tables say of it.

use super::super::source::design::{Design, Enabling, Language};
use super::super::state::{self, Probe, State};
use cyclescope_exec::kernel::markers::Guard;

/// The design without a marker, which is every other one's base.
pub(super) const BASE: &str = "none";

/// All designs that the module has, sorted by name.
pub(crate) const ALL: &[Design] = &[
    Design {
        name: "flag",
        about: "a flag in memory: load, test, branch",
        source: "the generic marker of the document on Linux kernel markers",
        enabling: Enabling::Variable(1),
        site: "if (unlikely(READ_ONCE(ENABLED))) PROBE",
        ..NONE
    },
    Design {
        name: "immediate",
        about: "an immediate value, overwritten in the code: MOV, test, branch",
        source: "the optimized marker of the document on Linux kernel markers",
        enabling: Enabling::Immediate,
        site: "if (unlikely(IMMEDIATE)) PROBE",
        ..NONE
    },
    NONE,
    Design {
        name: "static-key",
        about: "a static key: a NOP that the kernel overwrites with a jump",
        source: "Linux kernel, Documentation/staging/static-keys.rst",
        enabling: Enabling::Jump,
        site: "if (static_branch_unlikely(&ENABLED)) PROBE",
        ..NONE
    },
    Design {
        name: "tracepoint",
        about: "a tracepoint: a static key in front of a call that knows who listens",
        source: "Linux kernel, Documentation/trace/tracepoints.rst",
        enabling: Enabling::Jump,
        site: "trace_PROBE",
        ..NONE
    },
];

const NONE: Design = Design {
    name: BASE,
    about: "no marker: the loop against itself",
    source: "",
    language: Language::C,
    package: None,
    declarations: "",
    base: "",
    site: "",
    enabling: Enabling::Never,
    only: &[],
};

const DORMANT: State = State {
    name: "dormant",
    about: "nobody listens",
    guard: name(Guard::Preemption),
    probe: Some(Probe::Empty),
    enabled: false,
    over: None,
    traced: false,
    library: None,
};

const fn bare(name: &'static str, about: &'static str, over: &'static str, probe: Probe) -> State {
    let guard = self::name(Guard::Bare);
    State {
        name,
        about,
        guard,
        probe: Some(probe),
        enabled: true,
        over: Some(over),
        traced: false,
        library: None,
    }
}

const fn guarded(name: &'static str, about: &'static str, over: &'static str, probe: Probe) -> State {
    State { guard: self::name(Guard::Preemption), ..bare(name, about, over, probe) }
}

/// All states of a marker that calls a probe, each behind the one that it is over.
const CALLING: [State; 10] = [
    DORMANT,
    bare("empty", "a call of an empty probe", "dormant", Probe::Empty),
    bare("direct", "the probe takes its arguments", "empty", Probe::Direct),
    bare("varargs", "the probe takes them by va_arg", "direct", Probe::Varargs),
    bare("format", "the probe reads in a format string what to take", "varargs", Probe::Format),
    guarded("guarded-empty", "an empty probe, preemption off around its call", "empty", Probe::Empty),
    guarded("guarded-direct", "arguments, with preemption off", "guarded-empty", Probe::Direct),
    guarded("guarded-varargs", "va_arg, with preemption off", "guarded-direct", Probe::Varargs),
    guarded("guarded-format", "a format string, with preemption off", "guarded-varargs", Probe::Format),
    State {
        guard: name(Guard::Interrupts),
        ..bare("uninterrupted-empty", "an empty probe, interrupts off around its call", "empty", Probe::Empty)
    },
];

/// A guard's name in records.
pub(super) const fn name(guard: Guard) -> &'static str {
    match guard {
        Guard::Bare => "none",
        Guard::Preemption => "preemption",
        Guard::Own => "own",
        Guard::Interrupts => "interrupts",
    }
}

/// The states of a design that has these guards and takes these probes, each behind the one that it is over.
pub(super) fn states(design: &Design, guards: &[Guard], probes: &[Probe]) -> Vec<State> {
    if design.enabling == Enabling::Never {
        return state::states(design);
    }
    let has = |guard: &str| guards.iter().any(|one| name(*one) == guard);
    let own = guards == [Guard::Own];
    // The kernel's own guard is no choice: the states that it is in have the names of those without a guard.
    let named = |state: &State| match state.guard {
        guard if own && (!state.enabled || guard == name(Guard::Bare)) => {
            State { guard: name(Guard::Own), ..*state }
        }
        guard if !state.enabled && !has(guard) => State { guard: name(Guard::Bare), ..*state },
        _ => *state,
    };
    let all: Vec<State> = CALLING.iter().map(named).collect();
    let taken = |state: &State| {
        has(state.guard) && (!state.enabled || state.probe.is_some_and(|probe| probes.contains(&probe)))
    };
    let find = |name: &str| all.iter().find(|state| state.name == name).expect("it is over one of them");
    // Where a state is missing, what was over it is over the one below.
    let over = |state: &State| {
        let mut over = state.over;
        while let Some(below) = over.map(find).filter(|below| !taken(below)) {
            over = below.over;
        }
        State { over, ..*state }
    };
    all.iter().filter(|state| taken(state)).map(over).collect()
}

/// All states that a design may be in, whatever guards and probes the module that is loaded has for it.
pub(crate) fn possible(design: &Design) -> Vec<State> {
    const PROBES: [Probe; 4] = [Probe::Empty, Probe::Direct, Probe::Varargs, Probe::Format];
    states(design, &[Guard::Bare, Guard::Preemption, Guard::Interrupts], &PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::design;

    const PROBES: [Probe; 4] = [Probe::Empty, Probe::Direct, Probe::Varargs, Probe::Format];
    const BOTH: [Guard; 2] = [Guard::Bare, Guard::Preemption];

    fn named(name: &str) -> &'static Design {
        ALL.iter().find(|design| design.name == name).unwrap()
    }

    fn overs(states: &[State]) -> Vec<(&'static str, Option<&'static str>)> {
        states.iter().map(|state| (state.name, state.over)).collect()
    }

    #[test]
    fn states_are_those_of_user_mode() {
        assert!(ALL.is_sorted_by_key(|design| design.name));
        let flag = design::ALL.iter().find(|design| design.name == "flag").unwrap();
        let (user, kernel) = (state::states(flag), states(named("flag"), &BOTH, &PROBES));
        assert_eq!(overs(&kernel), overs(&user));
        for (user, kernel) in user.iter().zip(&kernel) {
            assert_eq!((user.probe, user.enabled), (kernel.probe, kernel.enabled));
            assert_eq!(user.guard == "none", kernel.guard == "none");
        }
        assert_eq!(overs(&states(named("none"), &[Guard::Bare], &[])), [("base", None)]);
    }

    #[test]
    fn interrupts_are_off_beside_on() {
        let all = possible(named("flag"));
        let off: Vec<&State> = all.iter().filter(|state| state.guard == "interrupts").collect();
        assert_eq!(
            off.iter().map(|state| (state.name, state.over)).collect::<Vec<_>>(),
            [("uninterrupted-empty", Some("empty"))]
        );
        // A module without such codes has no such state.
        assert!(
            !overs(&states(named("flag"), &BOTH, &PROBES)).contains(&("uninterrupted-empty", Some("empty")))
        );
    }

    #[test]
    fn a_tracepoint_has_its_own_guard_and_fewer_states() {
        let states = states(named("tracepoint"), &[Guard::Own], &[Probe::Empty, Probe::Direct]);
        let expected = [("dormant", None), ("empty", Some("dormant")), ("direct", Some("empty"))];
        assert_eq!(overs(&states), expected);
        assert!(states.iter().all(|state| state.guard == "own"));
    }

    #[test]
    fn what_is_over_a_missing_state_is_over_the_one_below() {
        let probes = [Probe::Empty, Probe::Varargs, Probe::Format];
        let states = states(named("static-key"), &BOTH, &probes);
        assert!(overs(&states).contains(&("varargs", Some("empty"))));
        assert!(overs(&states).contains(&("guarded-varargs", Some("guarded-empty"))));
        assert_eq!(states.len(), 7);
    }
}
