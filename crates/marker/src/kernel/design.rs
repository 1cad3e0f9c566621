//! The module's designs and their states. The C text of a site is in `kernel/markers/`, in a file
//! named after the design. This module holds the descriptions for records and tables.

use super::super::source::design::{DesignLanguage, Enabling, SiteDesign};
use super::super::state::{self, MarkerState};
use crate::ProbeKind;
use cyclescope_exec::kernel::markers::ProbeGuard;

/// The design without a marker: the base of every other one.
pub(super) const BASE_DESIGN: &str = "none";

/// All designs of the module, sorted by name.
pub(crate) const ALL: &[SiteDesign] = &[
    SiteDesign {
        name: "flag",
        about: "a flag in memory: load, test, branch",
        source: "the generic marker of the document on Linux kernel markers",
        enabling: Enabling::Variable(1),
        site: "if (unlikely(READ_ONCE(ENABLED))) PROBE",
        ..NO_MARKER
    },
    SiteDesign {
        name: "immediate",
        about: "an immediate value, overwritten in the code: MOV, test, branch",
        source: "the optimized marker of the document on Linux kernel markers",
        enabling: Enabling::Immediate,
        site: "if (unlikely(IMMEDIATE)) PROBE",
        ..NO_MARKER
    },
    NO_MARKER,
    SiteDesign {
        name: "static-key",
        about: "a static key: a NOP that the kernel overwrites with a jump",
        source: "Linux kernel, Documentation/staging/static-keys.rst",
        enabling: Enabling::Jump,
        site: "if (static_branch_unlikely(&ENABLED)) PROBE",
        ..NO_MARKER
    },
    SiteDesign {
        name: "tracepoint",
        about: "a tracepoint: a static key before a call to its listeners",
        source: "Linux kernel, Documentation/trace/tracepoints.rst",
        enabling: Enabling::Jump,
        site: "trace_PROBE",
        ..NO_MARKER
    },
];

const NO_MARKER: SiteDesign = SiteDesign {
    name: BASE_DESIGN,
    about: "no marker: the loop against itself",
    source: "",
    language: DesignLanguage::C,
    package: None,
    declarations: "",
    base: "",
    site: "",
    enabling: Enabling::Never,
    only: &[],
};

const DORMANT: MarkerState = MarkerState {
    name: "dormant",
    about: "no listener",
    guard: guard_name(ProbeGuard::Preemption),
    probe: Some(ProbeKind::Empty),
    enabled: false,
    over: None,
    traced: false,
    library: None,
};

