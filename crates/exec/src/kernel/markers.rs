//! Markers of the module: instrumentation sites in ordinary kernel code, switched at run time and
//! timed in ring 0.
//!
//! A *code* is one function of the module, a loop around one site. The module reports its codes. It
//! times calls of codes together with the [`KernelRuler`], and returns raw readings. Enabled sites
//! belong to the [`KernelMarkers`] that switched them on: calls of others fail with `EBUSY`, and
//! dropping the owner switches the sites off.

use super::abi::{self, INTERFACE_VERSION, MarkerBytes, MarkerCall, MarkerCode, MarkerRun, MarkerSwitch};
use super::device::{ModuleDevice, PinnedThread, foreign_module_error, unknown_answer_error};
use crate::Sample;
use crate::lock::CpuLock;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_platform::error_code;
use std::mem::size_of;
use std::time::Duration;

/// Largest number of iterations a round, each counted by its [`MarkerTarget::weight`].
pub const MAX_ROUND_ITERATIONS: u32 = abi::MARKER_MOST_WORK;
/// Largest number of calls a round.
pub const MAX_ROUND_CALLS: usize = abi::MARKER_MOST_CALLS as usize;
/// The module takes slices of this length.
const _: () = assert!(super::SLICE_US <= abi::MARKER_LONGEST_SLICE_US);

/// Code around the call of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ProbeGuard {
    /// Nothing.
    Bare = 0,
    /// `preempt_disable` and `preempt_enable`.
    Preemption = 1,
    /// The design's own guard in the kernel.
    Own = 2,
    /// `local_irq_disable` and `local_irq_enable`: interrupts are on between the calls.
    Interrupts = 3,
}

impl ProbeGuard {
    /// All guards; a design need not have a code for each.
    pub const ALL: [ProbeGuard; 4] =
        [ProbeGuard::Bare, ProbeGuard::Preemption, ProbeGuard::Own, ProbeGuard::Interrupts];
}

/// Further work of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MarkerWorkload {
    /// Nothing.
    Nothing = 0,
    /// A copy of 4096 bytes.
    Memcpy = 1,
}

/// The function that an enabled site calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum KernelProbe {
    /// Does nothing.
    Empty = 1,
    /// Takes its arguments as parameters.
    Direct = 2,
    /// Takes its arguments from a variable argument list whose types it knows.
    Varargs = 3,
    /// Takes its arguments through a format string.
    Format = 4,
    /// Counts its calls.
    Counting = 5,
}

impl KernelProbe {
    /// All probes; a design need not accept each (`EOPNOTSUPP`).
    pub const ALL: [KernelProbe; 5] =
        [KernelProbe::Empty, KernelProbe::Direct, KernelProbe::Varargs, KernelProbe::Format, KernelProbe::Counting];
}

/// Loops of known length in core cycles, the bodies of `cyclescope_measure::ruler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum KernelRuler {
    /// The short chain of `imul`.
    ImulShort = 0x8000_0000,
    /// The long chain of `imul`.
    ImulLong = 0x8000_0001,
    /// The short chain of `add`.
    AddShort = 0x8000_0002,
    /// The long chain of `add`.
    AddLong = 0x8000_0003,
    /// The width sentinel.
    Sentinel = 0x8000_0004,
}

/// A design, by the module's own number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DesignNumber(pub u32);

/// One function of the module: a loop around one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkerFunction {
    /// Its number in the module.
    pub number: u32,
    /// Its design, for [`KernelMarkers::switch_sites`].
    pub design: DesignNumber,
    /// The design's name: `none`, `flag`, `static-key`.
    pub name: String,
    /// Code around the call of the probe.
    pub guard: ProbeGuard,
    /// Further work of the loop.
    pub around: MarkerWorkload,
    /// Offset of the loop from the start of a cache line, in bytes.
    pub placement: u32,
    /// Length in bytes.
    pub len: usize,
    /// Address in the kernel.
    pub address: u64,
}

/// The code or ruler that a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkerTarget {
    number: u32,
    weight: u32,
}

impl MarkerTarget {
    /// Weight of one iteration in [`MAX_ROUND_ITERATIONS`].
    pub fn weight(self) -> u32 {
        self.weight
    }
}

impl From<&MarkerFunction> for MarkerTarget {
    fn from(code: &MarkerFunction) -> MarkerTarget {
        let weight = match code.around {
            MarkerWorkload::Nothing => 1,
            MarkerWorkload::Memcpy => abi::MARKER_COPY_WEIGHT,
        };
        MarkerTarget { number: code.number, weight }
    }
}

