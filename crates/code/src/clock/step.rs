//! The steps that timing methods are made of.

use crate::asm::Emitter;
use crate::context::Context;
use iced_x86::{Code, CpuidFeature, IcedError, Instruction, Register};
use std::mem::offset_of;

/// One step of a reading. The ordering properties are those of the Intel SDM vol. 2 and vol. 3A 9.3, and of
/// the AMD APM vol. 3 where LFENCE is dispatch serialising.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// `lfence`: waits until all earlier instructions have executed; later ones do not begin before.
    Lfence,
    /// `mfence`: waits until earlier loads and stores are globally visible; orders no other instruction.
    Mfence,
    /// `serialize`: waits for all earlier instructions and drains the store buffer; later ones are fetched after.
    Serialize,
    /// `mov eax, 0; cpuid`: serialising as `serialize` is, but traps in a virtual machine.
    Cpuid,
    /// `mov rax, cr0; mov cr0, rax`: serialising, ring 0 only.
    RewriteCr0,
    /// `rdtsc`: reads the time stamp counter, in order with nothing.
    Rdtsc,
    /// `rdtscp`: reads it after all earlier instructions have executed; later ones may begin before.
    Rdtscp,
    /// `mov ecx, 1; rdpru`: reads APERF, cycles of the core clock, on AMD; in order with nothing.
    Rdpru,
    /// `mov ecx, [counter_index]; rdpmc`: reads a performance counter, in order with nothing.
    Rdpmc,
    /// A call of `clock_gettime(CLOCK_MONOTONIC_RAW)`.
    ClockGettime,
    /// `mov [reading], eax; mov [reading+4], edx`: keeps the reading without touching flags.
    Store,
}