const fn bare_state(name: &'static str, about: &'static str, over: &'static str, probe: ProbeKind) -> MarkerState {
    let guard = self::guard_name(ProbeGuard::Bare);
    MarkerState {
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

const fn guarded_state(name: &'static str, about: &'static str, over: &'static str, probe: ProbeKind) -> MarkerState {
    MarkerState { guard: self::guard_name(ProbeGuard::Preemption), ..bare_state(name, about, over, probe) }
}

/// All states of a marker that calls a probe, each after the one that it is over.
const CALLING: [MarkerState; 10] = [
    DORMANT,
    bare_state("empty", "a call of an empty probe", "dormant", ProbeKind::Empty),
    bare_state("direct", "the probe reads its arguments", "empty", ProbeKind::Direct),
    bare_state("varargs", "the probe reads them with va_arg", "direct", ProbeKind::Varargs),
    bare_state("format", "the probe reads them according to a format string", "varargs", ProbeKind::Format),
    guarded_state("guarded-empty", "an empty probe, with preemption off around its call", "empty", ProbeKind::Empty),
    guarded_state(
        "guarded-direct",
        "the probe reads its arguments, with preemption off",
        "guarded-empty",
        ProbeKind::Direct,
    ),
    guarded_state(
        "guarded-varargs",
        "the probe reads them with va_arg, with preemption off",
        "guarded-direct",
        ProbeKind::Varargs,
    ),
    guarded_state(
        "guarded-format",
        "the probe reads them according to a format string, with preemption off",
        "guarded-varargs",
        ProbeKind::Format,
    ),
    MarkerState {
        guard: guard_name(ProbeGuard::Interrupts),
        ..bare_state(
            "uninterrupted-empty",
            "an empty probe, with interrupts off around its call",
            "empty",
            ProbeKind::Empty,
        )
    },
];

/// Name of a guard in records.
pub(super) const fn guard_name(guard: ProbeGuard) -> &'static str {
    match guard {
        ProbeGuard::Bare => "none",
        ProbeGuard::Preemption => "preemption",
        ProbeGuard::Own => "own",
        ProbeGuard::Interrupts => "interrupts",
    }
}

/// The states of a design with these guards and probes, each after the one that it is over.
pub(super) fn select_states(design: &SiteDesign, guards: &[ProbeGuard], probes: &[ProbeKind]) -> Vec<MarkerState> {
    if design.enabling == Enabling::Never {
        return state::list_states(design);
    }
    let has = |guard: &str| guards.iter().any(|one| guard_name(*one) == guard);
    let own = guards == [ProbeGuard::Own];
    // The kernel's own guard is not optional. Its states have the names of those without a guard.
    let named = |state: &MarkerState| match state.guard {
        guard if own && (!state.enabled || guard == guard_name(ProbeGuard::Bare)) => {
            MarkerState { guard: guard_name(ProbeGuard::Own), ..*state }
        }
        guard if !state.enabled && !has(guard) => MarkerState { guard: guard_name(ProbeGuard::Bare), ..*state },
        _ => *state,
    };
    let all: Vec<MarkerState> = CALLING.iter().map(named).collect();
    let taken = |state: &MarkerState| {
        has(state.guard) && (!state.enabled || state.probe.is_some_and(|probe| probes.contains(&probe)))
    };
    let find = |name: &str| all.iter().find(|state| state.name == name).expect("it is over one of them");
    // If a state is missing, the states over it are over the one below.
    let over = |state: &MarkerState| {
        let mut over = state.over;
        while let Some(below) = over.map(find).filter(|below| !taken(below)) {
            over = below.over;
        }
        MarkerState { over, ..*state }
    };
    all.iter().filter(|state| taken(state)).map(over).collect()
}

/// All possible states of a design, whatever guards and probes the loaded module has for it.
pub(crate) fn possible_states(design: &SiteDesign) -> Vec<MarkerState> {
    const PROBES: [ProbeKind; 4] = [ProbeKind::Empty, ProbeKind::Direct, ProbeKind::Varargs, ProbeKind::Format];
    select_states(design, &[ProbeGuard::Bare, ProbeGuard::Preemption, ProbeGuard::Interrupts], &PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::design;

    const PROBES: [ProbeKind; 4] = [ProbeKind::Empty, ProbeKind::Direct, ProbeKind::Varargs, ProbeKind::Format];
    const BOTH: [ProbeGuard; 2] = [ProbeGuard::Bare, ProbeGuard::Preemption];

    fn named(name: &str) -> &'static SiteDesign {
        ALL.iter().find(|design| design.name == name).unwrap()
    }

    fn overs(states: &[MarkerState]) -> Vec<(&'static str, Option<&'static str>)> {
        states.iter().map(|state| (state.name, state.over)).collect()
    }

    #[test]
    fn states_match_user_mode() {
        assert!(ALL.is_sorted_by_key(|design| design.name));
        let flag = design::ALL.iter().find(|design| design.name == "flag").unwrap();
        let (user, kernel) = (state::list_states(flag), select_states(named("flag"), &BOTH, &PROBES));
        assert_eq!(overs(&kernel), overs(&user));
        for (user, kernel) in user.iter().zip(&kernel) {
            assert_eq!((user.probe, user.enabled), (kernel.probe, kernel.enabled));
            assert_eq!(user.guard == "none", kernel.guard == "none");
        }
        assert_eq!(overs(&select_states(named("none"), &[ProbeGuard::Bare], &[])), [("base", None)]);
    }

    #[test]
    fn interrupts_off_is_compared_with_interrupts_on() {
        let all = possible_states(named("flag"));
        let off: Vec<&MarkerState> = all.iter().filter(|state| state.guard == "interrupts").collect();
        assert_eq!(
            off.iter().map(|state| (state.name, state.over)).collect::<Vec<_>>(),
            [("uninterrupted-empty", Some("empty"))]
        );
        // A module without such codes has no such state.
        assert!(
            !overs(&select_states(named("flag"), &BOTH, &PROBES)).contains(&("uninterrupted-empty", Some("empty")))
        );
    }

    #[test]
    fn a_tracepoint_has_its_own_guard_and_fewer_states() {
        let states = select_states(named("tracepoint"), &[ProbeGuard::Own], &[ProbeKind::Empty, ProbeKind::Direct]);
        let expected = [("dormant", None), ("empty", Some("dormant")), ("direct", Some("empty"))];
        assert_eq!(overs(&states), expected);
        assert!(states.iter().all(|state| state.guard == "own"));
    }

    #[test]
    fn states_over_a_missing_one_are_over_the_one_below() {
        let probes = [ProbeKind::Empty, ProbeKind::Varargs, ProbeKind::Format];
        let states = select_states(named("static-key"), &BOTH, &probes);
        assert!(overs(&states).contains(&("varargs", Some("empty"))));
        assert!(overs(&states).contains(&("guarded-varargs", Some("guarded-empty"))));
        assert_eq!(states.len(), 7);
    }
}
