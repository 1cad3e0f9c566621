//! Blocks that run faster than decoders deliver: the looped figure beside a C program with its own
//! loop.
//!
//! The blocks are random: zeroing and eliminated instructions, NOPs, long constants, additions,
//! and chains among them. The reference program is a loop of C around copies of a block, with its
//! own ruler, at sixteen places in a cache line. It shares no code with the library.

mod reference_program;

use crate::lab::{Lab, LoadCondition, SectionResult};
use crate::tally::SnippetReadings;
use cyclescope::random::Random;
use cyclescope::run::RunRequest;
use reference_program::ReferenceCost;

/// Number of blocks.
const BLOCKS: usize = 40;
/// Runs of each block in each condition.
const RUNS: usize = 20;
/// Largest and smallest number of instructions in a block.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=60;
/// Largest accepted error, in core cycles and as a share.
const TOLERANCE_CYCLES: f64 = 0.05;
const TOLERANCE_SHARE: f64 = 0.01;

/// General registers that blocks use. R15 and RBP are left to the loops.
const REGISTERS: [[&str; 2]; 13] = [
    ["rax", "eax"],
    ["rbx", "ebx"],
    ["rcx", "ecx"],
    ["rdx", "edx"],
    ["rsi", "esi"],
    ["rdi", "edi"],
    ["r8", "r8d"],
    ["r9", "r9d"],
    ["r10", "r10d"],
    ["r11", "r11d"],
    ["r12", "r12d"],
    ["r13", "r13d"],
    ["r14", "r14d"],
];

/// What the instructions of a block are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    ZeroedVectors,
    ZeroedRegisters,
    Moves,
    Nops,
    Constants,
    Units,
    Chain,
    Mixed,
}

const KINDS: [BlockKind; 8] = [
    BlockKind::ZeroedVectors,
    BlockKind::ZeroedRegisters,
    BlockKind::Moves,
    BlockKind::Nops,
    BlockKind::Constants,
    BlockKind::Units,
    BlockKind::Chain,
    BlockKind::Mixed,
];

/// A random block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RandomBlock {
    kind: BlockKind,
    instructions: Vec<String>,
}

impl RandomBlock {
    fn draw(kind: BlockKind, random: &mut Random) -> RandomBlock {
        let length = LENGTHS.start() + random.below(LENGTHS.end() - LENGTHS.start() + 1);
        let instructions = (0..length).map(|number| draw_instruction(kind, number, random)).collect();
        RandomBlock { kind, instructions }
    }

    fn text(&self) -> String {
        self.instructions.join("; ")
    }
}

fn draw_instruction(kind: BlockKind, number: usize, random: &mut Random) -> String {
    let [wide, narrow] = REGISTERS[random.below(REGISTERS.len())];
    // Never the same register, which would not be a move for every core.
    let others: Vec<&str> = REGISTERS.iter().map(|[other, _]| *other).filter(|other| *other != wide).collect();
    let source = others[random.below(others.len())];
    let vector = random.below(14);
    match kind {
        BlockKind::ZeroedVectors => format!("vpxor xmm{vector}, xmm{vector}, xmm{vector}"),
        BlockKind::ZeroedRegisters => format!("xor {narrow}, {narrow}"),
        BlockKind::Moves => format!("mov {wide}, {source}"),
        BlockKind::Nops => "nop".to_string(),
        BlockKind::Constants => format!("mov {wide}, 0x1122334455667788"),
        BlockKind::Units => match random.below(3) {
            0 => format!("lea {wide}, [{source}]"),
            1 => format!("add {wide}, {source}"),
            _ => format!("vpaddd xmm{vector}, xmm14, xmm15"),
        },
        BlockKind::Chain if number.is_multiple_of(8) => "imul rax, rax".to_string(),
        BlockKind::Chain if wide == "rax" => "nop".to_string(),
        BlockKind::Chain => format!("xor {narrow}, {narrow}"),
        BlockKind::Mixed => draw_instruction(KINDS[random.below(6)], number, random),
    }
}

