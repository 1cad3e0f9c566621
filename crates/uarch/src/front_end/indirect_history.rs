//! Targets of one indirect jump, in turn.

use super::direction_predictor::table_loop;
use crate::spec::*;
use cyclescope_code::program::memory::AreaFill;
use cyclescope_core::random::Random;

/// The least number of iterations of the shorter call.
const ITERATIONS_LEAST: usize = 4000;
/// Bytes of an entry of the table of targets.
const PLACE: usize = 4;

/// A program with one indirect jump, which goes to another of `number` targets in each step. The
/// targets are `apart` bytes from each other. Their order is random and repeats after all of them.
fn jump_to_targets(number: usize, apart: usize, seed: u64) -> StepLoop {
    let mut order: Vec<usize> = (0..number).collect();
    Random::new(seed ^ number as u64).shuffle(&mut order);
    let places = order.iter().flat_map(|target| ((target * apart) as u32).to_le_bytes()).collect();
    let mut body = assemble(&format!("mov eax, [r14 + {PLACE}*rbp]; inc rbp; cmp rbp, {number}; cmovae rbp, r11"));
    // lea rcx, [rip + 5], which is the address of the first target; add rax, rcx; jmp rax
    body.extend([0x48, 0x8d, 0x0d, 5, 0, 0, 0]);
    body.extend(assemble("add rax, rcx; jmp rax"));
    for target in 0..number {
        // jmp to the end of the last target
        let distance = ((number - target) * apart - JUMP) as i32;
        body.push(0xe9);
        body.extend(distance.to_le_bytes());
        body.extend(nop_of_length(apart - JUMP));
    }
    table_loop(body, AreaFill::Image(places), (PLACE * number) as u64, number.max(ITERATIONS_LEAST))
}

/// Bytes of a direct jump.
const JUMP: usize = 5;

fn targets_16_bytes_apart(number: usize) -> StepLoop {
    jump_to_targets(number, 16, 0xacade)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "indirect_history",
    about: "how many targets of one indirect jump, in a random order that repeats, the core predicts",
    definition: "targets that one indirect jump has in turn, each once, of which about half are still predicted: \
                 tables that are found by hashes fill by chance",
    source: FOG,
    answers: &["branch"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("targets 12 bytes apart", |number| jump_to_targets(number, 12, 0x5eed)),
            ProgramFamily::new("targets 16 bytes apart", targets_16_bytes_apart),
        ],
        // With more targets, the code of one program would exceed an instruction cache of 32 KiB.
        count_range: [8, 1920],
        min_rise: 5.0,
        min_ratio: 1.3,
        // Its tables are indexed by hashes.
        fills_randomly: true,
        cost_definition: Some("core cycles of a turn: the jump there and back, its load and its counter"),
        bytes_per_count: PLACE,
        ..LevelsSpec::COUNTS
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    #[test]
    fn each_target_is_jumped_to_once_and_jumps_back() {
        let steps = targets_16_bytes_apart(50);
        let AreaFill::Image(places) = &steps.memory.areas[0].fill else { panic!("the table is written") };
        let mut places: Vec<u32> =
            places.chunks(PLACE).map(|place| u32::from_le_bytes(place.try_into().unwrap())).collect();
        assert!(!places.is_sorted());
        places.sort();
        let all: Vec<_> = Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().collect();
        let first =
            all.iter().find(|instruction| instruction.mnemonic() == Mnemonic::Lea).unwrap().ip_rel_memory_address();
        let back: Vec<_> = all.iter().filter(|instruction| instruction.is_jmp_short_or_near()).collect();
        assert_eq!(back.iter().map(|jump| (jump.ip() - first) as u32).collect::<Vec<_>>(), places);
        assert!(back.iter().all(|jump| jump.near_branch_target() == steps.body.len() as u64));
    }
}
