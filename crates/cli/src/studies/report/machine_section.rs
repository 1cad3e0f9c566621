//! The machines of the files: their facts, how far they can be trusted, and what matters.

use super::report_file::ReportFile;
use crate::studies::uarch::{SheetLine, describe_datasheet};
use serde::Serialize;
use serde_json::Value;

/// A machine.
#[derive(Serialize)]
pub struct MachineSummary {
    /// Processor and micro-architecture.
    pub name: String,
    /// Names and values.
    pub facts: Vec<(String, String)>,
    /// What `doctor` found.
    pub findings: Vec<TrustFinding>,
    /// What tells it from others.
    #[serde(skip)]
    identity: Value,
}

/// A finding of `doctor`.
#[derive(Serialize)]
pub struct TrustFinding {
    state: String,
    text: String,
    remedy: Option<String>,
}

/// A finding that matters, with the section that shows it.
#[derive(Serialize)]
pub struct ReportHighlight {
    machine: usize,
    text: String,
    link: &'static str,
}

/// The machines of the files, and each file's machine.
pub fn collect_machines(files: &[ReportFile]) -> (Vec<MachineSummary>, Vec<Option<usize>>) {
    let mut machines: Vec<MachineSummary> = Vec::new();
    let mut places = Vec::new();
    for file in files {
        places.push(file.machine.as_ref().map(|machine| {
            let identity = identify(machine);
            machines.iter().position(|known| known.identity == identity).unwrap_or_else(|| {
                machines.push(MachineSummary::from_line(machine, identity));
                machines.len() - 1
            })
        }));
    }
    for (file, place) in files.iter().zip(&places) {
        if let Some(machine) = place.and_then(|place| machines.get_mut(place)) {
            file.of_kind("doctor").for_each(|doctor| machine.add_doctor(doctor));
        }
    }
    (machines, places)
}

/// What stays the same between two results of a machine.
fn identify(machine: &Value) -> Value {
    serde_json::json!([machine["cpu"], machine["hypervisor"], machine["topology"]["online"]])
}

/// The text of a fact: its value, or a dash.
fn fact_text(fact: &Value) -> String {
    let value = if fact.is_object() { &fact["value"] } else { fact };
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_string(),
        other => other.to_string(),
    }
}

impl MachineSummary {
    fn from_line(machine: &Value, identity: Value) -> MachineSummary {
        let cpu = &machine["cpu"];
        let core = &cpu["microarchitecture"]["value"];
        let [brand, core_name, product] = [&cpu["brand"], &core["name"], &core["product"]].map(fact_text);
        let name = if core_name == "–" { brand.clone() } else { format!("{brand}, {core_name}") };
        let number = |field: &str| cpu[field].as_u64().map_or("–".to_string(), |number| number.to_string());
        let caches = machine["target"]["caches"]["value"].as_array().into_iter().flatten().filter_map(|cache| {
            let kibibytes = cache["bytes"].as_u64()? >> 10;
            Some(format!("level {} {}: {kibibytes} KiB", cache["level"], cache["kind"].as_str()?))
        });
        let caches = caches.collect::<Vec<_>>().join(", ");
        let hypervisor = machine["hypervisor"]["name"].as_str().unwrap_or("none seen").to_string();
        let facts = [
            ("processor", brand),
            ("core", format!("{core_name} ({product})")),
            ("family, model, stepping", ["family", "model", "stepping"].map(number).join(", ")),
            ("hypervisor", hypervisor),
            ("kernel", fact_text(&machine["kernel"])),
            (
                "CPUs online",
                machine["topology"]["online"]["value"]
                    .as_array()
                    .map_or("–".to_string(), |cpus| cpus.len().to_string()),
            ),
            ("caches by CPUID", if caches.is_empty() { "–".to_string() } else { caches }),
        ];
        let facts = facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        MachineSummary { name, facts, findings: Vec::new(), identity }
    }

    /// Adds what `doctor` measured.
    fn add_doctor(&mut self, doctor: &Value) {
        let hertz = doctor["tsc"]["value"]["calibration"]["hertz"].as_f64();
        let step = doctor["phases"]["value"]["step"].as_f64();
        if let Some(hertz) = hertz {
            let step = step.map_or(String::new(), |step| format!(" in steps of {step:.0}"));
            self.facts.push(("TSC".to_string(), format!("{:.3} GHz{step}", hertz / 1e9)));
        }
        if let Some(megahertz) = doctor["core"]["value"]["core_clock"]["value"].as_f64() {
            self.facts.push(("core clock".to_string(), format!("{:.2} GHz", megahertz / 1e3)));
        }
        let counters = match doctor["counters"]["core_cycles"]["value"].is_null() {
            true => fact_why(&doctor["counters"]["core_cycles"]),
            false => "readable".to_string(),
        };
        self.facts.push(("performance counters".to_string(), counters));
        let text = |finding: &Value, field: &str| finding[field].as_str().map(str::to_string);
        let findings = doctor["findings"].as_array().into_iter().flatten().map(|finding| TrustFinding {
            state: text(finding, "state").unwrap_or_default(),
            text: text(finding, "text").unwrap_or_default(),
            remedy: text(finding, "remedy"),
        });
        self.findings = findings.collect();
    }
}

fn fact_why(fact: &Value) -> String {
    fact["why"].as_str().unwrap_or("unknown").to_string()
}

/// Figures of the datasheet that the first screen names.
const HIGHLIGHTED_FIGURES: [&str; 4] = ["dispatch", "reorder buffer", "misprediction", "first data cache"];

/// The findings that matter, at most a handful a machine.
pub fn collect_highlights(files: &[ReportFile], places: &[Option<usize>]) -> Vec<ReportHighlight> {
    let mut all = Vec::new();
    for (file, place) in files.iter().zip(places) {
        let Some(machine) = *place else { continue };
        let mut add = |text: String, link: &'static str| all.push(ReportHighlight { machine, text, link });
        if !file.core.is_empty() {
            let sheet = describe_datasheet(&file.core);
            let of = |name: &&str| sheet.iter().find(|line| line.name == *name && line.words.is_found);
            let named: Vec<String> = HIGHLIGHTED_FIGURES.iter().filter_map(of).map(describe_line).collect();
            if !named.is_empty() {
                add(named.join("; "), "#core");
            }
        }
        if let Some(table) = &file.instructions {
            let measured = table.rows.iter().filter(|row| row.throughput.is_some() || !row.latency.is_empty()).count();
            add(format!("{measured} of {} instruction forms measured", table.rows.len()), "#instructions");
        }
        for verdict in file.of_kind("evaluate.verdict") {
            if let Some(clock) = verdict["short_code"]["clock"].as_str() {
                add(format!("Best timing method for short code: {clock}"), "#timing");
            }
        }
        let claims = || file.of_kind("evaluate.claim");
        let failed = claims().filter(|claim| claim["holds"] == false).count();
        if claims().next().is_some() {
            add(format!("{failed} of {} documented claims about timing do not hold here", claims().count()), "#timing");
        }
        let markers = file.of_kind("marker").count();
        if markers > 0 {
            add(format!("{markers} costs of instrumentation"), "#markers");
        }
    }
    all
}

fn describe_line(line: &SheetLine) -> String {
    format!("{}: {}", line.name, line.words.text)
}
