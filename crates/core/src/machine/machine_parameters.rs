//! A machine with given parameters: that of recorded evidence, or a simulated one.
//!
//! The TSC has a given rate and step, so that nothing reads this computer's TSC. The machine has
//! every feature, since its code never runs here. It has one CPU and no file: all other facts are
//! unknown.

use super::Machine;
use super::cpuid_leaves::CpuidLeaves;
use super::fact::{Fact, SystemFiles};
use super::features::CpuFeatures;
use super::microarch::Microarchitecture;
use super::processor::{Processor, Vendor};
use super::tsc::TscParameters;
use super::{CpuFacts, topology::Topology};

/// Parameters of a simulated core and its clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MachineParameters {
    /// Rate and step of its TSC.
    pub tsc: TscParameters,
    /// Latency of `imul r64, r64` in core cycles, if that is a whole number.
    pub imul_latency: Option<u32>,
}

impl From<MachineParameters> for Machine {
    fn from(simulated: MachineParameters) -> Machine {
        let files = SystemFiles::rooted_at("/nonexistent");
        let unknown = "the machine is simulated";
        let (name, imul_latency) = ("simulated", simulated.imul_latency);
        let cpu = Processor {
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
        let machine = Machine::from_sources(CpuidLeaves::default(), &files);
        let (features, one_cpu) = (CpuFeatures::with_every_feature(), || Fact::Known(vec![0]));
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
    use crate::machine::synchrony;
    use crate::machine::tsc_calibration::{TscStopwatch, calibrate_tsc};
    use crate::machine::tsc_read::TscRead;
    use crate::machine::tsc_step::step_ticks;
    use crate::unit::Hertz;
    use std::time::Duration;

    fn machine() -> Machine {
        let tsc = TscParameters { rate: Hertz(1.5e9), step: 38.0 };
        Machine::from(MachineParameters { tsc, imul_latency: Some(3) })
    }

    #[test]
    fn the_tsc_has_the_given_rate_and_step() {
        let machine = machine();
        for reading in TscRead::ALL {
            assert_eq!(step_ticks(&machine.tsc, reading), Fact::Known(38.0));
        }
        let stopwatch = TscStopwatch::start(&machine.tsc).unwrap();
        assert_eq!(stopwatch.rate_bounds(), [Hertz(1.5e9); 3]);
    }

    #[test]
    fn no_experiment_reads_this_computers_tsc() {
        let machine = machine();
        let millisecond = Duration::from_millis(1);
        let refused = calibrate_tsc(&machine.tsc, millisecond).unwrap_err();
        assert!(refused.why.contains("simulated"), "{refused}");
        assert!(synchrony::measure_synchrony(&machine, None, millisecond).why().is_some());
    }

    #[test]
    fn it_has_every_feature_and_its_own_core() {
        let machine = machine();
        assert!(iced_x86::CpuidFeature::values().all(|feature| machine.features.has(feature)));
        assert_eq!(machine.cpu.imul_latency(), Some(3));
        assert_eq!((machine.target_cpu(), machine.is_emulated()), (0, false));
    }
}
