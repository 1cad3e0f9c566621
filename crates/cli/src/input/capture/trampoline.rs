//! The code around a region: it loads the region's registers, restores memory, and comes back.
//!
//! A program calls the trampoline with the address to run in R13: the region's start, or its end,
//! at which a jump leads back at once. The difference of the two is the region's cost. With R14 = 1
//! the registers at the end are compared with those of the real run.
//!
//! ```text
//! entry:
//!     mov  rax, data
//!     mov  [rax+…], rbx …           ; the caller's registers, RSP too
//!     rep  movsb …                  ; for each piece of memory to restore
//!     xrstor64 [data+…]             ; vector, mask and floating point registers
//!     wrfsbase …                    ; if the region uses FS or GS
//!     popfq
//!     mov  rax …, [data+…]          ; general registers, RSP too
//!     lfence                        ; the region begins with all registers ready
//!     jmp  [rip+…]                  ; the address from R13
//! region:
//!     …
//! end:
//!     jmp  exit                     ; in place of the program's code
//! exit:
//!     lfence                        ; the region's instructions have completed
//!     (compare the registers if R14 was 1; UD2 if one differs)
//!     mov  rbx …, [data+…]
//!     ret
//! ```

use super::region_pages::MemoryPiece;
use super::region_pass::RegionPass;
use super::task_registers::general_registers;
use cyclescope::asm::parse_assembly;
use std::fmt::Write;

/// Offsets in the data.
const CALLER_AT: usize = 0;
const TARGET_AT: usize = 0x40;
const CHECK_AT: usize = 0x48;
const CALLER_BASES_AT: usize = 0x50;
const FLAGS_AT: usize = 0x60;
const BASES_AT: usize = 0x68;
const BEFORE_AT: usize = 0x80;
const AFTER_AT: usize = 0x100;
const SCRATCH_AT: usize = 0x180;
const PIECE_COUNT_AT: usize = 0x188;
/// XRSTOR needs a multiple of 64.
const VECTORS_AT: usize = 0x1c0;

/// Registers that a function must preserve.
const CALLER_REGISTERS: [&str; 7] = ["rbx", "rbp", "r12", "r13", "r14", "r15", "rsp"];
const REGISTERS: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
/// The flags that a region begins with: status flags and the direction. Bit 1 is always set, and
/// interrupts are enabled (Intel SDM vol. 1, 3.4.3).
const FLAGS_KEPT: u64 = 0xcd5;
const FLAGS_SET: u64 = 0x202;
/// Bytes of an entry of the list of pieces: destination, source, length.
const PIECE_BYTES: usize = 24;

/// Code and data of a trampoline.
pub struct Trampoline {
    /// The code; it begins with the entry.
    pub code: Vec<u8>,
    /// The data.
    pub data: Vec<u8>,
    /// Address at which the region's end continues.
    pub exit: u64,
}

/// Number of bytes of a trampoline's data.
pub fn data_bytes(pass: &RegionPass, pieces: &[MemoryPiece]) -> usize {
    pieces_at(pass) + pieces.iter().map(|piece| PIECE_BYTES + piece.bytes.len()).sum::<usize>()
}

fn pieces_at(pass: &RegionPass) -> usize {
    VECTORS_AT + pass.vectors.bytes().len().next_multiple_of(64)
}

impl Trampoline {
    /// Builds the trampoline of a region, for code and data at these addresses within 2 GiB.
    pub fn build(pass: &RegionPass, pieces: &[MemoryPiece], code_at: u64, data_at: u64) -> Trampoline {
        let mut code = assemble(&entry_text(pass, data_at));
        append_relative(&mut code, &[0xff, 0x25], code_at, data_at + TARGET_AT as u64);
        let exit = code_at + code.len() as u64;
        code.extend(assemble("lfence"));
        // `mov [rip+…], rax`: no register is free.
        append_relative(&mut code, &[0x48, 0x89, 0x05], code_at, data_at + SCRATCH_AT as u64);
        code.extend(assemble(&exit_text(pass, data_at)));
        Trampoline { code, data: build_data(pass, pieces, data_at), exit }
    }
}

fn assemble(text: &str) -> Vec<u8> {
    parse_assembly(text).expect("the trampoline is right").bytes().to_vec()
}

/// Appends an instruction whose last operand is at an address, relative to its end.
fn append_relative(code: &mut Vec<u8>, opcode: &[u8], code_at: u64, target: u64) {
    code.extend(opcode);
    let end = code_at + code.len() as u64 + 4;
    code.extend((target.wrapping_sub(end) as u32).to_le_bytes());
}

