//! What a line costs that another CPU stores to, though to other bytes of it.

use crate::spec::*;
use cyclescope_code::program::memory::{PhysicalFrames, ProgramMemory};

/// The number of the pages that both CPUs have.
const COMMON: u64 = 0x6661_6c73_655f_7368;

/// A loop over the first text in pages that the other CPU has too.
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

/// Work of two texts while the other CPU stores to the first bytes of a line.
const fn accesses(name: &'static str, one: &'static str, other: &'static str) -> SharedWork {
    SharedWork { name, programs: [access(one), access(other)], background_load: "mov [r14], rax" }
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "false_sharing",
    about: "how much longer accesses to a line take to which another CPU stores, though to other bytes",
    definition: "the core cycles that an access takes while another CPU stores to other bytes of its line, or of the line beside it in a pair of 128 bytes, for each that it takes while that CPU stores to a line of another page; of the CPU that slows it most, of the nearest three",
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
}];
