//! Snippets whose first copy uses up some state are found, functions whose first call does, and
//! ordinary ones are not. The check compares states, so these tests measure no time.

mod functions;
mod ordinary;
mod unsteady;

use cyclescope_code::asm::{parse_assembly, required_features};
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::snippet::{Snippet, SnippetSetup};
use cyclescope_core::machine::Machine;
use cyclescope_exec::Executor;
use cyclescope_exec::user::{UserExecutor, UserOptions};
use cyclescope_measure::steadiness::{UnsteadyState, explain_fault, find_unsteady_states};
use ordinary::generate_snippets;
use unsteady::{RESTORED, UNSTEADY, UnsteadyCase};

/// An executor on this machine.
struct Checker {
    executor: UserExecutor,
    left_out: usize,
}

fn clock() -> &'static Clock {
    Clock::find_named("lfence-rdtsc-lfence").expect("it is a timing method")
}

fn assemble(text: &str) -> Vec<u8> {
    parse_assembly(text).unwrap_or_else(|error| panic!("{text}: {error}")).bytes().to_vec()
}

/// A snippet after its init code.
fn snippet(init: &str, text: &str) -> Snippet {
    Snippet::new(assemble(text), assemble(init), text)
}

impl Checker {
    fn new() -> Checker {
        let cpu = Machine::detect().target_cpu() as usize;
        let options = UserOptions { cpu, ..UserOptions::default() };
        Checker { executor: UserExecutor::spawn(&options).expect("a worker"), left_out: 0 }
    }

    /// Whether this CPU has all instructions of a text.
    fn can_run(&self, text: &str) -> bool {
        let listing = parse_assembly(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let features = &self.executor.machine().features;
        listing.instructions().iter().all(|instruction| features.require(required_features(instruction)).is_ok())
    }

    /// The unsteady states of a snippet; `None` if this CPU lacks an instruction.
    fn check(&mut self, init: &str, text: &str) -> Option<Vec<UnsteadyState>> {
        if !self.can_run(init) || !self.can_run(text) {
            self.left_out += 1;
            return None;
        }
        Some(self.check_snippet(&snippet(init, text)))
    }

    fn check_snippet(&mut self, snippet: &Snippet) -> Vec<UnsteadyState> {
        let outline = snippet.outline(self.executor.machine().features.has(iced_x86::CpuidFeature::AVX));
        let memory = ProgramMemory::standard(outline.world.element, outline.touches_memory);
        let found = find_unsteady_states(&mut self.executor, snippet, clock(), outline.world, &memory);
        found.expect("the harness works").states
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        if self.left_out > 0 {
            cyclescope_skipped::report_left_out(format!("{} snippets that this CPU lacks", self.left_out));
        }
    }
}

#[test]
fn each_unsteady_snippet_is_found_with_its_state() {
    let mut checker = Checker::new();
    let mut missed = Vec::new();
    for UnsteadyCase { init, text, state, remedy } in UNSTEADY {
        let Some(states) = checker.check(init, text) else { continue };
        let names = |found: &UnsteadyState| found.text.contains(state) && found.remedy.contains(remedy);
        if !states.iter().any(names) {
            missed.push(format!("{text} after {init:?}: {states:?}, expected {state:?} and {remedy:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn a_fault_of_the_second_copy_is_explained() {
    let mut checker = Checker::new();
    let mut explain = |text| {
        let snippet = snippet("mov r9, r14", text);
        let outline = snippet.outline(false);
        let memory = ProgramMemory::standard(outline.world.element, true);
        explain_fault(&mut checker.executor, &snippet, clock(), outline.world, &memory).expect("the harness works")
    };
    let state = explain("mov rax, [r9]; xor r9d, r9d").expect("the second copy reads address 0");
    assert!(state.text.contains("finds R9 as the first leaves it"), "{state:?}");
    assert!(state.remedy.contains("--init 'mov r9, r14; mov r8, r9' --setup 'mov r9, r8'"), "{state:?}");
    // Both copies end, or none does.
    assert_eq!([explain("mov rax, [r9]; add r9, 8"), explain("xor r9d, r9d; mov rax, [r9]")], [None, None]);
}

#[test]
fn what_a_remedy_says_makes_the_snippet_steady() {
    let mut checker = Checker::new();
    for (init, setup, text) in RESTORED {
        if ![init, setup, text].into_iter().all(|text| checker.can_run(text)) {
            checker.left_out += 1;
            continue;
        }
        let setup = SnippetSetup { code: assemble(setup), text: setup.to_string() };
        let restored = snippet(init, text).with_setup(Some(setup)).join_setup();
        assert_eq!(checker.check_snippet(&restored), [], "{text}");
    }
}

#[test]
fn no_ordinary_snippet_is_unsteady() {
    let mut checker = Checker::new();
    let all = generate_snippets();
    assert!(all.len() >= 500, "{}", all.len());
    let mut found = Vec::new();
    for (init, text) in &all {
        let states = checker.check(init, text).unwrap_or_default();
        if !states.is_empty() {
            found.push(format!("{text} after {init:?}: {states:?}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
