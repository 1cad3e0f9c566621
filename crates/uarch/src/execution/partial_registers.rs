//! Partially written registers, and flags.

use crate::spec::*;

// Extra operations that merge the parts of a register, counted in slots.
//
// Fillers that take a slot and no unit keep the core at its full width. Each extra operation then
// takes the slot of one filler. The slot's own cost is that of more fillers in the same loop.

/// Fillers of a step, and the fillers that a slot's cost is taken from.
const SLOT_FILLERS: usize = 24;
const MORE_FILLERS: usize = 8;
/// Steps per iteration.
const SLOT_STEPS: usize = 24;

/// Fillers, each of which takes a slot and, on most cores, no unit; programs refer to them by index.
const FILLERS: [&[&str]; 3] = [
    &["xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d"],
    &["pxor xmm1, xmm1", "pxor xmm2, xmm2", "pxor xmm3, xmm3", "pxor xmm4, xmm4"],
    &["nop dword ptr [rax]"],
];

/// A text and fillers behind it. The numbers: the kind of filler, and the number of fillers.
fn among_fillers(_: usize, inputs: &Inputs) -> StepLoop {
    let Inputs { texts: [text, ..], numbers: [kind, fillers, ..] } = *inputs;
    let mut step: Vec<&str> = FILLERS[kind].iter().copied().cycle().take(fillers).collect();
    step.insert(0, text);
    loop_in_pages(assemble(&step.join("; ")).repeat(SLOT_STEPS), SLOT_STEPS, 1)
}

const fn slot_variant(kind: usize, text: &'static str, control: &'static str) -> ProgramVariant {
    let numbers = [kind, SLOT_FILLERS, 0, 0];
    let label = ["{a}, less {b}, among xor", "{a}, less {b}, among pxor", "{a}, less {b}, among nop"][kind];
    ProgramVariant::built(label, among_fillers, [text, control, "", ""], numbers)
        .less_built([control, "", "", ""], numbers)
}

/// A text and its control among fillers of each kind.
const fn slots(text: &'static str, control: &'static str) -> [ProgramVariant; 3] {
    [slot_variant(0, text, control), slot_variant(1, text, control), slot_variant(2, text, control)]
}

/// The cost of eight fillers of each kind, in one slot's share. The text is the same in both.
const SLOT_COSTS: &[ProgramFamily] = &[slot_cost(0), slot_cost(1), slot_cost(2)];

const fn slot_cost(kind: usize) -> ProgramFamily {
    let text = ["mov eax, ecx; mov edx, eax", "", "", ""];
    let name = ["eight times xor", "eight times pxor", "eight times nop"][kind];
    ProgramVariant::built(name, among_fillers, text, [kind, SLOT_FILLERS + MORE_FILLERS, 0, 0])
        .less_built(text, [kind, SLOT_FILLERS, 0, 0])
        .family
}

const fn slot_row(name: &'static str, variants: &'static [ProgramVariant]) -> TestRow {
    // The cost of a slot is that of eight fillers.
    TestRow::new(name, variants).amount(1.0 / MORE_FILLERS as f64).allow_hidden()
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "merge_slots",
        about: "how many extra slots partly written registers and flags take",
        definition: "slots of the core's width by which a text takes more than its control of as many instructions: the \
                 extra time divided by the time of a slot, both among instructions that take a slot and no unit",
        source: FOG,
        answers: &["partial_register_stall"],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                slot_row("low_8_bits_written", &slots("mov al, cl", "mov eax, ecx")),
                slot_row("high_8_bits_written", &slots("mov ah, cl", "mov eax, ecx")),
                slot_row("16_bits_written", &slots("mov ax, cx", "mov eax, ecx")),
                slot_row("low_8_bits_and_whole", &slots("mov al, cl; mov edx, eax", "mov eax, ecx; mov edx, eax")),
                slot_row("high_8_bits_and_whole", &slots("mov ah, cl; mov edx, eax", "mov eax, ecx; mov edx, eax")),
                slot_row("16_bits_and_whole", &slots("mov ax, cx; mov edx, eax", "mov eax, ecx; mov edx, eax")),
                slot_row("high_8_bits_read", &slots("add dl, ah", "add dl, al")),
                slot_row("carry_kept", &slots("inc eax; setc dl", "add eax, 1; setc dl")),
                slot_row("carry_and_zero", &slots("inc eax; setbe dl", "add eax, 1; setbe dl")),
            ],
            tolerance: 0.4,
            tolerance_share: 0.15,
            slot_costs: SLOT_COSTS,
        }),
    },
    TestSpec {
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
            slot_costs: &[],
        }),
    },
];
