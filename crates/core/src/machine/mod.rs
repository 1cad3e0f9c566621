//! The machine that is measured on: processor, features, time stamp counter, CPUs, sources of noise.
//!
//! [`Machine::detect`] collects the facts that are available at once; `Counters` adds those that need slow system
//! calls, [`TscStudy`](tsc_study::TscStudy) those that need experiments, and `findings` evaluates all of them. These
//! are plain values: nothing here is global, and every source may be missing (a container without `/sys`, a hypervisor
//! without CPUID leaves), which is a [`Fact`] with a reason.

pub mod cache;
pub(crate) mod cgroup;
pub mod core_series;
pub mod core_study;
pub mod counters;
pub mod cpuid_leaves;
pub mod fact;
mod feature_table;
pub mod features;
pub mod finding;
pub mod free_memory;
pub(crate) mod kernel_log;
pub mod kernel_module;
pub mod machine_parameters;
pub(crate) mod microarch;
pub mod noise;
pub(crate) mod power;
pub mod processor;
pub mod step_at_clocks;
pub mod synchrony;
pub mod timing_costs;
pub mod topology;
pub mod translation_buffer;
pub mod tsc;
pub mod tsc_calibration;
pub mod tsc_read;
pub mod tsc_step;
pub mod tsc_study;
mod vendor;

use serde::Serialize;

use crate::error::Unavailable;
use cpuid_leaves::CpuidLeaves;
use fact::{Fact, SystemFiles};
use features::CpuFeatures;
use kernel_module::KernelModule;
use power::PowerSettings;
use processor::{Hypervisor, Processor};
use topology::{Topology, read_numa_node, read_siblings};
use tsc::TscFacts;

/// All that is known about the machine without an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The processor.
    pub cpu: Processor,
    /// Instruction-set features that this process can use.
    pub features: CpuFeatures,
    /// The time stamp counter.
    pub tsc: TscFacts,
    /// The CPUs.
    pub topology: Topology,
    /// The hypervisor, where CPUID admits to one.
    pub hypervisor: Option<Hypervisor>,
    /// The kernel's version.
    pub kernel: String,
    /// The kernel module of this project, and what prevents its use.
    pub kernel_module: KernelModule,
    /// The CPU to measure on, and its surroundings; `None` where the affinity is unknown. `cpu` and `cpuid`
    /// describe this CPU on a hybrid processor.
    pub target: Option<CpuFacts>,
    /// The tightest CPU quota of this process's control groups, in CPUs; the value is `None` without one.
    pub quota: Fact<Option<f64>>,
    /// CPUID as it was read.
    pub cpuid: CpuidLeaves,
    /// Where its `/proc` and `/sys` are read from.
    #[serde(skip)]
    pub files: SystemFiles,
}

/// The kernel's version.
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// What belongs to one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuFacts {
    /// Its number.
    pub cpu: u32,
    /// Other CPUs on the same core, as the kernel believes.
    pub siblings: Fact<Vec<u32>>,
    /// Its NUMA node.
    pub node: Fact<u32>,
    /// Its power management.
    pub power: PowerSettings,
}

impl CpuFacts {
    /// Reads the facts of `cpu` from `/sys`.
    pub fn detect(files: &SystemFiles, cpu: u32) -> CpuFacts {
        let power = PowerSettings::detect(files, cpu);
        CpuFacts { cpu, siblings: read_siblings(files, cpu), node: read_numa_node(files, cpu), power }
    }
}

impl Machine {
    /// Reads everything that takes no experiment; about a third of a millisecond. The target is the default CPU.
    pub fn detect() -> Machine {
        let cpuid = CpuidLeaves::read();
        let machine = Machine::from_sources(cpuid, &SystemFiles::system());
        match &machine.target {
            Some(target) if machine.cpu.hybrid => Machine::detect_on(target.cpu).unwrap_or(machine),
            _ => machine,
        }
    }

    /// The same with `cpu` as the target.
    pub fn detect_on(cpu: u32) -> Result<Machine, Unavailable> {
        let files = SystemFiles::system();
        let cpuid = CpuidLeaves::read_on(cpu).map_err(|why| {
            let allowed = topology::read_allowed_cpus();
            let choice = match allowed.known() {
                Some(cpus) => format!("choose one of the allowed CPUs, {}", topology::format_cpu_list(cpus)),
                None => "choose one of the allowed CPUs".to_string(),
            };
            let remedy = format!("{choice}, or widen the set with taskset or the container's cpuset");
            Unavailable { what: format!("CPU {cpu}"), why, remedy }
        })?;
        Ok(Machine { target: Some(CpuFacts::detect(&files, cpu)), ..Machine::from_sources(cpuid, &files) })
    }

    /// The same from a CPUID table and a folder of files. What only the running kernel can answer (affinity,
    /// XCR0, `prctl`) is still asked of it.
    pub(crate) fn from_sources(cpuid: CpuidLeaves, files: &SystemFiles) -> Machine {
        let cpu = Processor::detect(&cpuid, files);
        let features = CpuFeatures::detect(&cpuid, &cpu, files);
        let topology = Topology::detect(&cpuid, files);
        let kernel = kernel_release();
        Machine {
            tsc: TscFacts::detect(&cpuid, &cpu, &features, files),
            hypervisor: Hypervisor::detect(&cpuid),
            kernel_module: KernelModule::detect(files, &kernel),
            kernel,
            target: topology.default_cpu().map(|cpu| CpuFacts::detect(files, cpu)),
            quota: cgroup::read_quota(files),
            cpu,
            features,
            topology,
            cpuid,
            files: files.clone(),
        }
    }