/// Runs the section.
pub fn check_blocks(lab: &mut Lab) -> SectionResult {
    let mut random = Random::new(lab.options.seed);
    let blocks: Vec<RandomBlock> =
        (0..BLOCKS).map(|number| RandomBlock::draw(KINDS[number % KINDS.len()], &mut random)).collect();
    let texts: Vec<String> = blocks.iter().map(RandomBlock::text).collect();
    let latency = lab.machine.cpu.imul_latency().unwrap_or(3);
    let references = reference_program::measure_blocks(&texts, lab.cpu, latency)?;
    println!(
        "{:<16} {:>4}  {:>9} {:<17} {:<19} {:<19} {:>5} {:>5}",
        "block", "instr", "reference", "by place", "idle, 20 runs", "loaded, 20 runs", "hits", "hits"
    );
    let (mut perfect, mut hits) = ([0; 2], [0; 2]);
    let mut measured = 0;
    for (block, (text, reference)) in blocks.iter().zip(texts.iter().zip(&references)) {
        let Some(snippet) = lab.assemble_snippet(text, "")? else { continue };
        measured += 1;
        let mut readings = [SnippetReadings::default(), SnippetReadings::default()];
        for (load, readings) in LoadCondition::BOTH.into_iter().zip(&mut readings) {
            let load_guard = lab.start_load(load)?;
            for _ in 0..RUNS {
                let run = lab.measure(&snippet, &RunRequest::default())?;
                readings.0.push(run.estimate().map(|estimate| estimate.cost.value));
            }
            drop(load_guard);
        }
        let within = readings.each_ref().map(|readings| count_within(readings, reference));
        for condition in 0..2 {
            hits[condition] += within[condition];
            perfect[condition] += usize::from(within[condition] == RUNS);
        }
        print_block(block, reference, &readings, within);
    }
    for (number, load) in LoadCondition::BOTH.into_iter().enumerate() {
        lab.record_demand(
            &format!("{BLOCKS} blocks in a loop within 1 % or 0.05 cycles in 20 runs of 20, {}", load.name()),
            Some(measured == BLOCKS && perfect[number] == BLOCKS),
            format!("{} of {measured} blocks, {} of {} runs", perfect[number], hits[number], measured * RUNS),
        );
    }
    Ok(())
}

fn count_within(readings: &SnippetReadings, reference: &ReferenceCost) -> usize {
    let most = TOLERANCE_CYCLES.max(TOLERANCE_SHARE * reference.mean);
    readings.0.iter().flatten().filter(|value| (*value - reference.mean).abs() <= most).count()
}

fn print_block(block: &RandomBlock, reference: &ReferenceCost, readings: &[SnippetReadings; 2], within: [usize; 2]) {
    let range = |readings: &SnippetReadings| match readings.range() {
        Some([low, high]) => format!("{low:.3}..{high:.3}"),
        None => "no number".to_string(),
    };
    let places = format!("{:.3}..{:.3}", reference.lowest, reference.highest);
    println!(
        "{:<16} {:>5}  {:>9.3} {places:<17} {:<19} {:<19} {:>5} {:>5}",
        format!("{:?}", block.kind),
        block.instructions.len(),
        reference.mean,
        range(&readings[0]),
        range(&readings[1]),
        within[0],
        within[1]
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_random_but_repeatable_and_assemble() {
        for (seed, kind) in KINDS.into_iter().enumerate() {
            let block = |seed| RandomBlock::draw(kind, &mut Random::new(seed));
            assert_eq!(block(seed as u64), block(seed as u64));
            let found = block(seed as u64);
            assert!(LENGTHS.contains(&found.instructions.len()));
            let listing = cyclescope::asm::parse_assembly(&found.text()).unwrap();
            assert_eq!(listing.instructions().len(), found.instructions.len());
        }
    }

    #[test]
    fn only_near_readings_count() {
        let reference = ReferenceCost { mean: 10.0, lowest: 9.0, highest: 11.0 };
        let readings = SnippetReadings(vec![Some(10.09), Some(9.91), Some(10.11), None]);
        assert_eq!(count_within(&readings, &reference), 2);
    }
}
