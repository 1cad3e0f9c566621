//! Registers that were written in part, and flags.

use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{repeat_text, variant};
use crate::spec::{Experiment, TestSpec, TestedPart};

pub(crate) const TEST: TestSpec = TestSpec {
    name: "partial_registers",
    about: "what it costs to read a register, or flags, of which a part was written last",
    definition: "core cycles by which a chain takes longer than one that writes the whole",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new(
                "low_8_bits",
                1,
                1.0,
                &[
                    variant!("add al, cl; imul eax, edi", less "add eax, ecx; imul eax, edi"),
                    variant!("sub bl, dl; imul ebx, edi", less "sub ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "high_8_bits",
                1,
                1.0,
                &[
                    variant!("add ah, cl; imul eax, edi", less "add eax, ecx; imul eax, edi"),
                    variant!("sub bh, dl; imul ebx, edi", less "sub ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "16_bits",
                1,
                1.0,
                &[
                    variant!("add ax, cx; imul eax, edi", less "add eax, ecx; imul eax, edi"),
                    variant!("sub bx, dx; imul ebx, edi", less "sub ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "carry_kept",
                1,
                1.0,
                &[
                    variant!("inc eax; adc eax, edi", less "add eax, 1; adc eax, edi"),
                    variant!("dec ebx; sbb ebx, edi", less "sub ebx, 1; sbb ebx, edi"),
                ],
            ),
            TestRow::new(
                "carry_and_zero",
                1,
                1.0,
                &[
                    variant!("inc eax; cmovbe eax, edi", less "add eax, 1; cmovbe eax, edi"),
                    variant!("dec ebx; cmova ebx, edi", less "sub ebx, 1; cmova ebx, edi"),
                ],
            ),
            TestRow::new(
                "carry_changed",
                1,
                1.0,
                &[
                    variant!("bt eax, 3; cmovbe eax, edi", less "cmp eax, 3; cmovbe eax, edi"),
                    variant!("bt ebx, 5; cmova ebx, edi", less "cmp ebx, 5; cmova ebx, edi"),
                ],
            ),
            TestRow::new(
                "low_8_bits_moved",
                1,
                1.0,
                &[
                    variant!("mov al, cl; imul eax, edi", less "mov eax, ecx; imul eax, edi"),
                    variant!("mov bl, dl; imul ebx, edi", less "mov ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "high_8_bits_moved",
                1,
                1.0,
                &[
                    variant!("mov ah, cl; imul eax, edi", less "mov eax, ecx; imul eax, edi"),
                    variant!("mov bh, dl; imul ebx, edi", less "mov ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "16_bits_moved",
                1,
                1.0,
                &[
                    variant!("mov ax, cx; imul eax, edi", less "mov eax, ecx; imul eax, edi"),
                    variant!("mov bx, dx; imul ebx, edi", less "mov ebx, edx; imul ebx, edi"),
                ],
            ),
        ],
        tolerance: 0.3,
        tolerance_share: 0.1,
    }),
};
