//! A miniature core that executes emitted machine code out of order, so that the effect of each
//! fence is visible.
//!
//! Six instructions issue per cycle and execute as soon as their registers are ready. The
//! multiplier and the divider serve the first ready operation. RDTSC and RDTSCP do not delay later
//! instructions, as on the cores in the notes. LFENCE, MFENCE, SERIALIZE and CPUID order exactly as
//! specified in the manuals. One tick is one cycle.

use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::random::Random;
use cyclescope_exec::{Batch, Capabilities, Executor, Sample};
use cyclescope_sim::{Scenario, SimulatedExecutor};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

/// Instructions per cycle.
const WIDTH: u64 = 6;
/// Multiplications in a row that form the reading of a counter. They can be delayed.
const READING: usize = 4;

/// The properties in which cores differ.
pub(super) struct Habits {
    /// Whether LFENCE waits for earlier instructions.
    pub(super) lfence_waits: bool,
    /// Cycles of MFENCE once the stores before it are visible. They overlap with other execution.
    pub(super) mfence: u64,
    /// Drain time in cycles of a store that the caller left in the store buffer; 0 for none.
    pub(super) left_by_caller: u64,
    /// Number of square roots since the last fence for which RDTSCP waits. It ignores further ones.
    pub(super) rdtscp_roots: usize,
    /// Readings are multiples of this step.
    pub(super) step: u64,
}

impl Default for Habits {
    fn default() -> Habits {
        Habits { lfence_waits: true, mfence: 1, left_by_caller: 0, rdtscp_roots: usize::MAX, step: 1 }
    }
}

impl Habits {
    /// The readings at both ends of this duration.
    fn read(&self, duration: u64, phases: &mut Random) -> Sample {
        let phase = phases.next_bits() % self.step;
        Sample { start: 0, end: (phase + duration) / self.step * self.step }
    }
}

pub(super) struct Core {
    habits: Habits,
    /// Computed durations.
    known: HashMap<(Vec<u8>, u64), u64>,
    /// Position within a counter step at which a program begins.
    phases: Random,
    /// Elapsed ticks.
    ticks: u64,
    /// Simulates everything outside this core: its capabilities and the machine around it.
    scenario: SimulatedExecutor,
}

impl Executor for Core {
    fn capabilities(&self) -> &Capabilities {
        self.scenario.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.scenario.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        for layout in &batch.layouts {
            let call = |call: &cyclescope_exec::ProgramCall| {
                let program = &batch.programs[layout.code[call.place].program];
                self.duration(program, call.loop_count)
            };
            let durations: Vec<u64> = layout.round.iter().map(call).collect();
            self.ticks += u64::from(batch.rounds) * durations.iter().sum::<u64>();
            for _ in 0..batch.rounds {
                let read = |duration: &u64| self.habits.read(*duration, &mut self.phases);
                take(&durations.iter().map(read).collect::<Vec<_>>());
            }
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.ticks as f64 / self.scenario.scenario().hertz)
    }

    fn pause(&mut self, time: Duration) {
        self.ticks += (time.as_secs_f64() * self.scenario.scenario().hertz) as u64;
    }
}

impl Core {
    pub(super) fn new(habits: Habits) -> Core {
        let scenario = Scenario { ratio: 1.0, ..Scenario::default() };
        let scenario = SimulatedExecutor::new(scenario, 1);
        Core { habits, known: HashMap::new(), phases: Random::new(2), ticks: 0, scenario }
    }

    fn duration(&mut self, program: &Program, loops: u64) -> u64 {
        let key = (program.code().to_vec(), loops);
        *self.known.entry(key).or_insert_with(|| {
            let Habits { mfence, rdtscp_roots, .. } = self.habits;
            let mut flight = Flight { mfence, rdtscp_roots, ..Flight::default() };
            if self.habits.left_by_caller > 0 {
                let drained = flight.add(Unit::Any, self.habits.left_by_caller, Vec::new());
                flight.accesses.push(drained);
            }
            for instruction in path(program, loops) {
                if self.habits.lfence_waits || instruction.mnemonic() != Mnemonic::Lfence {
                    flight.issue(&instruction);
                }
            }
            let finished = flight.execute();
            let at = |reading: Option<&usize>| finished[*reading.expect("a program reads its clock twice")];
            at(flight.readings.last()) - at(flight.readings.first())
        })
    }
}

/// The executed instructions, with loops unrolled.
fn path(program: &Program, loops: u64) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(program.mode().bits(), program.code(), 0, DecoderOptions::NONE);
    let (mut path, mut left) = (Vec::new(), loops);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        path.push(instruction);
        if instruction.mnemonic() == Mnemonic::Jne {
            left -= 1;
            if left > 0 {
                let target = instruction.near_branch_target();
                decoder.set_position(target as usize).expect("the loop is in the code");
                decoder.set_ip(target);
            }
        }
    }
    path
}

#[derive(Clone, Copy)]
enum Unit {
    Any,
    Multiplier,
    Divider,
}

struct Operation {
    unit: Unit,
    latency: u64,
    issued: u64,
    waits_for: Vec<usize>,
}

/// Everything that one program executes.
#[derive(Default)]
struct Flight {
    operations: Vec<Operation>,
    mfence: u64,
    rdtscp_roots: usize,
    /// Square roots since the last barrier.
    roots: Vec<usize>,
    instructions: u64,
    /// The last writer of each register.
    writers: HashMap<Register, usize>,
    /// The operation that no later one may overtake.
    barrier: Option<usize>,
    /// Operations since that barrier, then memory accesses and store drains that no fence has
    /// waited for.
    since: Vec<usize>,
    accesses: Vec<usize>,
    readings: Vec<usize>,
}

