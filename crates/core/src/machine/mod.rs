//! The machine under measurement: processor, features, time stamp counter, CPUs, sources of noise.
//!
//! [`Machine::detect`] collects the facts that are available at once. `Counters` adds those that
//! need slow system calls, [`TscStudy`](tsc_study::TscStudy) those that need experiments, and
//! `findings` evaluates all of them. All are plain values; nothing here is global.
//!
//! Every source may be missing, such as `/sys` in a container or CPUID leaves under a hypervisor.
//! The value is then a [`Fact`] with the reason.

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
pub mod integer_adders;
pub mod kernel_cache;
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
use std::io;

use crate::error::{RunError, Unavailable, system_remedy};
use cpuid_leaves::{CpuRefusal, CpuidLeaves};
use cyclescope_platform::error_code;
use fact::{Fact, SystemFiles};
use features::CpuFeatures;
use kernel_module::KernelModule;
use power::PowerSettings;
use processor::{Hypervisor, Processor};
use topology::{Topology, read_numa_node, read_siblings};
use tsc::TscFacts;

/// Everything known about the machine without an experiment.
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
    /// The hypervisor, if CPUID reports one.
    pub hypervisor: Option<Hypervisor>,
    /// Kernel version.
    pub kernel: String,
    /// Kernel module of this project, and what prevents its use.
    pub kernel_module: KernelModule,
    /// The CPU to measure on, with its surroundings; `None` if the affinity is unknown. On a hybrid
    /// processor, `cpu` and `cpuid` describe this CPU.
    pub target: Option<CpuFacts>,
    /// Tightest CPU quota of this process's control groups, in CPUs; the value is `None` without
    /// one.
    pub quota: Fact<Option<f64>>,
    /// The CPUID table as read.
    pub cpuid: CpuidLeaves,
    /// Source of its `/proc` and `/sys`.
    #[serde(skip)]
    pub files: SystemFiles,
}

/// Kernel version.
pub fn kernel_release() -> String {
    cyclescope_platform::kernel::read_release()
}

/// Facts about one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuFacts {
    /// CPU number.
    pub cpu: u32,
    /// Other CPUs on the same core, according to the kernel.
    pub siblings: Fact<Vec<u32>>,
    /// NUMA node.
    pub node: Fact<u32>,
    /// Its caches, according to the kernel.
    pub caches: Fact<Vec<kernel_cache::KernelCache>>,
    /// Power management settings.
    pub power: PowerSettings,
}

impl CpuFacts {
    /// Reads the facts of `cpu` from `/sys`.
    pub fn detect(files: &SystemFiles, cpu: u32) -> CpuFacts {
        let power = PowerSettings::detect(files, cpu);
        let caches = kernel_cache::read_kernel_caches(files, cpu);
        CpuFacts { cpu, siblings: read_siblings(files, cpu), node: read_numa_node(files, cpu), caches, power }
    }
}

/// Why a CPU can't be measured on, and what helps.
fn describe_refusal(cpu: u32, refusal: &CpuRefusal) -> Unavailable {
    let (what, why) = (format!("CPU {cpu}"), refusal.to_string());
    let errno = |error: &io::Error| error.raw_os_error().unwrap_or(0);
    match refusal {
        CpuRefusal::NoThread(error) => Unavailable { what, why, remedy: system_remedy(errno(error)).to_string() },
        CpuRefusal::NotMoved(_, error) if errno(error) != error_code::EINVAL => {
            match RunError::from_system_call("moving to the CPU", "sched_setaffinity", errno(error)) {
                RunError::Unavailable(unavailable) => unavailable,
                other => Unavailable { what, why, remedy: other.remedy().to_string() },
            }
        }
        CpuRefusal::NotMoved(..) | CpuRefusal::Other(_) => {
            let allowed = topology::read_allowed_cpus();
            let choice = match allowed.known() {
                Some(cpus) => format!("choose one of the allowed CPUs, {}", topology::format_cpu_list(cpus)),
                None => "choose one of the allowed CPUs".to_string(),
            };
            let remedy = format!("{choice}, or widen the set with taskset or the container's cpuset");
            Unavailable { what, why, remedy }
        }
    }
}

impl Machine {
    /// Reads everything that needs no experiment, in about a third of a millisecond. The target is
    /// the default CPU.
    pub fn detect() -> Machine {
        let cpuid = CpuidLeaves::read();
        let machine = Machine::from_sources(cpuid, &SystemFiles::system());
        match &machine.target {
            Some(target) if machine.cpu.hybrid => Machine::detect_on(target.cpu).unwrap_or(machine),
            _ => machine,
        }
    }

