//! Queues in which operations wait, and how classes share them.

use crate::spec::*;

// Integer operations that wait for an operand.

const INTEGER_WAITS: &[&str] = &["movq rax, xmm0"];

const WAITING_ADD: FillerSpec = FillerSpec::new(
    "add",
    &["add rbx, rax", "add r8, rax", "add r9, rax", "add r10, rax", "add r11, rax", "add r12, rax", "add r13, rax"],
    &["rob", "int_registers"],
)
.behind(INTEGER_WAITS);
const WAITING_LEA: FillerSpec = FillerSpec::new(
    "lea",
    &[
        "lea rbx, [rax + rcx]",
        "lea r8, [rax + rcx]",
        "lea r9, [rax + rcx]",
        "lea r10, [rax + rcx]",
        "lea r11, [rax + rcx]",
        "lea r12, [rax + rcx]",
    ],
    &["rob", "int_registers"],
)
.behind(INTEGER_WAITS);
const WAITING_TEST: FillerSpec =
    FillerSpec::new("test", &["test rax, rcx", "test rax, rbx", "test rax, r8", "test rax, r9"], &["rob"])
        .behind(INTEGER_WAITS)
        .may_occupy(&["int_registers", "flags"]);

// Loads that wait for their address.

/// A zero that arrives late: addresses stay within the area.
const ADDRESS_WAITS: &[&str] = &["movq rax, xmm0", "and eax, 0"];

const WAITING_LOAD: FillerSpec = FillerSpec::new(
    "mov r64, m64",
    &["mov rbx, [r14 + rax]", "mov r8, [r14 + rax + 64]", "mov r9, [r14 + rax + 128]", "mov r10, [r14 + rax + 192]"],
    &["rob", "int_registers", "loads_in_flight"],
)
.behind(ADDRESS_WAITS);
const WAITING_VECTOR_LOAD: FillerSpec = FillerSpec::new(
    "movups xmm, m128",
    &["movups xmm2, [r14 + rax]", "movups xmm3, [r14 + rax + 64]", "movups xmm4, [r14 + rax + 128]"],
    &["rob", "vector_registers_xmm", "loads_in_flight"],
)
.behind(ADDRESS_WAITS);
/// A prefetch takes no register. On Zen 4, loads to vector registers wait in the vector scheduler
/// too: 42 of them, and 48 others.
const WAITING_PREFETCH: FillerSpec = FillerSpec::new(
    "prefetcht0",
    &["prefetcht0 [r14 + rax]", "prefetcht0 [r14 + rax + 64]", "prefetcht0 [r14 + rax + 128]"],
    &["rob", "loads_in_flight"],
)
.behind(ADDRESS_WAITS);

// Loads that have their address and wait for data.

/// A store whose data wait for the chain, and its address in another register: from the same
/// register name, a core may know that a load gets a store's data.
const DATA_WAIT: &[&str] = &["movups [r14], xmm0", "lea rax, [r14]"];

/// A load of known address stays in the load scheduler on some cores, and leaves it on others.
const MAY_WAIT_IN: &[&str] = &["load_scheduler"];

const LOAD_WITHOUT_DATA: FillerSpec = FillerSpec::new(
    "mov r64, m64",
    &["mov rbx, [rax]", "mov r8, [rax + 8]", "mov r9, [rax]", "mov r10, [rax + 8]"],
    &["rob", "int_registers", "loads_in_flight"],
)
.behind(DATA_WAIT)
.may_occupy(MAY_WAIT_IN);
const VECTOR_LOAD_WITHOUT_DATA: FillerSpec = FillerSpec::new(
    "movups xmm, m128",
    &["movups xmm2, [rax]", "movups xmm3, [rax]", "movups xmm4, [rax]", "movups xmm5, [rax]"],
    &["rob", "vector_registers_xmm", "loads_in_flight"],
)
.behind(DATA_WAIT)
.may_occupy(MAY_WAIT_IN);

// Vector operations that wait for an operand.

const PADDD: FillerSpec = FillerSpec::new(
    "paddd",
    &["paddd xmm2, xmm0", "paddd xmm3, xmm0", "paddd xmm4, xmm0", "paddd xmm5, xmm0", "paddd xmm6, xmm0"],
    &["rob", "vector_registers_xmm"],
);
const ADDPS: FillerSpec = FillerSpec::new(
    "addps",
    &["addps xmm2, xmm0", "addps xmm3, xmm0", "addps xmm4, xmm0", "addps xmm5, xmm0", "addps xmm6, xmm0"],
    &["rob", "vector_registers_xmm"],
);

// How classes of operations share queues.

