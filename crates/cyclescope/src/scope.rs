//! The simple interface: opens an executor and a plan once, and measures snippets with them.
//!
//! A [`Scope`] combines the machine, [`RunRequest::make_plan`], an executor, and [`run_snippet`].
//! It has no measuring loop. A program that needs evidence, another memory layout or custom
//! contrasts takes the executor and the plan from here. It then uses [`crate::measure`] and
//! [`crate::result`].

use crate::asm::{self, Listing};
use crate::error::Error;
use crate::executor::{DEFAULT_OFFER, Executor, ExecutorOffer, OpenOptions};
use crate::machine::Machine;
use crate::measure::{Plan, Precision, require_room, resolve_imul_latency};
use crate::run::{RunOutcome, RunRequest, run_snippet};
use crate::snippet::Snippet;

/// An executor on one CPU, and the plan of its measurements.
pub struct Scope {
    offer: &'static ExecutorOffer,
    executor: Box<dyn Executor>,
    plan: Plan,
    required: Precision,
}

/// Measures a snippet of Intel-syntax text in user mode, on the CPU that [`Machine::detect`]
/// chooses, as `cyclescope run` does. Takes some 0.2 s at most.
///
/// # Errors
///
/// [`Error::BadSnippet`] if the text is not assembly. [`Error::Unavailable`] if this machine lacks
/// a requirement. [`Error::Run`] if the snippet does not end normally.
pub fn measure_snippet(text: &str) -> Result<RunOutcome, Error> {
    let snippet = Snippet::parse(text)?;
    Scope::open()?.measure(&snippet)
}

impl Scope {
    /// Opens the default executor on the CPU that [`Machine::detect`] chooses, with the default
    /// plan.
    ///
    /// # Errors
    ///
    /// Those of [`Scope::with`].
    pub fn open() -> Result<Scope, Error> {
        Scope::with(DEFAULT_OFFER, &Machine::detect(), &RunRequest::default())
    }

    /// Opens an executor for the target CPU of a machine. Takes about a millisecond if the step of
    /// the machine's TSC has to be measured.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the machine or the executor lacks a requirement. [`Error::Run`] if
    /// the executor did not start.
    pub fn with(offer: &'static ExecutorOffer, machine: &Machine, request: &RunRequest) -> Result<Scope, Error> {
        let plan = request.make_plan(&(offer.capabilities)(machine), machine)?;
        let options = OpenOptions { counter: plan.clock.reads_counter(), ..OpenOptions::default() };
        let executor = (offer.open)(machine, &options)?;
        Ok(Scope { offer, executor, plan, required: request.required_precision() })
    }

    /// Measures a snippet. Every call uses the seed of the plan, so two calls have the same
    /// layouts.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the CPU lacks an instruction. [`Error::Run`] if the snippet is too
    /// long for the code memory, if the executor refuses it, or if it does not end normally.
    pub fn measure(&mut self, snippet: &Snippet) -> Result<RunOutcome, Error> {
        (self.offer.judge)(snippet, snippet.loop_plan_with_moves().ok())?;
        for code in [snippet.code(), snippet.init()] {
            for instruction in Listing::from_bytes(code).instructions() {
                self.machine().features.require(asm::required_features(instruction))?;
            }
        }
        require_room(&self.plan, snippet, self.executor.arena_len())?;
        Ok(run_snippet(self.executor.as_mut(), snippet, &self.plan, self.required)?)
    }

    /// The latency of `imul r64, r64` in core cycles, which converts the ruler's readings to core
    /// cycles. Known for the micro-architecture, otherwise measured now.
    ///
    /// # Errors
    ///
    /// [`Error::Run`] if the executor fails.
    pub fn imul_latency(&mut self) -> Result<f64, Error> {
        Ok(resolve_imul_latency(self.executor.as_mut(), &self.plan)?)
    }

    /// The executor, for studies with custom programs.
    pub fn executor(&mut self) -> &mut dyn Executor {
        self.executor.as_mut()
    }

    /// The machine that the executor runs programs on.
    pub fn machine(&self) -> &Machine {
        self.executor.machine()
    }

    /// The plan, with the timing method and its step.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RunError;
    use crate::executor::{Capabilities, OpenError, OpenResult, PrivilegeRing};
    use cyclescope_sim::{Scenario, SimulatedExecutor};

    fn simulated(machine: &Machine, _: &OpenOptions) -> OpenResult {
        match machine.is_emulated() {
            true => Err(OpenError::from(RunError::Hung { deadline_ms: 1 })),
            false => Ok(Box::new(SimulatedExecutor::new(Scenario::default(), 3))),
        }
    }

    fn capabilities(_: &Machine) -> Capabilities {
        SimulatedExecutor::new(Scenario::default(), 3).capabilities().clone()
    }

    const SIMULATED: ExecutorOffer = ExecutorOffer {
        name: "simulated",
        about: "a simulated machine",
        place: "a test",
        takes_force: false,
        capabilities,
        check: |_| Ok(()),
        judge: |_, _| Ok(()),
        open: simulated,
    };

    fn scope(request: &RunRequest) -> Scope {
        let machine = SimulatedExecutor::new(Scenario::default(), 3).machine().clone();
        Scope::with(&SIMULATED, &machine, request).expect("a simulated machine")
    }

    #[test]
    fn a_snippet_has_the_simulated_cost() {
        let mut scope = scope(&RunRequest::default());
        assert_eq!(scope.executor().capabilities().ring, PrivilegeRing::Three);
        let run = scope.measure(&Snippet::parse("imul rax, rax").unwrap()).unwrap();
        assert_eq!(run.cost(), run.estimate().map(|estimate| estimate.cost));
        let cost = run.cost().unwrap();
        assert!((cost.value - 3.0).abs() < 0.02 && cost.half_width() < 0.02, "{run:?}");
    }

    #[test]
    fn each_kind_of_failure_keeps_its_type() {
        assert!(matches!(measure_snippet("imul rax,"), Err(Error::BadSnippet(_))));
        let mut scope = scope(&RunRequest { unroll: Some(1 << 40), ..RunRequest::default() });
        let long = scope.measure(&Snippet::parse("imul rax, rax").unwrap());
        assert!(matches!(long, Err(Error::Run(RunError::BadBatch(_)))), "{long:?}");
        let unknown = Snippet::parse("vaddps zmm0, zmm1, zmm2").unwrap();
        scope.plan.unit = None;
        let has = scope.machine().features.has(iced_x86::CpuidFeature::AVX512F);
        assert_eq!(scope.measure(&unknown).is_ok(), has);
    }
}
