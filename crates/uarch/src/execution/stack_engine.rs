//! Reads of the stack pointer after pushes.

use crate::spec::*;

/// Four pushes with cheap instructions behind each, `not`, `nop` or `movsxd`. The read, `{a}`, is behind each
/// push, or four times behind the last one. All programs also read behind the pops, and none ends
/// in its first state.
const AMONG_NOT: &str = "push rdi; {a}; not rbx; not rcx; not rdx; not r13; not r8; \
         push rdi; {a}; not r9; not r10; not r11; not r12; not rbx; \
         push rdi; {a}; not rcx; not rdx; not r13; not r8; not r9; \
         push rdi; {a}; not r10; not r11; not r12; not rbx; not rcx; \
         pop rsi; pop rsi; pop rsi; pop rsi; \
         not rdx; not r13; not r8; not r9; not r10; not r11; not r12; not rbx; \
         not rcx; not rdx; not r13; not r8; not r9; not r10; not r11; not r12; {a}";
const BEHIND_ALL_NOT: &str = "push rdi; not rbx; not rcx; not rdx; not r13; not r8; \
         push rdi; not r9; not r10; not r11; not r12; not rbx; \
         push rdi; not rcx; not rdx; not r13; not r8; not r9; \
         push rdi; not r10; not r11; not r12; not rbx; not rcx; \
         {a}; {a}; {a}; {a}; \
         pop rsi; pop rsi; pop rsi; pop rsi; \
         not rdx; not r13; not r8; not r9; not r10; not r11; not r12; not rbx; \
         not rcx; not rdx; not r13; not r8; not r9; not r10; not r11; not r12; {a}";
const AMONG_NOP: &str = "push rdi; {a}; nop; nop; nop; nop; nop; \
         push rdi; {a}; nop; nop; nop; nop; nop; \
         push rdi; {a}; nop; nop; nop; nop; nop; \
         push rdi; {a}; nop; nop; nop; nop; nop; \
         pop rsi; pop rsi; pop rsi; pop rsi; \
         nop; nop; nop; nop; nop; nop; nop; nop; \
         nop; nop; nop; nop; nop; nop; nop; nop; {a}";
const BEHIND_ALL_NOP: &str = "push rdi; nop; nop; nop; nop; nop; \
         push rdi; nop; nop; nop; nop; nop; \
         push rdi; nop; nop; nop; nop; nop; \
         push rdi; nop; nop; nop; nop; nop; \
         {a}; {a}; {a}; {a}; \
         pop rsi; pop rsi; pop rsi; pop rsi; \
         nop; nop; nop; nop; nop; nop; nop; nop; \
         nop; nop; nop; nop; nop; nop; nop; nop; {a}";
const AMONG_MOVSXD: &str = "push rdi; {a}; movsxd rbx, edi; movsxd rcx, edi; movsxd rdx, edi; movsxd r13, edi; movsxd \
         r8, edi; push rdi; {a}; movsxd r9, edi; movsxd r10, edi; movsxd r11, edi; movsxd r12, edi; \
         movsxd rbx, edi; push rdi; {a}; movsxd rcx, edi; movsxd rdx, edi; movsxd r13, edi; movsxd \
         r8, edi; movsxd r9, edi; push rdi; {a}; movsxd r10, edi; movsxd r11, edi; movsxd r12, edi; \
         movsxd rbx, edi; movsxd rcx, edi; pop rsi; pop rsi; pop rsi; pop rsi; movsxd rdx, edi; \
         movsxd r13, edi; movsxd r8, edi; movsxd r9, edi; movsxd r10, edi; movsxd r11, edi; movsxd \
         r12, edi; movsxd rbx, edi; movsxd rcx, edi; movsxd rdx, edi; movsxd r13, edi; movsxd r8, \
         edi; movsxd r9, edi; movsxd r10, edi; movsxd r11, edi; movsxd r12, edi; {a}";
const BEHIND_ALL_MOVSXD: &str = "push rdi; movsxd rbx, edi; movsxd rcx, edi; movsxd rdx, edi; movsxd r13, edi; movsxd r8, \
         edi; push rdi; movsxd r9, edi; movsxd r10, edi; movsxd r11, edi; movsxd r12, edi; movsxd \
         rbx, edi; push rdi; movsxd rcx, edi; movsxd rdx, edi; movsxd r13, edi; movsxd r8, edi; \
         movsxd r9, edi; push rdi; movsxd r10, edi; movsxd r11, edi; movsxd r12, edi; movsxd rbx, \
         edi; movsxd rcx, edi; {a}; {a}; {a}; {a}; pop rsi; pop rsi; pop rsi; pop rsi; movsxd rdx, \
         edi; movsxd r13, edi; movsxd r8, edi; movsxd r9, edi; movsxd r10, edi; movsxd r11, edi; \
         movsxd r12, edi; movsxd rbx, edi; movsxd rcx, edi; movsxd rdx, edi; movsxd r13, edi; movsxd \
         r8, edi; movsxd r9, edi; movsxd r10, edi; movsxd r11, edi; movsxd r12, edi; {a}";
/// RSP and RBP point to the end of two pages.
const STACK: AsmLoop = AsmLoop { setup: "lea rsp, [r14 + 8192]; mov rbp, rsp", ..AsmLoop::bare(16, 2) };

/// What a read costs needs a unit or a slot, and each kind of cheap instructions takes up one of them.
/// The other kinds may hide it.
///
/// A read behind each push, less all reads behind the last push, among three kinds of cheap
/// instructions.
const fn reads(read: &'static str) -> [ProgramVariant; 3] {
    let stack = STACK.with([read, "", "", ""]);
    [
        stack.asm(AMONG_NOT).less(BEHIND_ALL_NOT).label("{a} behind each push, less behind all, among not"),
        stack.asm(AMONG_NOP).less(BEHIND_ALL_NOP).label("{a} behind each push, less behind all, among nop"),
        stack.asm(AMONG_MOVSXD).less(BEHIND_ALL_MOVSXD).label("{a} behind each push, less behind all, among movsxd"),
    ]
}

/// Three reads count: the first one is behind a push in both programs.
const READS: f64 = 3.0;

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "stack_engine",
    about: "what it costs to read the stack pointer behind a push",
    definition: "core cycles by which a read behind each push takes longer than all reads behind the last one, \
                 where the core is busy with cheap instructions",
    source: FOG,
    answers: &["stack_sync_uops"],
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new("move", &reads("mov rax, rsp")).amount(READS).allow_hidden(),
            TestRow::new("add", &reads("lea rax, [rsp + 8]")).amount(READS).allow_hidden(),
            TestRow::new("compare", &reads("cmp rdi, rsp")).amount(READS).allow_hidden(),
            TestRow::new("other_register", &reads("lea rax, [rbp + 8]")).amount(READS).allow_hidden(),
        ],
        tolerance: 0.05,
        tolerance_share: 0.3,
        slot_costs: &[],
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn the_control_has_the_same_instructions_in_another_order() {
        for variant in find_test("stack_engine").rows().iter().flat_map(|row| row.variants) {
            let decoded = |steps: StepLoop| -> Vec<String> {
                Decoder::new(64, &steps.body, DecoderOptions::NONE)
                    .iter()
                    .map(|instruction| instruction.to_string())
                    .collect()
            };
            let [mut each, mut last] =
                [variant.family.program(1), variant.family.control(1).expect("it has a control")].map(decoded);
            assert_ne!(each, last, "{}", variant.family.label());
            each.sort();
            last.sort();
            assert_eq!(each, last, "{}", variant.family.label());
        }
    }
}
