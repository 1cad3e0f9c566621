//! What a line costs that another CPU stores to, though to other bytes of it.

use crate::spec::program_family::{ProgramFamily, StepLoop};
use crate::spec::sharing::{SharedWork, SharingSpec};
use crate::spec::text_loop::repeat_text;
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_code::program::memory::{PhysicalFrames, ProgramMemory};

/// The number of the pages that both CPUs have.
const COMMON: u64 = 0x6661_6c73_655f_7368;

/// A loop over a text in pages that the other CPU has too.
fn loop_in_common_pages(text: &str) -> StepLoop {
    let mut steps = repeat_text("", text);
    steps.memory.areas.iter_mut().for_each(|area| area.frames = PhysicalFrames::Common(COMMON));
    steps
}

/// The other CPU's memory.
fn common_memory() -> ProgramMemory {
    loop_in_common_pages("nop").memory
}

/// Work of two texts while the other CPU stores to the first bytes of a line.
macro_rules! work {
    ($name:literal, $one:literal, $other:literal) => {
        SharedWork {
            name: $name,
            programs: [
                ProgramFamily { name: $one, program: |_| loop_in_common_pages($one), control: None },
                ProgramFamily { name: $other, program: |_| loop_in_common_pages($other), control: None },
            ],
            background_load: "mov [r14], rax",
        }
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "false_sharing",
    about: "how much longer accesses to a line take to which another CPU stores, though to other bytes",
    definition: "the core cycles that an access takes while another CPU stores to other bytes of its line, or of the line beside it in a pair of 128 bytes, for each that it takes while that CPU stores to a line of another page; of the CPU that slows it most, of the nearest three",
    source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (2024), 11.6.3",
    part: TestedPart::Environment,
    experiment: Experiment::Sharing(SharingSpec {
        rows: &[
            work!("lock_add", "lock add dword ptr [r14 + 32], 1", "lock add qword ptr [r14 + 40], 1"),
            work!("increment", "add dword ptr [r14 + 32], 1", "inc qword ptr [r14 + 40]"),
            work!("store", "mov [r14 + 32], ecx", "mov [r14 + 40], rcx"),
            work!("load", "mov eax, [r14 + 32]", "mov rax, [r14 + 40]"),
            work!("store_beside", "mov [r14 + 96], ecx", "mov [r14 + 104], rcx"),
            work!("load_beside", "mov eax, [r14 + 96]", "mov rax, [r14 + 104]"),
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
};
