//! Resources that other CPUs share with the measured one.

use crate::front_end::{jump_to_nops, jump_to_zeroing, pattern_loop};
use crate::spec::*;
use cyclescope_code::program::memory::{PhysicalFrames, ProgramMemory};

// What another CPU shares with the measured one.

/// Reads through 64 pages, more than a first cache holds and less than a second one. Each load is
/// `{a}` bytes behind the previous one.
const fn read_through(name: &'static str, bytes: &'static str) -> ProgramFamily {
    let pages = AsmLoop { setup: "xor r12d, r12d", ..AsmLoop::bare(32, 64) };
    let text = "and r12d, 0x3ffff; mov rax, [r14 + r12]; add r12d, {a}";
    pages.with([bytes, "", "", ""]).asm(text).label(name).family
}

// Work for the front end, and code on the other CPU that fills the same part of it.

/// Instructions of two bytes, more than any cache of decoded instructions holds. The code of both
/// CPUs together fits every first-level instruction cache.
const DECODED: usize = 7200;
/// Instructions of three bytes that large caches of decoded instructions hold, and not twice.
const CACHED: usize = 3600;
/// Bytes of lines that are visited at random, and of the code that displaces them.
const CODE_BYTES: usize = 20 << 10;
const FILLING_BYTES: usize = 32 << 10;
/// Outcomes of a random pattern that every core with tables learns.
const PATTERN: usize = 512;
/// Branches with random outcomes on the other CPU.
const RANDOM_BRANCHES: usize = 400;
/// je and jne.
const JE: u8 = 0x74;
const JNE: u8 = 0x75;

/// Eight instructions of two bytes, and of three.
const TWO_BYTES: &str =
    "xor eax, eax; xor ecx, ecx; xor edx, edx; xor esi, esi; xor eax, eax; xor ecx, ecx; xor edx, edx; xor esi, esi";
const THREE_BYTES: &str = "xor r8d, r8d; xor r9d, r9d; xor r10d, r10d; xor r11d, r11d; xor r8d, r8d; xor r9d, r9d; xor r10d, r10d; \
     xor r11d, r11d";
const EIGHT_BYTES: &str = "nop dword ptr [rax + rax + 0x12345678]";
/// A generator of D. Knuth, The Art of Computer Programming, vol. 2, 3.3.4, and a branch on its state.
const RANDOM_BRANCH: &str = "imul eax, eax, 1664525; add eax, 1013904223; bt eax, 30; jc 1f; nop; 1:";

fn straight_code(number: usize, length: usize, instruction: fn(usize, usize) -> Vec<u8>) -> StepLoop {
    straight_loop((0..number).flat_map(|place| instruction(length, place)).collect(), number)
}

// The cost of false sharing: another CPU stores to other bytes of the same line.

/// The identifier of the pages that both CPUs share.
const COMMON: u64 = 0x6661_6c73_655f_7368;

/// A loop over the first text in the shared pages.
fn loop_in_common_pages(n: usize, inputs: &Inputs) -> StepLoop {
    let mut steps = asm(inputs.texts[0]).family.program(n);
    steps.memory.areas.iter_mut().for_each(|area| area.frames = PhysicalFrames::Common(COMMON));
    steps
}

/// The other CPU's memory.
fn common_memory() -> ProgramMemory {
    access("nop").program(0).memory
}

const fn access(text: &'static str) -> ProgramFamily {
    ProgramVariant::built(text, loop_in_common_pages, [text, "", "", ""], [0; 4]).family
}

