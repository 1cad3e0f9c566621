//! The sections of the report.

use crate::args::Common;
use crate::output::page::Page;
use crate::output::{Failure, Output};
use cyclescope::doctor::Diagnosis;
use cyclescope::machine::Machine;
use cyclescope::machine::core_study::{CoreStudy, Phases, Sharing, SiblingProof, SiblingStudy};
use cyclescope::machine::cpu::{CoreType, Cpu};
use cyclescope::machine::fact::Fact;
use cyclescope::machine::features::LfenceOrder;
use cyclescope::machine::finding::State;
use cyclescope::machine::topology::cpu_list;
use cyclescope::machine::traps::Traps;
use cyclescope::machine::tsc::TscFacts;
use cyclescope::machine::tsc_study::{ReadingStep, TscStudy};
use cyclescope::statistics::Interval;
use cyclescope::unit::Hertz;
use cyclescope::unit::Unit;
use iced_x86::CpuidFeature as F;

/// Features that decide what can be measured, or how; JSON has them all.
const NOTABLE: &[F] = &[
    F::SSE2,
    F::SSE4_2,
    F::AVX,
    F::AVX2,
    F::FMA,
    F::BMI2,
    F::AVX512F,
    F::AVX512VL,
    F::AVX512_FP16,
    F::AMX_TILE,
    F::SHA,
    F::RTM,
    F::RDTSCP,
    F::RDPRU,
    F::SERIALIZE,
];

fn yes(value: &bool) -> String {
    if *value { "yes" } else { "no" }.to_string()
}

/// The processor and where it runs.
pub fn processor(page: &mut Page, machine: &Machine, common: &Common) -> Result<(), Failure> {
    let cpu = &machine.cpu;
    page.section("Processor")?;
    page.fact("name", &cpu.brand, String::clone)?;
    page.row("design", &design(cpu))?;
    page.fact("microcode", &cpu.microcode, |revision| format!("revision {revision:#x}"))?;
    let has = |feature: &&F| machine.features.has(**feature);
    let names: Vec<String> =
        NOTABLE.iter().filter(has).map(|f| cyclescope::machine::features::name(*f)).collect();
    let all = machine.features.usable().count();
    page.row("features", &format!("{} and others, {all} in all", names.join(", ")))?;
    page.row(
        "hypervisor",
        &match &machine.hypervisor {
            Some(hypervisor) => format!("{}: this is a virtual machine", hypervisor.name),
            None => "none found".to_string(),
        },
    )?;
    page.row("kernel", &format!("Linux {}", machine.kernel))?;
    page.row("core types", &core_types(machine))?;
    let Some(target) = &machine.target else {
        return page.unknown("CPU examined", "no CPU is known to be allowed");
    };
    let allowed =
        machine.topology.allowed.known().map_or(String::new(), |cpus| format!(" of {}", cpu_list(cpus)));
    let choice =
        if common.cpu.is_some() { "as asked for" } else { "the last one allowed; --cpu N selects another" };
    page.row("CPU examined", &format!("{}{allowed} ({choice})", target.cpu))
}

fn design(cpu: &Cpu) -> String {
    let numbers = format!(
        "{} family {} ({:x}h), model {} ({:x}h), stepping {}",
        cpu.vendor_text, cpu.family, cpu.family, cpu.model, cpu.model, cpu.stepping
    );
    match &cpu.microarchitecture {
        Fact::Known(_) => format!("{}; {numbers}", cpu.name()),
        Fact::Unknown(why) => format!("unknown; {numbers}: {why}"),
    }
}

fn core_types(machine: &Machine) -> String {
    if !machine.cpu.hybrid {
        return "all cores are of one type".to_string();
    }
    let own = match machine.cpu.core_type.known() {
        Some(CoreType::Performance) => "a performance core",
        Some(CoreType::Efficient) => "an efficient core",
        None => "of unknown type",
    };
    match machine.topology.efficient.known() {
        Some(cpus) => format!("two; this one is {own}; efficient cores: CPU {}", cpu_list(cpus)),
        None => format!("two; this one is {own}"),
    }
}

/// Facts about the TSC.
pub struct Tsc<'a> {
    /// By CPUID and the kernel.
    pub told: &'a TscFacts,
    /// The property that makes LFENCE wait.
    pub lfence: &'a Fact<LfenceOrder>,
    /// By experiments.
    pub study: &'a Fact<TscStudy>,
    /// Whether means average out its step.
    pub phases: &'a Fact<Phases>,
}

