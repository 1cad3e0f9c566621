//! Short chains behind LFENCE. The fence lets nothing start before all older instructions are done,
//! so these chains start with an empty scheduler.

use cyclescope_code::asm::{CodeMode, Listing};

const LFENCE_CODE: [u8; 3] = [0x0f, 0xae, 0xe8];

/// Approximate core cycles of a fence and a loop.
pub(super) const FENCE_CYCLES: f64 = 25.0;
/// Lower limit of turns in the shortest chain. Costs of the first turn may hide behind the fence.
const TURNS_LEAST: usize = 2;

/// A chain, divided into turns.
pub(super) struct ChainTurns<'a> {
    period: &'a [u8],
    /// Start offset of each instruction in the period, and the end of the last.
    starts: Vec<usize>,
    /// Instructions per turn that may wait in the scheduler.
    pub(super) each: usize,
    /// All instructions per turn.
    all: usize,
}

impl ChainTurns<'_> {
    /// Divides a period into this many turns. `None` if they differ in length.
    pub(super) fn from_period(mode: CodeMode, period: &[u8], copies: usize) -> Option<ChainTurns<'_>> {
        ChainTurns::with_cleared(mode, period, copies, 0)
    }

    /// Divides a period into this many turns, of which this many instructions clear registers and
    /// never wait.
    pub(super) fn with_cleared(mode: CodeMode, period: &[u8], copies: usize, cleared: usize) -> Option<ChainTurns<'_>> {
        let mut starts = vec![0];
        for instruction in Listing::from_code(period, mode).instructions() {
            starts.push(starts.last()? + instruction.len());
        }
        let count = starts.len() - 1;
        let whole = count > 0 && count.is_multiple_of(copies);
        whole.then(|| ChainTurns { period, starts, each: count / copies - cleared, all: count / copies })
    }

    /// Numbers of turns for chains of about these numbers of instructions, strictly increasing.
    pub(super) fn choose_lengths(&self, instructions: &[usize]) -> Vec<usize> {
        let mut lengths: Vec<usize> = Vec::new();
        for wanted in instructions {
            let least = lengths.last().map_or(TURNS_LEAST, |last| last + 1);
            lengths.push(((*wanted as f64 / self.each as f64).round() as usize).max(least));
        }
        lengths
    }

    /// Machine code of LFENCE and this many turns.
    pub(super) fn build_fenced_code(&self, turns: usize) -> Vec<u8> {
        let count = self.starts.len() - 1;
        let instructions = turns * self.all;
        let mut code = LFENCE_CODE.to_vec();
        (0..instructions / count).for_each(|_| code.extend(self.period));
        code.extend(&self.period[..self.starts[instructions % count]]);
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::parse_assembly;

    fn text(turns: &ChainTurns, count: usize) -> String {
        Listing::from_bytes(&turns.build_fenced_code(count)).text().replace('\n', "; ")
    }

    #[test]
    fn a_fenced_chain_can_end_after_any_turn() {
        let period = parse_assembly("add rax, rbx; imul rcx, rax; add rdx, rcx; imul rax, rdx").unwrap();
        let turns = ChainTurns::from_period(CodeMode::Bits64, period.bytes(), 2).unwrap();
        assert_eq!(text(&turns, 1), "lfence; add rax, rbx; imul rcx, rax");
        assert_eq!(
            text(&turns, 3),
            "lfence; add rax, rbx; imul rcx, rax; add rdx, rcx; imul rax, rdx; add rax, rbx; imul rcx, rax"
        );
        assert!(ChainTurns::from_period(CodeMode::Bits64, period.bytes(), 3).is_none());
    }

    #[test]
    fn lengths_approximate_the_request_and_increase() {
        let period = parse_assembly("add rax, rbx; imul rcx, rax; add rdx, rcx; imul rax, rdx").unwrap();
        let lengths = |copies| {
            ChainTurns::from_period(CodeMode::Bits64, period.bytes(), copies).unwrap().choose_lengths(&[6, 8, 24])
        };
        assert_eq!([lengths(4), lengths(2), lengths(1)], [[6, 8, 24], [3, 4, 12], [2, 3, 6]]);
    }
}
