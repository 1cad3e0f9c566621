//! One pass of the region, instruction by instruction, in the traced program.
//!
//! A page is copied before the first instruction that touches it, so the copies are the memory at
//! the region's start. Addresses come from the operands of each instruction and the registers
//! before it.

use super::executable_file::ExecutableFile;
use super::page_log::{ByteUse, PageLog};
use super::process_map::{PAGE, split_by_page};
use super::region_pages::RegionPages;
use super::stopped_task::{StepEnd, StoppedTask};
use super::task_registers::{TaskRegisters, register_value};
use super::traced_process::{TracedProcess, tracing_failure};
use super::xsave_image::XsaveImage;
use crate::output::Failure;
use cyclescope::asm::format_instruction;
use cyclescope::executor::user::signal_name;
use cyclescope::record::{ErrorRecord, RegionLoop, exit};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Bytes of the jump that leads out of the region at its end.
pub const EXIT_JUMP_BYTES: usize = 5;
/// The longest instruction (Intel SDM vol. 2, 2.3.11).
const LONGEST: usize = 15;
/// Most instructions of a region. A step takes some microseconds.
const STEPS_MOST: u64 = 1 << 20;
/// Most pages that a region touches: 16 MiB.
const PAGES_MOST: usize = 4096;
/// Bytes that instructions for the whole processor state may access.
const STATE_BYTES: usize = 4096;
/// Share of the region's instructions from which a loop is reported.
const LOOP_SHARE: f64 = 0.9;
/// Instructions between two looks at the time.
const STEPS_PER_CHECK: u64 = 4096;

/// A pass of the region.
pub struct RegionPass {
    /// The registers at the region's start.
    pub before: TaskRegisters,
    /// The registers at its end.
    pub after: TaskRegisters,
    /// The vector, mask and floating point registers at its start.
    pub vectors: XsaveImage,
    /// The pages that it touches, by address.
    pub pages: RegionPages,
    /// Number of instructions that it executes.
    pub instructions: u64,
    /// Whether it uses the bases of FS or GS.
    pub uses_bases: bool,
    /// Its loops, the outermost first.
    pub loops: Vec<RegionLoop>,
    /// The address of its last instruction, if that is a jump and executes only once.
    pub closing_jump: Option<u64>,
}

/// A decoded instruction, and how it uses memory.
struct KnownInstruction {
    instruction: Instruction,
    memory: Vec<UsedMemory>,
    /// Number of executed instructions before its first execution.
    first: u64,
    executed: Cell<u64>,
}

/// A backward jump's target.
struct LoopTrack {
    /// Number of executed instructions before the last jump back.
    last: u64,
    /// The last address of its jumps back.
    end: u64,
}

/// The state of a pass.
struct PassRecorder<'a> {
    process: &'a TracedProcess,
    file: &'a ExecutableFile,
    task: &'a StoppedTask,
    known: HashMap<u64, Rc<KnownInstruction>>,
    factory: InstructionInfoFactory,
    loops: BTreeMap<u64, LoopTrack>,
    pages: RegionPages,
    uses_bases: bool,
}