/// The time stamp counter.
pub fn tsc(page: &mut Page, found: &Tsc) -> Result<(), Failure> {
    let tsc = found.told;
    page.section("Time stamp counter (TSC)")?;
    page.row("readable", &tsc.disabled.as_ref().map_or("yes".to_string(), |why| format!("no: {why}")))?;
    let told = |flag: &bool, what: &str| format!("{} (reported by the kernel: {what})", yes(flag));
    page.fact("constant", &tsc.constant, |flag| told(flag, "its rate does not follow the core clock"))?;
    page.fact("nonstop", &tsc.nonstop, |flag| told(flag, "it keeps counting in sleep states"))?;
    page.row("invariant", &format!("{} (CPUID promises both)", yes(&tsc.invariant)))?;
    page.fact("kernel's clock", &tsc.clocksource, String::clone)?;
    let study = match found.study {
        Fact::Known(study) => study,
        Fact::Unknown(why) => return page.unknown("rate, step, cost", why),
    };
    rates(page, study)?;
    let steps: Vec<String> = study.steps.iter().map(step).collect();
    page.row("step in ticks", &steps.join(", "))?;
    page.fact("phases of step", found.phases, |phases| {
        let verdict =
            if phases.uniform { "uniform: means resolve less than the step" } else { "not uniform" };
        format!("{verdict} (off by {:.3} of it)", phases.off_line)
    })?;
    costs(page, &study.traps)?;
    page.row("LFENCE", &lfence(found.lfence, study))
}

fn step(found: &ReadingStep) -> String {
    let name = found.reading.text();
    match &found.step {
        Fact::Unknown(why) => format!("{name} not known ({why})"),
        Fact::Known(step) if step.off_by_one > 0.005 => {
            format!("{name} {} ({:.0} % one tick beside)", short(step.ticks), 100.0 * step.off_by_one)
        }
        Fact::Known(step) => format!("{name} {}", short(step.ticks)),
    }
}

/// A number with at most four digits after the point.
fn short(number: f64) -> String {
    format!("{number:.4}").trim_end_matches('0').trim_end_matches('.').to_string()
}

fn rates(page: &mut Page, study: &TscStudy) -> Result<(), Failure> {
    let calibration = &study.calibration;
    let half = calibration.high.ppm_above(calibration.low) / 2.0;
    page.row("rate", "in MHz, and in ppm (millionths) how far above the one measured here")?;
    let span = calibration.span_ns / 1_000_000;
    let rate = |hertz: Hertz| format!("{:.6}", hertz.megahertz());
    let text = format!("± {half:.2} ppm, in {span} ms of CLOCK_MONOTONIC_RAW");
    page.table_row("measured here", &rate(calibration.hertz), &text)?;
    for compared in &study.sources {
        let name = compared.source.name;
        match (&compared.source.rate, compared.ppm) {
            (Fact::Known(hertz), Some(ppm)) => {
                page.table_row(name, &rate(*hertz), &format!("{ppm:+.2} ppm"))?
            }
            (Fact::Unknown(why), _) => page.table_row(name, "-", why)?,
            (Fact::Known(hertz), None) => page.table_row(name, &rate(*hertz), "")?,
        }
    }
    match &calibration.ntp_ppm {
        Fact::Known(ppm) => page.table_row("network time (NTP)", "", &format!("corrects by {ppm:+.2} ppm")),
        Fact::Unknown(why) => page.table_row("network time (NTP)", "-", why),
    }
}

fn costs(page: &mut Page, traps: &Traps) -> Result<(), Failure> {
    let mut text = format!("rdtsc {:.0}, lfence; rdtsc {:.0}", traps.rdtsc, traps.lfence_rdtsc);
    if let Some(ticks) = traps.rdtscp.known() {
        text.push_str(&format!(", rdtscp {ticks:.0}"));
    }
    if let Some(ticks) = traps.cpuid.known() {
        text.push_str(&format!(", cpuid {ticks:.0}"));
    }
    page.row("cost in ticks", &text)?;
    let trap = |traps: bool| if traps { "yes: the hypervisor or kernel handles each" } else { "no" };
    page.row("RDTSC traps", trap(traps.tsc_exits()))?;
    match traps.cpuid_exits() {
        Some(exits) => page.row("CPUID traps", trap(exits)),
        None => page.unknown("CPUID traps", traps.cpuid.why().unwrap_or_default()),
    }
}

