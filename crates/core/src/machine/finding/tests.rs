use std::time::Duration;

use super::super::Machine;
use super::super::core_study::{CoreSharing, SiblingProof, SiblingStudy};
use super::super::counters::{CounterFacts, CycleCounterAccess};
use super::super::cpuid_leaves::CpuidLeaves;
use super::super::fact::{Fact, SystemFiles};
use super::super::kernel_module::{CapabilityRight, ModuleStudy};
use super::super::noise::NoiseBetween;
use super::super::tsc_study::TscStudy;
use super::*;

/// A machine of which only the target CPU is known.
fn unknown_machine() -> Machine {
    Machine::from_sources(CpuidLeaves::default(), &SystemFiles::rooted_at("/nonexistent"))
}

fn find(machine: &Machine, name: &str) -> Option<MachineFinding> {
    collect_findings(&FindingEvidence::from_machine(machine)).into_iter().find(|finding| finding.name == name)
}

#[test]
fn unknown_facts_give_no_findings() {
    let machine = unknown_machine();
    for name in ["governor", "turbo", "isolation", "cpu_quota", "steal", "load", "tsc_rate", "tsc_step"] {
        assert_eq!(find(&machine, name), None, "{name}");
    }
    assert_eq!(find(&machine, "invariant_tsc").unwrap().state, FindingState::Problem);
    assert_eq!(find(&machine, "microarchitecture").unwrap().state, FindingState::Advice);
}

#[test]
fn power_management_has_remedies() {
    let mut machine = unknown_machine();
    let power = &mut machine.target.as_mut().unwrap().power;
    power.governor = Fact::Known("powersave".to_string());
    power.turbo = Fact::Known(true);
    power.turbo_switch = Some(("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"));
    power.huge_pages = Fact::Known("always".to_string());
    let remedy = |name| find(&machine, name).unwrap().remedy.unwrap();
    assert_eq!(remedy("governor"), "sudo cpupower frequency-set -g performance");
    assert_eq!(remedy("turbo"), "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo");
    assert!(remedy("huge_pages").starts_with("echo madvise"));
    machine.target.as_mut().unwrap().power.governor = Fact::Known("performance".to_string());
    assert_eq!(find(&machine, "governor").unwrap().state, FindingState::Ok);
}

#[test]
fn quotas_below_one_cpu_are_problems() {
    let mut machine = unknown_machine();
    for (quota, state) in
        [(None, FindingState::Ok), (Some(2.0), FindingState::Advice), (Some(0.5), FindingState::Problem)]
    {
        machine.quota = Fact::Known(quota);
        assert_eq!(find(&machine, "cpu_quota").unwrap().state, state, "{quota:?}");
    }
}

#[test]
fn unavailable_counters_name_the_reason_and_remedy() {
    let machine = unknown_machine();
    let mut counters = CounterFacts::unknown("not asked");
    let find = |counters: &CounterFacts| {
        let evidence = FindingEvidence { counters: Some(counters), ..FindingEvidence::from_machine(&machine) };
        collect_findings(&evidence).into_iter().find(|finding| finding.name == "counters").unwrap()
    };
    counters.core_cycles = Fact::unknown("kernel.perf_event_paranoid is 4");
    counters.remedy = Some("sudo sysctl kernel.perf_event_paranoid=1".to_string());
    let finding = find(&counters);
    assert!(finding.text.contains("paranoid is 4") && finding.remedy.is_some());
    counters.core_cycles = Fact::Known(CycleCounterAccess { rdpmc: true, width: 48 });
    assert_eq!(find(&counters).state, FindingState::Ok);
}

#[test]
fn remedies_name_the_sibling_and_isolated_cpus() {
    let mut machine = unknown_machine();
    let target = machine.target.as_mut().unwrap();
    target.cpu = 3;
    target.siblings = Fact::Known(vec![7]);
    machine.topology.isolated = Fact::Known(vec![5]);
    let remedy = |name| find(&machine, name).unwrap().remedy.unwrap();
    assert_eq!(remedy("smt_sibling"), "echo 0 | sudo tee /sys/devices/system/cpu/cpu7/online");
    assert_eq!(remedy("isolation"), "cyclescope doctor --cpu 5");
}

