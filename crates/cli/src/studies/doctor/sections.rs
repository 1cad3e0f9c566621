//! The sections of the doctor's report.

use crate::args::{CommonArgs, format_size};
use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use cyclescope::doctor::Diagnosis;
use cyclescope::machine::Machine;
use cyclescope::machine::cache::CacheKind;
use cyclescope::machine::core_study::{CoreSharing, CoreStudy, SiblingProof, SiblingStudy, StepPhases};
use cyclescope::machine::fact::Fact;
use cyclescope::machine::features::LfenceOrder;
use cyclescope::machine::finding::FindingState;
use cyclescope::machine::processor::{CoreType, Processor};
use cyclescope::machine::timing_costs::TimingCosts;
use cyclescope::machine::topology::format_cpu_list;
use cyclescope::machine::tsc::TscFacts;
use cyclescope::machine::tsc_study::{ReadingStep, TscStudy};
use cyclescope::statistics::Interval;
use cyclescope::unit::Hertz;
use cyclescope::unit::Unit;
use cyclescope_platform::{kernel, time};
use iced_x86::CpuidFeature as F;

/// Features that affect what can be measured, and how. JSON lists all features.
const NOTABLE_FEATURES: &[F] = &[
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

fn yes_or_no(value: &bool) -> String {
    if *value { "yes" } else { "no" }.to_string()
}

/// Prints the processor and where it runs.
pub fn print_processor(page: &mut TextPage, machine: &Machine, common: &CommonArgs) -> Result<(), Failure> {
    let cpu = &machine.cpu;
    page.begin_section("Processor")?;
    page.print_fact("name", &cpu.brand, String::clone)?;
    page.print_row("design", &describe_design(cpu))?;
    page.print_fact("microcode", &cpu.microcode, |revision| format!("revision {revision:#x}"))?;
    let has = |feature: &&F| machine.features.has(**feature);
    let names: Vec<String> =
        NOTABLE_FEATURES.iter().filter(has).map(|f| cyclescope::machine::features::feature_name(*f)).collect();
    let all = machine.features.list_usable().count();
    page.print_row("features", &format!("{} and others, {all} in all", names.join(", ")))?;
    page.print_row(
        "hypervisor",
        &match &machine.hypervisor {
            Some(hypervisor) => format!("{}: this is a virtual machine", hypervisor.name),
            None => "none found".to_string(),
        },
    )?;
    page.print_row("kernel", &format!("{} {}", kernel::SYSTEM_NAME, machine.kernel))?;
    page.print_row("core types", &describe_core_types(machine))?;
    page.print_row("caches", &describe_caches(machine))?;
    let Some(target) = &machine.target else {
        return page.print_unknown("CPU examined", "no CPU is known to be allowed");
    };
    let allowed =
        machine.topology.allowed.known().map_or(String::new(), |cpus| format!(" of {}", format_cpu_list(cpus)));
    let choice = if common.cpu.is_some() { "as requested" } else { "the last one allowed; --cpu N selects another" };
    page.print_row("CPU examined", &format!("{}{allowed} ({choice})", target.cpu))
}

fn describe_design(cpu: &Processor) -> String {
    let numbers = format!(
        "{} family {} ({:x}h), model {} ({:x}h), stepping {}",
        cpu.vendor_text, cpu.family, cpu.family, cpu.model, cpu.model, cpu.stepping
    );
    match &cpu.microarchitecture {
        Fact::Known(_) => format!("{}; {numbers}", cpu.name()),
        Fact::Unknown(why) => format!("unknown; {numbers}: {why}"),
    }
}

/// The caches as CPUID describes them, and what the kernel says otherwise.
fn describe_caches(machine: &Machine) -> String {
    let text = |level: u32, kind: CacheKind, bytes: u64| {
        let kind = match kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        format!("L{level}{kind} {}", format_size(bytes))
    };
    let all = &machine.topology.caches;
    let by_cpuid: Vec<String> = all.iter().map(|cache| text(cache.level, cache.kind, cache.bytes)).collect();
    let by_cpuid = if by_cpuid.is_empty() { "CPUID names none".to_string() } else { by_cpuid.join(", ") };
    let Some(target) = &machine.target else { return by_cpuid };
    match &target.caches {
        Fact::Unknown(why) => format!("{by_cpuid} (CPUID); the kernel names none: {why}"),
        Fact::Known(found) => {
            let by_kernel: Vec<String> = found
                .iter()
                .map(|cache| {
                    let cpus = if cache.cpus == [target.cpu] {
                        String::new()
                    } else {
                        format!(" for CPU {}", format_cpu_list(&cache.cpus))
                    };
                    format!("{}{cpus}", text(cache.level, cache.kind, cache.bytes))
                })
                .collect();
            format!("{by_cpuid} (CPUID); {} (kernel)", by_kernel.join(", "))
        }
    }
}

fn describe_core_types(machine: &Machine) -> String {
    if !machine.cpu.hybrid {
        return "all cores are of one type".to_string();
    }
    let own = match machine.cpu.core_type.known() {
        Some(CoreType::Performance) => "a performance core",
        Some(CoreType::Efficient) => "an efficient core",
        None => "of unknown type",
    };
    match machine.topology.efficient.known() {
        Some(cpus) => format!("two; this one is {own}; efficient cores: CPU {}", format_cpu_list(cpus)),
        None => format!("two; this one is {own}"),
    }
}

/// Facts about the TSC.
pub struct TscSection<'a> {
    /// Reported by CPUID and the kernel.
    pub facts: &'a TscFacts,
    /// The property that makes LFENCE wait for earlier instructions.
    pub lfence: &'a Fact<LfenceOrder>,
    /// Found by experiments.
    pub study: &'a Fact<TscStudy>,
    /// Whether means average out the TSC's step.
    pub phases: &'a Fact<StepPhases>,
}