const INTEGERS: QueueClass = QueueClass {
    name: "integers",
    size_test: "integer_scheduler",
    waiting: [&WAITING_ADD, &WAITING_LEA],
    ready: &FillerSpec { prologue: &["xor eax, eax"], name: "add that is ready", ..WAITING_ADD },
};
const LOADS: QueueClass = QueueClass {
    name: "loads",
    size_test: "load_scheduler",
    waiting: [&WAITING_LOAD, &WAITING_PREFETCH],
    ready: &FillerSpec { prologue: &["xor eax, eax"], name: "load that is ready", ..WAITING_LOAD },
};
const VECTORS: QueueClass = QueueClass {
    name: "vectors",
    size_test: "vector_scheduler",
    waiting: [&PADDD, &ADDPS],
    ready: &FillerSpec::new(
        "paddd that is ready",
        &["paddd xmm2, xmm15", "paddd xmm3, xmm15", "paddd xmm4, xmm15", "paddd xmm5, xmm15", "paddd xmm6, xmm15"],
        &["rob", "vector_registers_xmm"],
    ),
};

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "integer_scheduler",
        about: "how many integer operations can wait for an operand",
        definition: "integer operations that wait for one result when a further one finds no room: others of \
                     several queues may have some",
        source: WONG,
        answers: &["out_of_order"],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(
            &[[SQRTSD, DIVSD]],
            &[WAITING_ADD, WAITING_LEA, WAITING_TEST],
            400,
        )),
    },
    TestSpec {
        name: "load_scheduler",
        about: "how many loads can wait for their address",
        definition: "loads whose address is one result that is not there yet, when a further one finds no room: \
                     others of several queues may have some",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(
            &[[SQRTSD, DIVSD]],
            &[WAITING_LOAD, WAITING_VECTOR_LOAD, WAITING_PREFETCH],
            400,
        )),
    },
    TestSpec {
        name: "loads_uncompleted",
        about: "how many loads can wait for their data",
        definition: "loads whose address is known and whose data is that of a store that has not got it yet",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(
            &[[SQRTSD, DIVSD]],
            &[LOAD_WITHOUT_DATA, VECTOR_LOAD_WITHOUT_DATA],
            400,
        )),
    },
    TestSpec {
        name: "vector_scheduler",
        about: "how many vector operations can wait for an operand",
        definition: "vector operations that wait for one result, the chains' links beside them included",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec {
            chain_entries: 1,
            ..OverlapSpec::new(&[[SQRTSD, DIVSD]], &[PADDD, ADDPS], 400)
        }),
    },
    TestSpec {
        name: "shared_schedulers",
        about: "which classes of operations wait for their operands in the same queues",
        definition: "operations of one class that find no room to wait for each operation of another class that \
                     waits: one where all wait in the same queue, a part or more where some of several queues are \
                     shared; none where as many wait as alone",
        source: WONG,
        answers: &["out_of_order"],
        part: TestedPart::Window,
        experiment: Experiment::Queues(QueuesSpec { classes: &[INTEGERS, LOADS, VECTORS], first_chain: SQRTSD }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::assemble;
    use crate::test_list::{TESTS, find_test};
    use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
    use std::collections::BTreeSet;

    fn decoded(text: &str) -> Instruction {
        Decoder::new(64, &assemble(text), DecoderOptions::NONE).decode()
    }

    /// Whether each of a filler's instructions waits for the first chain, over two turns.
    fn waits(filler: &FillerSpec) -> Vec<bool> {
        let mut factory = InstructionInfoFactory::new();
        let mut late = BTreeSet::from([decoded(SQRTSD.link[0]).op0_register().full_register()]);
        let mut step = |text: &&str| {
            let instruction = decoded(text);
            let used = factory.info(&instruction).used_registers();
            let registers = |reads: bool| {
                let matches_access = move |access| match access {
                    OpAccess::ReadWrite => true,
                    access => (access == OpAccess::Read) == reads,
                };
                let own = used.iter().filter(move |used| matches_access(used.access()));
                own.map(|used| used.register().full_register()).collect::<Vec<Register>>()
            };
            let waits = registers(true).iter().any(|register| late.contains(register));
            for register in registers(false) {
                if waits {
                    late.insert(register)
                } else {
                    late.remove(&register)
                };
            }
            waits
        };
        for text in filler.prologue {
            step(text);
        }
        filler.code.iter().chain(filler.code).map(step).collect()
    }

    fn classes() -> &'static [QueueClass] {
        let Experiment::Queues(queues) = &find_test("shared_schedulers").experiment else {
            unreachable!("it is one of queues")
        };
        queues.classes
    }

    #[test]
    fn only_the_control_waits_for_nothing() {
        for QueueClass { name, waiting, ready, .. } in classes() {
            for filler in waiting {
                assert!(waits(filler).into_iter().all(|waits| waits), "{name}: {}", filler.name);
            }
            assert!(waits(ready).into_iter().all(|waits| !waits), "{name}: {}", ready.name);
        }
    }

    #[test]
    fn the_control_has_the_same_instructions_and_structures() {
        for QueueClass { name, waiting: [one, other], ready, size_test: test } in classes() {
            let mnemonics = |filler: &FillerSpec| filler.code.iter().map(|text| decoded(text).mnemonic()).collect();
            let [first, second, control]: [BTreeSet<Mnemonic>; 3] = [*one, *other, *ready].map(mnemonics);
            assert_eq!((first.len(), &first), (1, &control), "{name}");
            assert_ne!(first, second, "{name}: programs are unlike");
            assert_eq!(one.also_occupies, ready.also_occupies, "{name}");
            let counted = TESTS.iter().find(|known| known.name == *test).expect("it is a test's name");
            let has = |filler: &FillerSpec| counted.fillers().iter().any(|known| known.name == filler.name);
            assert!(has(one) && has(other) && !has(ready), "{name}");
        }
    }
}
