//! Markers of the module: instrumentation sites in ordinary kernel code, switched at run time and timed in ring 0.
//!
//! A *code* is one function of the module, a loop around one site; the module reports the list of its codes. It times
//! calls of codes beside the [`Ruler`], and returns raw readings. Sites that are on belong to the [`Markers`] that
//! switched them on: calls of others fail with `EBUSY`, and dropping the owner switches the sites off.

use super::abi::{self, MarkerBytes, MarkerCall, MarkerCode, MarkerRun, MarkerSwitch, VERSION};
use super::device::{Module, Pinned, not_understood, stranger};
use crate::Sample;
use crate::lock::CpuLock;
use cyclescope_core::error::{RunError, Unavailable};
use std::mem::size_of;
use std::time::Duration;

/// Largest number of iterations a round, each counted by its [`Target::weight`].
pub const MOST_WORK: u32 = abi::MARKER_MOST_WORK;
/// Largest number of calls a round.
pub const MOST_CALLS: usize = abi::MARKER_MOST_CALLS as usize;
/// The module takes slices of this length.
const _: () = assert!(super::SLICE_US <= abi::MARKER_LONGEST_SLICE_US);

/// Code around the call of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Guard {
    /// Nothing.
    Bare = 0,
    /// `preempt_disable` and `preempt_enable`.
    Preemption = 1,
    /// The guard that the kernel itself gives the design.
    Own = 2,
    /// `local_irq_disable` and `local_irq_enable`: interrupts are on between the calls.
    Interrupts = 3,
}

impl Guard {
    /// All of them; a design need not have a code for each.
    pub const ALL: [Guard; 4] = [Guard::Bare, Guard::Preemption, Guard::Own, Guard::Interrupts];
}

/// Further work of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Around {
    /// Nothing.
    Nothing = 0,
    /// A copy of 4096 bytes.
    Memcpy = 1,
}

/// The function that an enabled site calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Probe {
    /// Does nothing.
    Empty = 1,
    /// Takes its arguments as parameters.
    Direct = 2,
    /// Takes its arguments from a variable argument list whose types it knows.
    Varargs = 3,
    /// Takes its arguments by a format string.
    Format = 4,
    /// Counts its calls.
    Counting = 5,
}

impl Probe {
    /// All of them; a design need not take each (`EOPNOTSUPP`).
    pub const ALL: [Probe; 5] = [Probe::Empty, Probe::Direct, Probe::Varargs, Probe::Format, Probe::Counting];
}

/// Loops of known length in core cycles, the bodies of `cyclescope_measure::ruler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Ruler {
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
pub struct Design(pub u32);

/// One function of the module: a loop around one site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Its number in the module.
    pub number: u32,
    /// Its design, for [`Markers::switch`].
    pub design: Design,
    /// The design's name: `none`, `flag`, `static-key`.
    pub name: String,
    /// Code around the call of the probe.
    pub guard: Guard,
    /// Further work of the loop.
    pub around: Around,
    /// Offset of the loop from the start of a cache line, in bytes.
    pub placement: u32,
    /// Length in bytes.
    pub len: usize,
    /// Address in the kernel.
    pub address: u64,
}

/// The code or ruler that a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    number: u32,
    weight: u32,
}

impl Target {
    /// Weight of one iteration in [`MOST_WORK`].
    pub fn weight(self) -> u32 {
        self.weight
    }
}

impl From<&Code> for Target {
    fn from(code: &Code) -> Target {
        let weight = match code.around {
            Around::Nothing => 1,
            Around::Memcpy => abi::MARKER_COPY_WEIGHT,
        };
        Target { number: code.number, weight }
    }
}

impl From<Ruler> for Target {
    fn from(ruler: Ruler) -> Target {
        Target { number: ruler as u32, weight: 1 }
    }
}

/// One call of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The code or ruler that runs.
    pub target: Target,
    /// Number of iterations.
    pub loops: u32,
}

/// Rounds of calls.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// The calls of one round, in their order.
    pub calls: Vec<Call>,
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

/// Result of [`Markers::run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timed {
    /// The readings, by round, then by call.
    pub samples: Vec<Sample>,
    /// Calls of the counting probe, those of the warm-up among them.
    pub hits: u64,
}

/// The markers of the module that is loaded.
pub struct Markers {
    module: Module,
    cpu: usize,
    lock: CpuLock,
    codes: Vec<Code>,
}

impl Markers {
    /// Opens the module's device and reads the list of its codes. They will run on `cpu`, and wait for `patience` at
    /// most for another run there.
    pub fn open(cpu: usize, patience: Duration) -> Result<Markers, Unavailable> {
        let module = Module::open()?;
        let codes = list(&module).map_err(|error| stranger(&format!("has no markers ({error})")))?;
        Ok(Markers { module, cpu, lock: CpuLock::open(cpu, patience), codes })
    }

    /// All codes, sorted by design.
    pub fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// Switches all sites of a design on, or off where no probe is given.
    pub fn switch(&mut self, design: Design, probe: Option<Probe>) -> Result<(), RunError> {
        let mut wanted = MarkerSwitch {
            size: size_of::<MarkerSwitch>() as u32,
            version: VERSION,
            flags: 0,
            design: design.0,
            probe: probe.map_or(abi::PROBE_DORMANT, |probe| probe as u32),
        };
        // SAFETY: the struct of this call, which has no addresses.
        unsafe { self.module.call(abi::MARKER_SWITCH, &mut wanted, "switching markers in the kernel") }
    }

