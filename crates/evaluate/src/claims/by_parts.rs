//! Claims about what a pair of readings takes, by its parts.

use super::judgement::{Figure, Judged, Judgement, Seen, difference, within};
use crate::parts::Parts;
use cyclescope_code::clock::{Side, Step};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

fn parts<'a>(seen: &Seen<'a>, method: &str) -> Result<&'a Parts, String> {
    let parts = seen.method(method)?.parts.as_ref();
    parts.ok_or_else(|| format!("too much disturbed the pair of {method} while it was taken apart"))
}

/// Whether a step takes time of a method's pair.
pub(super) fn takes(seen: &Seen, method: &str, side: Side, step: Step, time: bool) -> Judged {
    let part = parts(seen, method)?.of(side, step).ok_or_else(|| format!("{method} has no such step"))?;
    let nothing = within(&part.cost, seen.bound(method)?);
    let holds = nothing.map(|nothing| nothing != time);
    Ok(Judgement::by(holds, vec![Figure::new(part.step, part.cost, Unit::CoreCycles)]))
}

/// Whether the parts of a method's pair are all that it takes.
pub(super) fn adds_up(seen: &Seen, method: &str) -> Judged {
    let parts = parts(seen, method)?;
    let between = parts.parts.iter().filter(|part| part.between);
    let figure = |what: &str, cost: Interval| Figure::new(what, cost, Unit::CoreCycles);
    let mut figures = vec![figure("the pair", parts.whole)];
    figures.extend(between.map(|part| figure(part.step, part.cost)));
    figures.push(figure("what remains", parts.rest));
    Ok(Judgement::by(within(&parts.rest, seen.bound(method)?), figures))
}

/// Whether one method's pair takes less than another's, by more than a step.
pub(super) fn cheaper(seen: &Seen, one: &str, other: &str) -> Judged {
    let (first, second) = (seen.overhead(one)?, seen.overhead(other)?);
    let more = difference(&second, &first);
    let holds = within(&more, seen.step(one)?).map(|alike| !alike && more.value > 0.0);
    let figures =
        [(one, first), (other, second)].map(|(name, pair)| Figure::new(name, pair, Unit::CoreCycles));
    Ok(Judgement::by(holds, figures.into()))
}
