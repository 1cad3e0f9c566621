//! Ordinary snippets, whose copies do the same work: single instructions, chains, loads and stores,
//! vector code, flags, divisions, counted loops, x87 code. They follow from one seed.

use cyclescope_core::random::Random;

/// General registers that no snippet here uses as an address.
const GENERAL: [&str; 10] = ["rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13"];
const LOW: [&str; 10] = ["eax", "ebx", "ecx", "edx", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d"];
const POINTERS: [&str; 4] = ["r14", "rdi", "rsi", "rbp"];

const TWO_OPERANDS: [&str; 17] = [
    "add", "sub", "and", "or", "xor", "imul", "mov", "cmp", "test", "adc", "sbb", "xchg", "xadd", "bsf", "bsr", "bt",
    "cmovz",
];
const ONE_OPERAND: [&str; 12] =
    ["inc", "dec", "neg", "not", "bswap", "mul", "shl", "shr", "sar", "rol", "setc", "cmpxchg"];
const BIT_OPERATIONS: [&str; 8] = ["popcnt", "lzcnt", "tzcnt", "blsr", "andn", "pext", "pdep", "bextr"];
const LEGACY_VECTOR: [&str; 22] = [
    "addps",
    "subps",
    "mulps",
    "addpd",
    "mulpd",
    "addsd",
    "mulsd",
    "divsd",
    "divps",
    "sqrtsd",
    "sqrtps",
    "maxps",
    "minpd",
    "paddd",
    "pmulld",
    "pxor",
    "pand",
    "pcmpeqd",
    "punpckldq",
    "unpcklps",
    "cvtdq2ps",
    "pshufb",
];
const AVX_VECTOR: [&str; 14] = [
    "vaddps",
    "vsubps",
    "vmulps",
    "vaddpd",
    "vmulpd",
    "vdivps",
    "vmaxps",
    "vpaddd",
    "vpaddq",
    "vpmulld",
    "vpxor",
    "vpand",
    "vpcmpeqd",
    "vpermilps",
];
const FUSED: [&str; 4] = ["vfmadd231ps", "vfmadd213pd", "vfmadd132ps", "vfnmadd231pd"];

/// What runs before a snippet, and the snippet.
type OrdinarySnippet = (String, String);

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

/// One instruction on general registers.
fn general(random: &mut Random) -> String {
    let [one, two] = [pick(random, &GENERAL), pick(random, &GENERAL)];
    match random.below(4) {
        0 | 1 => format!("{} {one}, {two}", pick(random, &TWO_OPERANDS)),
        2 => match pick(random, &ONE_OPERAND) {
            shift @ ("shl" | "shr" | "sar" | "rol") => format!("{shift} {one}, {}", 1 + random.below(7)),
            "setc" => "setc al".to_string(),
            "cmpxchg" => format!("cmpxchg {one}, {two}"),
            name => format!("{name} {one}"),
        },
        _ => match pick(random, &BIT_OPERATIONS) {
            // A constant selection.
            name @ ("pext" | "pdep") => format!("{name} rax, rbx, r13"),
            name @ ("andn" | "bextr") => format!("{name} {one}, {two}, {one}"),
            name => format!("{name} {one}, {two}"),
        },
    }
}

/// A load, a store, or both.
fn memory(random: &mut Random) -> String {
    let (pointer, register) = (pick(random, &POINTERS), pick(random, &GENERAL));
    let place = format!("[{pointer}+{}]", 8 * random.below(64));
    match random.below(8) {
        0 | 1 => format!("mov {register}, {place}"),
        2 => format!("mov {place}, {register}"),
        3 => format!("add {register}, {place}"),
        4 => format!("add qword ptr {place}, {}", random.below(100)),
        5 => format!("movzx {register}, byte ptr {place}"),
        6 => format!("movups xmm{}, {place}", random.below(8)),
        _ => format!("push {register}; pop {}", pick(random, &GENERAL)),
    }
}

/// One vector instruction.
fn vector(random: &mut Random) -> String {
    let [one, two, three] = [random.below(8), random.below(8), random.below(8)];
    match random.below(6) {
        0..=2 => format!("{} xmm{one}, xmm{two}", pick(random, &LEGACY_VECTOR)),
        3 | 4 => format!("{} ymm{one}, ymm{two}, ymm{three}", pick(random, &AVX_VECTOR)),
        _ => format!("{} ymm{one}, ymm{two}, ymm{three}", pick(random, &FUSED)),
    }
}

/// Flags, and branches that go one way, or either way at random.
fn flags(random: &mut Random) -> OrdinarySnippet {
    let [one, two] = [pick(random, &GENERAL), pick(random, &GENERAL)];
    let condition = pick(random, &["z", "nz", "c", "nc", "l", "g", "s", "be"]);
    let seed = random.next_bits() | 1;
    match random.below(6) {
        5 => (String::new(), format!("sub {one}, {}; j{condition} 1f; 1: nop", 1 + random.below(4))),
        0 => (String::new(), format!("cmp {one}, {two}; set{condition} al; cmov{condition} rbx, {one}")),
        1 => (String::new(), format!("test r14, r14; j{condition} 1f; imul {one}, {two}; 1:")),
        2 => (String::new(), format!("cmp rsi, rsi; j{condition} 1f; add {one}, {two}; 1: nop")),
        3 => (
            format!("mov rax, {seed:#x}; mov rbx, 6364136223846793005"),
            format!("imul rax, rbx; add rax, r8; bt rax, {}; jc 1f; nop; 1:", 40 + random.below(20)),
        ),
        _ => (String::new(), format!("add {one}, {two}; adc {two}, {one}; sbb {one}, {one}")),
    }
}

/// Divisions of the same numbers, and chains of divisions from the registers at entry.
fn division(random: &mut Random) -> OrdinarySnippet {
    let (dividend, divisor) = (1 + random.below(1 << 30), 1 + random.below(1 << 12));
    match random.below(5) {
        0 => (format!("mov ecx, {divisor}"), format!("mov eax, {dividend}; xor edx, edx; div rcx")),
        1 => (format!("mov ebx, {divisor}"), format!("mov eax, {dividend}; cdq; idiv ebx")),
        2 => (format!("mov r8d, {dividend}; mov ecx, {divisor}"), "mov rax, r8; cqo; idiv rcx".to_string()),
        3 => (format!("mov eax, {dividend}; xor edx, edx; mov ecx, 1"), "div rcx".to_string()),
        _ => (String::new(), format!("div {}", pick(random, &["rcx", "rbx", "r8", "r9", "rsi"]))),
    }
}

/// Code that sets its own counters and masks.
fn counted(random: &mut Random) -> OrdinarySnippet {
    let count = 1 + random.below(200);
    let (one, low) = (pick(random, &GENERAL[4..]), pick(random, &LOW[4..]));
    let pairs = [
        ("", format!("mov ecx, {count}; 1: imul {one}, {one}; dec ecx; jnz 1b")),
        ("", format!("mov {low}, {count}; 1: sub {low}, 1; jnz 1b")),
        ("", format!("mov ecx, {count}; 1: loop 1b")),
        ("", format!("mov ecx, {count}; mov rdi, r14; rep stosb")),
        ("", format!("mov ecx, {count}; mov rdi, r14; mov rsi, rbp; rep movsq")),
        ("", format!("mov ecx, {count}; mov rdi, r14; repne scasb")),
        ("", "call 1f; jmp 2f; 1: ret; 2:".to_string()),
        ("vpxor ymm1, ymm1, ymm1", "vpcmpeqd ymm2, ymm2, ymm2; vpgatherdd ymm0, [r14+ymm1*4], ymm2".to_string()),
        ("vpxord zmm1, zmm1, zmm1", "kxnorw k1, k1, k1; vpgatherdd zmm0{k1}, [r14+zmm1*4]".to_string()),
    ];
    let (init, text) = pairs[random.below(pairs.len())].clone();
    (init.to_string(), text)
}

/// x87 code that leaves the stack as it was.
fn x87(random: &mut Random) -> OrdinarySnippet {
    let place = 8 * random.below(64);
    let pairs = [
        ("", format!("fld qword ptr [r14+{place}]; fstp qword ptr [rdi+{place}]")),
        ("", format!("fld1; fadd qword ptr [r14+{place}]; fstp st0")),
        ("fld1; fld1", "fadd st0, st1".to_string()),
        ("fld1; fld1; fldz", "fxch st1; fxch st2".to_string()),
        ("fld1; fld1", "fmul st0, st1; fchs; fabs".to_string()),
        ("fld1", "fld st0; faddp; fld1; fstp st1".to_string()),
        ("fld1", "fsqrt".to_string()),
        ("", "paddd mm0, mm1; pxor mm2, mm0".to_string()),
    ];
    let (init, text) = pairs[random.below(pairs.len())].clone();
    (init.to_string(), text)
}

/// Several instructions in a row.
fn chain(random: &mut Random, one: fn(&mut Random) -> String) -> String {
    let count = 1 + random.below(6);
    (0..count).map(|_| one(random)).collect::<Vec<String>>().join("; ")
}

/// The snippets.
pub fn generate_snippets() -> Vec<OrdinarySnippet> {
    let mut random = Random::new(36);
    let mut all = Vec::new();
    let single = |text: String| (String::new(), text);
    for _ in 0..90 {
        all.push(single(general(&mut random)));
        all.push(single(chain(&mut random, memory)));
        all.push(single(chain(&mut random, vector)));
        all.push(single(chain(&mut random, general)));
        all.push(flags(&mut random));
    }
    for _ in 0..40 {
        all.push(division(&mut random));
        all.push(counted(&mut random));
        all.push(x87(&mut random));
    }
    all
}
