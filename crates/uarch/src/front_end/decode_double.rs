//! Decoding of instructions that become several operations.

use crate::spec::*;

/// Bytes of straight code, the most in `decode_rate`.
const BYTES: usize = 48 << 10;
/// Bytes of a simple instruction.
const SIMPLE: usize = 2;

/// Straight code of which every so manieth instruction becomes several operations.
fn mix_every_nth(number: usize, several: &[&str]) -> StepLoop {
    let several: Vec<Vec<u8>> = several.iter().map(|one| assemble(one)).collect();
    let (mut body, mut steps) = (Vec::new(), 0);
    for place in 0.. {
        let one = match place % number {
            0 => several[place / number % several.len()].clone(),
            _ => zeroing_of_length(SIMPLE, place % number),
        };
        if body.len() + one.len() > BYTES {
            break;
        }
        body.extend(one);
        steps += 1;
    }
    straight_loop(body, steps)
}

const CONVERSIONS: &[&str] = &["cvtsi2sd xmm2, eax", "cvtsi2sd xmm3, ecx", "cvtsi2sd xmm4, edx", "cvtsi2sd xmm5, ebx"];
const EXCHANGES: &[&str] = &["xchg ecx, edx", "xchg ebx, esi", "xchg edi, ecx"];
const EXTRACTS: &[&str] = &["pextrw eax, xmm2, 1", "pextrw ecx, xmm3, 1", "pextrw edx, xmm4, 1"];

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("cvtsi2sd", |number| mix_every_nth(number, CONVERSIONS)),
    ProgramVariant::new("xchg", |number| mix_every_nth(number, EXCHANGES)),
    ProgramVariant::new("pextrw", |number| mix_every_nth(number, EXTRACTS)),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "decode_double",
    about: "how many instructions the core decodes in a cycle where some become several operations",
    definition: "instructions in a core cycle from 48 KiB of straight code, of which each, or every second, third, fourth, fifth, sixth or eighth, becomes two or three operations and the others are xor of a register with itself; or what executing them allows, where that is less",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["decode_double"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Rates(RatesSpec {
        tolerance_share: 0.015,
        ..RatesSpec::new(
            Unit::PerCycle,
            &[
                TestRow::new("every", WAYS),
                TestRow::for_n("every_2nd", 2, WAYS),
                TestRow::for_n("every_3rd", 3, WAYS),
                TestRow::for_n("every_4th", 4, WAYS),
                TestRow::for_n("every_5th", 5, WAYS),
                TestRow::for_n("every_6th", 6, WAYS),
                TestRow::for_n("every_8th", 8, WAYS),
            ],
        )
    }),
}];
