//! Which of the queues in which operations wait are shared.

use super::{integer_scheduler, load_scheduler, vector_scheduler};
use crate::study::uarch::test::chain::SQRTSD;
use crate::study::uarch::test::queues::{Class, Queues};
use crate::study::uarch::test::{Filler, Look, Part, Test};

const INTEGERS: Class = Class {
    name: "integers",
    test: "integer_scheduler",
    waiting: [&integer_scheduler::ADD, &integer_scheduler::LEA],
    ready: &Filler { before: &["xor eax, eax"], name: "add that is ready", ..integer_scheduler::ADD },
};
const LOADS: Class = Class {
    name: "loads",
    test: "load_scheduler",
    waiting: [&load_scheduler::TO_INTEGER, &load_scheduler::PREFETCH],
    ready: &Filler { before: &["xor eax, eax"], name: "load that is ready", ..load_scheduler::TO_INTEGER },
};
const VECTORS: Class = Class {
    name: "vectors",
    test: "vector_scheduler",
    waiting: [&vector_scheduler::PADDD, &vector_scheduler::ADDPS],
    ready: &Filler::plain(
        "paddd that is ready",
        &[
            "paddd xmm2, xmm15",
            "paddd xmm3, xmm15",
            "paddd xmm4, xmm15",
            "paddd xmm5, xmm15",
            "paddd xmm6, xmm15",
        ],
        &["rob", "vector_registers_xmm"],
    ),
};

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "shared_schedulers",
    about: "which classes of operations wait for their operands in the same queues",
    definition: "operations of one class that find no room to wait for each operation of another class that waits: one where all wait in the same queue, a \
                 part or more where some of several queues are shared; none where as many wait as alone",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Queues(Queues { classes: &[INTEGERS, LOADS, VECTORS], head: SQRTSD }),
};
