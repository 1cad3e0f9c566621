//! Decoding: instructions per cycle, and what slows decoding down.

use crate::spec::*;

// Decoded instructions per cycle, by instruction length.

/// Bytes of straight code. All first-level caches hold it. With instructions of four bytes, it
/// exceeds any known cache of decoded instructions.
const DECODED_BYTES: usize = 28 << 10;
/// Bytes of shorter code, of which such a cache would hold a larger part. It holds a part of code
/// with longer instructions at any size that the first cache holds.
const FEWER: usize = 20 << 10;
/// Bytes of the shorter code with instructions of one byte.
const FEWEST: usize = 12 << 10;
/// Bytes of code beyond most first-level caches. Some caches of decoded instructions keep a part of
/// short code for good, because they do not replace the oldest entries. So shorter code runs faster
/// (Zen 4, clc: 4.19, 4.14, 4.08 and 4.00 per cycle at 12, 20, 28 and 48 KiB). Lines from the
/// second cache arrive fast enough for few bytes per cycle.
const BEYOND_BYTES: usize = 48 << 10;

fn straight_code(bytes: usize, length: usize, instruction: fn(usize, usize) -> Vec<u8>) -> StepLoop {
    let number = bytes / length;
    straight_loop((0..number).flat_map(|place| instruction(length, place)).collect(), number)
}

fn nop_instruction(length: usize, _: usize) -> Vec<u8> {
    nop_of_length(length)
}

/// clc, one byte.
const CLC: u8 = 0xf8;

const NOP: ProgramVariant =
    ProgramVariant::new("no-operations", |length| straight_code(DECODED_BYTES, length, nop_instruction));
const NOP_BEYOND: ProgramVariant =
    ProgramVariant::new("no-operations, 48 KiB", |length| straight_code(BEYOND_BYTES, length, nop_instruction));
const OF_ONE: &[ProgramVariant] = &[
    NOP,
    ProgramVariant::new("clc", |length| straight_code(DECODED_BYTES, length, |_, _| vec![CLC])),
    ProgramVariant::new("clc, 12 KiB", |length| straight_code(FEWEST, length, |_, _| vec![CLC])),
    NOP_BEYOND,
    ProgramVariant::new("clc, 48 KiB", |length| straight_code(BEYOND_BYTES, length, |_, _| vec![CLC])),
];
const LONGER: &[ProgramVariant] = &[
    NOP,
    ProgramVariant::new("xor r32, same", |length| straight_code(DECODED_BYTES, length, zeroing_of_length)),
    ProgramVariant::new("xor r32, same, 20 KiB", |length| straight_code(FEWER, length, zeroing_of_length)),
    NOP_BEYOND,
    ProgramVariant::new("xor r32, same, 48 KiB", |length| straight_code(BEYOND_BYTES, length, zeroing_of_length)),
    ProgramVariant::new("mov r32, r32, 48 KiB", |length| straight_code(BEYOND_BYTES, length, mov_reg_of_length)),
];

// Decoded bytes per cycle.
//
// A cache of decoded instructions holds long instructions at any size that the instruction cache
// holds. So other code displaces them: a part of two-byte instructions, which needs more entries
// than any such cache has, takes turns with the measured part. The control is that part alone.

/// Bytes of the measured part. Both parts together fit every first-level instruction cache.
const MEASURED_BYTES: usize = 9 << 10;
/// Bytes of the part that displaces it. Its 9216 instructions exceed any known cache.
const DISPLACING_BYTES: usize = 18 << 10;
/// Bytes of a displacing instruction: windows of code hold so few that all of them are cached.
const DISPLACING: usize = 2;

/// Kinds of instructions of any length; programs refer to them by index.
const KINDS: [fn(usize, usize) -> Vec<u8>; 4] =
    [nop_instruction, zeroing_of_length, mov_reg_of_length, mov_imm_of_length];

