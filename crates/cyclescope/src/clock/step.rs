//! The steps that timing methods are made of.

use crate::asm::Emitter;
use crate::context::Context;
use iced_x86::{Code, CpuidFeature, Register};
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
    pub(crate) fn reads(self) -> bool {
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

    pub(super) fn emit(self, emitter: &mut Emitter, reading: usize) {
        match self {
            Step::Lfence => emitter.plain(Code::Lfence),
            Step::Mfence => emitter.plain(Code::Mfence),
            Step::Serialize => emitter.plain(Code::Serialize),
            Step::Cpuid => {
                emitter.immediate(Code::Mov_r32_imm32, Register::EAX, 0);
                emitter.plain(Code::Cpuid);
            }
            Step::RewriteCr0 => {
                emitter.registers(Code::Mov_r64_cr, Register::RAX, Register::CR0);
                emitter.registers(Code::Mov_cr_r64, Register::CR0, Register::RAX);
            }
            Step::Rdtsc => emitter.plain(Code::Rdtsc),
            Step::Rdtscp => emitter.plain(Code::Rdtscp),
            Step::Rdpru => {
                // Register 1 is APERF (AMD APM vol. 3, RDPRU).
                emitter.immediate(Code::Mov_r32_imm32, Register::ECX, 1);
                emitter.plain(Code::Rdpru);
            }
            Step::Rdpmc => {
                emitter.load(Code::Mov_r32_rm32, Register::ECX, offset_of!(Context, counter_index));
                emitter.plain(Code::Rdpmc);
            }
            Step::ClockGettime => emit_clock_gettime(emitter),
            Step::Store => {
                emitter.store(Code::Mov_rm32_r32, reading, Register::EAX);
                emitter.store(Code::Mov_rm32_r32, reading + 4, Register::EDX);
            }
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