fn lfence(order: &Fact<LfenceOrder>, study: &TscStudy) -> String {
    let promise = match order.known() {
        Some(LfenceOrder::Architectural) => "promised by its definition",
        Some(LfenceOrder::AlwaysSerializing) => "promised by this processor",
        Some(LfenceOrder::SetByKernel) => "enabled by the kernel",
        None => "not promised",
    };
    let proof = &study.traps.lfence;
    let (verdict, experiment) = if proof.waits {
        ("waits until earlier instructions are done", "seen in an experiment")
    } else {
        ("does not wait for earlier instructions", "as an experiment shows")
    };
    format!("{verdict} ({promise}, {experiment})")
}

/// The core by the ruler.
pub fn core(page: &mut Page, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.section("Core clock, by chains of known length (the ruler)")?;
    page.fact("read with", &diagnosis.clock, |clock| format!("{} ({})", clock.name, clock.why))?;
    match &diagnosis.core {
        Fact::Unknown(why) => page.unknown("core clock", why)?,
        Fact::Known(core) => core_rows(page, core)?,
    }
    match &diagnosis.siblings {
        Fact::Unknown(why) => page.unknown("shares core with", why),
        Fact::Known(study) => sibling_rows(page, study),
    }
}

fn core_rows(page: &mut Page, core: &CoreStudy) -> Result<(), Failure> {
    match (&core.megahertz, core.range) {
        (Some(found), Some([low, high])) => {
            let text =
                format!("{} MHz; {low:.0} to {high:.0} over {} layouts", plus_minus(found), core.layouts);
            page.row("core clock", &text)?;
        }
        _ => page.unknown("core clock", "the rate of the clock that was read is not known")?,
    }
    let cycle = format!("one core cycle is {} {}", plus_minus(&core.raw_per_cycle), core.unit.text());
    match core.unit {
        Unit::TscTicks => {
            page.row("TSC : core", &format!("1 : {:.4}; {cycle}", 1.0 / core.raw_per_cycle.value))?
        }
        _ => page.row("core cycle", &cycle)?,
    }
    let known = match core.imul_known {
        Some(known) => format!("on this design: {known}"),
        None => "this design's figure is not known".to_string(),
    };
    page.row("imul : add", &format!("{} ({known})", plus_minus(&core.imul)))?;
    if let Some(link) = core.add_link() {
        page.row("one add takes", &format!("{} core cycles by the imul chain", plus_minus(&link)))?;
    }
    let [low, median, high] = core.width;
    let known =
        core.width_known.map_or(String::new(), |known| format!("; at most {known:.1} on this design"));
    page.row("width", &format!("{median:.2} independent adds a cycle ({low:.2} to {high:.2}){known}"))
}

fn plus_minus(interval: &Interval) -> String {
    let half = interval.half_width();
    if !half.is_finite() {
        return short(interval.value);
    }
    // One digit beyond the interval's first.
    let digits = if half > 0.0 { (1.0 - half.log10().floor()).clamp(1.0, 7.0) as usize } else { 4 };
    format!("{:.digits$} ± {half:.digits$}", interval.value)
}

fn sibling_rows(page: &mut Page, study: &SiblingStudy) -> Result<(), Failure> {
    if study.proofs.is_empty() && study.untested.is_empty() {
        return page.row("shares core with", "this process may use no other CPU, so none was tried");
    }
    let mut label = "shares core with";
    for proof in &study.proofs {
        page.row(label, &proof_text(proof))?;
        label = "";
    }
    if !study.untested.is_empty() {
        page.row(label, &format!("not tried: CPU {}", cpu_list(&sorted(&study.untested))))?;
    }
    Ok(())
}

fn sorted(cpus: &[u32]) -> Vec<u32> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

fn proof_text(proof: &SiblingProof) -> String {
    let verdict = match proof.sharing {
        Sharing::Shared => "yes",
        Sharing::Separate => "no",
        Sharing::Unclear => "unclear",
    };
    let widths = match (proof.alone, proof.beside) {
        (Some(alone), Some(beside)) => format!(" ({alone:.2} adds a cycle, {beside:.2} while it was busy)"),
        _ => String::new(),
    };
    let why = proof.why.as_ref().map_or(String::new(), |why| format!("; {why}"));
    format!("CPU {}: {verdict}{widths}{why}", proof.cpu)
}

