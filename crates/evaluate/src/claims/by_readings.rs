//! Claims about code around a reading, by the contamination that was provoked.
//!
//! A fault is of one side of a pair. Methods whose sides are the same are provoked in the same way, at different moments: what
//! they show is taken together, and where they contradict each other nothing is told. This matters with CPUID, which leaves the
//! guest in a virtual machine: in some spells the code behind it begins 20 to 30 core cycles early, in others nothing of it is
//! seen (Zen 5, family 26, model 2, in a guest of KVM), for it has to be fetched again first. So that nothing is seen to begin
//! early behind it proves nothing there, and contradicts nothing.

use super::judgement::{Figure, Judged, Judgement, Seen, all, difference, within};
use crate::contamination::{Contamination, Fault, STAND_IN, is_alike};
use crate::evaluated::Evaluated;
use cyclescope_code::clock::Step;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// The paper's method for processors without RDTSCP.
pub(super) const CR0: &str = "cpuid-rdtsc-cr0-rdtsc";

fn row(rows: &[Contamination], fault: Fault) -> Result<(&Contamination, Interval), String> {
    let row = rows.iter().find(|row| row.fault == fault).ok_or("it was not measured")?;
    let cost = row.cost.known().ok_or_else(|| row.cost.why().unwrap_or_default().to_string())?;
    Ok((row, *cost))
}

fn figure(fault: Fault, cost: Interval) -> Figure {
    Figure::new(fault.text(), cost, Unit::CoreCycles)
}

/// What one method's row says of a fault.
struct Witness<'a> {
    found: &'a Evaluated,
    row: &'a Contamination,
    cost: Interval,
    /// See [`excluded`].
    excluded: Option<bool>,
}

impl<'a> Witness<'a> {
    fn of(seen: &Seen, found: &'a Evaluated, fault: Fault, bound: f64) -> Result<Witness<'a>, String> {
        let (row, cost) = row(&found.contamination, fault)?;
        let leaves_the_guest =
            found.candidate.clock.start.contains(&Step::Cpuid) && seen.cpuid_exits().is_some();
        let hidden = row.fault == Fault::BodyStartedEarly && leaves_the_guest;
        let excluded = excluded(row, &cost, bound).filter(|excluded| !(*excluded && hidden));
        Ok(Witness { found, row, cost, excluded })
    }

    /// Whether one of them surely finds no fault and the other has another figure.
    fn contradicts(&self, other: &Witness) -> bool {
        let apart = self.cost.high < other.cost.low || other.cost.high < self.cost.low;
        let one_excludes = (self.excluded == Some(true)) != (other.excluded == Some(true));
        one_excludes && apart
    }
}

/// What was found about a fault of a method: its own row, and those of the methods with the same side.
struct Evidence<'a> {
    own: &'a Evaluated,
    witnesses: Vec<Witness<'a>>,
}