/// Prints the section on the time stamp counter.
pub fn print_tsc(page: &mut TextPage, found: &TscSection) -> Result<(), Failure> {
    let tsc = found.facts;
    page.begin_section("Time stamp counter (TSC)")?;
    page.print_row("readable", &tsc.disabled.as_ref().map_or("yes".to_string(), |why| format!("no: {why}")))?;
    let reported = |flag: &bool, what: &str| format!("{} (reported by the kernel: {what})", yes_or_no(flag));
    page.print_fact("constant", &tsc.constant, |flag| reported(flag, "its rate does not follow the core clock"))?;
    page.print_fact("nonstop", &tsc.nonstop, |flag| reported(flag, "it keeps counting in sleep states"))?;
    page.print_row("invariant", &format!("{} (CPUID promises both)", yes_or_no(&tsc.invariant)))?;
    page.print_fact("kernel's clock", &tsc.clocksource, String::clone)?;
    let study = match found.study {
        Fact::Known(study) => study,
        Fact::Unknown(why) => return page.print_unknown("rate, step, cost", why),
    };
    print_rates(page, study)?;
    let steps: Vec<String> = study.steps.iter().map(describe_step).collect();
    page.print_row("step in ticks", &steps.join(", "))?;
    page.print_fact("phases of step", found.phases, |phases| {
        let verdict = if phases.uniform { "uniform: means resolve less than the step" } else { "not uniform" };
        format!("{verdict} (off by {:.3} of it)", phases.off_line)
    })?;
    print_costs(page, &study.traps)?;
    page.print_row("LFENCE", &describe_lfence(found.lfence, study))
}

fn describe_step(found: &ReadingStep) -> String {
    let name = found.reading.text();
    match &found.step {
        Fact::Unknown(why) => format!("{name} not known ({why})"),
        Fact::Known(step) if step.off_by_one > 0.005 => {
            format!("{name} {} ({:.0} % off by one tick)", format_short(step.ticks), 100.0 * step.off_by_one)
        }
        Fact::Known(step) => format!("{name} {}", format_short(step.ticks)),
    }
}

/// Formats a number with at most four digits after the point.
fn format_short(number: f64) -> String {
    format!("{number:.4}").trim_end_matches('0').trim_end_matches('.').to_string()
}

fn print_rates(page: &mut TextPage, study: &TscStudy) -> Result<(), Failure> {
    let calibration = &study.calibration;
    let half = calibration.high.ppm_above(calibration.low) / 2.0;
    page.print_row("rate", "in MHz, and in ppm (millionths) how far above the one measured here")?;
    let span = calibration.span_ns / 1_000_000;
    let rate = |hertz: Hertz| format!("{:.6}", hertz.to_megahertz());
    let text = format!("± {half:.2} ppm, in {span} ms of {}", time::STEADY_CLOCK);
    page.print_table_row("measured here", &rate(calibration.hertz), &text)?;
    for compared in &study.sources {
        let name = compared.source.name;
        match (&compared.source.rate, compared.ppm) {
            (Fact::Known(hertz), Some(ppm)) => page.print_table_row(name, &rate(*hertz), &format!("{ppm:+.2} ppm"))?,
            (Fact::Unknown(why), _) => page.print_table_row(name, "-", why)?,
            (Fact::Known(hertz), None) => page.print_table_row(name, &rate(*hertz), "")?,
        }
    }
    match &calibration.ntp_ppm {
        Fact::Known(ppm) => page.print_table_row("network time (NTP)", "", &format!("corrects by {ppm:+.2} ppm")),
        Fact::Unknown(why) => page.print_table_row("network time (NTP)", "-", why),
    }
}

