//! The steps that timing methods are made of.

use crate::asm::Emitter;
use crate::context::ProgramContext;
use iced_x86::{Code, CpuidFeature, IcedError, Instruction, Register};
use std::mem::offset_of;

/// One step of a reading. Ordering properties: Intel SDM vol. 2 and vol. 3A 9.3; AMD APM vol. 3 if
/// LFENCE is dispatch serialising.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockStep {
    /// `lfence`: waits until all earlier instructions have executed; later ones do not begin before
    /// it.
    Lfence,
    /// `mfence`: waits until earlier loads and stores are globally visible; orders no other
    /// instruction.
    Mfence,
    /// `serialize`: waits for all earlier instructions and drains the store buffer; later ones are
    /// fetched afterwards.
    Serialize,
    /// `mov eax, 0; cpuid`: serialises like `serialize`, but traps in a virtual machine.
    Cpuid,
    /// `mov rax, cr0; mov cr0, rax`: serialises; ring 0 only.
    RewriteCr0,
    /// `rdtsc`: reads the time stamp counter, in no particular order.
    Rdtsc,
    /// `rdtscp`: reads it after all earlier instructions have executed; later ones may begin
    /// before.
    Rdtscp,
    /// `mov ecx, 1; rdpru`: reads APERF, cycles of the core clock, on AMD; in no particular order.
    Rdpru,
    /// `mov ecx, [counter_index]; rdpmc`: reads a performance counter, in no particular order.
    Rdpmc,
    /// A call of `clock_gettime(CLOCK_MONOTONIC_RAW)`.
    ClockGettime,
    /// `mov [reading], eax; mov [reading+4], edx`: stores the reading without changing flags.
    Store,
}

impl ClockStep {
    /// Short name: the mnemonics.
    pub fn name(self) -> &'static str {
        match self {
            ClockStep::Lfence => "lfence",
            ClockStep::Mfence => "mfence",
            ClockStep::Serialize => "serialize",
            ClockStep::Cpuid => "cpuid",
            ClockStep::RewriteCr0 => "mov cr0",
            ClockStep::Rdtsc => "rdtsc",
            ClockStep::Rdtscp => "rdtscp",
            ClockStep::Rdpru => "rdpru",
            ClockStep::Rdpmc => "rdpmc",
            ClockStep::ClockGettime => "clock_gettime",
            ClockStep::Store => "moves",
        }
    }

    /// Whether it reads a counter.
    pub fn takes_reading(self) -> bool {
        matches!(
            self,
            ClockStep::Rdtsc | ClockStep::Rdtscp | ClockStep::Rdpru | ClockStep::Rdpmc | ClockStep::ClockGettime
        )
    }

    /// CPU feature that the step needs beyond x86-64.
    pub(crate) fn required_feature(self) -> Option<CpuidFeature> {
        match self {
            ClockStep::Rdtscp => Some(CpuidFeature::RDTSCP),
            ClockStep::Serialize => Some(CpuidFeature::SERIALIZE),
            ClockStep::Rdpru => Some(CpuidFeature::RDPRU),
            _ => None,
        }
    }

    /// Registers that the step changes.
    pub(crate) fn clobbers(self) -> &'static [Register] {
        use Register::*;
        match self {
            ClockStep::Lfence | ClockStep::Mfence | ClockStep::Serialize | ClockStep::Store => &[],
            ClockStep::Cpuid => &[RAX, RBX, RCX, RDX],
            ClockStep::RewriteCr0 => &[RAX],
            ClockStep::Rdtsc => &[RAX, RDX],
            ClockStep::Rdtscp | ClockStep::Rdpru | ClockStep::Rdpmc => &[RAX, RCX, RDX],
            ClockStep::ClockGettime => &[RAX, RCX, RDX, RSP, RSI, RDI, R8, R9, R10, R11],
        }
    }

    /// Effect on the order of the code around it, and on the reading, in a few words.
    pub(super) fn describe_effect(self) -> &'static str {
        match self {
            ClockStep::Lfence => "earlier instructions have executed, later ones wait",
            ClockStep::Mfence => "earlier loads and stores are globally visible",
            ClockStep::Serialize => "everything earlier is done, stores too; later code waits",
            ClockStep::Cpuid => "everything earlier is done, stores too; later code waits",
            ClockStep::RewriteCr0 => "everything earlier is done, stores too; later code waits",
            ClockStep::Rdtsc => "reads the TSC into EDX:EAX",
            ClockStep::Rdtscp => "reads the TSC into EDX:EAX when earlier instructions have executed",
            ClockStep::Rdpru => "reads APERF into EDX:EAX",
            ClockStep::Rdpmc => "reads the counter of ECX into EDX:EAX",
            ClockStep::ClockGettime => "reads the system's clock",
            ClockStep::Store => "stores the reading",
        }
    }

    /// Condition for it to work or to be affordable; `None` if it works on every x86-64 CPU.
    pub(super) fn describe_condition(self) -> Option<&'static str> {
        Some(match self {
            ClockStep::Lfence => {
                "LFENCE waits on Intel CPUs, and on AMD CPUs if the system enabled that (see cyclescope doctor)"
            }
            ClockStep::Serialize => "needs SERIALIZE (CPUID leaf 7, EDX bit 14); the CPU faults without it",
            ClockStep::Cpuid => "CPUID exits a virtual machine, which takes thousands of ticks that vary",
            ClockStep::RewriteCr0 => "ring 0 only, as in a kernel module: writing CR0 faults in user mode",
            ClockStep::Rdtscp => "needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it",
            ClockStep::Rdpru => {
                "needs RDPRU (CPUID leaf 80000008h, EBX bit 4) and a system that lets user mode read APERF"
            }
            ClockStep::Rdpmc => {
                "needs a running counter of perf_event_open(2): its number is `index` - 1 of the event's mapped page"
            }
            ClockStep::ClockGettime => "calls the C library on the caller's stack",
            ClockStep::Mfence | ClockStep::Rdtsc | ClockStep::Store => return None,
        })
    }

    /// Instructions of the step that access no memory: the engine assembles them, and source text
    /// shows them. The number of a counter is already in ECX; other moves store a reading from
    /// EDX:EAX.
    pub(super) fn instructions(self) -> Vec<Instruction> {
        use Register::{CR0, EAX, ECX, RAX};
        let build = |instruction: Result<Instruction, IcedError>| instruction.expect("operands that fit");
        let loaded = |register, value: i32| build(Instruction::with2(Code::Mov_r32_imm32, register, value));
        let plain = Instruction::with;
        match self {
            ClockStep::Lfence => vec![plain(Code::Lfence)],
            ClockStep::Mfence => vec![plain(Code::Mfence)],
            ClockStep::Serialize => vec![plain(Code::Serialize)],
            ClockStep::Cpuid => vec![loaded(EAX, 0), plain(Code::Cpuid)],
            ClockStep::RewriteCr0 => vec![
                build(Instruction::with2(Code::Mov_r64_cr, RAX, CR0)),
                build(Instruction::with2(Code::Mov_cr_r64, CR0, RAX)),
            ],
            ClockStep::Rdtsc => vec![plain(Code::Rdtsc)],
            ClockStep::Rdtscp => vec![plain(Code::Rdtscp)],
            // Register 1 is APERF (AMD APM vol. 3, RDPRU).
            ClockStep::Rdpru => vec![loaded(ECX, 1), plain(Code::Rdpru)],
            ClockStep::Rdpmc => vec![plain(Code::Rdpmc)],
            ClockStep::ClockGettime | ClockStep::Store => Vec::new(),
        }
    }

    pub(super) fn emit_step(self, emitter: &mut Emitter, reading: usize) {
        if self == ClockStep::Rdpmc {
            emitter.load_field(Code::Mov_r32_rm32, Register::ECX, offset_of!(ProgramContext, counter_index));
        }
        self.instructions().into_iter().for_each(|instruction| emitter.push(Ok(instruction)));
        match self {
            ClockStep::ClockGettime => emit_clock_gettime(emitter),
            ClockStep::Store => {
                emitter.store_field(Code::Mov_rm32_r32, reading, Register::EAX);
                emitter.store_field(Code::Mov_rm32_r32, reading + 4, Register::EDX);
            }
            _ => {}
        }
    }
}

