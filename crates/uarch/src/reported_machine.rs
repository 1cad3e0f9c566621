//! Reports of CPUID and the kernel on the machine. They are shown next to measurements and never
//! replace them.

use cyclescope_core::machine::cache::{Cache, CacheKind};
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::topology::format_cpu_list;
use cyclescope_core::machine::translation_buffer::{TranslationBuffer, read_data_buffers};
use cyclescope_core::machine::{CpuFacts, Machine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest number of other CPUs to try.
const MAX_OTHER_CPUS: usize = 3;

/// Reports of CPUID and the kernel, as a manifest has them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ReportedMachine {
    /// Figures of CPUID, by the keys of the numbers.
    pub numbers: BTreeMap<String, u64>,
    /// CPU family and model.
    pub model: String,
    /// The design of that model, or why CPUID contradicts itself.
    pub design: Fact<String>,
    /// The hypervisor, if CPUID reports one.
    pub hypervisor: Option<String>,
    /// The measured CPU.
    pub cpu: u32,
    /// Its siblings, as the kernel reports them.
    pub siblings: Fact<String>,
    /// The nearest other CPUs, first the kernel's siblings.
    #[serde(default)]
    pub others: Vec<u32>,
    /// All CPUs that this process may use, the measured one first, with their locations.
    #[serde(default)]
    pub places: Vec<CpuLocation>,
    /// The kernel's mode of transparent huge pages.
    pub huge_pages: Fact<String>,
    /// Number of CPUs that the control group's quota allows, if it is limited.
    pub quota: Fact<Option<f64>>,
}

impl ReportedMachine {
    pub(super) fn from_machine(machine: &Machine) -> ReportedMachine {
        let caches = machine.topology.caches.iter().flat_map(cache_sizes);
        let of_level = |level: u32| {
            let is_data_cache = move |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction;
            machine.topology.caches.iter().filter(is_data_cache)
        };
        let nearest = of_level(1).flat_map(|cache| [("cache_line", cache.line), ("l1d_ways", cache.ways)]);
        let lines = nearest.chain(of_level(2).map(|cache| ("l2_ways", cache.ways)));
        let lines = lines.map(|(test, number)| (test.to_string(), u64::from(number)));
        let translations = read_data_buffers(&machine.cpuid).into_iter().map(tlb_size);
        let unknown = || Fact::unknown("no CPU is known to be allowed");
        let target = machine.target.as_ref();
        let siblings = target.map_or_else(unknown, |target| target.siblings.clone().map(|all| list_siblings(&all)));
        ReportedMachine {
            numbers: caches.chain(lines).chain(translations).collect(),
            model: format!("family {}, model {}", machine.cpu.family, machine.cpu.model),
            design: machine.cpu.microarchitecture.clone().map(|design| design.product.to_string()),
            hypervisor: machine.hypervisor.as_ref().map(|hypervisor| hypervisor.name.clone()),
            cpu: machine.target_cpu(),
            siblings,
            others: machine.other_cpus(MAX_OTHER_CPUS).known().map(|(near, _)| near.clone()).unwrap_or_default(),
            places: find_locations(machine),
            huge_pages: target.map_or_else(unknown, |target| target.power.huge_pages.clone()),
            quota: machine.quota.clone(),
        }
    }
}

/// The location of a CPU, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CpuLocation {
    /// The CPU.
    pub cpu: u32,
    /// Other CPUs of its core.
    pub siblings: Option<Vec<u32>>,
    /// Its NUMA node.
    pub node: Option<u32>,
}

impl CpuLocation {
    /// The relation of two CPUs, as the kernel reports it.
    pub(super) fn describe_pair(places: &[CpuLocation], cpus: [u32; 2]) -> Option<String> {
        let [one, other] = cpus.map(|cpu| places.iter().find(|place| place.cpu == cpu));
        let (one, other) = (one?, other?);
        let core = match one.siblings.as_ref()?.contains(&other.cpu) {
            true => "one core",
            false => "two cores",
        };
        let node = match (one.node, other.node) {
            (Some(one), Some(other)) if one == other => " of one node",
            (Some(_), Some(_)) => " of two nodes",
            _ => "",
        };
        Some(format!("kernel: {core}{node}"))
    }
}

fn find_locations(machine: &Machine) -> Vec<CpuLocation> {
    let Some(allowed) = machine.topology.allowed.known() else { return Vec::new() };
    let target = machine.target_cpu();
    let place = |&cpu: &u32| {
        let facts = CpuFacts::detect(&machine.files, cpu);
        CpuLocation { cpu, siblings: facts.siblings.known().cloned(), node: facts.node.known().copied() }
    };
    let mut places: Vec<CpuLocation> = allowed.iter().map(place).collect();
    places.sort_by_key(|place| (place.cpu != target, place.cpu));
    places
}

fn list_siblings(all: &[u32]) -> String {
    match all {
        [] => "none".to_string(),
        all => format!("CPU {}", format_cpu_list(all)),
    }
}

/// The keys of a cache's size, each with CPUID's figure.
fn cache_sizes(cache: &Cache) -> impl Iterator<Item = (String, u64)> {
    let tests: &[&str] = match cache.kind {
        CacheKind::Instruction => &["instruction_cache"],
        _ => &["data_caches", "data_caches_huge"],
    };
    tests.iter().map(|test| (format!("{test}.{}.size", cache.level), cache.bytes))
}

/// The key of a TLB's size, and CPUID's figure.
fn tlb_size(buffer: TranslationBuffer) -> (String, u64) {
    (format!("data_tlb.{}.size", buffer.level), buffer.entries)
}
