//! The CPUs of this system according to its kernel, and which of them this process may use.
//!
//! Limits: a VM may report invented siblings and caches. Only a measurement shows a busy sibling.

use cyclescope_platform::cpus::{self, MOST_CPUS};
use serde::Serialize;

use super::cache::{Cache, read_caches};
use super::cpuid_leaves::{CpuidLeaves, CpuidRegister, run_on_cpu};
use super::fact::{Fact, SystemFiles};
use super::processor::{CoreType, parse_core_type};

/// The CPUs and their relations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Topology {
    /// CPUs that this process may run on (sched_getaffinity), ascending.
    pub allowed: Fact<Vec<u32>>,
    /// CPUs that are online.
    pub online: Fact<Vec<u32>>,
    /// CPUs kept free of other tasks at boot (`isolcpus=`).
    pub isolated: Fact<Vec<u32>>,
    /// CPUs without a timer tick while one task runs (`nohz_full=`).
    pub tickless: Fact<Vec<u32>>,
    /// Efficient cores; empty except on hybrid processors. From the kernel's `cpu_atom` event
    /// source, else from CPUID 1Ah on each allowed CPU.
    pub efficient: Fact<Vec<u32>>,
    /// State of hyper-threading: `on`, `off`, `forceoff`, `notsupported` or `notimplemented`.
    pub smt: Fact<String>,
    /// Caches of the reading thread's CPU, from CPUID.
    pub caches: Vec<Cache>,
}

impl Topology {
    /// Reads `/sys` and the process's affinity.
    pub(crate) fn detect(leaves: &CpuidLeaves, files: &SystemFiles) -> Topology {
        let list = |path: &str| files.read_text(path).and_then(|text| Fact::from(parse_cpu_list(&text)));
        let allowed = read_allowed_cpus();
        let hybrid = leaves.has_bit(7, 0, CpuidRegister::Edx, 15);
        let efficient = if hybrid {
            list("/sys/bus/event_source/devices/cpu_atom/cpus").or_else(|| find_efficient_cpus(&allowed))
        } else {
            Fact::Known(Vec::new())
        };
        Topology {
            allowed,
            online: list("/sys/devices/system/cpu/online"),
            isolated: list("/sys/devices/system/cpu/isolated"),
            tickless: list("/sys/devices/system/cpu/nohz_full"),
            efficient,
            smt: files.read_text("/sys/devices/system/cpu/smt/control"),
            caches: read_caches(leaves),
        }
    }

    /// CPU to measure on unless the user names one: the last allowed CPU. Systems put interrupts
    /// and start tasks on the first ones.
    pub(crate) fn default_cpu(&self) -> Option<u32> {
        self.allowed.known().and_then(|cpus| cpus.last().copied())
    }

    /// Whether this process may run on `cpu`.
    pub fn allows(&self, cpu: u32) -> bool {
        self.allowed.known().is_some_and(|cpus| cpus.contains(&cpu))
    }
}

/// Other CPUs that share a core with `cpu`, according to the kernel.
pub(crate) fn read_siblings(files: &SystemFiles, cpu: u32) -> Fact<Vec<u32>> {
    files
        .read_text(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
        .and_then(|text| Fact::from(parse_cpu_list(&text)))
        .map(|cpus| cpus.into_iter().filter(|&other| other != cpu).collect())
}

/// NUMA node of `cpu`.
pub(crate) fn read_numa_node(files: &SystemFiles, cpu: u32) -> Fact<u32> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
    let node = std::fs::read_dir(files.path(&folder)).ok().and_then(|entries| {
        entries
            .flatten()
            .find_map(|entry| entry.file_name().to_str().and_then(|name| name.strip_prefix("node")?.parse().ok()))
    });
    node.map_or_else(|| Fact::unknown(format!("{folder} names no node")), Fact::Known)
}

/// Parses the kernel's list format, such as `0-3,8,10-11`; empty for no CPU
/// (Documentation/admin-guide/cputopology.rst). A `cpuset` may write `(null)` for an empty list.
pub(crate) fn parse_cpu_list(text: &str) -> Result<Vec<u32>, String> {
    let text = text.trim();
    if text.is_empty() || text == "(null)" {
        return Ok(Vec::new());
    }
    let bad = || format!("{text:?} is not a list of CPUs");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| bad())?;
        let last: u32 = last.trim().parse().map_err(|_| bad())?;
        if last < first || last - first > MOST_CPUS {
            return Err(bad());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Formats CPUs in ascending order as a list in the kernel's format.
pub fn format_cpu_list(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// Asks each CPU for its type.
fn find_efficient_cpus(allowed: &Fact<Vec<u32>>) -> Fact<Vec<u32>> {
    let Fact::Known(cpus) = allowed else { return allowed.clone() };
    let mut efficient = Vec::new();
    for &cpu in cpus {
        let answer = run_on_cpu(cpu, || raw_cpuid::native_cpuid::cpuid_count(0x1A, 0).eax).map_err(String::from);
        match answer.map(parse_core_type) {
            Ok(Fact::Known(CoreType::Efficient)) => efficient.push(cpu),
            Ok(Fact::Known(CoreType::Performance)) => {}
            Ok(Fact::Unknown(why)) | Err(why) => return Fact::Unknown(why),
        }
    }
    Fact::Known(efficient)
}

pub(super) fn read_allowed_cpus() -> Fact<Vec<u32>> {
    cpus::read_allowed_cpus().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_parsed_and_formatted() {
        assert_eq!(parse_cpu_list("0-3,8,10-11\n").unwrap(), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(format_cpu_list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(parse_cpu_list("5").unwrap(), [5]);
        assert_eq!(parse_cpu_list(" \n").unwrap(), [0u32; 0]);
        assert_eq!(parse_cpu_list("(null)").unwrap(), [0u32; 0]);
        for wrong in ["a", "3-1", "1,,2", "0-99999999", "-1"] {
            assert!(parse_cpu_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn this_process_has_an_allowed_cpu() {
        let topology = Topology::detect(&CpuidLeaves::read(), &SystemFiles::system());
        let cpu = topology.default_cpu().unwrap();
        assert!(topology.allows(cpu));
        assert!(!topology.allows(MOST_CPUS));
    }

    #[test]
    fn a_container_without_sys_still_has_allowed_cpus() {
        let topology = Topology::detect(&CpuidLeaves::default(), &SystemFiles::rooted_at("/nonexistent"));
        assert!(topology.default_cpu().is_some());
        assert!(topology.online.why().is_some() && topology.caches.is_empty());
    }
}
