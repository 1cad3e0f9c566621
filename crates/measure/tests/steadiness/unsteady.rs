//! Snippets whose first copy uses up some state.

/// An unsteady snippet, and parts of what the check says about it.
pub struct UnsteadyCase {
    pub init: &'static str,
    pub text: &'static str,
    pub state: &'static str,
    pub remedy: &'static str,
}

const fn new_case(init: &'static str, text: &'static str, state: &'static str, remedy: &'static str) -> UnsteadyCase {
    UnsteadyCase { init, text, state, remedy }
}

pub const UNSTEADY: &[UnsteadyCase] = &[
    // Repeat counts.
    new_case(
        "mov ecx, 4096",
        "rep movsb",
        "repeats 4096 times in the first copy and 0 times",
        "mov ecx, 4096; mov rsi",
    ),
    new_case("", "rep movsb", "RCX", "--setup 'mov ecx, 3; "),
    new_case("mov ecx, 512", "rep stosq", "`rep stosq` repeats 512 times", "mov rdi, r14"),
    new_case("mov ecx, 100", "rep lodsb", "RCX", "--setup"),
    new_case("mov ecx, 64; mov al, 77", "repne scasb", "repeats 64 times", "mov ecx, 64"),
    new_case("mov ecx, 64; mov rsi, rdi", "repe cmpsb", "`repe cmpsb` repeats 64 times", "mov r8, rsi"),
    new_case("mov ecx, 1000", "mov rdi, r14; rep stosb", "repeats 1000 times", "--setup 'mov ecx, 1000'"),
    new_case("mov ecx, 4096", "mov rdi, r14; mov rsi, rbp; rep movsb; sub ecx, -16", "RCX", "mov ecx, 4096"),
    // Loops inside the snippet.
    new_case("", "1: loop 1b", "`loop` at +0x0 is reached 3 times", "--setup 'mov ecx, 3'"),
    new_case("mov ecx, 50", "1: imul rax, rax; loop 1b", "RCX", "mov ecx, 50"),
    new_case("mov ecx, 100", "1: dec rcx; jnz 1b", "does not end in copy 2: RCX", "mov ecx, 100"),
    new_case("mov edx, 20", "1: sub edx, 1; jnz 1b", "RDX", "mov edx, 20"),
    new_case(
        "xor eax, eax",
        "1: inc rax; cmp rax, 1000; jl 1b",
        "is reached 1000 times in the first copy and once",
        "mov eax, 0",
    ),
    new_case("mov ecx, 100", "1: mov [rdi], al; inc rdi; dec rcx; jnz 1b", "RCX", "mov ecx, 100; mov rdi, r14"),
    new_case("mov ecx, 30", "jrcxz 2f; 1: dec rcx; jnz 1b; 2:", "RCX", "mov ecx, 30"),
    new_case("mov rax, -1", "1: blsr rax, rax; jnz 1b", "RAX", "--setup"),
    // Directions of branches.
    new_case("mov eax, 1", "test eax, eax; jz 1f; xor eax, eax; 1:", "RAX", "mov eax, 1"),
    new_case("xor ebx, ebx", "cmp rbx, 0; jne 1f; imul rax, rax; 1: mov ebx, 1", "is taken 0 times", "mov ebx, 0"),
    new_case("mov eax, 5", "shr eax, 1; jnc 1f; nop; 1:", "RAX", "mov eax, 5"),
    // Masks of gathers and scatters.
    new_case(
        "vpxor ymm1, ymm1, ymm1; vpcmpeqd ymm2, ymm2, ymm2",
        "vpgatherdd ymm0, [r14+ymm1*4], ymm2",
        "its mask YMM2",
        "vpcmpeqd ymm2, ymm2, ymm2",
    ),
    new_case(
        "vpxor ymm1, ymm1, ymm1; vpcmpeqd ymm2, ymm2, ymm2",
        "vgatherqpd ymm0, [r14+ymm1*8], ymm2",
        "YMM2",
        "--setup",
    ),
    new_case("vpxor xmm1, xmm1, xmm1", "vpgatherdd xmm0, [r14+xmm1*4], xmm3", "accesses no elements", "xmm3"),
    new_case(
        "mov eax, -1; vmovd xmm2, eax; vpxor ymm1, ymm1, ymm1",
        "vpgatherdd ymm0, [r14+ymm1*4], ymm2",
        "accesses 1 elements",
        "--setup 'vmovdqu ymm2, ymm15'",
    ),
    new_case(
        "mov eax, 0xff; kmovw k1, eax; vpxord zmm1, zmm1, zmm1",
        "vpgatherdd zmm0{k1}, [r14+zmm1*4]",
        "its mask K1",
        "--setup 'kmovw k1, k7'",
    ),
    new_case("vpxord zmm1, zmm1, zmm1", "vpgatherdd zmm0{k1}, [r14+zmm1*4]", "its mask K1", "kxnorw k1, k1, k1"),
    new_case("vpxord zmm1, zmm1, zmm1", "vpscatterdd [r14+zmm1*4]{k2}, zmm0", "K2", "kxnorw k2, k2, k2"),
    // Operands of divisions.
    new_case("mov eax, 1000000; mov ecx, 2", "xor edx, edx; div rcx", "`div rcx`", "--setup 'mov eax, 1000000'"),
    new_case("mov eax, 100; xor edx, edx; mov ecx, 7", "div rcx", "RAX and RDX", "mov eax, 100; mov edx, 0"),
    new_case("mov eax, 1000; xor edx, edx; mov ecx, 2", "div rcx", "RAX and RDX", "mov eax, 1000"),
    new_case("mov eax, 123456; mov ecx, 3", "cdq; idiv ecx", "`idiv ecx`", "mov eax, 123456"),
    new_case("mov ecx, 3", "xor edx, edx; div rcx", "dividend", "--setup"),
    // The x87 stack.
    new_case("", "fld qword ptr [r14]", "leaves one value on the x87 stack", "fstp st0"),
    new_case("", "fld1; fldz", "leaves 2 values", "fstp st0; fstp st0"),
    new_case("fld1; fld1", "fxch; faddp", "takes one value from the x87 stack", "fld1"),
    new_case("", "fadd st0, st1", "an x87 register that is empty", "--init 'fld1; fld1'"),
    new_case("fld1", "fld st0; fmul st0, st1", "leaves one value on", "fstp st0"),
    // Numbers that become denormal, infinite or zero.
    new_case(
        "mov rax, 0x3fe0000000000000; movq xmm1, rax",
        "mulsd xmm0, xmm1",
        "XMM0 become denormal",
        "--setup 'movaps xmm0, xmm15'",
    ),
    new_case(
        "mov eax, 0x3f000000; movd xmm1, eax; shufps xmm1, xmm1, 0",
        "mulps xmm0, xmm1",
        "denormal",
        "movaps xmm0, xmm15",
    ),
    new_case(
        "mov rax, 0x4000000000000000; movq xmm1, rax; movaps xmm0, xmm1",
        "divsd xmm0, xmm1",
        "`divsd xmm0, xmm1` has a normal number",
        "--init 'mov rax,",
    ),
    // Bits that PEXT and PDEP select.
    new_case("mov rbx, -1", "pext rax, rax, rbx; shr rbx, 2", "RBX", "--setup"),
];