#[test]
fn siblings_are_reported_or_proved() {
    let mut machine = unknown_machine();
    let target = machine.target.as_mut().unwrap();
    target.cpu = 3;
    target.siblings = Fact::Known(vec![7]);
    let proof = |cpu, sharing| SiblingStudy {
        proofs: vec![SiblingProof { cpu, sharing, why: None, alone: Some(4.8), beside: Some(2.5), rounds: 99 }],
        untested: Vec::new(),
    };
    let find = |study: &SiblingStudy| {
        let evidence = FindingEvidence { siblings: Some(study), ..FindingEvidence::from_machine(&machine) };
        collect_findings(&evidence).into_iter().find(|finding| finding.name == "smt_sibling").unwrap()
    };
    let both = find(&proof(7, CoreSharing::Shared));
    assert!(both.text.contains("as the kernel reports: it adds 4.8 numbers per cycle alone, 2.5"), "{both:?}");
    let hidden = find(&proof(5, CoreSharing::Shared));
    assert!(hidden.text.contains("the kernel does not report it"), "{hidden:?}");
    assert_eq!(hidden.remedy.unwrap(), "echo 0 | sudo tee /sys/devices/system/cpu/cpu5/online");
    let invented = find(&proof(7, CoreSharing::Separate));
    assert!(invented.state == FindingState::Advice && invented.text.contains("invented"), "{invented:?}");
    assert!(find(&proof(7, CoreSharing::Unclear)).text.ends_with("as the kernel reports"));
    machine.target.as_mut().unwrap().siblings = Fact::Known(Vec::new());
    let evidence =
        FindingEvidence { siblings: Some(&proof(5, CoreSharing::Separate)), ..FindingEvidence::from_machine(&machine) };
    let alone = collect_findings(&evidence).into_iter().find(|finding| finding.name == "smt_sibling").unwrap();
    assert!(alone.state == FindingState::Ok && alone.text.contains("none of CPU 5"), "{alone:?}");
}

#[test]
fn noise_gets_a_severity() {
    let machine = unknown_machine();
    let nothing = || Fact::unknown("not counted");
    let mut between = NoiseBetween {
        steal: Fact::Known(50),
        interrupts: nothing(),
        switches: nothing(),
        preempted: nothing(),
        throttled: nothing(),
    };
    let steal = |between: &NoiseBetween| {
        let evidence = FindingEvidence {
            between: Some((between, 1.0)),
            runnable: Some(2),
            ..FindingEvidence::from_machine(&machine)
        };
        let found = collect_findings(&evidence);
        assert_eq!(found.last().unwrap().name, "neighbours");
        found.into_iter().find(|finding| finding.name == "steal").unwrap()
    };
    assert_eq!(steal(&between).text, "the hypervisor took away 50.0 % of the time");
    assert_eq!(steal(&between).state, FindingState::Advice);
    between.steal = Fact::Known(0);
    assert_eq!(steal(&between).state, FindingState::Ok);
}

/// Findings about the clock, from a real study with simulated changes.
#[test]
fn rate_disagreements_are_found() {
    let machine = Machine::detect();
    let Ok(mut study) = TscStudy::measure(&machine, &CounterFacts::unknown("not asked"), Duration::from_millis(10))
    else {
        cyclescope_skipped::report_skipped("the TSC can't be read here");
        return;
    };
    let find = |study: &TscStudy, name: &str| {
        let evidence = FindingEvidence { study: Some(study), ..FindingEvidence::from_machine(&machine) };
        collect_findings(&evidence).into_iter().find(|finding| finding.name == name).unwrap()
    };
    study.calibration.agreed = true;
    for compared in &mut study.sources {
        compared.ppm = (compared.source.name == "perf page").then_some(-250.0);
    }
    let finding = find(&study, "tsc_rate");
    assert!(finding.state == FindingState::Advice && finding.text.contains("perf page -250 ppm"), "{finding:?}");
    study.calibration.agreed = false;
    assert_eq!(find(&study, "tsc_rate").state, FindingState::Problem);
    study.traps.cpuid = Fact::Known(17_032.0);
    assert_eq!(find(&study, "cpuid_exit").state, FindingState::Advice);
    study.traps.lfence.waits = false;
    assert_eq!(find(&study, "lfence").state, FindingState::Problem);
}

