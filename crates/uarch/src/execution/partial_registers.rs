//! Registers that were written in part, and flags.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{repeated, way};
use crate::test::{Look, Part, Test};

pub(crate) const TEST: Test = Test {
    name: "partial_registers",
    about: "what it costs to read a register, or flags, of which a part was written last",
    definition: "core cycles by which a chain takes longer than one that writes the whole",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new(
                "low_8_bits",
                1,
                1.0,
                &[
                    way!("add al, cl; imul eax, edi", less "add eax, ecx; imul eax, edi"),
                    way!("sub bl, dl; imul ebx, edi", less "sub ebx, edx; imul ebx, edi"),
                ],
            ),
            Row::new(
                "high_8_bits",
                1,
                1.0,
                &[
                    way!("add ah, cl; imul eax, edi", less "add eax, ecx; imul eax, edi"),
                    way!("sub bh, dl; imul ebx, edi", less "sub ebx, edx; imul ebx, edi"),
                ],
            ),
            Row::new(
                "16_bits",
                1,
                1.0,
                &[
                    way!("add ax, cx; imul eax, edi", less "add eax, ecx; imul eax, edi"),
                    way!("sub bx, dx; imul ebx, edi", less "sub ebx, edx; imul ebx, edi"),
                ],
            ),
            Row::new(
                "carry_kept",
                1,
                1.0,
                &[
                    way!("inc eax; adc eax, edi", less "add eax, 1; adc eax, edi"),
                    way!("dec ebx; sbb ebx, edi", less "sub ebx, 1; sbb ebx, edi"),
                ],
            ),
            Row::new(
                "carry_and_zero",
                1,
                1.0,
                &[
                    way!("inc eax; cmovbe eax, edi", less "add eax, 1; cmovbe eax, edi"),
                    way!("dec ebx; cmova ebx, edi", less "sub ebx, 1; cmova ebx, edi"),
                ],
            ),
            Row::new(
                "carry_changed",
                1,
                1.0,
                &[
                    way!("bt eax, 3; cmovbe eax, edi", less "cmp eax, 3; cmovbe eax, edi"),
                    way!("bt ebx, 5; cmova ebx, edi", less "cmp ebx, 5; cmova ebx, edi"),
                ],
            ),
            Row::new(
                "low_8_bits_moved",
                1,
                1.0,
                &[
                    way!("mov al, cl; imul eax, edi", less "mov eax, ecx; imul eax, edi"),
                    way!("mov bl, dl; imul ebx, edi", less "mov ebx, edx; imul ebx, edi"),
                ],
            ),
            Row::new(
                "high_8_bits_moved",
                1,
                1.0,
                &[
                    way!("mov ah, cl; imul eax, edi", less "mov eax, ecx; imul eax, edi"),
                    way!("mov bh, dl; imul ebx, edi", less "mov ebx, edx; imul ebx, edi"),
                ],
            ),
            Row::new(
                "16_bits_moved",
                1,
                1.0,
                &[
                    way!("mov ax, cx; imul eax, edi", less "mov eax, ecx; imul eax, edi"),
                    way!("mov bx, dx; imul ebx, edi", less "mov ebx, edx; imul ebx, edi"),
                ],
            ),
        ],
        apart: 0.3,
        apart_share: 0.1,
    }),
};
