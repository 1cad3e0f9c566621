//! How long a line takes from one CPU to another.

use crate::spec::*;

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "core_to_core",
    about: "how long a line takes from one CPU to another, for each two of them",
    definition: "half of the time of an exchange through a line that two CPUs have in common: one stores a message and reads until it sees the answer, which the other one stores when it has read the message; the median of those that were answered",
    source: "N. Viennot, core-to-core-latency (2022)",
    answers: &[],
    part: TestedPart::Environment,
    // A message, and looks at its answer. 16384 of them take some microseconds: more than any two CPUs of a machine need, and
    // little enough where nobody answers. There is no PAUSE, which takes as long as the answer on some cores.
    experiment: Experiment::Exchanges(ExchangesSpec {
        programs: [
            ExchangeProgram {
                name: "a flag",
                init: "",
                ask: "mov dword ptr [r14], 1; mov ecx, 16384; 1: cmp dword ptr [r14], 0; je 2f; dec ecx; jnz 1b; 2:",
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
}];
