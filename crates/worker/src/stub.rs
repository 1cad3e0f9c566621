//! The few functions that must be written in assembly.

use core::arch::naked_asm;

/// State that [`call_program`] restores after each call.
#[repr(C)]
pub struct RestoredState {
    /// Base of FS.
    pub fs_base: u64,
    /// Base of GS.
    pub gs_base: u64,
    /// Whether the processor has AVX.
    pub avx: bool,
    /// Whether the bases are restored.
    pub fsgsbase: bool,
}

/// Address of 32-bit code, as a far call reads it.
#[repr(C)]
pub struct FarPointer {
    /// Address in the segment, which begins at 0.
    pub offset: u32,
    /// Selector of the segment.
    pub selector: u16,
}

/// Calls 32-bit code at the far pointer in RCX, on the current stack, which lies below 4 GiB. The
/// code returns by a far return.
///
/// 32-bit code keeps R8 to R15 as a whole; the upper halves of all others are undefined after it
/// (Intel SDM vol. 1, 3.4.1.1), RSP included. It uses DS and ES, which 64-bit code leaves empty.
///
/// # Safety
///
/// At RCX lies a far pointer to a program whose context is ready.
#[unsafe(naked)]
pub unsafe extern "sysv64" fn call_narrow_code() {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov r15, rsp",
        "mov eax, ss",
        "mov ds, eax",
        "mov es, eax",
        // call fword ptr [rcx]
        ".byte 0xff, 0x19",
        "mov rsp, r15",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}

/// Waits for `delay` (at least 1) iterations of a short loop, then calls a program. Restores the
/// processor state that the program may have changed: AC, NT and DF in the flags, upper vector
/// parts, FS and GS base.
///
/// MXCSR and the x87 state are not restored: the harness uses no floating point, and each program
/// sets what it uses.
///
/// # Safety
///
/// At `entry` lies a program whose context is ready, or [`call_narrow_code`], and `far` is the pointer
/// that this reads.
#[unsafe(naked)]
pub unsafe extern "sysv64" fn call_program(
    entry: u64,
    delay: u64,
    restored: *const RestoredState,
    far: *const FarPointer,
) {
    naked_asm!(
        "push rdx",
        "2:",
        "dec rsi",
        "jnz 2b",
        "call rdi",
        "pop rdx",
        // POPFQ takes some thirty cycles, so it runs only if AC, NT or DF is set.
        "pushfq",
        "pop rax",
        "test eax, 0x44400",
        "jz 5f",
        "push 0x202",
        "popfq",
        "5:",
        "cmp byte ptr [rdx + 16], 0",
        "je 3f",
        "vzeroupper",
        "3:",
        "cmp byte ptr [rdx + 17], 0",
        "je 6f",
        "rdfsbase rax",
        "mov rcx, [rdx]",
        "cmp rax, rcx",
        "je 4f",
        "wrfsbase rcx",
        "4:",
        "rdgsbase rax",
        "mov rcx, [rdx + 8]",
        "cmp rax, rcx",
        "je 6f",
        "wrgsbase rcx",
        "6:",
        "ret",
    )
}

/// The one system call instruction that the sandbox allows, at [`CALL_AT`](super::view::CALL_AT).
///
/// # Safety
///
/// See [`syscall`].
#[unsafe(naked)]
#[unsafe(link_section = ".text.cyclescope_call")]
pub unsafe extern "sysv64" fn syscall_instruction() {
    naked_asm!("syscall", "ret")
}

/// Makes a system call in the worker, without thread-local storage. Returns the kernel's answer.
///
/// # Safety
///
/// That of the system call.
#[unsafe(naked)]
pub unsafe extern "sysv64" fn syscall(
    number: i64,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    naked_asm!(
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "jmp {instruction}",
        instruction = sym syscall_instruction,
    )
}

/// Leaves the current stack for another, for good.
///
/// # Safety
///
/// `top` is the end of a stack.
#[unsafe(naked)]
pub unsafe extern "sysv64" fn enter_on_stack<T>(
    top: u64,
    argument: *const T,
    function: unsafe extern "sysv64" fn(*const T) -> !,
) -> ! {
    naked_asm!("mov rsp, rdi", "xor ebp, ebp", "mov rdi, rsi", "call rdx", "ud2")
}

/// Serialises instruction fetch, so that code just written by another processor takes effect.
///
/// IRETQ is a serialising instruction in user mode too (Intel SDM vol. 3A, 9.3); CPUID would leave
/// the guest in a virtual machine.
///
/// # Safety
///
/// The stack has room.
#[unsafe(naked)]
pub unsafe extern "sysv64" fn serialise() {
    naked_asm!(
        "mov rdx, rsp",
        "mov eax, ss",
        "push rax",
        "push rdx",
        "pushfq",
        "mov eax, cs",
        "push rax",
        "lea rax, [rip + 2f]",
        "push rax",
        "iretq",
        "2:",
        "ret",
    )
}