impl Flight {
    fn add(&mut self, unit: Unit, latency: u64, waits_for: Vec<usize>) -> usize {
        let waits_for = waits_for.into_iter().chain(self.barrier).collect();
        self.operations.push(Operation { unit, latency, issued: self.instructions / WIDTH, waits_for });
        self.operations.len() - 1
    }

    fn issue(&mut self, instruction: &Instruction) {
        self.instructions += 1;
        match instruction.mnemonic() {
            Mnemonic::Lfence => self.fence(self.since.clone()),
            Mnemonic::Serialize | Mnemonic::Cpuid => self.fence([&self.since[..], &self.accesses].concat()),
            Mnemonic::Mfence => {
                let accesses = std::mem::take(&mut self.accesses);
                let fence = self.add(Unit::Any, self.mfence, accesses);
                self.since.push(fence);
                self.accesses.push(fence);
            }
            Mnemonic::Rdtsc => self.read(Vec::new()),
            Mnemonic::Rdtscp => {
                let forgotten = self.roots.get(self.rdtscp_roots..).unwrap_or_default();
                let waits_for = self.since.iter().filter(|done| !forgotten.contains(done));
                self.read(waits_for.copied().collect());
            }
            _ => self.ordinary(instruction),
        }
    }

    fn fence(&mut self, waits_for: Vec<usize>) {
        let fence = self.add(Unit::Any, 1, waits_for);
        self.barrier = Some(fence);
        self.since.clear();
        self.roots.clear();
    }

    fn read(&mut self, mut waits_for: Vec<usize>) {
        for _ in 0..READING {
            let step = self.add(Unit::Multiplier, 3, waits_for);
            self.since.push(step);
            waits_for = vec![step];
        }
        self.readings.extend(&waits_for);
        for register in [Register::RAX, Register::RDX] {
            self.writers.insert(register, waits_for[0]);
        }
    }

    fn ordinary(&mut self, instruction: &Instruction) {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(instruction);
        let registers = info.used_registers().iter();
        let used: Vec<(Register, OpAccess)> =
            registers.map(|used| (used.register().full_register(), used.access())).collect();
        let memory = info.used_memory().first().map(|memory| memory.access());
        let (unit, latency) = match instruction.mnemonic() {
            Mnemonic::Imul => (Unit::Multiplier, 3),
            Mnemonic::Mulsd => (Unit::Any, 4),
            Mnemonic::Sqrtsd | Mnemonic::Divsd => (Unit::Divider, 13),
            _ if memory == Some(OpAccess::Read) => (Unit::Any, 5),
            _ => (Unit::Any, 1),
        };
        let reads = used.iter().filter(|(_, access)| *access != OpAccess::Write);
        let waits_for = reads.filter_map(|(register, _)| self.writers.get(register)).copied().collect();
        let done = self.add(unit, latency, waits_for);
        self.since.push(done);
        if instruction.mnemonic() == Mnemonic::Sqrtsd {
            self.roots.push(done);
        }
        let writes = used.iter().filter(|(_, access)| *access != OpAccess::Read);
        self.writers.extend(writes.map(|(register, _)| (*register, done)));
        match memory {
            Some(OpAccess::Write) => {
                let whole_line = matches!(instruction.mnemonic(), Mnemonic::Movnti | Mnemonic::Movntps);
                let drain = if whole_line { 300 } else { 4 };
                let drained = self.add(Unit::Any, drain, vec![done]);
                self.accesses.push(drained);
            }
            Some(_) => self.accesses.push(done),
            None => {}
        }
    }

    /// Completion time of each operation.
    fn execute(&self) -> Vec<u64> {
        let count = self.operations.len();
        let mut followers = vec![Vec::new(); count];
        let mut missing = vec![0; count];
        for (number, operation) in self.operations.iter().enumerate() {
            missing[number] = operation.waits_for.len();
            operation.waits_for.iter().for_each(|before| followers[*before].push(number));
        }
        let mut ready: Vec<u64> = self.operations.iter().map(|operation| operation.issued).collect();
        let mut finished = vec![0; count];
        let [mut multiplier, mut divider] = [0, 0];
        let free = (0..count).filter(|number| missing[*number] == 0);
        let mut queue: BinaryHeap<_> = free.map(|number| Reverse((ready[number], number))).collect();
        while let Some(Reverse((time, number))) = queue.pop() {
            let operation = &self.operations[number];
            let start = match operation.unit {
                Unit::Any => time,
                Unit::Multiplier => take(&mut multiplier, time, 1),
                Unit::Divider => take(&mut divider, time, 4),
            };
            finished[number] = start + operation.latency;
            for follower in &followers[number] {
                ready[*follower] = ready[*follower].max(finished[number]);
                missing[*follower] -= 1;
                if missing[*follower] == 0 {
                    queue.push(Reverse((ready[*follower], *follower)));
                }
            }
        }
        finished
    }
}

/// Occupies a unit for some cycles as soon as it is free. Returns the start time.
fn take(unit: &mut u64, time: u64, cycles: u64) -> u64 {
    let start = time.max(*unit);
    *unit = start + cycles;
    start
}