fn print_costs(page: &mut TextPage, traps: &TimingCosts) -> Result<(), Failure> {
    let mut text = format!("rdtsc {:.0}, lfence; rdtsc {:.0}", traps.rdtsc, traps.lfence_rdtsc);
    if let Some(ticks) = traps.rdtscp.known() {
        text.push_str(&format!(", rdtscp {ticks:.0}"));
    }
    if let Some(ticks) = traps.cpuid.known() {
        text.push_str(&format!(", cpuid {ticks:.0}"));
    }
    page.print_row("cost in ticks", &text)?;
    let trap = |traps: bool| if traps { "yes: the hypervisor or kernel handles each" } else { "no" };
    page.print_row("RDTSC traps", trap(traps.tsc_exits()))?;
    match traps.cpuid_exits() {
        Some(exits) => page.print_row("CPUID traps", trap(exits)),
        None => page.print_unknown("CPUID traps", traps.cpuid.why().unwrap_or_default()),
    }
}

fn describe_lfence(order: &Fact<LfenceOrder>, study: &TscStudy) -> String {
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

/// Prints the core's clock and width, measured with the ruler.
pub fn print_core(page: &mut TextPage, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.begin_section("Core clock, by chains of known length (the ruler)")?;
    page.print_fact("read with", &diagnosis.clock, |clock| format!("{} ({})", clock.name, clock.why))?;
    match &diagnosis.core {
        Fact::Unknown(why) => page.print_unknown("core clock", why)?,
        Fact::Known(core) => print_core_rows(page, core)?,
    }
    match &diagnosis.siblings {
        Fact::Unknown(why) => page.print_unknown("shares core with", why),
        Fact::Known(study) => print_siblings(page, study),
    }
}

fn print_core_rows(page: &mut TextPage, core: &CoreStudy) -> Result<(), Failure> {
    match (&core.megahertz, core.range) {
        (Some(found), Some([low, high])) => {
            let text = format!("{} MHz; {low:.0} to {high:.0} over {} layouts", format_interval(found), core.layouts);
            page.print_row("core clock", &text)?;
        }
        _ => page.print_unknown("core clock", "the rate of the clock used is unknown")?,
    }
    let cycle = format!("one core cycle is {} {}", format_interval(&core.raw_per_cycle), core.unit.text());
    match core.unit {
        Unit::TscTicks => {
            page.print_row("TSC : core", &format!("1 : {:.4}; {cycle}", 1.0 / core.raw_per_cycle.value))?
        }
        _ => page.print_row("core cycle", &cycle)?,
    }
    let known = match core.imul_known {
        Some(known) => format!("on this design: {known}"),
        None => "the figure of this design is unknown".to_string(),
    };
    page.print_row("imul : add", &format!("{} ({known})", format_interval(&core.imul)))?;
    if let Some(link) = core.add_link_cycles() {
        page.print_row("one add takes", &format!("{} core cycles by the imul chain", format_interval(&link)))?;
    }
    let [low, median, high] = core.width;
    let known = core.width_known.map_or(String::new(), |known| format!("; at most {known:.1} on this design"));
    page.print_row("width", &format!("{median:.2} independent adds per cycle ({low:.2} to {high:.2}){known}"))
}

fn format_interval(interval: &Interval) -> String {
    let half = interval.half_width();
    if !half.is_finite() {
        return format_short(interval.value);
    }
    // One digit more than the interval's first.
    let digits = if half > 0.0 { (1.0 - half.log10().floor()).clamp(1.0, 7.0) as usize } else { 4 };
    format!("{:.digits$} ± {half:.digits$}", interval.value)
}

fn print_siblings(page: &mut TextPage, study: &SiblingStudy) -> Result<(), Failure> {
    if study.proofs.is_empty() && study.untested.is_empty() {
        return page.print_row("shares core with", "not tried: this process may use no other CPU");
    }
    let mut label = "shares core with";
    for proof in &study.proofs {
        page.print_row(label, &describe_proof(proof))?;
        label = "";
    }
    if !study.untested.is_empty() {
        page.print_row(label, &format!("not tried: CPU {}", format_cpu_list(&sort_cpus(&study.untested))))?;
    }
    Ok(())
}

fn sort_cpus(cpus: &[u32]) -> Vec<u32> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

fn describe_proof(proof: &SiblingProof) -> String {
    let verdict = match proof.sharing {
        CoreSharing::Shared => "yes",
        CoreSharing::Separate => "no",
        CoreSharing::Unclear => "unclear",
    };
    let widths = match (proof.alone, proof.beside) {
        (Some(alone), Some(beside)) => format!(" ({alone:.2} adds per cycle, {beside:.2} while it was busy)"),
        _ => String::new(),
    };
    let why = proof.why.as_ref().map_or(String::new(), |why| format!("; {why}"));
    format!("CPU {}: {verdict}{widths}{why}", proof.cpu)
}

/// Prints the available performance counters.
pub fn print_counters(page: &mut TextPage, diagnosis: &Diagnosis) -> Result<(), Failure> {
    let counters = &diagnosis.counters;
    let no = |page: &mut TextPage, label: &str, why: &str| {
        page.print_painted_row(label, &format!("no: {why}"), Output::faint)
    };
    page.begin_section("Counters of core cycles")?;
    match &counters.core_cycles {
        Fact::Known(counter) if counter.rdpmc => {
            page.print_row("perf event", &format!("yes, {} bits, also by RDPMC", counter.width))?
        }
        Fact::Known(_) => page.print_row("perf event", "yes, but not by RDPMC in user mode")?,
        Fact::Unknown(why) => no(page, "perf event", why)?,
    }
    match &counters.rdpru_aperf {
        Fact::Known(()) => page.print_row("APERF by RDPRU", "yes")?,
        Fact::Unknown(why) => no(page, "APERF by RDPRU", why)?,
    }
    match &counters.msr_events {
        Fact::Known(names) if names.iter().any(|name| name == "aperf") => page.print_row("APERF by perf", "yes")?,
        Fact::Known(_) => no(page, "APERF by perf", "its device msr has no event aperf")?,
        Fact::Unknown(why) => no(page, "APERF by perf", why)?,
    }
    page.print_fact("paranoid level", &counters.paranoid, |level| {
        format!("{level} (kernel.perf_event_paranoid: above 2 some systems refuse users)")
    })
}

/// Prints possible disturbances.
pub fn print_surroundings(page: &mut TextPage, machine: &Machine, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.begin_section("Surroundings")?;
    if let Some(target) = &machine.target {
        page.print_fact("kernel's siblings", &target.siblings, |cpus| match cpus.as_slice() {
            [] => "none: the kernel reports one CPU on this core".to_string(),
            cpus => format!("CPU {} on the same core", format_cpu_list(cpus)),
        })?;
        let power = &target.power;
        page.print_fact("governor", &power.governor, |name| match power.driver.known() {
            Some(driver) => format!("{name} (driver {driver})"),
            None => name.clone(),
        })?;
        page.print_fact("turbo", &power.turbo, |on| if *on { "on" } else { "off" }.to_string())?;
        page.print_fact("huge pages", &power.huge_pages, |mode| format!("{mode} (transparent huge pages)"))?;
    }
    let list = |cpus: &Vec<u32>| if cpus.is_empty() { "none".to_string() } else { format_cpu_list(cpus) };
    page.print_fact("isolated CPUs", &machine.topology.isolated, list)?;
    page.print_fact("tickless CPUs", &machine.topology.tickless, list)?;
    page.print_fact("CPU quota", &machine.quota, |quota| match quota {
        Some(cpus) => format!("{cpus:.2} CPUs"),
        None => "none".to_string(),
    })?;
    let (noise, between, seconds) = (&diagnosis.noise, &diagnosis.between, diagnosis.seconds);
    page.print_fact("stolen time", &between.steal, |ticks| {
        format!("{:.1} % (taken by the hypervisor)", *ticks as f64 / seconds.max(0.01))
    })?;
    page.print_fact("interrupts", &between.interrupts, |count| {
        format!("{:.0} a second on this CPU", *count as f64 / seconds.max(0.01))
    })?;
    page.print_fact("load", &noise.load, |load| format!("{load:.2} tasks over the last minute, all CPUs"))?;
    page.print_fact("other tasks", &diagnosis.runnable, |count| match count {
        0 => "none ready on this CPU".to_string(),
        count => format!("{count} ready on this CPU"),
    })?;
    page.print_row("examined for", &format!("{seconds:.2} s"))
}

/// Prints the findings.
pub fn print_findings(page: &mut TextPage, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.begin_section("Findings")?;
    let with = |state: FindingState| diagnosis.findings.iter().filter(move |finding| finding.state == state);
    page.print_row(
        "in short",
        &summarize_findings(diagnosis, with(FindingState::Problem).count(), with(FindingState::Advice).count()),
    )?;
    for (state, mark) in [(FindingState::Problem, "PROBLEM"), (FindingState::Advice, "advice")] {
        for finding in with(state) {
            page.print_painted_row(mark, &format!("{}: {}", finding.name, finding.text), Output::yellow)?;
            if let Some(remedy) = &finding.remedy {
                page.print_command("  to change it", remedy)?;
            }
        }
    }
    let fine: Vec<&str> = with(FindingState::Ok).map(|finding| finding.name).collect();
    page.print_row("ok", &format!("{} (--json has their texts)", fine.join(", ")))
}

fn summarize_findings(diagnosis: &Diagnosis, problems: usize, advice: usize) -> String {
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
