//! The bench on a simulated module, which derives time from the costs of codes.

use super::*;
use crate::bench::MarkerBench;
use crate::record::{MarkerOrigin, measure_records};
use crate::survey::{PROOF_LOOPS, VisitPlan, survey_cases};
use cyclescope_code::asm;
use cyclescope_code::asm::CodeMode;
use cyclescope_exec::Sample;
use cyclescope_exec::kernel::markers::TimedMarkerRounds;
use cyclescope_measure::study::ResultRecord;
use std::time::Duration;

/// A code as the module describes it.
fn code(
    number: u32,
    design: u32,
    name: &str,
    guard: ProbeGuard,
    around: MarkerWorkload,
    placement: u32,
    len: usize,
) -> MarkerFunction {
    let address = 0xffff_ffff_c000_0000 + 0x1000 * u64::from(number);
    let (design, name) = (cyclescope_exec::kernel::markers::DesignNumber(design), name.to_string());
    MarkerFunction { number, design, name, guard, around, placement, len, address }
}

/// Ticks of a call outside its loop, and of one iteration of the base.
const OVERHEAD: u64 = 40;
const EMPTY: u64 = 2;
const COPY: u64 = 150;

struct SimulatedModule {
    codes: Vec<MarkerFunction>,
    dormant: Vec<Vec<u8>>,
    enabled: Vec<Vec<u8>>,
    on: HashMap<markers::DesignNumber, markers::KernelProbe>,
    now: u64,
    switches: usize,
    longest: usize,
}

/// A design's bytes, dormant and enabled.
fn texts(name: &str, guard: ProbeGuard) -> [Vec<u8>; 2] {
    let guarded = match guard {
        ProbeGuard::Bare => "mov rax, qword ptr [rip+0x3000]; call rax; jmp back",
        ProbeGuard::Interrupts => "cli; mov rax, qword ptr [rip+0x3000]; call rax; sti; jmp back",
        _ => "inc dword ptr [rip+0x3000]; call rbx; dec dword ptr [rip+0x3000]; jne back; call rcx; jmp back",
    };
    let text = match name {
        "none" => "top: dec edi; jne top; ret".to_string(),
        "flag" => format!(
            "push rbx; mov ebx, edi; top: cmp byte ptr [rip+0x1000], 0; jne on; back: dec ebx; jne top; pop rbx
            ret; on: {guarded}"
        ),
        _ => format!(
            "push rbx; mov ebx, edi; top: nop dword ptr [rax+rax+1]; back: dec ebx; jne top; pop rbx; ret
            on: {guarded}"
        ),
    };
    let dormant = asm::parse_assembly(&text).unwrap().bytes().to_vec();
    let mut enabled = dormant.clone();
    if let Some(at) = dormant.windows(4).position(|bytes| bytes == [0x0f, 0x1f, 0x44, 0x00]) {
        // To the code after the return.
        enabled[at..at + 5].copy_from_slice(&[0xe9, 6, 0, 0, 0]);
    }
    [dormant, enabled]
}

impl SimulatedModule {
    fn new() -> SimulatedModule {
        let mut module = SimulatedModule {
            codes: Vec::new(),
            dormant: Vec::new(),
            enabled: Vec::new(),
            on: HashMap::new(),
            now: 1 << 30,
            switches: 0,
            longest: 0,
        };
        let designs: [(&str, &[ProbeGuard]); 4] = [
            ("flag", &[ProbeGuard::Bare, ProbeGuard::Preemption, ProbeGuard::Interrupts]),
            ("none", &[ProbeGuard::Bare]),
            ("static-key", &[ProbeGuard::Bare, ProbeGuard::Preemption]),
            ("tracepoint", &[ProbeGuard::Own]),
        ];
        for (design, (name, guards)) in designs.into_iter().enumerate() {
            for (guard, around) in guards.iter().flat_map(|guard| CONTEXTS.map(|(_, around)| (*guard, around))) {
                for placement in [0, 4, 8, 12, 16, 20, 24, 28] {
                    let [dormant, enabled] = texts(name, guard);
                    let number = module.codes.len() as u32;
                    let len = dormant.len();
                    module.codes.push(code(number, design as u32, name, guard, around, placement, len));
                    module.dormant.push(dormant);
                    module.enabled.push(enabled);
                }
            }
        }
        module
    }