/// A part of instructions of this length, behind the part that displaces it. The numbers: the kinds
/// of both, and whether the measured part is there.
fn displaced_code(length: usize, inputs: &Inputs) -> StepLoop {
    let [kind, displacing, measures, _] = inputs.numbers;
    let part = |bytes: usize, length: usize, kind: usize| -> Vec<u8> {
        (0..bytes / length).flat_map(|place| KINDS[kind](length, place)).collect()
    };
    let measured = if measures == 1 { part(MEASURED_BYTES, length, kind) } else { Vec::new() };
    let code = [part(DISPLACING_BYTES, DISPLACING, displacing), measured].concat();
    StepLoop { iterations: DISPLACED_ITERATIONS, ..straight_loop(code, MEASURED_BYTES / length) }
}

/// Iterations of the shorter call.
const DISPLACED_ITERATIONS: u64 = 6;

const fn displaced(name: &'static str, kind: usize, displacing: usize) -> ProgramVariant {
    ProgramVariant::built(name, displaced_code, [""; 4], [kind, displacing, 1, 0])
        .less_built([""; 4], [kind, displacing, 0, 0])
}

const FETCHED: &[ProgramVariant] = &[
    displaced("no-operations, behind xor r32, same", 0, 1),
    displaced("no-operations, behind mov r32, r32", 0, 2),
    displaced("xor r32, same, behind mov r32, r32", 1, 2),
    displaced("mov r32, r32, behind xor r32, same", 2, 1),
];

const fn fetch_row(name: &'static str, length: usize) -> TestRow {
    TestRow::for_n(name, length, FETCHED).amount(length as f64)
}

// Decoding of instructions that become several operations.

/// Bytes of straight code, as the longest in `decode_rate`.
const DOUBLE_BYTES: usize = 48 << 10;
/// Bytes of a simple instruction.
const SIMPLE: usize = 2;

/// Straight code in which every n-th instruction becomes several operations.
fn mix_every_nth(number: usize, several: &[&str]) -> StepLoop {
    let several: Vec<Vec<u8>> = several.iter().map(|code| assemble(code)).collect();
    let (mut body, mut steps) = (Vec::new(), 0);
    for place in 0.. {
        let code = match place % number {
            0 => several[place / number % several.len()].clone(),
            _ => zeroing_of_length(SIMPLE, place % number),
        };
        if body.len() + code.len() > DOUBLE_BYTES {
            break;
        }
        body.extend(code);
        steps += 1;
    }
    straight_loop(body, steps)
}

const CONVERSIONS: &[&str] = &["cvtsi2sd xmm2, eax", "cvtsi2sd xmm3, ecx", "cvtsi2sd xmm4, edx", "cvtsi2sd xmm5, ebx"];
const EXCHANGES: &[&str] = &["xchg ecx, edx", "xchg ebx, esi", "xchg edi, ecx"];
const EXTRACTS: &[&str] = &["pextrw eax, xmm2, 1", "pextrw ecx, xmm3, 1", "pextrw edx, xmm4, 1"];

/// Extracts from registers that no conversion writes.
const OTHER_EXTRACTS: &[&str] = &["pextrw eax, xmm6, 1", "pextrw r8d, xmm7, 1"];

/// All of them. Execution allows more of these than of conversions or extracts alone.
fn mix_all_every_nth(number: usize) -> StepLoop {
    let group = |conversion: &&'static str| {
        let [one, other, last] = [EXCHANGES[0], EXCHANGES[1], EXCHANGES[2]];
        [one, OTHER_EXTRACTS[0], other, last, *conversion, one, OTHER_EXTRACTS[1], other]
    };
    mix_every_nth(number, &CONVERSIONS.iter().flat_map(group).collect::<Vec<_>>())
}

const DOUBLE_VARIANTS: &[ProgramVariant] = &[
    ProgramVariant::new("cvtsi2sd", |number| mix_every_nth(number, CONVERSIONS)),
    ProgramVariant::new("xchg", |number| mix_every_nth(number, EXCHANGES)),
    ProgramVariant::new("pextrw", |number| mix_every_nth(number, EXTRACTS)),
    ProgramVariant::new("all in turn", mix_all_every_nth),
];