impl RegionPass {
    /// Runs a task from the region's first instruction, where it is, to the region's end.
    pub fn record(
        process: &TracedProcess,
        file: &ExecutableFile,
        task: &StoppedTask,
        end: u64,
        limit: Duration,
    ) -> Result<RegionPass, Failure> {
        let failed = |error: std::io::Error| tracing_failure("running the region", &error);
        let deadline = Instant::now() + limit;
        let before = task.registers().map_err(failed)?;
        let vectors = task.xsave_image().map_err(failed)?;
        let mut recorder = PassRecorder {
            process,
            file,
            task,
            known: HashMap::new(),
            factory: InstructionInfoFactory::new(),
            loops: BTreeMap::new(),
            pages: RegionPages::new(),
            uses_bases: false,
        };
        let mut registers = before;
        let mut instructions = 0;
        // An iteration of a repeated instruction is a step, and not an instruction.
        let mut last: Option<Rc<KnownInstruction>> = None;
        for step in 0.. {
            if registers.rip == end && step > 0 {
                break;
            }
            if step == STEPS_MOST || step % STEPS_PER_CHECK == 0 && Instant::now() > deadline {
                return Err(recorder.refuse_length(end, step));
            }
            let known = recorder.recall(registers.rip, instructions)?;
            recorder.note_use(&known, &registers)?;
            if last
                .as_ref()
                .is_none_or(|last| last.instruction.ip() != registers.rip || !is_repeated(&last.instruction))
            {
                instructions += 1;
                known.executed.set(known.executed.get() + 1);
            }
            let stepped = match task.step(deadline) {
                Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                    return Err(recorder.refuse_length(end, step));
                }
                stepped => stepped.map_err(failed)?,
            };
            match stepped {
                StepEnd::Done => {}
                StepEnd::Fault(signal) => return Err(recorder.explain_fault(&known.instruction, signal)),
                StepEnd::Ended => return Err(recorder.refuse(&known.instruction, "the program ends at")),
            }
            registers = task.registers().map_err(failed)?;
            recorder.note_jump(&known.instruction, registers.rip, instructions);
            last = Some(known);
        }
        recorder.include_bytes(end, EXIT_JUMP_BYTES)?;
        let loops = recorder.find_loops(instructions);
        let PassRecorder { pages, uses_bases, .. } = recorder;
        let closing_jump = last.filter(|last| is_jump(&last.instruction) && last.executed.get() == 1);
        let closing_jump = closing_jump.map(|last| last.instruction.ip());
        Ok(RegionPass { before, after: registers, vectors, pages, instructions, uses_bases, loops, closing_jump })
    }
}

