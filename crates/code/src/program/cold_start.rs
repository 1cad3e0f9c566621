//! Cold starts: what a program evicts from caches and TLBs before its first reading.

use crate::asm::Emitter;
use crate::context::{AREA_REGISTERS, EVICTION_PAGES, ProgramContext};
use iced_x86::{Code, Instruction, MemoryOperand, Register};
use std::mem::offset_of;

/// What is cold when the body begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct ColdStart {
    /// No cache holds the snippet's code: its lines are flushed before each run. It begins at a
    /// cache line, and NOPs fill its last line. So the reading that follows is in a line that is
    /// not cold.
    pub code: bool,
    /// No cache holds memory within 4 KiB of the initial targets of R14, RDI, RSI, RSP and RBP.
    pub data: bool,
    /// Branch predictors have never seen the body's addresses: each run uses a new address. Its
    /// code is then also absent from the caches nearest to the core.
    pub branches: bool,
    /// No TLB holds data translations, and no second-level TLB holds code translations: the program
    /// reads more pages than fit.
    pub tlb: bool,
}

/// Bytes of a cache line on all x86-64 cores.
const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
/// Flushed bytes around the target of each area's register.
const FLUSHED_BYTES: usize = 2 * PAGE_BYTES;
/// Registers that an eviction changes; flags are kept.
pub(super) const EVICTION_CLOBBERS: [Register; 3] = [Register::RAX, Register::RCX, Register::RDX];

impl ColdStart {
    /// Whether anything is cold.
    pub fn is_any(self) -> bool {
        self != ColdStart::default()
    }

    /// Bytes of padding after the body.
    pub(super) fn padding_bytes(self, body: usize) -> usize {
        if self.code { body.next_multiple_of(LINE_BYTES) - body } else { 0 }
    }

    /// Emits the evictions before a body of this length in bytes.
    ///
    /// ```text
    ///     mov  rax, [eviction]             ; tlb
    ///     mov  ecx, pages
    /// 1:  mov  edx, [rax]
    ///     lea  rax, [rax + 4096]
    ///     loop 1b
    ///     mov  rax, [gpr of the area]      ; data, for each area
    ///     lea  rax, [rax - 4096]
    ///     mov  ecx, 128
    /// 2:  clflush [rax]
    ///     lea  rax, [rax + 64]
    ///     loop 2b
    ///     lea  rax, [body]                 ; code
    ///     mov  ecx, lines
    /// 3:  clflush [rax]
    ///     lea  rax, [rax + 64]
    ///     loop 3b
    ///     mfence
    /// ```
    pub(super) fn emit_evictions(self, emitter: &mut Emitter, body: usize) {
        if self.tlb {
            emitter.load_field(Code::Mov_r64_rm64, Register::RAX, offset_of!(ProgramContext, eviction));
            let read = Instruction::with2(Code::Mov_r32_rm32, Register::EDX, rax_operand(0));
            emit_walk(emitter, read, PAGE_BYTES, EVICTION_PAGES);
        }
        let flush = || Instruction::with1(Code::Clflush_m8, rax_operand(0));
        if self.data {
            let mode = emitter.mode();
            for number in AREA_REGISTERS.into_iter().filter_map(|number| mode.general_number(number)) {
                emitter.load_field(Code::Mov_r64_rm64, Register::RAX, offset_of!(ProgramContext, gpr) + 8 * number);
                emitter.push(Instruction::with2(
                    Code::Lea_r64_m,
                    Register::RAX,
                    rax_operand(-(FLUSHED_BYTES as i64) / 2),
                ));
                emit_walk(emitter, flush(), LINE_BYTES, FLUSHED_BYTES / LINE_BYTES);
            }
        }
        if self.code && body > 0 {
            emitter.load_body_address(Register::RAX);
            emit_walk(emitter, flush(), LINE_BYTES, body.div_ceil(LINE_BYTES));
        }
        emitter.push_without_operands(Code::Mfence);
    }
}

fn rax_operand(displacement: i64) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RAX, displacement)
}

/// Repeats an instruction at `count` addresses, `stride` apart, starting at RAX. LOOP and LEA keep
/// the flags.
fn emit_walk(emitter: &mut Emitter, what: Result<Instruction, iced_x86::IcedError>, stride: usize, count: usize) {
    emitter.push_with_immediate(Code::Mov_r32_imm32, Register::ECX, count as i32);
    let start = emitter.len();
    emitter.push(what);
    emitter.push(Instruction::with2(Code::Lea_r64_m, Register::RAX, rax_operand(stride as i64)));
    emitter.push_branch(Code::Loop_rel8_64_RCX, start);
}
