//! A simulated core with a planted number of events on their way at once.

use super::cost::CostPoint;
use super::test::batches::Batches;
use super::test::walk::Walk;
use crate::random::Random;

/// The core.
pub(super) struct Planted {
    batches: &'static Batches,
    /// Events that have room at once, in the first program and in the second one.
    pub room: [usize; 2],
    /// Core cycles of one.
    one: f64,
    /// What each costs beside, and what each behind the first without room costs more.
    each: [f64; 2],
    /// Whether events follow each other so slowly that nobody sees how many have room.
    pub paced: bool,
    noise: f64,
    random: Random,
}

impl Planted {
    pub(super) fn of(batches: &'static Batches, seed: u64) -> Planted {
        let mut random = Random::new(seed);
        let mut draw = |from: f64, to: f64| from + (to - from) * random.unit();
        let most = batches.counts[batches.counts.len() - 1] as f64;
        // Some counts on either side, and a number that the witness can move.
        let least = (2 * batches.beside.occupied) as f64;
        let room = (least * (0.7 * most / least).powf(draw(0.0, 1.0))).round() + batches.more as f64;
        let paced = draw(0.0, 1.0) < 0.15;
        let other = if draw(0.0, 1.0) < 0.1 { draw(0.4, 0.7) } else { 1.0 };
        let one = draw(30.0, 700.0);
        let pace = if paced { draw(0.2, 0.6) * one } else { draw(0.0, 0.3) * one / room };
        let each = [pace, draw(0.0, 1.0) * one / room];
        let noise = draw(0.002, 0.02) * one;
        let room = [room, (other * room).floor()].map(|room| room as usize);
        Planted { batches, room, one, each, paced, noise, random }
    }

    /// What a batch costs.
    pub(super) fn cost(&mut self, walk: &Walk, n: usize) -> CostPoint {
        let Planted { batches, one, each: [each, behind], .. } = *self;
        let before = if walk.name == batches.beside.walk.name { batches.beside.occupied } else { 0 };
        let room = self.room[usize::from(walk.name == batches.walks[1].name)] - batches.more;
        let over = (n + before).saturating_sub(room) as f64;
        let waits = if over > 0.0 && !self.paced { 0.8 * one + behind * over } else { 0.0 };
        let clean = if walk.name == batches.one.name { one } else { 0.3 * one + each * n as f64 + waits };
        let burst = if self.random.happens(0.02) { 1.0 + self.random.unit() } else { 1.0 };
        let cost = clean * burst + self.noise * self.random.normal();
        CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }
    }
}