/// Init code, setup and snippet, as the remedies say.
pub const RESTORED: &[(&str, &str, &str)] = &[
    ("mov ecx, 4096", "mov ecx, 4096; mov rsi, rbp; mov rdi, r14", "rep movsb"),
    ("mov ecx, 64; mov rsi, rdi; mov r8, rdi; mov r9, rsi", "mov ecx, 64; mov rdi, r8; mov rsi, r9", "repe cmpsb"),
    ("mov ecx, 100", "mov ecx, 100; mov rdi, r14", "1: mov [rdi], al; inc rdi; dec rcx; jnz 1b"),
    ("", "mov ecx, 3", "1: loop 1b"),
    ("vpxor ymm1, ymm1, ymm1", "vpcmpeqd ymm2, ymm2, ymm2", "vpgatherdd ymm0, [r14+ymm1*4], ymm2"),
    ("vpxord zmm1, zmm1, zmm1", "kxnorw k1, k1, k1", "vpgatherdd zmm0{k1}, [r14+zmm1*4]"),
    ("mov eax, 100; xor edx, edx; mov ecx, 7", "mov eax, 100; mov edx, 0", "div rcx"),
    ("mov rax, 0x3fe0000000000000; movq xmm1, rax", "movaps xmm0, xmm15", "mulsd xmm0, xmm1"),
    ("", "", "fld qword ptr [r14]; fstp st0"),
    ("fld1; fld1", "", "fadd st0, st1"),
    ("fld1", "", "fld1; fxch; faddp"),
    ("mov r9, r14; mov r8, r9", "mov r9, r8", "mov rax, [r9]; xor r9d, r9d"),
];
