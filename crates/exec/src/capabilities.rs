//! The capabilities of an executor as plain data: the ring of its code, its timing methods, its
//! memory.
//!
//! This module alone decides whether a timing method works, from the needs of the method
//! ([`Clock`]), the machine's features and the executor's capabilities. Studies use these facts and
//! never name an executor, except those that `tests/structure` lists.

use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::{self, Clock};
use cyclescope_core::error::Unavailable;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::unit::Unit;
use cyclescope_events::require_rdpmc;
use serde::{Deserialize, Serialize};

/// The privilege level that code runs at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrivilegeRing {
    /// Ring 0, the kernel's: privileged instructions run.
    Zero,
    /// Ring 3, that of processes.
    Three,
}

/// Origin of the durations that an executor returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimingOrigin {
    /// A core runs the code.
    Real,
    /// A model computes them, and defines their true values.
    Simulated,
    /// An emulator runs the code, so that its durations are not core cycles.
    Emulated,
}

impl TimingOrigin {
    /// Timing of code that this machine runs itself.
    pub fn from_machine(machine: &Machine) -> TimingOrigin {
        if machine.is_emulated() { TimingOrigin::Emulated } else { TimingOrigin::Real }
    }
}

/// Why an executor can't do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingCapability {
    /// Reason, as a clause, such as one about the timing method that needs the capability.
    pub why: &'static str,
    /// What the user can do about it.
    pub remedy: &'static str,
}

/// Whether programs can read the core-cycles counter with RDPMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterAvailability {
    /// They can.
    Offered,
    /// They can if the system lets a process count. Only a method that needs the counter asks the
    /// system, because opening a system's first event makes its kernel wait for all CPUs: 4 to 11
    /// ms on a two-CPU VM.
    AskSystem,
    /// They can't.
    Lacking(MissingCapability),
}

/// Memory that an executor has for programs and their data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorMemory {
    /// Bytes of the code arena.
    pub arena: usize,
    /// Bytes of each memory area that programs get.
    pub areas: Vec<usize>,
}

/// Capabilities of an executor.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// The executor's name in records and on the command line.
    pub executor: &'static str,
    /// Ring that its code runs in.
    pub ring: PrivilegeRing,
    /// Origin of its durations.
    pub timing: TimingOrigin,
    /// Whether programs can call functions of the system's library.
    pub library: Result<(), MissingCapability>,
    /// Whether 32-bit programs run.
    pub narrow_code: Result<(), MissingCapability>,
    /// Whether programs can write control registers.
    pub control_registers: Result<(), MissingCapability>,
    /// The core-cycles counter, as RDPMC reads it.
    pub cycle_counter: CounterAvailability,
    /// Whether APERF and MPERF are read around the programs of a batch
    /// ([`Executor::progress`](super::Executor)). Unknown before the executor is opened.
    pub aperf: Fact<bool>,
    /// Memory for code and data. Unknown before the executor is opened, unless it is always the
    /// same.
    pub room: Fact<ExecutorMemory>,
}

impl Capabilities {
    /// Whether privileged instructions run.
    pub fn is_privileged(&self) -> bool {
        self.ring == PrivilegeRing::Zero
    }

    /// Whether the processor is emulated, so that no figures in core cycles exist.
    pub fn is_emulated(&self) -> bool {
        self.timing == TimingOrigin::Emulated
    }

    /// Fails if programs of a mode do not run.
    pub fn require_mode(&self, mode: CodeMode) -> Result<(), Unavailable> {
        let narrow = self.narrow_code.map_err(|lack| Unavailable {
            what: "32-bit code".to_string(),
            why: lack.why.to_string(),
            remedy: lack.remedy.to_string(),
        });
        mode.choose([&Ok(()), &narrow]).clone()
    }

    /// Whether a timing method works for programs of a mode.
    pub fn require_clock_for(&self, clock: &Clock, mode: CodeMode, machine: &Machine) -> Result<(), Unavailable> {
        self.require_mode(mode)?;
        clock.check_mode(mode)?;
        self.require_clock(clock, machine)
    }