const LOADED: ModuleStudy = ModuleStudy {
    version: 1,
    code: true,
    deadline: true,
    aperf: false,
    tsc: crate::unit::Hertz(2.5e9),
    tsc_ppm: Some(4.0),
};

fn ring_0(machine: &Machine, module: &Fact<ModuleStudy>) -> MachineFinding {
    let evidence = FindingEvidence { module: Some(module), ..FindingEvidence::from_machine(machine) };
    collect_findings(&evidence).into_iter().find(|finding| finding.name == "ring_0").unwrap()
}

/// A machine that could load the module.
fn loadable_machine() -> Machine {
    let mut machine = unknown_machine();
    let facts = &mut machine.kernel_module;
    facts.loaded = Fact::Known(false);
    facts.headers = Fact::Known("/lib/modules/1/build".to_string());
    (facts.closed, facts.signed_only) = (Fact::Known(false), Fact::Known(false));
    (facts.may_load, facts.may_use) = (Fact::Known(CapabilityRight::Held), Fact::Known(CapabilityRight::Held));
    machine
}

#[test]
fn advice_on_loading_the_module_comes_one_step_at_a_time() {
    let mut machine = loadable_machine();
    let none = Fact::unknown("the kernel module is not loaded");
    assert!(ring_0(&machine, &none).remedy.unwrap().contains("insmod"));
    machine.kernel_module.headers = Fact::unknown("there is no /lib/modules/1/build");
    assert!(ring_0(&machine, &none).remedy.unwrap().contains("linux-headers"));
    machine.kernel_module.forecast = Some("a reason");
    let finding = ring_0(&machine, &none);
    assert!(finding.state == FindingState::Ok && finding.text.ends_with("a reason"), "{finding:?}");
    assert_eq!(ring_0(&unknown_machine(), &none).state, FindingState::Ok);
}

#[test]
fn a_loaded_module_works_or_gives_the_reason() {
    let mut machine = loadable_machine();
    machine.kernel_module.loaded = Fact::Known(true);
    machine.kernel_module.refused = Fact::Known(None);
    assert_eq!(ring_0(&machine, &Fact::Known(LOADED)).state, FindingState::Ok);
    let refusing = ring_0(&machine, &Fact::Known(ModuleStudy { code: false, ..LOADED }));
    assert!(refusing.text.contains("measures only markers"), "{refusing:?}");
    let closed = Fact::unknown("it is for root");
    assert!(ring_0(&machine, &closed).remedy.unwrap().contains("rmmod"));
    machine.kernel_module.may_use = Fact::Known(CapabilityRight::AsRoot);
    assert_eq!(ring_0(&machine, &closed).remedy.unwrap(), "sudo cyclescope doctor");
    machine.kernel_module.may_use = Fact::Known(CapabilityRight::Never);
    assert!(ring_0(&machine, &closed).text.contains("container"));
    machine.kernel_module.lockdown = Fact::Known(Some("integrity".to_string()));
    assert_eq!(ring_0(&machine, &closed).remedy, None);
    machine.kernel_module.refused = Fact::Known(Some("a reason".to_string()));
    assert!(ring_0(&machine, &closed).text.ends_with("rejects this machine: a reason"));
}

#[test]
fn a_missing_deadline_and_a_wrong_rate_are_reported() {
    let machine = loadable_machine();
    let find = |module: ModuleStudy, name: &str| {
        let module = Fact::Known(module);
        let evidence = FindingEvidence { module: Some(&module), ..FindingEvidence::from_machine(&machine) };
        collect_findings(&evidence).into_iter().find(|finding| finding.name == name)
    };
    assert_eq!(find(LOADED, "ring_0_deadline").unwrap().state, FindingState::Ok);
    let alone = find(ModuleStudy { deadline: false, ..LOADED }, "ring_0_deadline").unwrap();
    assert!(alone.state == FindingState::Advice && alone.text.contains("--force"), "{alone:?}");
    assert_eq!(find(LOADED, "ring_0_tsc_rate").unwrap().state, FindingState::Ok);
    let off = ModuleStudy { tsc_ppm: Some(-900.0), ..LOADED };
    assert_eq!(find(off, "ring_0_tsc_rate").unwrap().state, FindingState::Advice);
    assert_eq!(find(ModuleStudy { tsc_ppm: None, ..LOADED }, "ring_0_tsc_rate"), None);
}