/// Accesses by two texts, while the other CPU stores to the first bytes of a line.
const fn accesses(name: &'static str, one: &'static str, other: &'static str) -> SharedWork {
    SharedWork { name, programs: [access(one), access(other)], background_load: BackgroundLoad::new("mov [r14], rax") }
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "resource_sharing",
        about: "what this CPU shares with another one: how much longer work takes beside the same work",
        definition: "the core cycles that work takes while another CPU does the same, for each that it takes while \
                     that one executes PAUSE; of the CPU that slows additions most, of the nearest three",
        source: FOG_TEST_PROGRAMS,
        answers: &["resource_sharing"],
        part: TestedPart::Environment,
        experiment: Experiment::Sharing(SharingSpec {
            rows: &[
                SharedWork::asm(
                    "alu",
                    "not rax; not rcx; not rdx; not rsi; not rdi; not r8; not r9; not r10",
                    "add rax, r12; add rcx, r12; add rdx, r12; add rsi, r12; add rdi, r12; add r8, r12; add r9, \
                     r12; add r10, r12",
                ),
                SharedWork::asm(
                    "multiply",
                    "imul rax, r12, 7; imul rcx, r12, 7; imul rdx, r12, 7; imul rsi, r12, 7",
                    "imul rax, r12; imul rcx, r12; imul rdx, r12; imul rsi, r12",
                ),
                SharedWork::asm("root", "sqrtps xmm2, xmm4; sqrtps xmm3, xmm4", "sqrtpd xmm2, xmm4; sqrtpd xmm3, xmm4"),
                SharedWork::asm(
                    "float_multiply",
                    "mulps xmm2, xmm10; mulps xmm3, xmm10; mulps xmm4, xmm10; mulps xmm5, xmm10; mulps xmm6, xmm10; \
                     mulps xmm7, xmm10; mulps xmm8, xmm10; mulps xmm9, xmm10",
                    "mulpd xmm2, xmm10; mulpd xmm3, xmm10; mulpd xmm4, xmm10; mulpd xmm5, xmm10; mulpd xmm6, xmm10; \
                     mulpd xmm7, xmm10; mulpd xmm8, xmm10; mulpd xmm9, xmm10",
                ),
                SharedWork::asm(
                    "load",
                    "mov rax, [r14]; mov rcx, [r14 + 8]; mov rdx, [r14 + 16]; mov rsi, [r14 + 24]",
                    "mov r8, [r14 + 64]; mov r9, [r14 + 72]; mov r10, [r14 + 80]; mov r11, [r14 + 88]",
                ),
                SharedWork::asm(
                    "store",
                    "mov [r14], rax; mov [r14 + 8], rax; mov [r14 + 16], rax; mov [r14 + 24], rax",
                    "mov [r14 + 64], rcx; mov [r14 + 72], rcx; mov [r14 + 80], rcx; mov [r14 + 88], rcx",
                ),
                SharedWork {
                    name: "second_cache",
                    programs: [read_through("each line", "64"), read_through("every third line", "192")],
                    background_load: BackgroundLoad::new("and r12d, 0x3ffff; mov rax, [r14 + r12]; add r12d, 64"),
                },
                SharedWork {
                    name: "decoders",
                    programs: [
                        ProgramFamily::new("xor r32, same", |_| straight_code(DECODED, 2, zeroing_of_length)),
                        ProgramFamily::new("mov r32, r32", |_| straight_code(DECODED, 2, mov_reg_of_length)),
                    ],
                    background_load: BackgroundLoad { text: TWO_BYTES, copies: DECODED / 8 },
                },
                SharedWork {
                    name: "uop_cache",
                    programs: [
                        ProgramFamily::new("xor r32, same", |_| straight_code(CACHED, 3, zeroing_of_length)),
                        ProgramFamily::new("mov r32, r32", |_| straight_code(CACHED, 3, mov_reg_of_length)),
                    ],
                    background_load: BackgroundLoad { text: THREE_BYTES, copies: CACHED / 8 },
                },
                SharedWork {
                    name: "code_cache",
                    programs: [
                        ProgramFamily::new("jumps to lines with no-operations", |_| jump_to_nops(CODE_BYTES)),
                        ProgramFamily::new("jumps to lines with xor r32, same", |_| jump_to_zeroing(CODE_BYTES)),
                    ],
                    background_load: BackgroundLoad { text: EIGHT_BYTES, copies: FILLING_BYTES / 8 },
                },
                SharedWork {
                    name: "predictors",
                    programs: [
                        ProgramFamily::new("je", |_| pattern_loop(PATTERN, JE, 0x5eed)),
                        ProgramFamily::new("jne", |_| pattern_loop(PATTERN, JNE, 0xacade)),
                    ],
                    background_load: BackgroundLoad { text: RANDOM_BRANCH, copies: RANDOM_BRANCHES },
                },
            ],
            idle_load: "pause",
            load_description: "the same work",
            load_memory: None,
            // Adders and multiplier are busy in each cycle.
            sibling_proofs: &["alu", "multiply"],
            tolerance_share: 0.15,
            structures: &[
                "rob",
                "int_registers",
                "vector_registers_xmm",
                "loads_in_flight",
                "stores_in_flight",
                "integer_scheduler",
                "load_scheduler",
            ],
            structure_definition: "the share of the entries it has alone that is left beside work that fills it on \
                                   another CPU of the same core",
            // A mix of both kinds waits behind each pair of roots.
            filling_load: "sqrtsd xmm0, xmm0; sqrtsd xmm0, xmm0; mov rax, [r14]; mov [r14 + 8], rbx; lea rcx, [rdx \
                           + 1]; mov rsi, [r14 + 16]; mov [r14 + 24], rbx; lea rdi, [rdx + 2]; mov r8, [r14 + 32]; \
                           mov [r14 + 40], rbx; lea r9, [rdx + 3]; mov r10, [r14 + 48]; mov [r14 + 56], rbx; lea \
                           r11, [rdx + 4]; movq rax, xmm0; and eax, 63; mov rsi, [r14 + rax]; add rsi, rcx",
        }),
    },
    TestSpec {
        name: "core_to_core",
        about: "how long a line takes from one CPU to another, for each two of them",
        definition: "half of the time of an exchange through a line that two CPUs have in common: one stores a \
                     message and reads until it sees the answer, which the other one stores when it has read the \
                     message; the median of those that were answered",
        source: "N. Viennot, core-to-core-latency (2022)",
        answers: &[],
        part: TestedPart::Environment,
        // A message, and a poll for its answer. 16384 polls take some microseconds: more than any
        // two CPUs of a machine need, and a short time if nobody answers. There is no PAUSE: on
        // some cores it takes as long as the answer.
        experiment: Experiment::Exchanges(ExchangesSpec {
            programs: [
                ExchangeProgram {
                    name: "a flag",
                    init: "",
                    ask: "mov dword ptr [r14], 1; mov ecx, 16384; 1: cmp dword ptr [r14], 0; je 2f; dec ecx; jnz \
                          1b; 2:",
                    answer: "cmp dword ptr [r14], 1; jne 1f; mov dword ptr [r14], 0; 1:",
                },
                ExchangeProgram {
                    name: "two counters",
                    init: "mov rax, [r14]",
                    ask: "inc rax; mov [r14], rax; mov ecx, 16384; 1: cmp [r14 + 8], rax; je 2f; dec ecx; jnz 1b; 2:",
                    answer: "mov rax, [r14]; cmp [r14 + 8], rax; je 1f; mov [r14 + 8], rax; 1:",
                },
            ],
        }),
    },
    TestSpec {
        name: "false_sharing",
        about: "how much longer accesses to a line take to which another CPU stores, though to other bytes",
        definition: "the core cycles that an access takes while another CPU stores to other bytes of its line, or \
                     of the line beside it in a pair of 128 bytes, for each that it takes while that CPU stores to \
                     a line of another page; of the CPU that slows it most, of the nearest three",
        source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (2024), 11.6.3",
        answers: &[],
        part: TestedPart::Environment,
        experiment: Experiment::Sharing(SharingSpec {
            rows: &[
                accesses("lock_add", "lock add dword ptr [r14 + 32], 1", "lock add qword ptr [r14 + 40], 1"),
                accesses("increment", "add dword ptr [r14 + 32], 1", "inc qword ptr [r14 + 40]"),
                accesses("store", "mov [r14 + 32], ecx", "mov [r14 + 40], rcx"),
                accesses("load", "mov eax, [r14 + 32]", "mov rax, [r14 + 40]"),
                accesses("store_beside", "mov [r14 + 96], ecx", "mov [r14 + 104], rcx"),
                accesses("load_beside", "mov eax, [r14 + 96]", "mov rax, [r14 + 104]"),
            ],
            idle_load: "mov [r14 + 4608], rax",
            load_description: "stores to other bytes",
            load_memory: Some(common_memory),
            sibling_proofs: &[],
            tolerance_share: 0.3,
            structures: &[],
            structure_definition: "",
            filling_load: "pause",
        }),
    },
];