impl From<KernelRuler> for MarkerTarget {
    fn from(ruler: KernelRuler) -> MarkerTarget {
        MarkerTarget { number: ruler as u32, weight: 1 }
    }
}

/// One call of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkerTargetCall {
    /// The code or ruler that runs.
    pub target: MarkerTarget,
    /// Number of iterations.
    pub loops: u32,
}

/// Rounds of calls.
#[derive(Debug, Clone)]
pub struct KernelMarkerRounds {
    /// The calls of one round, in their order.
    pub calls: Vec<MarkerTargetCall>,
    /// Untimed rounds.
    pub warm_up: u32,
    /// Timed rounds.
    pub rounds: u32,
    /// Largest number of iterations of a one-cycle delay loop before each call.
    pub delay: u32,
    /// Seed of the delays.
    pub seed: u64,
    /// Time limit of the run.
    pub deadline: Duration,
}

/// Result of [`KernelMarkers::run_rounds`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedMarkerRounds {
    /// The readings, by round, then by call.
    pub samples: Vec<Sample>,
    /// Number of calls of the counting probe, including the warm-up.
    pub hits: u64,
}

/// The markers of the loaded module.
pub struct KernelMarkers {
    module: ModuleDevice,
    cpu: usize,
    lock: CpuLock,
    codes: Vec<MarkerFunction>,
}

impl KernelMarkers {
    /// Opens the module's device and reads the list of its codes. They run on `cpu`, and wait at
    /// most `patience` for another run there.
    pub fn open(cpu: usize, patience: Duration) -> Result<KernelMarkers, Unavailable> {
        let module = ModuleDevice::open()?;
        let codes =
            list_functions(&module).map_err(|error| foreign_module_error(&format!("has no markers ({error})")))?;
        Ok(KernelMarkers { module, cpu, lock: CpuLock::open(cpu, patience), codes })
    }

    /// All codes, sorted by design.
    pub fn codes(&self) -> &[MarkerFunction] {
        &self.codes
    }

    /// Switches all sites of a design on, or off if `probe` is `None`.
    pub fn switch_sites(&mut self, design: DesignNumber, probe: Option<KernelProbe>) -> Result<(), RunError> {
        let mut wanted = MarkerSwitch {
            size: size_of::<MarkerSwitch>() as u32,
            version: INTERFACE_VERSION,
            flags: 0,
            design: design.0,
            probe: probe.map_or(abi::PROBE_DORMANT, |probe| probe as u32),
        };
        // SAFETY: the struct of this call, without addresses.
        unsafe { self.module.call_device(abi::MARKER_SWITCH, &mut wanted, "switching markers in the kernel") }
    }

    /// The current bytes of a code.
    pub fn read_bytes(&self, code: &MarkerFunction) -> Result<Vec<u8>, RunError> {
        let mut bytes = vec![0; code.len];
        let mut wanted = MarkerBytes {
            size: size_of::<MarkerBytes>() as u32,
            version: INTERFACE_VERSION,
            code: code.number,
            bytes: code.len as u32,
            buffer: bytes.as_mut_ptr() as u64,
        };
        // SAFETY: the struct of this call; its buffer has that many bytes.
        unsafe { self.module.call_device(abi::MARKER_BYTES, &mut wanted, "reading a marker's code") }?;
        Ok(bytes)
    }

    /// Runs and times rounds of calls.
    pub fn run_rounds(&mut self, rounds: &KernelMarkerRounds) -> Result<TimedMarkerRounds, RunError> {
        let pinned = PinnedThread::pin(self.cpu)?;
        self.lock.acquire();
        let result = self.module.lock_device().and_then(|()| {
            let timed = self.run_on_locked_cpu(rounds);
            self.module.unlock_device();
            timed
        });
        self.lock.release();
        drop(pinned);
        result
    }

    fn run_on_locked_cpu(&self, rounds: &KernelMarkerRounds) -> Result<TimedMarkerRounds, RunError> {
        let calls = encode_calls(&rounds.calls);
        let mut samples = vec![Sample::default(); rounds.rounds as usize * calls.len()];
        let limit_ms = rounds.deadline.as_millis().clamp(1, u128::from(u32::MAX)) as u32;
        let mut run = MarkerRun {
            size: size_of::<MarkerRun>() as u32,
            version: INTERFACE_VERSION,
            cpu: self.cpu as u32,
            calls: calls.len() as u32,
            warm_up: rounds.warm_up,
            rounds: rounds.rounds,
            delay: rounds.delay.max(1),
            call_list: calls.as_ptr() as u64,
            samples: samples.as_mut_ptr() as u64,
            seed: rounds.seed,
            slice_us: super::SLICE_US,
            total_ms: limit_ms,
            ..MarkerRun::default()
        };
        // SAFETY: the struct of this call; its counts are those of the list, and there is room for
        // the samples of all rounds.
        unsafe { self.module.call_device(abi::MARKER_RUN, &mut run, "running markers in the kernel") }?;
        match run.rounds_done == rounds.rounds {
            true => Ok(TimedMarkerRounds { samples, hits: run.hits }),
            false => Err(RunError::Late { limit_ms: limit_ms.into(), interrupted: false }),
        }
    }
}