impl<'a> Evidence<'a> {
    fn of(seen: &Seen<'a>, method: &str, fault: Fault) -> Result<Evidence<'a>, String> {
        let own = seen.method(method)?;
        let bound = seen.bound(method)?;
        let alike = |found: &&Evaluated| {
            found.candidate.executor == own.candidate.executor
                && is_alike(found.candidate.clock, own.candidate.clock, fault)
        };
        let witness = |found| Witness::of(seen, found, fault, bound);
        let witnesses: Vec<Witness> =
            seen.methods.iter().filter(alike).filter_map(|found| witness(found).ok()).collect();
        if witnesses.is_empty() {
            return witness(own).map(|own_row| Evidence { own, witnesses: vec![own_row] });
        }
        Ok(Evidence { own, witnesses })
    }

    /// Whether two of them contradict each other.
    fn is_contradictory(&self) -> bool {
        let pair = |one: &Witness| self.witnesses.iter().any(|other| one.contradicts(other));
        self.witnesses.iter().any(pair)
    }

    /// Whether the fault does not happen, by all of them alike; `None` where they contradict each other.
    fn excluded(&self) -> Option<bool> {
        let says = |answer| self.witnesses.iter().any(|witness| witness.excluded == Some(answer));
        match (self.is_contradictory(), says(false), says(true)) {
            (true, ..) | (_, false, false) => None,
            (_, shown, _) => Some(!shown),
        }
    }

    fn is_own(&self, witness: &Witness) -> bool {
        witness.found.candidate.clock.name == self.own.candidate.clock.name
    }

    /// The method's own figure, and the first one of the others that says something else.
    fn figures(&self) -> Vec<Figure> {
        let own = self.witnesses.iter().find(|witness| self.is_own(witness));
        let other = |witness: &&Witness| {
            own.is_none_or(|own| own.excluded != witness.excluded || own.contradicts(witness))
        };
        let said = |witness: &&Witness| witness.excluded.is_some();
        let other = self.witnesses.iter().filter(said).find(other);
        let text = |witness: &Witness| {
            let Figure { what, quantity } = figure(witness.row.fault, witness.cost);
            match self.is_own(witness) {
                true => Figure { what, quantity },
                false => {
                    let what = format!("{what}, seen with {}", witness.found.candidate.clock.name);
                    Figure { what, quantity }
                }
            }
        };
        own.into_iter().chain(other).map(text).collect()
    }
}

const CONTRADICTORY: &str = "methods with the same side contradict each other";

/// Whether a fault does not happen: it surely does where its own verdict says so, and surely does not where all of its
/// interval is nearer to 0 than the bound.
fn excluded(row: &Contamination, cost: &Interval, bound: f64) -> Option<bool> {
    match row.verdict.happens() {
        Some(true) => Some(false),
        _ => within(cost, bound).filter(|within| *within),
    }
}

/// Whether a row decides nothing: neither surely seen nor surely absent. Of stores that have yet to drain there is no
/// bound.
pub(super) fn is_open(row: &Contamination, cost: &Interval, bound: f64) -> bool {
    match row.fault {
        Fault::StoresNotDrained => row.verdict.happens().is_none(),
        _ => excluded(row, cost, bound).is_none(),
    }
}

/// A method excludes these faults.
pub(super) fn excludes(seen: &Seen, method: &str, faults: &[Fault]) -> Judged {
    let evidence = faults.iter().map(|fault| Evidence::of(seen, method, *fault));
    let evidence: Vec<Evidence> = evidence.collect::<Result<_, _>>()?;
    let holds = all(evidence.iter().map(Evidence::excluded));
    let judged = Judgement::by(holds, evidence.iter().flat_map(Evidence::figures).collect());
    Ok(match evidence.iter().any(Evidence::is_contradictory) {
        true => judged.remark(CONTRADICTORY),
        false => judged,
    })
}

/// A method lets a fault happen.
pub(super) fn lets_in(seen: &Seen, method: &str, fault: Fault) -> Judged {
    let evidence = Evidence::of(seen, method, fault)?;
    let happens = evidence.excluded() == Some(false);
    let judged = Judgement::by(happens.then_some(true), evidence.figures());
    Ok(match (happens, evidence.is_contradictory()) {
        (true, _) => judged,
        (false, true) => judged.remark(CONTRADICTORY),
        (false, false) => judged.remark("not seen here, which refutes nothing"),
    })
}

/// A method does not wait for stores.
pub(super) fn leaves_stores(seen: &Seen, method: &str) -> Judged {
    let (row, cost) = row(&seen.method(method)?.contamination, Fault::StoresNotDrained)?;
    Ok(Judgement::by(row.verdict.happens(), vec![figure(row.fault, cost)]))
}

/// Two methods differ by less than a step, in what their pair takes and in what code around it does to it.
pub(super) fn alike(seen: &Seen, [one, other]: [&str; 2], faults: &[Fault]) -> Judged {
    let step = seen.step(one)?;
    let in_steps = |what: String, one: &Interval, other: &Interval| {
        let difference = difference(one, other);
        let scaled = Interval {
            value: difference.value / step,
            low: difference.low / step,
            high: difference.high / step,
        };
        (within(&scaled, 1.0), Figure::new(what, scaled, Unit::Steps))
    };
    let mut compared =
        vec![in_steps("overhead, difference".to_string(), &seen.overhead(one)?, &seen.overhead(other)?)];
    for &fault in faults {
        let (_, first) = row(&seen.method(one)?.contamination, fault)?;
        let (_, second) = row(&seen.method(other)?.contamination, fault)?;
        compared.push(in_steps(format!("{}, difference", fault.text()), &first, &second));
    }
    let holds = all(compared.iter().map(|(same, _)| *same));
    Ok(Judgement::by(holds, compared.into_iter().map(|(_, figure)| figure).collect()))
}

/// The paper's CR0 method has nothing after its second reading: whether following code comes in its way. SERIALIZE in
/// place of the write to CR0 stands in for it in user mode.
pub(super) fn nothing_behind(seen: &Seen) -> Judged {
    let fault = Fault::FollowingInTheWay;
    let refused = match seen.method(CR0) {
        Ok(_) => return excludes(seen, CR0, &[fault]),
        Err(refused) => refused,
    };
    let Seen { stand_in, methods, .. } = *seen;
    let stand_in = stand_in.ok_or(&refused)?;
    let bound =
        methods.iter().find_map(|found| seen.bound(found.candidate.clock.name).ok()).ok_or(&refused)?;
    let (row, cost) = row(stand_in, fault)?;
    let judged = Judgement::by(excluded(row, &cost, bound), vec![figure(fault, cost)]);
    let judged = judged.remark(&format!("SERIALIZE in place of the write to CR0, for {refused}"));
    Ok(Judgement { stand_in: Some(STAND_IN.name), ..judged })
}
