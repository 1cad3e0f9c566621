//! What came of a survey, in numbers: by kind of operands, by CPUID features, by reason.

use crate::rows::row::{Bound, Row, Status};
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether operands are of a kind.
type Fits = fn(&str) -> bool;

/// The encoding of a row of several instructions, which has no operands of its own.
const SEQUENCE: &str = "sequence";

/// Kinds of operands, each form in the first that fits, so that they sum to the whole: what its operands hold, and the
/// name.
const KINDS: [(Fits, &str); 7] = [
    (|operands| operands == SEQUENCE, SEQUENCE),
    (|operands| operands.contains("{k}"), "masked"),
    (|operands| operands.contains("{1to"), "broadcast"),
    (|operands| operands.contains("{er}") || operands.contains("{sae}"), "rounding"),
    (|operands| operands.split(", ").any(is_memory), "memory"),
    (str::is_empty, "none"),
    (|_| true, "register"),
];

/// How many forms of some sort there are, and what is known of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All.
    pub forms: u64,
    /// Those that were measured.
    pub measured: u64,
    /// Those that were not tried.
    pub skipped: u64,
    /// Those that gave no number.
    pub failed: u64,
    /// Headline latencies that are exact.
    pub exact: u64,
    /// Headline latencies of which only a sum is known.
    pub sum: u64,
    /// Headline latencies of which an upper bound is known.
    pub upper: u64,
    /// Reciprocal throughputs.
    pub throughput: u64,
}

/// A tally and what it is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// A kind of operands, or CPUID features joined by `+`.
    pub name: String,
    /// The tally.
    #[serde(flatten)]
    pub tally: Tally,
}

/// A reason and how often it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The reason.
    pub reason: String,
    /// Forms.
    pub forms: u64,
}

/// The numbers of a survey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Of all forms.
    #[serde(flatten)]
    pub all: Tally,
    /// Why forms were skipped, the most frequent reason first.
    pub skipped_by_reason: Vec<Reason>,
    /// Why forms failed, without addresses, the most frequent reason first.
    pub failed_by_reason: Vec<Reason>,
    /// By kind of operands; each form counts once.
    pub by_operands: Vec<Named>,
    /// By CPUID features; each form counts once.
    pub by_isa: Vec<Named>,
}

impl Summary {
    /// Counts.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Summary {
        let mut all = Tally::default();
        let mut kinds: [Tally; KINDS.len()] = Default::default();
        let mut isa: BTreeMap<String, Tally> = BTreeMap::new();
        let mut reasons: [BTreeMap<String, u64>; 2] = Default::default();
        for row in rows {
            all.add(row);
            let operands = if row.encoding == SEQUENCE { SEQUENCE } else { &row.operands };
            let kind = KINDS.iter().position(|(fits, _)| fits(operands));
            kinds[kind.expect("the last one fits all")].add(row);
            isa.entry(row.isa.clone()).or_default().add(row);
            let given = match row.status {
                Status::Measured => continue,
                Status::Skipped => &mut reasons[0],
                Status::Failed => &mut reasons[1],
            };
            // What follows tells of this form alone: an address, an instruction.
            let reason = row.reason.as_deref().unwrap_or_default();
            let end = if row.status == Status::Skipped { ": " } else { " at " };
            let reason = reason.split(end).next().unwrap_or_default();
            *given.entry(reason.to_string()).or_default() += 1;
        }
        let kinds = KINDS.iter().zip(kinds).map(|((_, name), tally)| Named { name: name.to_string(), tally });
        let [skipped, failed] = reasons.map(sorted);
        Summary {
            all,
            skipped_by_reason: skipped,
            failed_by_reason: failed,
            by_operands: kinds.filter(|named| named.tally.forms > 0).collect(),
            by_isa: isa.into_iter().map(|(name, tally)| Named { name, tally }).collect(),
        }
    }
}

fn sorted(reasons: BTreeMap<String, u64>) -> Vec<Reason> {
    let mut reasons: Vec<Reason> =
        reasons.into_iter().map(|(reason, forms)| Reason { reason, forms }).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.forms));
    reasons
}

fn is_memory(operand: &str) -> bool {
    let of = |prefix: &str| {
        operand
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    of("m") || of("vm") || of("moffs") || operand.starts_with('[')
}

impl Tally {
    fn add(&mut self, row: &Row) {
        self.forms += 1;
        match row.status {
            Status::Measured => self.measured += 1,
            Status::Skipped => self.skipped += 1,
            Status::Failed => self.failed += 1,
        }
        for latency in super::compare::headlines(row) {
            match latency.bound {
                Bound::Exact => self.exact += 1,
                Bound::Sum => self.sum += 1,
                Bound::Upper => self.upper += 1,
            }
        }
        self.throughput += u64::from(row.throughput.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::table::tests::{latency, row};

    #[test]
    fn parts_sum_to_the_whole() {
        let mut rows: Vec<Row> = cyclescope_code::asm::forms::all()
            .step_by(50)
            .map(|form| {
                row(&form.mnemonic(), &form.operands(), vec![latency("op1", "op1", 1.0, Bound::Sum)], 1.0)
            })
            .collect();
        rows[3].status = Status::Skipped;
        rows[3].reason = Some("privileged".to_string());
        rows[4].status = Status::Failed;
        rows[4].isa = "avx".to_string();
        (rows[5].encoding, rows[5].operands) = (SEQUENCE.to_string(), String::new());
        rows[4].reason = Some("the snippet raised SIGSEGV at address 0x1: nop".to_string());
        let summary = Summary::of(&rows);
        assert_eq!(summary.all.forms, rows.len() as u64);
        assert_eq!(summary.all.measured + 2, rows.len() as u64);
        assert_eq!(summary.all.sum, rows.len() as u64);
        assert_eq!(summary.skipped_by_reason, [Reason { reason: "privileged".to_string(), forms: 1 }]);
        let fault = Reason { reason: "the snippet raised SIGSEGV".to_string(), forms: 1 };
        assert_eq!(summary.failed_by_reason, [fault]);
        let sequences = summary.by_operands.iter().find(|named| named.name == SEQUENCE);
        assert_eq!(sequences.map(|named| named.tally.forms), Some(1));
        for parts in [&summary.by_operands, &summary.by_isa] {
            assert!(parts.len() > 1);
            assert_eq!(parts.iter().map(|named| named.tally.forms).sum::<u64>(), summary.all.forms);
            assert_eq!(parts.iter().map(|named| named.tally.failed).sum::<u64>(), 1);
        }
    }

    #[test]
    fn kinds_follow_the_operands() {
        let kind = |operands: &str| KINDS.iter().find(|(fits, _)| fits(operands)).unwrap().1;
        let cases = [
            ("r64, r64", "register"),
            ("mm, mm", "register"),
            ("r64, m64", "memory"),
            ("r64, [b+i*s+d8]", "memory"),
            ("m", "memory"),
            ("xmm, vm32x, xmm", "memory"),
            ("al, moffs8", "memory"),
            ("zmm, zmm, m32{1to16}", "broadcast"),
            ("zmm{k}{z}, zmm, m32{1to16}", "masked"),
            ("zmm, zmm, zmm{er}", "rounding"),
            ("", "none"),
        ];
        for (operands, expected) in cases {
            assert_eq!(kind(operands), expected, "{operands}");
        }
    }
}