    /// Whether a timing method works for programs of this executor on its machine. If not, the
    /// error gives the reason and the remedy.
    pub fn require_clock(&self, clock: &Clock, machine: &Machine) -> Result<(), Unavailable> {
        let unavailable = |why: &str, remedy: &str| Unavailable {
            what: format!("clock {}", clock.name),
            why: why.to_string(),
            remedy: remedy.to_string(),
        };
        let lacking = |lack: MissingCapability| unavailable(lack.why, lack.remedy);
        if clock.needs_ring0() {
            self.control_registers.map_err(lacking)?;
        }
        if clock.calls_system() {
            self.library.map_err(lacking)?;
        }
        if let (true, CounterAvailability::Lacking(lack)) = (clock.reads_counter(), self.cycle_counter) {
            return Err(lacking(lack));
        }
        if clock.counts == Unit::TscTicks {
            machine.tsc.require()?;
        }
        if clock.reads_counter() && self.cycle_counter == CounterAvailability::AskSystem {
            require_rdpmc(machine).map_err(|refusal| unavailable(&refusal.why, &refusal.remedy))?;
        }
        machine
            .features
            .require(&clock.required_features())
            .map_err(|error| unavailable(&error.why, "choose another clock (--clock list)"))
    }

    /// Each timing method in programs of a mode; an error gives the reason why it does not work.
    pub fn check_clocks(&self, mode: CodeMode, machine: &Machine) -> Vec<(&'static Clock, Result<(), Unavailable>)> {
        clock::ALL_CLOCKS.iter().map(|clock| (clock, self.require_clock_for(clock, mode, machine))).collect()
    }

    /// The default timing method.
    pub fn default_clock(&self, machine: &Machine) -> Result<&'static Clock, Unavailable> {
        let mut refused = None;
        for clock in clock::preferred_clocks(&machine.features) {
            match self.require_clock(clock, machine) {
                Ok(()) => return Ok(clock),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.expect("some method is preferred"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{kernel, user};
    use super::*;

    fn clock(name: &str) -> &'static Clock {
        Clock::find_named(name).expect("the method exists")
    }

    #[test]
    fn a_privileged_method_needs_ring_0() {
        let (machine, cr0) = (Machine::detect(), clock("cpuid-rdtsc-cr0-rdtsc"));
        let refused = user::user_capabilities(&machine).require_clock(cr0, &machine).unwrap_err();
        assert!(refused.why.contains("ring 0") && refused.remedy.contains("--executor kernel"));
        assert_eq!(refused.what, "clock cpuid-rdtsc-cr0-rdtsc");
        let ring_0 = kernel::kernel_capabilities(&machine);
        if machine.tsc.require().is_ok() {
            assert_eq!(ring_0.require_clock(cr0, &machine), Ok(()));
        }
    }

    #[test]
    fn methods_of_processes_do_not_work_in_ring_0() {
        let machine = Machine::detect();
        let ring_0 = kernel::kernel_capabilities(&machine);
        for (name, word) in [("clock-gettime", "library"), ("rdpmc", "counter")] {
            let refused = ring_0.require_clock(clock(name), &machine).unwrap_err();
            assert!(refused.why.contains(word) && !refused.remedy.is_empty(), "{refused}");
        }
        let user = user::user_capabilities(&machine);
        assert_eq!(user.require_clock(clock("clock-gettime"), &machine), Ok(()));
    }

    #[test]
    fn an_emulated_processor_has_no_core_cycles() {
        let (signature, name) = ("TCGTCGTCGTCG".to_string(), "QEMU".to_string());
        let hypervisor = Some(cyclescope_core::machine::processor::Hypervisor { signature, name });
        let machine = Machine { hypervisor, ..Machine::detect() };
        assert!(user::user_capabilities(&machine).is_emulated() && kernel::kernel_capabilities(&machine).is_emulated());
    }
}