    /// Whether the processor is QEMU's emulation, where no time is a core's.
    pub fn is_emulated(&self) -> bool {
        self.hypervisor.as_ref().is_some_and(|hypervisor| hypervisor.signature == "TCGTCGTCGTCG")
    }

    /// The number of the CPU to measure on; 0 where the system does not say which are allowed.
    pub fn target_cpu(&self) -> u32 {
        self.target.as_ref().map_or(0, |target| target.cpu)
    }

    /// The allowed CPUs beside the target, the first `most` and the rest: those that the kernel takes for
    /// siblings, then the nearest numbers.
    pub fn other_cpus(&self, most: usize) -> Fact<(Vec<u32>, Vec<u32>)> {
        let Some(target) = &self.target else { return Fact::unknown("no CPU is known to be allowed") };
        self.topology.allowed.clone().map(|allowed| {
            let believed = |cpu: &u32| target.siblings.known().is_some_and(|cpus| cpus.contains(cpu));
            let mut others: Vec<u32> = allowed.into_iter().filter(|&cpu| cpu != target.cpu).collect();
            others.sort_by_key(|cpu| (!believed(cpu), cpu.abs_diff(target.cpu)));
            let rest = others.split_off(most.min(others.len()));
            (others, rest)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_without_any_file() {
        let machine = Machine::from_sources(CpuidLeaves::read(), &SystemFiles::rooted_at("/nonexistent"));
        assert!(machine.target.is_some());
        assert!(machine.tsc.clocksource.why().is_some() && machine.quota.why().is_some());
        let silent = |source: &tsc::RateSource| source.rate.known().is_some() != source.rate.why().is_some();
        assert!(machine.tsc.sources.iter().all(silent));
    }

    #[test]
    fn detects_without_cpuid() {
        let machine = Machine::from_sources(CpuidLeaves::default(), &SystemFiles::rooted_at("/nonexistent"));
        assert_eq!(machine.features.list_usable().count(), 0);
        assert!(machine.hypervisor.is_none() && !machine.tsc.invariant);
    }

    #[test]
    fn a_named_cpu_is_the_target_or_refused() {
        let allowed = Machine::detect().topology.allowed;
        let first = allowed.known().unwrap()[0];
        assert_eq!(Machine::detect_on(first).unwrap().target.unwrap().cpu, first);
        assert_eq!(Machine::detect_on(1_000_000).unwrap_err().what, "CPU 1000000");
    }

    #[test]
    fn neighbours_are_believed_siblings_then_the_nearest() {
        let mut machine = Machine::detect();
        machine.topology.allowed = Fact::Known(vec![0, 1, 2, 3, 7]);
        if let Some(target) = &mut machine.target {
            (target.cpu, target.siblings) = (2, Fact::Known(vec![7]));
            assert_eq!(machine.other_cpus(3), Fact::Known((vec![7, 1, 3], vec![0])));
        }
    }

    /// `prctl` and `arch_prctl` act on the thread alone, so a thread imitates a process with these settings.
    fn in_thread_with(call: impl FnOnce() -> bool + Send + 'static, check: fn()) {
        let worked = std::thread::spawn(move || {
            let worked = call();
            if worked {
                check();
            }
            worked
        });
        if !worked.join().unwrap() {
            cyclescope_skipped::report_skipped("the system can't forbid the instruction");
        }
    }

    #[test]
    fn a_forbidden_tsc_is_unavailable_and_not_a_signal() {
        // SAFETY: PR_SET_TSC takes a number and no pointer.
        let forbid = || unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) == 0 };
        in_thread_with(forbid, || {
            let machine = Machine::detect();
            assert!(machine.tsc.disabled.is_some());
            let counters = counters::CounterFacts::detect(&machine.features, &SystemFiles::system());
            let budget = std::time::Duration::from_millis(1);
            let refused = tsc_study::TscStudy::measure(&machine, &counters, budget).unwrap_err();
            assert_eq!(refused.what, "the time stamp counter");
            assert!(synchrony::measure_synchrony(&machine, None, budget).why().is_some());
        });
    }

    #[test]
    fn a_forbidden_cpuid_is_no_signal() {
        const ARCH_SET_CPUID: libc::c_int = 0x1012;
        // SAFETY: ARCH_SET_CPUID takes a number and no pointer.
        let forbid = || unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0 };
        in_thread_with(forbid, || {
            let machine = Machine::detect();
            assert!(machine.cpuid.is_empty() && machine.features.list_usable().count() == 0);
            assert!(timing_costs::TimingCosts::measure(&machine.tsc, &machine.features).unwrap().cpuid.why().is_some());
        });
    }

    #[test]
    fn is_one_line_of_json() {
        let text = serde_json::to_string(&Machine::detect()).unwrap();
        assert!(text.starts_with('{') && !text.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(value["features"]["usable"].as_array().unwrap().iter().any(|name| name == "sse2"));
    }
}
