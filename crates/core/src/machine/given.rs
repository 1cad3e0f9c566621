//! A machine of given facts: the one that evidence was recorded on, or one that a simulation has.
//!
//! Its TSC has a given rate and step, so that nothing reads the TSC of this computer. It has every feature, since
//! nothing here runs its code, one CPU, and no file: all other facts are unknown.

use super::Machine;
use super::cpu::{Cpu, Vendor};
use super::fact::{Fact, Files};
use super::features::Features;
use super::leaves::Leaves;
use super::microarch::Microarchitecture;
use super::tsc::GivenTsc;
use super::{CpuFacts, topology::Topology};

/// Parameters of a simulated core and its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GivenMachine {
    /// Its TSC.
    pub tsc: GivenTsc,
    /// Latency of `imul r64, r64` in core cycles, where that is a whole number.
    pub imul_latency: Option<u32>,
}

impl From<GivenMachine> for Machine {
    fn from(simulated: GivenMachine) -> Machine {
        let files = Files::below("/nonexistent");
        let unknown = "the machine is simulated";
        let (name, imul_latency) = ("simulated", simulated.imul_latency);
        let cpu = Cpu {
            vendor: Vendor::Other,
            vendor_text: String::new(),
            family: 0,
            model: 0,
            stepping: 0,
            brand: Fact::unknown(unknown),
            microcode: Fact::unknown(unknown),
            microarchitecture: Fact::Known(Microarchitecture { name, product: name, imul_latency }),
            hybrid: false,
            core_type: Fact::unknown(unknown),
        };
        let machine = Machine::from_sources(Leaves::default(), &files);
        let (features, one_cpu) = (Features::every(), || Fact::Known(vec![0]));
        let topology = Topology { allowed: one_cpu(), online: one_cpu(), ..machine.topology };
        let tsc = super::tsc::TscFacts {
            disabled: None,
            invariant: true,
            rdtscp: true,
            given: Some(simulated.tsc),
            ..machine.tsc
        };
        let target = Some(CpuFacts::detect(&files, 0));
        Machine { cpu, features, topology, tsc, target, kernel: String::new(), ..machine }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::calibrate::{Stopwatch, calibrate};
    use crate::machine::synchrony;
    use crate::machine::tsc_read::TscRead;
    use crate::machine::tsc_step::step_ticks;
    use crate::unit::Hertz;
    use std::time::Duration;

    fn machine() -> Machine {
        let tsc = GivenTsc { rate: Hertz(1.5e9), step: 38.0 };
        Machine::from(GivenMachine { tsc, imul_latency: Some(3) })
    }

    #[test]
    fn its_tsc_is_the_given_one() {
        let machine = machine();
        for reading in TscRead::ALL {
            assert_eq!(step_ticks(&machine.tsc, reading), Fact::Known(38.0));
        }
        let stopwatch = Stopwatch::start(&machine.tsc).unwrap();
        assert_eq!(stopwatch.rate(), [Hertz(1.5e9); 3]);
    }

    #[test]
    fn no_experiment_takes_this_computers_tsc_for_its_own() {
        let machine = machine();
        let millisecond = Duration::from_millis(1);
        let refused = calibrate(&machine.tsc, millisecond).unwrap_err();
        assert!(refused.why.contains("simulated"), "{refused}");
        assert!(synchrony::measure(&machine, None, millisecond).why().is_some());
    }

    #[test]
    fn it_has_every_feature_and_a_core_of_its_own() {
        let machine = machine();
        assert!(iced_x86::CpuidFeature::values().all(|feature| machine.features.has(feature)));
        assert_eq!(machine.cpu.imul_latency(), Some(3));
        assert_eq!((machine.target_cpu(), machine.is_emulated()), (0, false));
    }
}