fn entry_text(pass: &RegionPass, data_at: u64) -> String {
    let mut text = format!("mov rax, {data_at:#x}\n");
    let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").expect("text can be written");
    for (number, register) in CALLER_REGISTERS.iter().enumerate() {
        line(format_args!("mov [rax+{}], {register}", CALLER_AT + 8 * number));
    }
    line(format_args!("mov [rax+{TARGET_AT}], r13\nmov [rax+{CHECK_AT}], r14"));
    if pass.uses_bases {
        for (number, base) in ["fs", "gs"].iter().enumerate() {
            line(format_args!("rd{base}base rcx\nmov [rax+{}], rcx", CALLER_BASES_AT + 8 * number));
        }
    }
    line(format_args!("mov rbp, [rax+{PIECE_COUNT_AT}]\nlea rbx, [rax+{}]", pieces_at(pass)));
    line(format_args!("test rbp, rbp\njz restored\nagain: mov rdi, [rbx]\nmov rsi, [rbx+8]\nmov rcx, [rbx+16]"));
    line(format_args!("rep movsb\nadd rbx, {PIECE_BYTES}\ndec rbp\njnz again"));
    let components = pass.vectors.components();
    line(format_args!("restored: mov rbx, rax\nlea rcx, [rax+{VECTORS_AT}]"));
    line(format_args!("mov eax, {}\nmov edx, {}\nxrstor64 [rcx]", components as u32, components >> 32));
    if pass.uses_bases {
        for (number, base) in ["fs", "gs"].iter().enumerate() {
            line(format_args!("mov rcx, [rbx+{}]\nwr{base}base rcx", BASES_AT + 8 * number));
        }
    }
    line(format_args!("lea rsp, [rbx+{FLAGS_AT}]\npopfq"));
    // The register with the address comes last.
    let others = REGISTERS.iter().enumerate().filter(|(_, register)| **register != "rbx");
    for (number, register) in others.chain([(3, &"rbx")]) {
        line(format_args!("mov {register}, [rbx+{}]", BEFORE_AT + 8 * number));
    }
    line(format_args!("lfence"));
    text
}

fn exit_text(pass: &RegionPass, data_at: u64) -> String {
    let mut text = format!("mov rax, {data_at:#x}\ncmp qword ptr [rax+{CHECK_AT}], 0\njne compare\n");
    let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").expect("text can be written");
    line(format_args!("leave_region: nop"));
    if pass.uses_bases {
        for (number, base) in ["fs", "gs"].iter().enumerate() {
            line(format_args!("mov rcx, [rax+{}]\nwr{base}base rcx", CALLER_BASES_AT + 8 * number));
        }
    }
    for (number, register) in CALLER_REGISTERS.iter().enumerate() {
        line(format_args!("mov {register}, [rax+{}]", CALLER_AT + 8 * number));
    }
    line(format_args!("cld\nret"));
    for (number, register) in REGISTERS.iter().enumerate().skip(1) {
        let label = if number == 1 { "compare: " } else { "" };
        line(format_args!("{label}cmp {register}, [rax+{}]\njne differ", AFTER_AT + 8 * number));
    }
    line(format_args!("mov rcx, [rax+{SCRATCH_AT}]\ncmp rcx, [rax+{AFTER_AT}]\nje leave_region\ndiffer: ud2"));
    text
}

fn build_data(pass: &RegionPass, pieces: &[MemoryPiece], data_at: u64) -> Vec<u8> {
    let mut data = vec![0; data_bytes(pass, pieces)];
    let mut put = |at: usize, bytes: &[u8]| data[at..at + bytes.len()].copy_from_slice(bytes);
    let (before, after) = (&pass.before, &pass.after);
    put(FLAGS_AT, &(before.eflags & FLAGS_KEPT | FLAGS_SET).to_le_bytes());
    put(BASES_AT, &before.fs_base.to_le_bytes());
    put(BASES_AT + 8, &before.gs_base.to_le_bytes());
    for number in 0..REGISTERS.len() {
        put(BEFORE_AT + 8 * number, &general_registers(before)[number].to_le_bytes());
        put(AFTER_AT + 8 * number, &general_registers(after)[number].to_le_bytes());
    }
    put(PIECE_COUNT_AT, &pieces.len().to_le_bytes());
    put(VECTORS_AT, pass.vectors.bytes());
    let mut entry = pieces_at(pass);
    let mut source = entry + PIECE_BYTES * pieces.len();
    for piece in pieces {
        let words = [piece.address, data_at + source as u64, piece.bytes.len() as u64];
        put(entry, &words.map(u64::to_le_bytes).concat());
        put(source, &piece.bytes);
        entry += PIECE_BYTES;
        source += piece.bytes.len();
    }
    data
}
