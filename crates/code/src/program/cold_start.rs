//! Cold starts: what a program evicts from caches and translation buffers before its first reading.

use crate::asm::Emitter;
use crate::context::{AREA_REGISTERS, EVICTION_PAGES, ProgramContext};
use iced_x86::{Code, Instruction, MemoryOperand, Register};
use std::mem::offset_of;

/// What is cold when the body begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct ColdStart {
    /// The snippet's code is in no cache: its lines are flushed before each run. It begins at a cache line, and
    /// NOPs fill its last one, so that the reading after it is in a line that is not cold.
    pub code: bool,
    /// Memory within 4 KiB of where R14, RDI, RSI, RSP and RBP point first is in no cache.
    pub data: bool,
    /// Branch predictors have never seen the body's addresses: each run has an address of its own. Its code is then
    /// also absent from the caches nearest to the core.
    pub branches: bool,
    /// Data translations are in no buffer, code translations in no second-level one: more pages are read than
    /// it holds.
    pub tlb: bool,
}

/// Bytes of a cache line on all x86-64 cores.
const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
/// Bytes around each area's register that are flushed.
const FLUSHED_BYTES: usize = 2 * PAGE_BYTES;
/// The registers that an eviction changes; flags are kept.
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

    /// Emits the evictions, before a body of this length in bytes.
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
            for number in AREA_REGISTERS {
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

/// Does something at each of some equally distant addresses from RAX on. LOOP and LEA keep the flags.
fn emit_walk(emitter: &mut Emitter, what: Result<Instruction, iced_x86::IcedError>, stride: usize, count: usize) {
    emitter.push_with_immediate(Code::Mov_r32_imm32, Register::ECX, count as i32);
    let start = emitter.len();
    emitter.push(what);
    emitter.push(Instruction::with2(Code::Lea_r64_m, Register::RAX, rax_operand(stride as i64)));
    emitter.push_branch(Code::Loop_rel8_64_RCX, start);
}