impl PassRecorder<'_> {
    /// The instruction at an address. Refuses those that a region must not have.
    fn recall(&mut self, address: u64, first: u64) -> Result<Rc<KnownInstruction>, Failure> {
        if let Some(known) = self.known.get(&address) {
            return Ok(known.clone());
        }
        let mut bytes = [0; LONGEST];
        // The instruction may end before a page that is not mapped.
        let length = (1..=LONGEST).rev().find(|length| self.task.read_memory(address, &mut bytes[..*length]).is_ok());
        let bytes = &bytes[..length.unwrap_or_default()];
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        self.require_repeatable(&instruction)?;
        let info = self.factory.info(&instruction);
        let memory = info.used_memory().to_vec();
        let known = Rc::new(KnownInstruction { instruction, memory, first, executed: Cell::new(0) });
        self.include_bytes(address, instruction.len())?;
        for (page, bytes) in split_by_page(address, instruction.len()) {
            self.pages.get_mut(&page).expect("just included").note_execution(bytes);
        }
        self.known.insert(address, known.clone());
        Ok(known)
    }

    /// Refuses instructions that the sandbox does not allow, or that differ between executions.
    fn require_repeatable(&self, instruction: &Instruction) -> Result<(), Failure> {
        use Mnemonic::{
            Cpuid, Lsl, Pushf, Pushfd, Pushfq, Rdpid, Rdpmc, Rdpru, Rdrand, Rdseed, Rdtsc, Rdtscp, Syscall, Sysenter,
            Wrfsbase, Wrgsbase, Wrpkru, Xbegin,
        };
        let what = match instruction.mnemonic() {
            Syscall | Sysenter => "the region makes a system call at",
            Rdtsc | Rdtscp | Rdpmc | Rdpru => "the region reads a clock or a counter at",
            Rdrand | Rdseed => "the region reads a random number at",
            Cpuid | Lsl | Rdpid => "the region asks for the CPU that it runs on at",
            // They hold the flag for single steps.
            Pushf | Pushfd | Pushfq => "the region saves the flags at",
            Wrfsbase | Wrgsbase | Wrpkru => "the region changes a register of the harness at",
            Xbegin => "the region begins a transaction at",
            _ if instruction.is_invalid() => "there is no instruction at",
            _ if instruction.flow_control() == FlowControl::Interrupt || instruction.is_privileged() => {
                "the region enters the system at"
            }
            _ => return Ok(()),
        };
        Err(self.refuse(instruction, what))
    }

    fn refuse(&self, instruction: &Instruction, what: &str) -> Failure {
        let text = format!("{what} {}", self.describe(instruction));
        Failure::usage(text, Some("choose --from and --to, or another arrival with --hit, so that the region lacks it"))
    }

    /// The instruction as text with its place.
    fn describe(&self, instruction: &Instruction) -> String {
        let place = self.process.name_address(self.file, instruction.ip());
        format!("{place}: {}", format_instruction(instruction))
    }

    fn explain_fault(&self, instruction: &Instruction, signal: i32) -> Failure {
        let signal = signal_name(signal);
        Failure::Error(Box::new(ErrorRecord {
            code: "fault",
            exit: exit::FAULT,
            text: format!("the program raised {signal} in the region at {}", self.describe(instruction)),
            remedy: Some("choose another arrival with --hit, or other arguments with --args".to_string()),
            signal: Some(signal),
            ..ErrorRecord::default()
        }))
    }

    fn refuse_length(&self, end: u64, steps: u64) -> Failure {
        let place = self.process.name_address(self.file, end);
        let text = format!("the program did not arrive at --to, {place}, within {steps} instructions");
        let remedy = match steps {
            STEPS_MOST => {
                "choose a nearer --to, or arguments with which the program does less; of a long loop, take the last \
                 iterations: --from at its start, and --hit with the number of an iteration near its end"
            }
            _ => "allow more time with --timeout, or choose a nearer --to",
        };
        Failure::usage(text, Some(remedy))
    }

    /// Copies the pages with these bytes.
    fn include_bytes(&mut self, address: u64, length: usize) -> Result<(), Failure> {
        for (page, _) in split_by_page(address, length) {
            if self.pages.contains_key(&page) {
                continue;
            }
            let mut contents = vec![0; PAGE as usize];
            // An unreadable page is not used: masked elements may lie there, and a use would raise a
            // signal.
            if self.task.read_memory(page, &mut contents).is_err() {
                continue;
            }
            if self.pages.len() == PAGES_MOST {
                let text = format!("the region touches more than {PAGES_MOST} pages");
                let remedy = "choose a nearer --to, another arrival with --hit, or arguments with which the program \
                              does less";
                return Err(Failure::usage(text, Some(remedy)));
            }
            self.pages.insert(page, PageLog::new(contents));
        }
        Ok(())
    }

    /// Notes the bytes that an instruction is about to use.
    fn note_use(&mut self, known: &KnownInstruction, registers: &TaskRegisters) -> Result<(), Failure> {
        let instruction = &known.instruction;
        self.uses_bases |= matches!(instruction.mnemonic(), Mnemonic::Rdfsbase | Mnemonic::Rdgsbase);
        let is_string = is_repeated(instruction);
        if is_string && registers.rcx == 0 {
            return Ok(());
        }
        for memory in &known.memory {
            self.uses_bases |= matches!(memory.segment(), Register::FS | Register::GS);
            let Some(mut with) = byte_use(memory.access()) else { continue };
            with.surely |= is_string && with.writes;
            let vectors = match memory.vsib_size() {
                0 => None,
                _ => Some(self.task.xsave_image().map_err(|error| tracing_failure("running the region", &error))?),
            };
            // One iteration of a repeated instruction is a step.
            let size = if is_string { instruction.memory_size() } else { memory.memory_size() };
            let length = accessed_bytes(size);
            with.surely &= size.size() != 0;
            for element in 0..element_count(instruction, memory) {
                let value = |register: Register, element: usize, bytes: usize| match &vectors {
                    Some(vectors) if register.is_vector_register() => vectors.vector_element(register, element, bytes),
                    _ => register_value(register, registers),
                };
                let Some(address) = memory.virtual_address(element, value) else { continue };
                let address = address.wrapping_add(bit_string_offset(instruction, registers));
                self.include_bytes(address, length)?;
                for (page, bytes) in split_by_page(address, length) {
                    if let Some(page) = self.pages.get_mut(&page) {
                        page.note_use(bytes, with);
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes a jump back, which closes a loop.
    fn note_jump(&mut self, instruction: &Instruction, target: u64, number: u64) {
        if !is_jump(instruction) || target > instruction.ip() {
            return;
        }
        let track = self.loops.entry(target).or_insert(LoopTrack { last: number, end: instruction.ip() });
        track.last = number;
        track.end = track.end.max(instruction.ip());
    }

    /// The loops that take nearly all of the region: the outermost, and inner ones whose own code
    /// does.
    fn find_loops(&self, instructions: u64) -> Vec<RegionLoop> {
        let enough = |part: u64| part as f64 >= LOOP_SHARE * instructions as f64;
        let own = |start: u64, track: &LoopTrack| {
            let inside = self.known.iter().filter(|(address, _)| (start..=track.end).contains(*address));
            inside.map(|(_, known)| known.executed.get()).sum::<u64>()
        };
        let mut found: Vec<(u64, u64, bool)> = Vec::new();
        for (start, track) in &self.loops {
            // The region may end where a loop begins.
            let Some(known) = self.known.get(start) else { continue };
            let is_busy = enough(own(*start, track));
            if is_busy || enough(track.last - known.first) {
                found.push((known.executed.get(), *start, is_busy));
            }
        }
        found.sort_unstable();
        let is_reported = |(number, (.., is_busy)): &(usize, (u64, u64, bool))| *number == 0 || *is_busy;
        let to_loop = |(_, (iterations, start, _)): (usize, (u64, u64, bool))| RegionLoop {
            place: self.process.name_address(self.file, start),
            iterations,
            cost: None,
        };
        found.into_iter().enumerate().filter(is_reported).map(to_loop).collect()
    }
}

fn is_jump(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
    )
}

/// Whether one instruction is several steps.
fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repe_prefix() || instruction.has_repne_prefix())
}

/// How an access uses bytes; `None` if it doesn't.
fn byte_use(access: OpAccess) -> Option<ByteUse> {
    let (reads, writes, surely) = match access {
        OpAccess::Read | OpAccess::CondRead => (true, false, false),
        OpAccess::Write => (false, true, true),
        OpAccess::CondWrite => (false, true, false),
        OpAccess::ReadWrite => (true, true, true),
        OpAccess::ReadCondWrite => (true, true, false),
        OpAccess::None | OpAccess::NoMemAccess => return None,
    };
    Some(ByteUse { reads, writes, surely })
}

fn accessed_bytes(size: MemorySize) -> usize {
    match size.size() {
        0 => STATE_BYTES,
        bytes => bytes,
    }
}

/// Number of elements that a gather or a scatter accesses; 1 for other instructions.
fn element_count(instruction: &Instruction, memory: &UsedMemory) -> usize {
    let index = match memory.vsib_size() {
        0 => return 1,
        bytes => memory.index().size() / bytes as usize,
    };
    let vectors = (0..instruction.op_count()).filter(|operand| instruction.op_kind(*operand) == OpKind::Register);
    let widest = vectors.map(|operand| instruction.op_register(operand).size()).max().unwrap_or_default();
    index.min(widest / accessed_bytes(memory.memory_size()).max(1)).max(1)
}

/// Bytes from the operand's address to the accessed ones: a bit number in a register reaches beyond
/// the operand (Intel SDM vol. 2, BT).
fn bit_string_offset(instruction: &Instruction, registers: &TaskRegisters) -> u64 {
    let is_bit_string = matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts)
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register;
    if !is_bit_string {
        return 0;
    }
    let register = instruction.op1_register();
    let bits = 8 * register.size() as i64;
    let value = register_value(register, registers).unwrap_or_default() as i64;
    let number = value << (64 - bits) >> (64 - bits);
    (number.div_euclid(bits) * (bits / 8)) as u64
}
