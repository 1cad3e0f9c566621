//! The general registers, flags and segment bases of a stopped task.

use iced_x86::Register;

/// The registers as ptrace reads them.
pub type TaskRegisters = libc::user_regs_struct;

/// The value of a general register, or the base of a segment.
pub fn register_value(register: Register, registers: &TaskRegisters) -> Option<u64> {
    let whole = match register {
        Register::FS => return Some(registers.fs_base),
        Register::GS => return Some(registers.gs_base),
        _ if register.is_segment_register() => return Some(0),
        _ if register.is_ip() => registers.rip,
        _ if register.is_gpr() => general_registers(registers)[register.full_register().number()],
        _ => return None,
    };
    let is_high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
    let shifted = if is_high { whole >> 8 } else { whole };
    Some(match register.size() {
        8 => shifted,
        bytes => shifted & ((1 << (8 * bytes)) - 1),
    })
}

/// The general registers by encoding number.
pub fn general_registers(registers: &TaskRegisters) -> [u64; 16] {
    let TaskRegisters { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, .. } = *registers;
    let TaskRegisters { r8, r9, r10, r11, r12, r13, r14, r15, .. } = *registers;
    [rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15]
}