// Prefixes that change the length of an instruction's immediate.

/// Bytes of straight code.
const PREFIX_BYTES: usize = 28 << 10;
/// No-operations of one byte behind each instruction: with them, the code exceeds any cache of
/// decoded instructions.
const FIVE_NOPS: [u8; 5] = [0x90; 5];

fn among_nops(instruction: &[u8]) -> StepLoop {
    let group = [instruction, &FIVE_NOPS].concat();
    let number = PREFIX_BYTES / group.len();
    straight_loop(group.repeat(number), number)
}

/// cmp cx, 1234h
fn cmp_16(_: usize) -> StepLoop {
    among_nops(&[0x66, 0x81, 0xf9, 0x34, 0x12])
}

/// cmp ecx, 1234h
fn cmp_32(_: usize) -> StepLoop {
    among_nops(&[0x81, 0xf9, 0x34, 0x12, 0, 0])
}

/// test dx, 1234h
fn test_16(_: usize) -> StepLoop {
    among_nops(&[0x66, 0xf7, 0xc2, 0x34, 0x12])
}

/// test edx, 1234h
fn test_32(_: usize) -> StepLoop {
    among_nops(&[0xf7, 0xc2, 0x34, 0x12, 0, 0])
}

// Decoding of instructions with several prefixes.

/// Instructions of one byte, nop and clc, behind each one with prefixes: with them, the code
/// exceeds any cache of decoded instructions.
const TEN_NOPS: [u8; 10] = [0x90; 10];
const TEN_CLCS: [u8; 10] = [0xf8; 10];
/// Prefixes without effect here: of an operand's size, and of CS.
const SIZE: u8 = 0x66;
const CS: u8 = 0x2e;
/// `nop dword ptr [rax]`.
const PLAIN: [u8; 3] = [0x0f, 0x1f, 0x00];

fn surround_with(instruction: &[u8], others: &[u8]) -> StepLoop {
    let group = [instruction, others].concat();
    let number = PREFIX_BYTES / group.len();
    straight_loop(group.repeat(number), number)
}

fn prefixed_nop(prefixes: usize, prefix: u8, others: &[u8]) -> StepLoop {
    surround_with(&[&vec![prefix; prefixes], &PLAIN[..]].concat(), others)
}

/// The no-operation of the same length with the fewest prefixes.
fn long_nop(prefixes: usize, others: &[u8]) -> StepLoop {
    surround_with(&nop_of_length(prefixes + PLAIN.len()), others)
}

const PREFIX_VARIANTS: &[ProgramVariant] = &[
    ProgramVariant::new("prefixes 66h, among nop", |number| prefixed_nop(number, SIZE, &TEN_NOPS))
        .less_generated(|number| long_nop(number, &TEN_NOPS)),
    ProgramVariant::new("prefixes 2Eh, among clc", |number| prefixed_nop(number, CS, &TEN_CLCS))
        .less_generated(|number| long_nop(number, &TEN_CLCS)),
];

// Boundaries of instructions in lines that the instruction cache holds.
//
// Three subroutines: one evicts all lines, one fetches them by a jump at the start of each, and one
// runs all instructions of them. Program and control call them as often, but in another order: the
// program runs the lines twice behind fetching them, the control once, and once more behind a run.

/// Lines that are run: more instructions of two bytes than any cache of decoded instructions holds.
const MARKED_LINES: usize = 320;
/// Bytes of code that evicts them from any first-level cache.
const EVICTING_BYTES: usize = 144 << 10;
/// je rel8 and call rel32, without their distances.
const JE: u8 = 0x74;
const CALL: u8 = 0xe8;
const RET: u8 = 0xc3;
/// Iterations of the shorter call.
const MARKED_ITERATIONS: u64 = 6;