    /// Same as [`Machine::detect`], with `cpu` as the target.
    pub fn detect_on(cpu: u32) -> Result<Machine, Unavailable> {
        let files = SystemFiles::system();
        let cpuid = CpuidLeaves::read_on(cpu).map_err(|refusal| describe_refusal(cpu, &refusal))?;
        Ok(Machine { target: Some(CpuFacts::detect(&files, cpu)), ..Machine::from_sources(cpuid, &files) })
    }

    /// Builds the facts from a CPUID table and a folder of files. Facts that only the running
    /// kernel knows (affinity, XCR0, `prctl`) still come from it.
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

    /// Whether QEMU emulates the processor. Its times are then not those of a core.
    pub fn is_emulated(&self) -> bool {
        self.hypervisor.as_ref().is_some_and(|hypervisor| hypervisor.signature == "TCGTCGTCGTCG")
    }

    /// Number of the CPU to measure on; 0 if the allowed CPUs are unknown.
    pub fn target_cpu(&self) -> u32 {
        self.target.as_ref().map_or(0, |target| target.cpu)
    }

    /// The allowed CPUs other than the target: the first `most`, and the rest. Siblings according
    /// to the kernel come first, then the nearest numbers.
    pub fn other_cpus(&self, most: usize) -> Fact<(Vec<u32>, Vec<u32>)> {
        let Some(target) = &self.target else { return Fact::unknown("the allowed CPUs are unknown") };
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
    fn detection_works_without_any_file() {
        let machine = Machine::from_sources(CpuidLeaves::read(), &SystemFiles::rooted_at("/nonexistent"));
        assert!(machine.target.is_some());
        assert!(machine.tsc.clocksource.why().is_some() && machine.quota.why().is_some());
        let silent = |source: &tsc::RateSource| source.rate.known().is_some() != source.rate.why().is_some();
        assert!(machine.tsc.sources.iter().all(silent));
    }

    #[test]
    fn detection_works_without_cpuid() {
        let machine = Machine::from_sources(CpuidLeaves::default(), &SystemFiles::rooted_at("/nonexistent"));
        assert_eq!(machine.features.list_usable().count(), 0);
        assert!(machine.hypervisor.is_none() && !machine.tsc.invariant);
    }

    #[test]
    fn a_requested_cpu_becomes_the_target_or_is_rejected() {
        let allowed = Machine::detect().topology.allowed;
        let first = allowed.known().unwrap()[0];
        assert_eq!(Machine::detect_on(first).unwrap().target.unwrap().cpu, first);
        assert_eq!(Machine::detect_on(1_000_000).unwrap_err().what, "CPU 1000000");
    }

    #[test]
    fn other_cpus_lists_siblings_then_nearest_numbers() {
        let mut machine = Machine::detect();
        machine.topology.allowed = Fact::Known(vec![0, 1, 2, 3, 7]);
        if let Some(target) = &mut machine.target {
            (target.cpu, target.siblings) = (2, Fact::Known(vec![7]));
            assert_eq!(machine.other_cpus(3), Fact::Known((vec![7, 1, 3], vec![0])));
        }
    }

    /// Runs `check` in a thread with these settings. `prctl` and `arch_prctl` affect only the
    /// thread, so it behaves like a process of its own.
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
    fn a_forbidden_tsc_is_reported_without_a_signal() {
        // SAFETY: PR_SET_TSC takes a number and no pointer.
        let forbid = || unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) == 0 };
        in_thread_with(forbid, || {
            let machine = Machine::detect();
            assert!(machine.tsc.disabled.is_some());
            let counters = counters::CounterFacts::unknown("not asked");
            let budget = std::time::Duration::from_millis(1);
            let refused = tsc_study::TscStudy::measure(&machine, &counters, budget).unwrap_err();
            assert_eq!(refused.what, "the time stamp counter");
            assert!(synchrony::measure_synchrony(&machine, None, budget).why().is_some());
        });
    }

    #[test]
    fn a_forbidden_cpuid_raises_no_signal() {
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
    fn serializes_to_one_line_of_json() {
        let text = serde_json::to_string(&Machine::detect()).unwrap();
        assert!(text.starts_with('{') && !text.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(value["features"]["usable"].as_array().unwrap().iter().any(|name| name == "sse2"));
    }
}