fn encode_calls(calls: &[MarkerTargetCall]) -> Vec<MarkerCall> {
    calls.iter().map(|call| MarkerCall { code: call.target.number, loops: call.loops }).collect()
}

fn list_functions(module: &ModuleDevice) -> Result<Vec<MarkerFunction>, RunError> {
    let mut codes = Vec::new();
    loop {
        let mut answer = MarkerCode {
            size: size_of::<MarkerCode>() as u32,
            version: INTERFACE_VERSION,
            code: codes.len() as u32,
            ..MarkerCode::default()
        };
        // SAFETY: the struct of this call, which has no addresses to write to.
        match unsafe { module.call_device(abi::MARKER_CODE, &mut answer, "listing the kernel's markers") } {
            Err(RunError::System { errno: error_code::ENOENT, .. }) => return Ok(codes),
            Err(error) => return Err(error),
            Ok(()) => codes.push(decode_function(&answer)?),
        }
    }
}

fn decode_function(answer: &MarkerCode) -> Result<MarkerFunction, RunError> {
    let strange = || unknown_answer_error(format!("it describes code {} in an unknown way", answer.code));
    let surroundings = [MarkerWorkload::Nothing, MarkerWorkload::Memcpy];
    let name: Vec<u8> = answer.name.iter().copied().take_while(|byte| *byte != 0).collect();
    Ok(MarkerFunction {
        number: answer.code,
        design: DesignNumber(answer.design),
        name: String::from_utf8(name).map_err(|_| strange())?,
        guard: ProbeGuard::ALL.into_iter().find(|guard| *guard as u32 == answer.guard).ok_or_else(strange)?,
        around: surroundings.into_iter().find(|around| *around as u32 == answer.around).ok_or_else(strange)?,
        placement: answer.placement,
        len: answer.bytes as usize,
        address: answer.address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> MarkerCode {
        let mut name = [0; abi::MARKER_NAME_BYTES];
        name[..10].copy_from_slice(b"static-key");
        MarkerCode { code: 7, design: 3, name, guard: 1, around: 1, placement: 28, bytes: 150, ..MarkerCode::default() }
    }

    #[test]
    fn the_module_s_description_of_a_code_is_parsed() {
        let code = decode_function(&answer()).unwrap();
        assert_eq!(
            (code.name.as_str(), code.design, code.placement, code.len),
            ("static-key", DesignNumber(3), 28, 150)
        );
        assert_eq!((code.guard, code.around), (ProbeGuard::Preemption, MarkerWorkload::Memcpy));
    }

    #[test]
    fn an_invalid_description_is_an_error() {
        for strange in [
            MarkerCode { guard: 4, ..answer() },
            MarkerCode { around: 2, ..answer() },
            MarkerCode { name: [0xff; abi::MARKER_NAME_BYTES], ..answer() },
        ] {
            assert!(matches!(decode_function(&strange), Err(RunError::Machinery { why, .. }) if why.contains("code")));
        }
        let unended = MarkerCode { name: [b'x'; abi::MARKER_NAME_BYTES], ..answer() };
        assert_eq!(decode_function(&unended).unwrap().name.len(), abi::MARKER_NAME_BYTES);
    }

    #[test]
    fn calls_carry_numbers_of_codes_and_rulers() {
        let code = decode_function(&answer()).unwrap();
        let target = MarkerTarget::from(&code);
        assert_eq!((target.weight(), MarkerTarget::from(KernelRuler::AddLong).weight()), (4, 1));
        let calls = [
            MarkerTargetCall { target, loops: 9 },
            MarkerTargetCall { target: KernelRuler::Sentinel.into(), loops: 40 },
        ];
        let encoded = [MarkerCall { code: 7, loops: 9 }, MarkerCall { code: 0x8000_0004, loops: 40 }];
        assert_eq!(encode_calls(&calls), encoded);
    }
}