/// The first number: whether all runs follow a fetch. The instructions, by the second number, do
/// not change the zero flag. If it is set, a line's jump leads to the next line.
fn marked_lines(_: usize, inputs: &Inputs) -> StepLoop {
    let [fetched, kind, ..] = inputs.numbers;
    let mut lines = Vec::new();
    for _ in 0..MARKED_LINES {
        // A line has room for 31 instructions behind its jump.
        let begin = lines.len();
        lines.extend([JE, (LINE - 2) as u8]);
        for place in 0.. {
            let room = begin + LINE - lines.len();
            match (room, kind) {
                (0, _) => break,
                (_, 0) => lines.extend(nop_of_length(2)),
                _ => lines.extend(mov_reg_of_length(2, place)),
            }
        }
    }
    lines.push(RET);
    let evicting = [nop_of_length(LONG).repeat(EVICTING_BYTES / LONG), vec![RET]].concat();
    // Zero is set for a fetch, and clear for a run.
    let [fetch, run] = ["cmp r14, r14", "test r14, r14"].map(assemble);
    let calls: &[usize] = if fetched == 1 { &[0, 1, 2, 0, 1, 2] } else { &[0, 1, 0, 1, 2, 2] };
    let bytes_of = |call: usize| if call == 0 { 0 } else { fetch.len() } + CALL_BYTES;
    let head: usize = calls.iter().map(|call| bytes_of(*call)).sum::<usize>() + JUMP_BYTES;
    let lines_at = head.next_multiple_of(LINE);
    let evicting_at = (lines_at + lines.len()).next_multiple_of(LINE);
    let end = evicting_at + evicting.len();
    let mut body = Vec::new();
    let distance = |from: usize, to: usize| (to as i32 - from as i32).to_le_bytes();
    for call in calls {
        match call {
            1 => body.extend(&fetch),
            2 => body.extend(&run),
            _ => {}
        }
        let target = if *call == 0 { evicting_at } else { lines_at };
        body.push(CALL);
        body.extend(distance(body.len() + 4, target));
    }
    body.push(0xe9);
    body.extend(distance(body.len() + 4, end));
    body.resize(lines_at, TRAP);
    body.extend(&lines);
    body.resize(evicting_at, TRAP);
    body.extend(&evicting);
    StepLoop {
        init: assemble("lea rsp, [r14 + 4096]"),
        iterations: MARKED_ITERATIONS,
        ..loop_in_pages(body, MARKED_LINES, 2)
    }
}

/// Bytes of a call and of a jump.
const CALL_BYTES: usize = 5;
const JUMP_BYTES: usize = 5;
/// int3, which never runs.
const TRAP: u8 = 0xcc;

const fn marked(name: &'static str, kind: usize) -> ProgramVariant {
    ProgramVariant::built(name, marked_lines, [""; 4], [1, kind, 0, 0]).less_built([""; 4], [0, kind, 0, 0])
}

// Decoding of code outside the instruction cache.

/// Bytes of straight code that all first-level caches hold.
const FIRST_HELD: usize = 28 << 10;
/// Bytes of straight code that only second-level caches hold.
const FIRST_BEYOND: usize = 160 << 10;

/// Whole lines of these instructions in turn. All have the same length.
fn whole_lines(bytes: usize, all: &[Vec<u8>]) -> StepLoop {
    let length = all[0].len();
    let code = all.iter().cycle().take(bytes / length).flatten().copied().collect();
    straight_loop(code, bytes / LINE)
}

const STC: u8 = 0xf9;
/// Bytes of a long instruction.
const LONG: usize = 8;