impl Step {
    /// Its instructions in a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Step::Lfence => "lfence",
            Step::Mfence => "mfence",
            Step::Serialize => "serialize",
            Step::Cpuid => "cpuid",
            Step::RewriteCr0 => "mov cr0",
            Step::Rdtsc => "rdtsc",
            Step::Rdtscp => "rdtscp",
            Step::Rdpru => "rdpru",
            Step::Rdpmc => "rdpmc",
            Step::ClockGettime => "clock_gettime",
            Step::Store => "moves",
        }
    }

    /// Whether it reads a counter.
    pub fn reads(self) -> bool {
        matches!(self, Step::Rdtsc | Step::Rdtscp | Step::Rdpru | Step::Rdpmc | Step::ClockGettime)
    }

    /// The CPU feature that the step needs beyond x86-64.
    pub(crate) fn feature(self) -> Option<CpuidFeature> {
        match self {
            Step::Rdtscp => Some(CpuidFeature::RDTSCP),
            Step::Serialize => Some(CpuidFeature::SERIALIZE),
            Step::Rdpru => Some(CpuidFeature::RDPRU),
            _ => None,
        }
    }

    /// The registers that the step changes.
    pub(crate) fn clobbers(self) -> &'static [Register] {
        use Register::*;
        match self {
            Step::Lfence | Step::Mfence | Step::Serialize | Step::Store => &[],
            Step::Cpuid => &[RAX, RBX, RCX, RDX],
            Step::RewriteCr0 => &[RAX],
            Step::Rdtsc => &[RAX, RDX],
            Step::Rdtscp | Step::Rdpru | Step::Rdpmc => &[RAX, RCX, RDX],
            Step::ClockGettime => &[RAX, RCX, RDX, RSP, RSI, RDI, R8, R9, R10, R11],
        }
    }

    /// What it does to the order of the code around it, and to the reading, in a few words.
    pub(super) fn effect(self) -> &'static str {
        match self {
            Step::Lfence => "earlier instructions have executed, later ones wait",
            Step::Mfence => "earlier loads and stores are globally visible",
            Step::Serialize => "everything earlier is done, stores too; later code waits",
            Step::Cpuid => "everything earlier is done, stores too; later code waits",
            Step::RewriteCr0 => "everything earlier is done, stores too; later code waits",
            Step::Rdtsc => "reads the TSC into EDX:EAX",
            Step::Rdtscp => "reads the TSC into EDX:EAX when earlier instructions have executed",
            Step::Rdpru => "reads APERF into EDX:EAX",
            Step::Rdpmc => "reads the counter of ECX into EDX:EAX",
            Step::ClockGettime => "reads the system's clock",
            Step::Store => "keeps the reading",
        }
    }

    /// What must hold for it to work, or to be worth its time; none where it works on every x86-64 CPU.
    pub(super) fn condition(self) -> Option<&'static str> {
        Some(match self {
            Step::Lfence => {
                "LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells)"
            }
            Step::Serialize => "needs SERIALIZE (CPUID leaf 7, EDX bit 14); the CPU faults without it",
            Step::Cpuid => "CPUID leaves a virtual machine, which takes thousands of ticks that vary",
            Step::RewriteCr0 => "ring 0 only, as in a kernel module: user mode faults where it writes CR0",
            Step::Rdtscp => "needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it",
            Step::Rdpru => {
                "needs RDPRU (CPUID leaf 80000008h, EBX bit 4) and a system that lets user mode read APERF"
            }
            Step::Rdpmc => {
                "needs a running counter of perf_event_open(2): its number is `index` - 1 of the event's mapped page"
            }
            Step::ClockGettime => "calls the C library on the caller's stack",
            Step::Mfence | Step::Rdtsc | Step::Store => return None,
        })
    }

    /// Its instructions, as far as they refer to no memory: those that the engine assembles and that source text shows. A
    /// counter's number is in ECX by then, and a reading in EDX:EAX leaves by the program's own moves.
    pub(super) fn instructions(self) -> Vec<Instruction> {
        use Register::{CR0, EAX, ECX, RAX};
        let made_up = |instruction: Result<Instruction, IcedError>| instruction.expect("operands that fit");
        let loaded = |register, value: i32| made_up(Instruction::with2(Code::Mov_r32_imm32, register, value));
        let plain = Instruction::with;
        match self {
            Step::Lfence => vec![plain(Code::Lfence)],
            Step::Mfence => vec![plain(Code::Mfence)],
            Step::Serialize => vec![plain(Code::Serialize)],
            Step::Cpuid => vec![loaded(EAX, 0), plain(Code::Cpuid)],
            Step::RewriteCr0 => vec![
                made_up(Instruction::with2(Code::Mov_r64_cr, RAX, CR0)),
                made_up(Instruction::with2(Code::Mov_cr_r64, CR0, RAX)),
            ],
            Step::Rdtsc => vec![plain(Code::Rdtsc)],
            Step::Rdtscp => vec![plain(Code::Rdtscp)],
            // Register 1 is APERF (AMD APM vol. 3, RDPRU).
            Step::Rdpru => vec![loaded(ECX, 1), plain(Code::Rdpru)],
            Step::Rdpmc => vec![plain(Code::Rdpmc)],
            Step::ClockGettime | Step::Store => Vec::new(),
        }
    }

    pub(super) fn emit(self, emitter: &mut Emitter, reading: usize) {
        if self == Step::Rdpmc {
            emitter.load(Code::Mov_r32_rm32, Register::ECX, offset_of!(Context, counter_index));
        }
        self.instructions().into_iter().for_each(|instruction| emitter.push(Ok(instruction)));
        match self {
            Step::ClockGettime => emit_clock_gettime(emitter),
            Step::Store => {
                emitter.store(Code::Mov_rm32_r32, reading, Register::EAX);
                emitter.store(Code::Mov_rm32_r32, reading + 4, Register::EDX);
            }
            _ => {}
        }
    }
}

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
    let timespec = offset_of!(Context, timespec);
    emitter.load(Code::Mov_r64_rm64, RSP, offset_of!(Context, return_rsp));
    emitter.immediate(Code::And_rm64_imm8, RSP, -16);
    emitter.immediate(Code::Sub_rm64_imm32, RSP, 128);
    emitter.immediate(Code::Mov_r32_imm32, EDI, libc::CLOCK_MONOTONIC_RAW);
    emitter.load(Code::Lea_r64_m, RSI, timespec);
    emitter.memory(Code::Call_rm64, offset_of!(Context, clock_gettime));
    emitter.load(Code::Mov_r64_rm64, RAX, timespec);
    emitter.push(iced_x86::Instruction::with3(Code::Imul_r64_rm64_imm32, RAX, RAX, 1_000_000_000));
    emitter.load(Code::Add_r64_rm64, RAX, timespec + 8);
    emitter.registers(Code::Mov_r64_rm64, RDX, RAX);
    emitter.immediate(Code::Shr_rm64_imm8, RDX, 32);
}