    /// The current bytes of a code.
    pub fn bytes(&self, code: &Code) -> Result<Vec<u8>, RunError> {
        let mut bytes = vec![0; code.len];
        let mut wanted = MarkerBytes {
            size: size_of::<MarkerBytes>() as u32,
            version: VERSION,
            code: code.number,
            bytes: code.len as u32,
            buffer: bytes.as_mut_ptr() as u64,
        };
        // SAFETY: the struct of this call; its buffer has that many bytes.
        unsafe { self.module.call(abi::MARKER_BYTES, &mut wanted, "reading a marker's code") }?;
        Ok(bytes)
    }

    /// Runs and times rounds of calls.
    pub fn run(&mut self, rounds: &Rounds) -> Result<Timed, RunError> {
        let pinned = Pinned::to(self.cpu)?;
        self.lock.begin();
        let result = self.module.take().and_then(|()| {
            let timed = self.run_alone(rounds);
            self.module.release();
            timed
        });
        self.lock.release();
        drop(pinned);
        result
    }

    fn run_alone(&self, rounds: &Rounds) -> Result<Timed, RunError> {
        let calls = encode(&rounds.calls);
        let mut samples = vec![Sample::default(); rounds.rounds as usize * calls.len()];
        let limit_ms = rounds.deadline.as_millis().clamp(1, u128::from(u32::MAX)) as u32;
        let mut run = MarkerRun {
            size: size_of::<MarkerRun>() as u32,
            version: VERSION,
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
        // SAFETY: the struct of this call; its counts are those of the list, and there is room for the samples of all
        // rounds.
        unsafe { self.module.call(abi::MARKER_RUN, &mut run, "running markers in the kernel") }?;
        match run.rounds_done == rounds.rounds {
            true => Ok(Timed { samples, hits: run.hits }),
            false => Err(RunError::Late { limit_ms: limit_ms.into(), interrupted: false }),
        }
    }
}

fn encode(calls: &[Call]) -> Vec<MarkerCall> {
    calls.iter().map(|call| MarkerCall { code: call.target.number, loops: call.loops }).collect()
}

fn list(module: &Module) -> Result<Vec<Code>, RunError> {
    let mut codes = Vec::new();
    loop {
        let mut answer = MarkerCode {
            size: size_of::<MarkerCode>() as u32,
            version: VERSION,
            code: codes.len() as u32,
            ..MarkerCode::default()
        };
        // SAFETY: the struct of this call, which has no addresses to write to.
        match unsafe { module.call(abi::MARKER_CODE, &mut answer, "listing the kernel's markers") } {
            Err(RunError::System { errno: libc::ENOENT, .. }) => return Ok(codes),
            Err(error) => return Err(error),
            Ok(()) => codes.push(decode(&answer)?),
        }
    }
}

fn decode(answer: &MarkerCode) -> Result<Code, RunError> {
    let strange = || not_understood(format!("it describes code {} in other words", answer.code));
    let surroundings = [Around::Nothing, Around::Memcpy];
    let name: Vec<u8> = answer.name.iter().copied().take_while(|byte| *byte != 0).collect();
    Ok(Code {
        number: answer.code,
        design: Design(answer.design),
        name: String::from_utf8(name).map_err(|_| strange())?,
        guard: Guard::ALL.into_iter().find(|guard| *guard as u32 == answer.guard).ok_or_else(strange)?,
        around: surroundings
            .into_iter()
            .find(|around| *around as u32 == answer.around)
            .ok_or_else(strange)?,
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
        MarkerCode {
            code: 7,
            design: 3,
            name,
            guard: 1,
            around: 1,
            placement: 28,
            bytes: 150,
            ..MarkerCode::default()
        }
    }

    #[test]
    fn what_the_module_says_of_a_code_is_understood() {
        let code = decode(&answer()).unwrap();
        assert_eq!(
            (code.name.as_str(), code.design, code.placement, code.len),
            ("static-key", Design(3), 28, 150)
        );
        assert_eq!((code.guard, code.around), (Guard::Preemption, Around::Memcpy));
    }

    #[test]
    fn what_it_can_not_say_is_an_error() {
        for strange in [
            MarkerCode { guard: 4, ..answer() },
            MarkerCode { around: 2, ..answer() },
            MarkerCode { name: [0xff; abi::MARKER_NAME_BYTES], ..answer() },
        ] {
            assert!(matches!(decode(&strange), Err(RunError::Machinery { why, .. }) if why.contains("code")));
        }
        let unended = MarkerCode { name: [b'x'; abi::MARKER_NAME_BYTES], ..answer() };
        assert_eq!(decode(&unended).unwrap().name.len(), abi::MARKER_NAME_BYTES);
    }

    #[test]
    fn calls_carry_numbers_of_codes_and_rulers() {
        let code = decode(&answer()).unwrap();
        let target = Target::from(&code);
        assert_eq!((target.weight(), Target::from(Ruler::AddLong).weight()), (4, 1));
        let calls = [Call { target, loops: 9 }, Call { target: Ruler::Sentinel.into(), loops: 40 }];
        let encoded = [MarkerCall { code: 7, loops: 9 }, MarkerCall { code: 0x8000_0004, loops: 40 }];
        assert_eq!(encode(&calls), encoded);
    }
}