/// Performance counters.
pub fn counters(page: &mut Page, diagnosis: &Diagnosis) -> Result<(), Failure> {
    let counters = &diagnosis.counters;
    let no = |page: &mut Page, label: &str, why: &str| {
        page.painted_row(label, &format!("no: {why}"), Output::faint)
    };
    page.section("Counters of core cycles")?;
    match &counters.core_cycles {
        Fact::Known(counter) if counter.rdpmc => {
            page.row("perf event", &format!("yes, {} bits, also by RDPMC", counter.width))?
        }
        Fact::Known(_) => page.row("perf event", "yes, but not by RDPMC in user mode")?,
        Fact::Unknown(why) => no(page, "perf event", why)?,
    }
    match &counters.rdpru_aperf {
        Fact::Known(()) => page.row("APERF by RDPRU", "yes")?,
        Fact::Unknown(why) => no(page, "APERF by RDPRU", why)?,
    }
    match &counters.msr_events {
        Fact::Known(names) if names.iter().any(|name| name == "aperf") => page.row("APERF by perf", "yes")?,
        Fact::Known(_) => no(page, "APERF by perf", "its device msr has no event aperf")?,
        Fact::Unknown(why) => no(page, "APERF by perf", why)?,
    }
    page.fact("paranoid level", &counters.paranoid, |level| {
        format!("{level} (kernel.perf_event_paranoid: above 2 some systems refuse users)")
    })
}

/// Possible disturbances.
pub fn surroundings(page: &mut Page, machine: &Machine, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.section("Surroundings")?;
    if let Some(target) = &machine.target {
        page.fact("kernel's siblings", &target.siblings, |cpus| match cpus.as_slice() {
            [] => "none: the kernel reports one CPU on this core".to_string(),
            cpus => format!("CPU {} on the same core", cpu_list(cpus)),
        })?;
        let power = &target.power;
        page.fact("governor", &power.governor, |name| match power.driver.known() {
            Some(driver) => format!("{name} (driver {driver})"),
            None => name.clone(),
        })?;
        page.fact("turbo", &power.turbo, |on| if *on { "on" } else { "off" }.to_string())?;
        page.fact("huge pages", &power.huge_pages, |mode| format!("{mode} (transparent huge pages)"))?;
    }
    let list = |cpus: &Vec<u32>| if cpus.is_empty() { "none".to_string() } else { cpu_list(cpus) };
    page.fact("isolated CPUs", &machine.topology.isolated, list)?;
    page.fact("tickless CPUs", &machine.topology.tickless, list)?;
    page.fact("CPU quota", &machine.quota, |quota| match quota {
        Some(cpus) => format!("{cpus:.2} CPUs"),
        None => "none".to_string(),
    })?;
    let (noise, between, seconds) = (&diagnosis.noise, &diagnosis.between, diagnosis.seconds);
    page.fact("stolen time", &between.steal, |ticks| {
        format!("{:.1} % (taken by the hypervisor)", *ticks as f64 / seconds.max(0.01))
    })?;
    page.fact("interrupts", &between.interrupts, |count| {
        format!("{:.0} a second on this CPU", *count as f64 / seconds.max(0.01))
    })?;
    page.fact("load", &noise.load, |load| format!("{load:.2} tasks over the last minute, all CPUs"))?;
    page.fact("other tasks", &diagnosis.runnable, |count| match count {
        0 => "none ready on this CPU".to_string(),
        count => format!("{count} ready on this CPU"),
    })?;
    page.row("examined for", &format!("{seconds:.2} s"))
}

/// Findings.
pub fn findings(page: &mut Page, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.section("Findings")?;
    let with = |state: State| diagnosis.findings.iter().filter(move |finding| finding.state == state);
    page.row("in short", &summary(diagnosis, with(State::Problem).count(), with(State::Advice).count()))?;
    for (state, mark) in [(State::Problem, "PROBLEM"), (State::Advice, "advice")] {
        for finding in with(state) {
            page.painted_row(mark, &format!("{}: {}", finding.name, finding.text), Output::yellow)?;
            if let Some(remedy) = &finding.remedy {
                page.command("  to change it", remedy)?;
            }
        }
    }
    let fine: Vec<&str> = with(State::Ok).map(|finding| finding.name).collect();
    page.row("ok", &format!("{} (--json has their texts)", fine.join(", ")))
}

fn summary(diagnosis: &Diagnosis, problems: usize, advice: usize) -> String {
    let able = match (&diagnosis.core, &diagnosis.counters.core_cycles) {
        (Fact::Unknown(_), _) => "core cycles can't be measured here",
        (Fact::Known(_), Fact::Known(_)) => "core cycles can be measured here, by the ruler and a counter",
        (Fact::Known(_), Fact::Unknown(_)) => "core cycles can be measured here, by the ruler",
    };
    let count = |count: usize, one: &str, many: &str| match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    format!(
        "{able}; {}, {}",
        count(problems, "problem", "problems"),
        count(advice, "piece of advice", "pieces of advice")
    )
}
