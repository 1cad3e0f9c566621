//! Short chains behind LFENCE, which lets nothing begin before all else is done, so that they find the scheduler empty.

use cyclescope_code::asm::Listing;

const LFENCE_CODE: [u8; 3] = [0x0f, 0xae, 0xe8];

/// Core cycles of a fence and a loop, about.
pub(super) const FENCE_CYCLES: f64 = 25.0;
/// Turns of the shortest chain at least: what comes with the first turn may hide behind the fence.
const TURNS_LEAST: usize = 2;

/// A chain, cut into turns.
pub(super) struct ChainTurns<'a> {
    period: &'a [u8],
    /// Where each of the period's instructions begins, and where the last one ends.
    starts: Vec<usize>,
    /// Instructions in a turn.
    pub(super) each: usize,
}

impl ChainTurns<'_> {
    /// A period of this many turns; `None` where they are not alike.
    pub(super) fn from_period(period: &[u8], copies: usize) -> Option<ChainTurns<'_>> {
        let mut starts = vec![0];
        for instruction in Listing::from_bytes(period).instructions() {
            starts.push(starts.last()? + instruction.len());
        }
        let count = starts.len() - 1;
        let whole = count > 0 && count.is_multiple_of(copies);
        whole.then(|| ChainTurns { period, starts, each: count / copies })
    }

    /// Turns for chains of about so many instructions, each longer than the one before.
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
        let instructions = turns * self.each;
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
    fn a_chain_begins_behind_a_fence_and_ends_after_any_turn() {
        let period = parse_assembly("add rax, rbx; imul rcx, rax; add rdx, rcx; imul rax, rdx").unwrap();
        let turns = ChainTurns::from_period(period.bytes(), 2).unwrap();
        assert_eq!(text(&turns, 1), "lfence; add rax, rbx; imul rcx, rax");
        assert_eq!(
            text(&turns, 3),
            "lfence; add rax, rbx; imul rcx, rax; add rdx, rcx; imul rax, rdx; add rax, rbx; imul rcx, rax"
        );
        assert!(ChainTurns::from_period(period.bytes(), 3).is_none());
    }

    #[test]
    fn lengths_are_near_what_is_wanted_and_grow() {
        let period = parse_assembly("add rax, rbx; imul rcx, rax; add rdx, rcx; imul rax, rdx").unwrap();
        let lengths = |copies| ChainTurns::from_period(period.bytes(), copies).unwrap().choose_lengths(&[6, 8, 24]);
        assert_eq!([lengths(4), lengths(2), lengths(1)], [[6, 8, 24], [3, 4, 12], [2, 3, 6]]);
    }
}