/// `CLOCK_MONOTONIC_RAW` (Linux, `time.h`). On Windows the function behind the call takes it too.
const CLOCK_MONOTONIC_RAW: i32 = 4;

/// ```text
/// mov  rsp, [return_rsp]      ; the caller's stack,
/// and  rsp, -16               ; aligned as the System V ABI asks,
/// sub  rsp, 128               ; below its red zone
/// mov  edi, 4                 ; CLOCK_MONOTONIC_RAW
/// lea  rsi, [timespec]
/// call [clock_gettime]
/// mov  rax, [timespec.tv_sec]
/// imul rax, rax, 1000000000
/// add  rax, [timespec.tv_nsec]
/// mov  rdx, rax
/// shr  rdx, 32
/// ```
fn emit_clock_gettime(emitter: &mut Emitter) {
    use Register::*;
    let timespec = offset_of!(ProgramContext, timespec);
    emitter.load_field(Code::Mov_r64_rm64, RSP, offset_of!(ProgramContext, return_rsp));
    emitter.push_with_immediate(Code::And_rm64_imm8, RSP, -16);
    emitter.push_with_immediate(Code::Sub_rm64_imm32, RSP, 128);
    emitter.push_with_immediate(Code::Mov_r32_imm32, EDI, CLOCK_MONOTONIC_RAW);
    emitter.load_field(Code::Lea_r64_m, RSI, timespec);
    emitter.push_on_field(Code::Call_rm64, offset_of!(ProgramContext, clock_gettime));
    emitter.load_field(Code::Mov_r64_rm64, RAX, timespec);
    emitter.push(iced_x86::Instruction::with3(Code::Imul_r64_rm64_imm32, RAX, RAX, 1_000_000_000));
    emitter.load_field(Code::Add_r64_rm64, RAX, timespec + 8);
    emitter.push_on_registers(Code::Mov_r64_rm64, RDX, RAX);
    emitter.push_with_immediate(Code::Shr_rm64_imm8, RDX, 32);
}
