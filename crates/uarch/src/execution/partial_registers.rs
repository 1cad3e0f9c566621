//! Partially written registers, and flags.

use crate::spec::*;

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "partial_registers",
    about: "what it costs to read a register, or flags, of which a part was written last",
    definition: "core cycles by which a chain takes longer than one that writes the whole",
    source: FOG,
    answers: &["partial_register_stall"],
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new(
                "low_8_bits",
                &[
                    asm("add al, cl; imul eax, edi").less("add eax, ecx; imul eax, edi"),
                    asm("sub bl, dl; imul ebx, edi").less("sub ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "high_8_bits",
                &[
                    asm("add ah, cl; imul eax, edi").less("add eax, ecx; imul eax, edi"),
                    asm("sub bh, dl; imul ebx, edi").less("sub ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "16_bits",
                &[
                    asm("add ax, cx; imul eax, edi").less("add eax, ecx; imul eax, edi"),
                    asm("sub bx, dx; imul ebx, edi").less("sub ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "carry_kept",
                &[
                    asm("inc eax; adc eax, edi").less("add eax, 1; adc eax, edi"),
                    asm("dec ebx; sbb ebx, edi").less("sub ebx, 1; sbb ebx, edi"),
                ],
            ),
            TestRow::new(
                "carry_and_zero",
                &[
                    asm("inc eax; cmovbe eax, edi").less("add eax, 1; cmovbe eax, edi"),
                    asm("dec ebx; cmova ebx, edi").less("sub ebx, 1; cmova ebx, edi"),
                ],
            ),
            TestRow::new(
                "carry_changed",
                &[
                    asm("bt eax, 3; cmovbe eax, edi").less("cmp eax, 3; cmovbe eax, edi"),
                    asm("bt ebx, 5; cmova ebx, edi").less("cmp ebx, 5; cmova ebx, edi"),
                ],
            ),
            TestRow::new(
                "low_8_bits_moved",
                &[
                    asm("mov al, cl; imul eax, edi").less("mov eax, ecx; imul eax, edi"),
                    asm("mov bl, dl; imul ebx, edi").less("mov ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "high_8_bits_moved",
                &[
                    asm("mov ah, cl; imul eax, edi").less("mov eax, ecx; imul eax, edi"),
                    asm("mov bh, dl; imul ebx, edi").less("mov ebx, edx; imul ebx, edi"),
                ],
            ),
            TestRow::new(
                "16_bits_moved",
                &[
                    asm("mov ax, cx; imul eax, edi").less("mov eax, ecx; imul eax, edi"),
                    asm("mov bx, dx; imul ebx, edi").less("mov ebx, edx; imul ebx, edi"),
                ],
            ),
        ],
        tolerance: 0.3,
        tolerance_share: 0.1,
    }),
}];
