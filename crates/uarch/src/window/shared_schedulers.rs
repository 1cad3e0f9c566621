//! Which of the queues in which operations wait are shared.

use super::{integer_scheduler, load_scheduler, vector_scheduler};
use crate::spec::*;

const INTEGERS: QueueClass = QueueClass {
    name: "integers",
    size_test: "integer_scheduler",
    waiting: [&integer_scheduler::ADD, &integer_scheduler::LEA],
    ready: &FillerSpec { prologue: &["xor eax, eax"], name: "add that is ready", ..integer_scheduler::ADD },
};
const LOADS: QueueClass = QueueClass {
    name: "loads",
    size_test: "load_scheduler",
    waiting: [&load_scheduler::TO_INTEGER, &load_scheduler::PREFETCH],
    ready: &FillerSpec { prologue: &["xor eax, eax"], name: "load that is ready", ..load_scheduler::TO_INTEGER },
};
const VECTORS: QueueClass = QueueClass {
    name: "vectors",
    size_test: "vector_scheduler",
    waiting: [&vector_scheduler::PADDD, &vector_scheduler::ADDPS],
    ready: &FillerSpec::new(
        "paddd that is ready",
        &["paddd xmm2, xmm15", "paddd xmm3, xmm15", "paddd xmm4, xmm15", "paddd xmm5, xmm15", "paddd xmm6, xmm15"],
        &["rob", "vector_registers_xmm"],
    ),
};

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "shared_schedulers",
    about: "which classes of operations wait for their operands in the same queues",
    definition: "operations of one class that find no room to wait for each operation of another class that waits: one where all wait in the same queue, a \
                 part or more where some of several queues are shared; none where as many wait as alone",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &["out_of_order"],
    part: TestedPart::Window,
    experiment: Experiment::Queues(QueuesSpec { classes: &[INTEGERS, LOADS, VECTORS], first_chain: SQRTSD }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::assemble;
    use crate::test_list::TESTS;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
    use std::collections::BTreeSet;

    fn decoded(text: &str) -> Instruction {
        Decoder::new(64, &assemble(text), DecoderOptions::NONE).decode()
    }

    /// Whether each of a filler's instructions waits for the chain before, over two turns.
    fn waits(filler: &FillerSpec) -> Vec<bool> {
        let mut factory = InstructionInfoFactory::new();
        let mut late = BTreeSet::from([decoded(SQRTSD.link[0]).op0_register().full_register()]);
        let mut step = |text: &&str| {
            let one = decoded(text);
            let used = factory.info(&one).used_registers();
            let of = |reads: bool| {
                let is = move |access| match access {
                    OpAccess::ReadWrite => true,
                    access => (access == OpAccess::Read) == reads,
                };
                let own = used.iter().filter(move |used| is(used.access()));
                own.map(|used| used.register().full_register()).collect::<Vec<Register>>()
            };
            let waits = of(true).iter().any(|register| late.contains(register));
            for register in of(false) {
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
    fn the_control_alone_waits_for_nothing() {
        for QueueClass { name, waiting, ready, .. } in classes() {
            for filler in waiting {
                assert!(waits(filler).into_iter().all(|waits| waits), "{name}: {}", filler.name);
            }
            assert!(waits(ready).into_iter().all(|waits| !waits), "{name}: {}", ready.name);
        }
    }

    #[test]
    fn the_control_has_the_instructions_of_those_that_wait_and_takes_what_they_take() {
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