    /// Ticks of one iteration, at one tick per core cycle.
    fn around(&self, code: &MarkerFunction) -> u64 {
        let work = if code.around == MarkerWorkload::Memcpy { COPY } else { EMPTY };
        let marker = match (code.name.as_str(), self.on.get(&code.design)) {
            ("none", _) => 0,
            (_, None) => 1,
            (_, Some(probe)) => 10 * *probe as u64 + if code.guard == ProbeGuard::Bare { 0 } else { 5 },
        };
        work + marker
    }

    fn ticks(&self, call: &MarkerTargetCall) -> u64 {
        let known = self.codes.iter().find(|code| MarkerTarget::from(*code) == call.target);
        let once = known.map(|code| self.around(code)).unwrap_or_else(|| {
            let rulers = [
                (KernelRuler::ImulShort, 12),
                (KernelRuler::ImulLong, 42),
                (KernelRuler::AddShort, 8),
                (KernelRuler::AddLong, 24),
                (KernelRuler::Sentinel, 6),
            ];
            rulers.iter().find(|(ruler, _)| MarkerTarget::from(*ruler) == call.target).unwrap().1
        });
        OVERHEAD + once * u64::from(call.loops)
    }
}

impl MarkerDevice for SimulatedModule {
    fn codes(&self) -> &[MarkerFunction] {
        &self.codes
    }

    fn switch(&mut self, design: markers::DesignNumber, probe: Option<markers::KernelProbe>) -> Result<(), RunError> {
        let name = &self.codes.iter().find(|code| code.design == design).unwrap().name;
        let format = matches!(probe, Some(markers::KernelProbe::Varargs | markers::KernelProbe::Format));
        self.switches += 1;
        self.on.remove(&design);
        if probe.is_some() && (name == "none" || format && name == "tracepoint") {
            return Err(RunError::System { doing: "switching", errno: libc::EOPNOTSUPP });
        }
        probe.map(|probe| self.on.insert(design, probe));
        Ok(())
    }

    fn bytes(&self, code: &MarkerFunction) -> Result<Vec<u8>, RunError> {
        let index = self.codes.iter().position(|one| one == code).unwrap();
        let on = self.on.contains_key(&code.design);
        Ok(if on { self.enabled[index].clone() } else { self.dormant[index].clone() })
    }

    fn run(&mut self, rounds: &KernelMarkerRounds) -> Result<TimedMarkerRounds, RunError> {
        let work: u64 = rounds.calls.iter().map(call_work).sum();
        assert!(work <= MAX_ROUND_ITERATIONS.into() && rounds.calls.len() <= MAX_ROUND_CALLS, "{work}");
        assert_eq!((rounds.warm_up, rounds.rounds), (0, 1));
        self.longest = self.longest.max(rounds.calls.len());
        let (mut samples, mut hits) = (Vec::new(), 0);
        for call in &rounds.calls {
            let start = self.now;
            self.now += self.ticks(call);
            samples.push(Sample { start, end: self.now });
            self.now += 17;
            let code = self.codes.iter().find(|code| MarkerTarget::from(*code) == call.target);
            let counting = |code: &MarkerFunction| self.on.get(&code.design) == Some(&markers::KernelProbe::Counting);
            hits += if code.is_some_and(counting) { u64::from(call.loops) } else { 0 };
        }
        Ok(TimedMarkerRounds { samples, hits })
    }

    /// One tick is one nanosecond.
    fn now(&self) -> Duration {
        Duration::from_nanos(self.now)
    }
}

fn bench() -> KernelBench<SimulatedModule> {
    KernelBench::new(SimulatedModule::new(), &CONTEXTS.map(|(_, around)| around), 1.0, 1).unwrap()
}

fn plan() -> VisitPlan {
    VisitPlan { visits: 4, each: 4..=4, ..VisitPlan::new(3.0, 1) }
}

#[test]
fn guards_and_probes_determine_the_states_of_a_design() {
    let bench = bench();
    let count = |name| bench.cases().iter().filter(|case| case.design.name == name).count();
    assert_eq!(["flag", "none", "static-key", "tracepoint"].map(count), [20, 2, 18, 6]);
    assert_eq!(bench.placement_offsets(), [0, 4, 8, 12, 16, 20, 24, 28]);
    assert!(bench.device().on.is_empty());
    for (case, pairs) in bench.cases().iter().zip(&bench.pairs) {
        for (placement, [base, site]) in pairs.iter().enumerate() {
            let [base, site] = [base, site].map(|index| &bench.device().codes[*index]);
            assert_eq!((base.name.as_str(), site.name.as_str()), ("none", case.design.name));
            assert_eq!((base.placement, site.placement), (4 * placement as u32, 4 * placement as u32));
            assert_eq!((design::guard_name(site.guard), base.around), (case.state.guard, site.around));
            assert_eq!(find_context(&case.context).unwrap(), site.around);
        }
    }
    assert!(find_context("l1").is_err());
}

