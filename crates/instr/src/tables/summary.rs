//! Summary of a survey: counts by kind of operands, by CPUID features, and by reason.

use crate::rows::instr_row::{InstrRow, LatencyBound, RowStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// Tests whether operands are of a kind.
type OperandTest = fn(&str) -> bool;

/// The encoding of sequences, which have no operands.
const SEQUENCE_ENCODING: &str = "sequence";

/// Kinds of operands: a test and a name. Each form counts in the first kind that matches.
const OPERAND_KINDS: [(OperandTest, &str); 7] = [
    (|operands| operands == SEQUENCE_ENCODING, SEQUENCE_ENCODING),
    (|operands| operands.contains("{k}"), "masked"),
    (|operands| operands.contains("{1to"), "broadcast"),
    (|operands| operands.contains("{er}") || operands.contains("{sae}"), "rounding"),
    (|operands| operands.split(", ").any(is_memory_operand), "memory"),
    (str::is_empty, "none"),
    (|_| true, "register"),
];

/// Counts of forms and their figures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FormTally {
    /// All forms.
    pub forms: u64,
    /// Measured forms.
    pub measured: u64,
    /// Skipped forms.
    pub skipped: u64,
    /// Forms without a figure.
    pub failed: u64,
    /// Headline latencies that are exact.
    pub exact: u64,
    /// Headline latencies that are sums.
    pub sum: u64,
    /// Headline latencies that are upper bounds.
    pub upper: u64,
    /// Reciprocal throughputs.
    pub throughput: u64,
}

/// Counts of a named group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedTally {
    /// A kind of operands, or CPUID features joined by `+`.
    pub name: String,
    /// The counts.
    #[serde(flatten)]
    pub tally: FormTally,
}

/// A reason and its number of forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonCount {
    /// The reason.
    pub reason: String,
    /// Number of forms.
    pub forms: u64,
}

/// The summary of a survey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveySummary {
    /// Counts of all forms.
    #[serde(flatten)]
    pub all: FormTally,
    /// Why forms were skipped, the most frequent reason first.
    pub skipped_by_reason: Vec<ReasonCount>,
    /// Why forms failed, without addresses, the most frequent reason first.
    pub failed_by_reason: Vec<ReasonCount>,
    /// By kind of operands; each form counts once.
    pub by_operands: Vec<NamedTally>,
    /// By CPUID features; each form counts once.
    pub by_isa: Vec<NamedTally>,
}

impl SurveySummary {
    /// Counts these rows.
    pub fn from_rows<'a>(rows: impl IntoIterator<Item = &'a InstrRow>) -> SurveySummary {
        let mut all = FormTally::default();
        let mut kinds: [FormTally; OPERAND_KINDS.len()] = Default::default();
        let mut isa: BTreeMap<String, FormTally> = BTreeMap::new();
        let mut reasons: [BTreeMap<String, u64>; 2] = Default::default();
        for row in rows {
            all.add_row(row);
            let operands = if row.encoding == SEQUENCE_ENCODING { SEQUENCE_ENCODING } else { &row.operands };
            let kind = OPERAND_KINDS.iter().position(|(fits, _)| fits(operands));
            kinds[kind.expect("the last one fits all")].add_row(row);
            isa.entry(row.isa.clone()).or_default().add_row(row);
            let given = match row.status {
                RowStatus::Measured => continue,
                RowStatus::Skipped => &mut reasons[0],
                RowStatus::Failed => &mut reasons[1],
            };
            // The rest is specific to this form: an address, an instruction.
            let reason = row.reason.as_deref().unwrap_or_default();
            let end = if row.status == RowStatus::Skipped { ": " } else { " at " };
            let reason = reason.split(end).next().unwrap_or_default();
            *given.entry(reason.to_string()).or_default() += 1;
        }
        let kinds =
            OPERAND_KINDS.iter().zip(kinds).map(|((_, name), tally)| NamedTally { name: name.to_string(), tally });
        let [skipped, failed] = reasons.map(sort_reasons);
        SurveySummary {
            all,
            skipped_by_reason: skipped,
            failed_by_reason: failed,
            by_operands: kinds.filter(|named| named.tally.forms > 0).collect(),
            by_isa: isa.into_iter().map(|(name, tally)| NamedTally { name, tally }).collect(),
        }
    }
}

fn sort_reasons(reasons: BTreeMap<String, u64>) -> Vec<ReasonCount> {
    let mut reasons: Vec<ReasonCount> =
        reasons.into_iter().map(|(reason, forms)| ReasonCount { reason, forms }).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.forms));
    reasons
}

fn is_memory_operand(operand: &str) -> bool {
    let has_prefix = |prefix: &str| {
        operand
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    has_prefix("m") || has_prefix("vm") || has_prefix("moffs") || operand.starts_with('[')
}

impl FormTally {
    fn add_row(&mut self, row: &InstrRow) {
        self.forms += 1;
        match row.status {
            RowStatus::Measured => self.measured += 1,
            RowStatus::Skipped => self.skipped += 1,
            RowStatus::Failed => self.failed += 1,
        }
        for latency in super::compare::headline_latencies(row) {
            match latency.bound {
                LatencyBound::Exact => self.exact += 1,
                LatencyBound::Sum => self.sum += 1,
                LatencyBound::Upper => self.upper += 1,
            }
        }
        self.throughput += u64::from(row.throughput.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::instr_table::tests::{latency, row};

    #[test]
    fn groups_sum_to_the_total() {
        let mut rows: Vec<InstrRow> = cyclescope_code::asm::forms::all_forms()
            .step_by(50)
            .map(|form| {
                row(
                    &form.mnemonic(),
                    &form.describe_operands(),
                    vec![latency("op1", "op1", 1.0, LatencyBound::Sum)],
                    1.0,
                )
            })
            .collect();
        rows[3].status = RowStatus::Skipped;
        rows[3].reason = Some("privileged".to_string());
        rows[4].status = RowStatus::Failed;
        rows[4].isa = "avx".to_string();
        (rows[5].encoding, rows[5].operands) = (SEQUENCE_ENCODING.to_string(), String::new());
        rows[4].reason = Some("the snippet raised SIGSEGV at address 0x1: nop".to_string());
        let summary = SurveySummary::from_rows(&rows);
        assert_eq!(summary.all.forms, rows.len() as u64);
        assert_eq!(summary.all.measured + 2, rows.len() as u64);
        assert_eq!(summary.all.sum, rows.len() as u64);
        assert_eq!(summary.skipped_by_reason, [ReasonCount { reason: "privileged".to_string(), forms: 1 }]);
        let fault = ReasonCount { reason: "the snippet raised SIGSEGV".to_string(), forms: 1 };
        assert_eq!(summary.failed_by_reason, [fault]);
        let sequences = summary.by_operands.iter().find(|named| named.name == SEQUENCE_ENCODING);
        assert_eq!(sequences.map(|named| named.tally.forms), Some(1));
        for parts in [&summary.by_operands, &summary.by_isa] {
            assert!(parts.len() > 1);
            assert_eq!(parts.iter().map(|named| named.tally.forms).sum::<u64>(), summary.all.forms);
            assert_eq!(parts.iter().map(|named| named.tally.failed).sum::<u64>(), 1);
        }
    }

    #[test]
    fn kinds_follow_the_operands() {
        let kind = |operands: &str| OPERAND_KINDS.iter().find(|(fits, _)| fits(operands)).unwrap().1;
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
