//! What CPUID and the kernel tell of the machine: beside what is measured, never in its place.

use crate::machine::Machine;
use crate::machine::cache::{Cache, CacheKind};
use crate::machine::fact::Fact;
use crate::machine::topology::cpu_list;
use crate::machine::translation::{Translations, of_data};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Other CPUs that are tried at most.
const OTHERS: usize = 3;

/// What is told, as a manifest has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Surroundings {
    /// What CPUID says of numbers, by their keys.
    pub numbers: BTreeMap<String, u64>,
    /// Family and model.
    pub model: String,
    /// The design of that model, or why CPUID contradicts itself.
    pub design: Fact<String>,
    /// The hypervisor, where CPUID admits to one.
    pub hypervisor: Option<String>,
    /// The CPU that is measured on.
    pub cpu: u32,
    /// What the kernel says of its siblings.
    pub siblings: Fact<String>,
    /// The nearest other CPUs: what the kernel takes for siblings first.
    #[serde(default)]
    pub others: Vec<u32>,
    /// How the kernel gives transparent huge pages.
    pub huge_pages: Fact<String>,
    /// CPUs that the control group may use, where there is a limit.
    pub quota: Fact<Option<f64>>,
}

impl Surroundings {
    pub(super) fn of(machine: &Machine) -> Surroundings {
        let caches = machine.topology.caches.iter().flat_map(cached);
        let of_level = |level: u32| {
            let those = move |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction;
            machine.topology.caches.iter().filter(those)
        };
        let nearest = of_level(1).flat_map(|cache| [("cache_line", cache.line), ("l1d_ways", cache.ways)]);
        let lines = nearest.chain(of_level(2).map(|cache| ("l2_ways", cache.ways)));
        let lines = lines.map(|(test, number)| (test.to_string(), u64::from(number)));
        let translations = of_data(&machine.cpuid).into_iter().map(translated);
        let unknown = || Fact::unknown("no CPU is known to be allowed");
        let target = machine.target.as_ref();
        let siblings =
            target.map_or_else(unknown, |target| target.siblings.clone().map(|all| siblings(&all)));
        Surroundings {
            numbers: caches.chain(lines).chain(translations).collect(),
            model: format!("family {}, model {}", machine.cpu.family, machine.cpu.model),
            design: machine.cpu.microarchitecture.clone().map(|design| design.product.to_string()),
            hypervisor: machine.hypervisor.as_ref().map(|hypervisor| hypervisor.name.clone()),
            cpu: machine.target_cpu(),
            siblings,
            others: machine.neighbours(OTHERS).known().map(|(near, _)| near.clone()).unwrap_or_default(),
            huge_pages: target.map_or_else(unknown, |target| target.power.huge_pages.clone()),
            quota: machine.quota.clone(),
        }
    }
}

fn siblings(all: &[u32]) -> String {
    match all {
        [] => "none".to_string(),
        all => format!("CPU {}", cpu_list(all)),
    }
}

/// The keys of a cache's size, and what CPUID says of it.
fn cached(cache: &Cache) -> impl Iterator<Item = (String, u64)> {
    let tests: &[&str] = match cache.kind {
        CacheKind::Instruction => &["instruction_cache"],
        _ => &["data_caches", "data_caches_huge"],
    };
    tests.iter().map(|test| (format!("{test}.{}.size", cache.level), cache.bytes))
}

/// The key of a number of translations, and what CPUID says of it.
fn translated(buffer: Translations) -> (String, u64) {
    (format!("data_tlb.{}.size", buffer.level), buffer.entries)
}