fn zeroing_instructions() -> Vec<Vec<u8>> {
    (0..LONG).map(|place| zeroing_of_length(LONG, place)).collect()
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "decode_rate",
        about: "how many instructions of one to four bytes the core decodes in a cycle",
        definition: "instructions of this length in a core cycle of straight code, from no cache of decoded ones: \
                     two programs of 12 to 48 KiB come to the same, and where less code is faster, which may be \
                     decoded in part, only the larger ones",
        source: FOG,
        answers: &["decoder_throughput"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rates(RatesSpec {
            // Programs differ by more if such a cache holds parts of them.
            tolerance_share: 0.015,
            allow_outlier: true,
            ..RatesSpec::new(
                Unit::PerCycle,
                &[
                    TestRow::new("1_byte", OF_ONE),
                    TestRow::for_n("2_bytes", 2, LONGER),
                    TestRow::for_n("3_bytes", 3, LONGER),
                    TestRow::for_n("4_bytes", 4, LONGER),
                ],
            )
        }),
    },
    TestSpec {
        name: "fetch_rate",
        about: "how many bytes of instructions the core fetches and decodes in a cycle, by their length",
        definition: "bytes in a core cycle of 9 KiB of instructions of this length, which other code displaces from \
                     any cache of decoded instructions each time; instructions in a cycle are these bytes divided by \
                     the length; and the greatest length at which the decoders are as fast as with shorter ones",
        source: FOG,
        answers: &["decoder_throughput", "decode_nops"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rates(RatesSpec {
            allow_outlier: true,
            full_rate_end: Some(&RateEnd {
                name: "full_length",
                definition: "the greatest length in bytes up to which as many instructions are decoded in a cycle as \
                             of any shorter one",
                unit: Unit::Bytes,
            }),
            ..RatesSpec::new(
                Unit::BytesPerCycle,
                &[
                    fetch_row("2_bytes", 2),
                    fetch_row("3_bytes", 3),
                    fetch_row("4_bytes", 4),
                    fetch_row("5_bytes", 5),
                    fetch_row("6_bytes", 6),
                    fetch_row("7_bytes", 7),
                    fetch_row("8_bytes", 8),
                    fetch_row("9_bytes", 9),
                    fetch_row("10_bytes", 10),
                    fetch_row("11_bytes", 11),
                    fetch_row("12_bytes", 12),
                    fetch_row("13_bytes", 13),
                    fetch_row("14_bytes", 14),
                    fetch_row("15_bytes", 15),
                ],
            )
        }),
    },
    TestSpec {
        name: "decode_double",
        about: "how many instructions the core decodes in a cycle where some become several operations",
        definition: "instructions in a core cycle from 48 KiB of straight code, of which each, or every second, \
                     third, fourth, fifth, sixth or eighth, becomes two or three operations and the others are xor \
                     of a register with itself; or what executing them allows, where that is less",
        source: FOG,
        answers: &["decode_double"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Rates(RatesSpec {
            tolerance_share: 0.015,
            // A cache of decoded instructions holds a part of the shortest ones.
            allow_outlier: true,
            ..RatesSpec::new(
                Unit::PerCycle,
                &[
                    TestRow::new("every", DOUBLE_VARIANTS),
                    TestRow::for_n("every_2nd", 2, DOUBLE_VARIANTS),
                    TestRow::for_n("every_3rd", 3, DOUBLE_VARIANTS),
                    TestRow::for_n("every_4th", 4, DOUBLE_VARIANTS),
                    TestRow::for_n("every_5th", 5, DOUBLE_VARIANTS),
                    TestRow::for_n("every_6th", 6, DOUBLE_VARIANTS),
                    TestRow::for_n("every_8th", 8, DOUBLE_VARIANTS),
                ],
            )
        }),
    },
    TestSpec {
        name: "length_changing_prefix",
        about: "how long a prefix that changes an immediate's length delays the decoders",
        definition: "core cycles that an instruction with prefix 66h and an immediate of 16 bits takes longer than \
                     one of 32 bits without, both from the decoders, among no-operations of one byte",
        source: FOG,
        answers: &["length_chg_prefix"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[TestRow::new(
                "",
                &[
                    ProgramVariant::new("cmp r16, imm16, less cmp r32, imm32", cmp_16).less_generated(cmp_32),
                    ProgramVariant::new("test r16, imm16, less test r32, imm32", test_16).less_generated(test_32),
                ],
            )],
            tolerance: 0.5,
            tolerance_share: 0.1,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "decode_prefix",
        about: "how long several prefixes of an instruction delay the decoders",
        definition: "core cycles by which the decoders take longer for a no-operation with this number of prefixes \
                     than for one of the same length with as few as it can have, both among instructions of one byte",
        source: FOG,
        answers: &["decode_prefix"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::new("1_prefix", PREFIX_VARIANTS),
                TestRow::for_n("2_prefixes", 2, PREFIX_VARIANTS),
                TestRow::for_n("4_prefixes", 4, PREFIX_VARIANTS),
                TestRow::for_n("5_prefixes", 5, PREFIX_VARIANTS),
                TestRow::for_n("11_prefixes_for_6", 11, PREFIX_VARIANTS),
            ],
            tolerance: 0.3,
            tolerance_share: 0.1,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "boundary_marks",
        about: "what it costs to find where instructions begin in a line that the instruction cache holds",
        definition: "core cycles by which a line of instructions of two bytes takes longer when it runs for the \
                     first time since a jump fetched it than when it ran before; none too where a core finds all \
                     boundaries while it fetches a line",
        source: FOG,
        answers: &["instruct_boundaries"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[TestRow::new("", &[marked("no-operations", 0), marked("mov r32, r32", 1)])],
            // Evicting the lines varies by a cycle for each of them (Turin, family 26, model 2).
            tolerance: 3.0,
            tolerance_share: 0.15,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "first_decode",
        about: "what a line of code costs that the instruction cache does not hold",
        definition: "core cycles by which a line of 64 instructions of one byte, or of 8 instructions of 8, takes \
                     longer in 160 KiB of straight code, whose lines come from the second cache each time, than in \
                     28 KiB: fetching the line, where decoding it does not take as long, and finding anew where \
                     instructions begin",
        source: FOG,
        answers: &["instruct_boundaries"],
        part: TestedPart::FrontEnd,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                // Some cores pack no-operations of one byte and then have another bottleneck.
                TestRow::new(
                    "1_byte",
                    &[
                        ProgramVariant::new("clc", |_| whole_lines(FIRST_BEYOND, &[vec![CLC]]))
                            .less_generated(|_| whole_lines(FIRST_HELD, &[vec![CLC]])),
                        ProgramVariant::new("clc and stc", |_| whole_lines(FIRST_BEYOND, &[vec![CLC], vec![STC]]))
                            .less_generated(|_| whole_lines(FIRST_HELD, &[vec![CLC], vec![STC]])),
                    ],
                ),
                TestRow::for_n(
                    "8_bytes",
                    LONG,
                    &[
                        ProgramVariant::new("nop", |_| whole_lines(FIRST_BEYOND, &[nop_of_length(LONG)]))
                            .less_generated(|_| whole_lines(FIRST_HELD, &[nop_of_length(LONG)])),
                        ProgramVariant::new("xor r32, same", |_| whole_lines(FIRST_BEYOND, &zeroing_instructions()))
                            .less_generated(|_| whole_lines(FIRST_HELD, &zeroing_instructions())),
                    ],
                ),
            ],
            tolerance: 1.0,
            tolerance_share: 0.1,
            slot_costs: &[],
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};

    #[test]
    fn instructions_of_the_mixture_wait_for_no_other_unit() {
        let steps = mix_all_every_nth(1);
        let all: Vec<Instruction> = Decoder::new(64, &steps.body, DecoderOptions::NONE).into_iter().collect();
        let of = |mnemonic: Mnemonic| all.iter().filter(move |instruction| instruction.mnemonic() == mnemonic);
        let counts = [Mnemonic::Xchg, Mnemonic::Pextrw, Mnemonic::Cvtsi2sd].map(|mnemonic| of(mnemonic).count());
        assert!(counts[0] > 2 * counts[1] && counts[1] > counts[2] && counts[2] > 0, "{counts:?}");
        // An extract behind a conversion would wait for it.
        let converted: Vec<Register> = of(Mnemonic::Cvtsi2sd).map(Instruction::op0_register).collect();
        assert!(of(Mnemonic::Pextrw).all(|extract| !converted.contains(&extract.op1_register())));
    }
}