#[test]
fn a_survey_finds_the_simulated_costs() {
    let mut bench = bench();
    let findings = survey_cases(&mut bench, &plan(), &mut Vec::<ResultRecord>::new()).unwrap();
    for finding in &findings {
        let MarkerCase { design, state, context } = &finding.case;
        let probe = super::module_probe(state).map_or(1, |probe| 10 * probe as u64);
        let guard = if state.guard == "none" || !state.enabled { 0 } else { 5 };
        let cost = if design.name == "none" { 0 } else { probe + guard };
        let base = if context == "empty" { EMPTY } else { COPY };
        let place = format!("{} {} {context}", design.name, state.name);
        assert!((finding.cost.unwrap().value - cost as f64).abs() < 1e-6, "{place} {finding:?}");
        assert!((finding.base.unwrap().value - base as f64).abs() < 1e-6, "{place}");
    }
    let steps = |name: &str| {
        let finding = findings.iter().find(|one| one.case.design.name == "flag" && one.case.state.name == name);
        finding.unwrap().step.unwrap().value.round()
    };
    assert_eq!(["dormant", "empty", "direct", "guarded-empty"].map(steps), [1.0, 9.0, 10.0, 5.0]);
}

#[test]
fn visits_share_device_calls_within_their_bound() {
    let mut bench = bench();
    for case in 0..bench.cases().len() {
        let most = bench.most_loops(case);
        let long = CaseVisit { placement: 1, loops: [most - 1, most], ruler_loops: 130 };
        let short = CaseVisit { placement: 2, loops: [1, 2], ruler_loops: 10 };
        let visits: Vec<CaseVisit> = (0..70).map(|index| if index % 35 == 0 { long } else { short }).collect();
        let before = bench.device().switches;
        let samples = bench.run_visits(case, &visits).unwrap();
        assert_eq!(samples.len(), 70);
        assert!(bench.device().switches <= before + 1);
        for (samples, visit) in samples.iter().zip(&visits) {
            let round = samples.rounds().next().unwrap();
            assert_eq!(round[call::ADD_SHORT], (OVERHEAD + 8 * visit.ruler_loops) as f64);
            let each = round[call::BASE_MANY] - round[call::BASE_FEW];
            let base = if bench.cases()[case].context == "empty" { EMPTY } else { COPY };
            assert_eq!(each, (base * (visit.loops[1] - visit.loops[0])) as f64);
        }
    }
    assert_eq!(bench.device().longest, MAX_ROUND_CALLS / 18 * 18);
}

#[test]
fn an_emulated_machine_has_counts_and_bytes_but_no_costs() {
    let around = MarkerOrigin {
        executor: "kernel",
        mode: CodeMode::default(),
        clock: CLOCK,
        confidence: 0.95,
        cpu: 0,
        cpu_model: String::new(),
        seed: 1,
        repro: String::new(),
        emulated: true,
    };
    let mut bench = bench();
    let records = measure_records(&mut bench, &plan(), &around, &mut Vec::<ResultRecord>::new()).unwrap();
    for (record, case) in records.iter().zip(bench.cases()) {
        assert_eq!((record.cost.value, record.caveats.len()), (None, 1));
        let expected = case.state.probe.map(|_| if case.state.enabled { PROOF_LOOPS } else { 0 });
        assert_eq!(record.calls.map(|calls| calls.counted), expected, "{record:?}");
        let likely = match record.design {
            "none" => 0,
            "flag" => 7 + 2,
            _ => 5,
        };
        assert_eq!(record.code.likely_bytes, likely, "{record:?}");
        assert_eq!(record.code.unlikely_bytes > 0, record.design != "none");
    }
}

#[test]
fn an_unknown_module_is_rejected() {
    let mut module = SimulatedModule::new();
    module.codes[0].name = "other".to_string();
    let refused = KernelBench::new(module, &[MarkerWorkload::Nothing], 1.0, 1).map(|_| ());
    assert!(matches!(refused, Err(RunError::Machinery { .. })));
    let mut module = SimulatedModule::new();
    module.codes.retain(|code| code.name != "none" || code.placement != 4);
    let refused = KernelBench::new(module, &[MarkerWorkload::Nothing], 1.0, 1).map(|_| ());
    assert!(matches!(refused, Err(RunError::Machinery { .. })));
}
