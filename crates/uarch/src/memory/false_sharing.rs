//! What a line costs that another CPU stores to, though to other bytes of it.

use crate::test::sharing::{Sharing, Work};
use crate::test::text::repeated;
use crate::test::walk::{Steps, Walk};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Frames, Memory};

/// The number of the pages that both CPUs have.
const COMMON: u64 = 0x6661_6c73_655f_7368;

/// A loop over a text in pages that the other CPU has too.
fn in_common(text: &str) -> Steps {
    let mut steps = repeated("", text);
    steps.memory.areas.iter_mut().for_each(|area| area.frames = Frames::Common(COMMON));
    steps
}

/// The other CPU's memory.
fn memory() -> Memory {
    in_common("nop").memory
}

/// Work of two texts while the other CPU stores to the first bytes of a line.
macro_rules! work {
    ($name:literal, $one:literal, $other:literal) => {
        Work {
            name: $name,
            ways: [
                Walk { name: $one, program: |_| in_common($one), without: None },
                Walk { name: $other, program: |_| in_common($other), without: None },
            ],
            beside: "mov [r14], rax",
        }
    };
}

pub(crate) const TEST: Test = Test {
    name: "false_sharing",
    about: "how much longer accesses to a line take to which another CPU stores, though to other bytes",
    definition: "the core cycles that an access takes while another CPU stores to other bytes of its line, or of the line beside it in a pair of 128 bytes, for each that it takes while that CPU stores to a line of another page; of the CPU that slows it most, of the nearest three",
    source: "Intel 64 and IA-32 Architectures Optimization Reference Manual (2024), 11.6.3",
    part: Part::Environment,
    look: Look::Sharing(Sharing {
        rows: &[
            work!("lock_add", "lock add dword ptr [r14 + 32], 1", "lock add qword ptr [r14 + 40], 1"),
            work!("increment", "add dword ptr [r14 + 32], 1", "inc qword ptr [r14 + 40]"),
            work!("store", "mov [r14 + 32], ecx", "mov [r14 + 40], rcx"),
            work!("load", "mov eax, [r14 + 32]", "mov rax, [r14 + 40]"),
            work!("store_beside", "mov [r14 + 96], ecx", "mov [r14 + 104], rcx"),
            work!("load_beside", "mov eax, [r14 + 96]", "mov rax, [r14 + 104]"),
        ],
        idle: "mov [r14 + 4608], rax",
        beside: "stores to other bytes",
        memory: Some(memory),
        proves: &[],
        apart: 0.3,
        structures: &[],
        left: "",
        full: "pause",
    }),
};
