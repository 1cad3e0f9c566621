//! The dispatch slots of a form, from its bodies among fillers.

use super::dispatch_slots::DispatchSlots;
use super::instr_row::InstrRow;
use super::row_analysis::RowAnalysis;
use crate::bodies::slot_body::SlotBody;
use crate::bodies::slot_filler::SlotFiller;
use crate::experiments::form_measurement::FormMeasurement;
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::slot_judgement::{SlotJudgement, SlotVerdict, estimate_all_slots};
use crate::experiments::slot_reading::SlotReading;
use crate::experiments::slot_search::{SlotObstacle, is_burdened};
use cyclescope_code::asm::access;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

impl RowAnalysis<'_> {
    /// The slots of a form. `None` if nothing was counted: a survey without slots, or a sequence.
    pub(super) fn estimate_slots(&self, passes: &[Vec<ProgramReading>], row: &InstrRow) -> Option<DispatchSlots> {
        let width = self.filler_curves.width().filter(|_| !self.plan.is_sequence())?;
        let serialises = access::orders_others(&self.plan.anatomy.sample);
        let rthroughput = row.throughput.as_ref().and_then(|throughput| throughput.cost.value);
        let readings = collect_slot_readings(passes);
        let Some(judgement) = SlotJudgement::from_readings(self.filler_curves, &readings) else {
            let obstacle = FormMeasurement::find_slot_obstacle(self.plan, rthroughput.unwrap_or(f64::INFINITY), width);
            let trusted = self.filler_curves.list_trusted(SlotBody::uses_vex(&self.plan.anatomy)).len();
            let obstacle = obstacle.or((trusted < 2).then_some(SlotObstacle::FewFillers));
            if serialises && matches!(obstacle, Some(SlotObstacle::Slow(_))) {
                return Some(DispatchSlots::serialising());
            }
            let disturbed = readings.iter().any(|reading| !reading.disturbed.is_empty());
            let without = match disturbed {
                true => {
                    "fillers alone took another time than before, or had none, in each layout: other work used the core"
                }
                false => "no body gave a figure",
            };
            let why = obstacle.map_or(without.to_string(), SlotObstacle::describe);
            return Some(DispatchSlots::without_figure(why));
        };
        let SlotJudgement { verdict, slots, whole, agreeing, needs_group_test } = judgement;
        let burdened = is_burdened(self.plan, &readings);
        let verdict = match verdict {
            SlotVerdict::Exact if burdened => SlotVerdict::Upper,
            // What others wait for says nothing of slots.
            SlotVerdict::Microcoded | SlotVerdict::Upper if serialises => SlotVerdict::Serialising,
            verdict => verdict,
        };
        let why = match verdict {
            SlotVerdict::Exact => None,
            SlotVerdict::Microcoded => Some(format!(
                "an instance takes the time of {:.1} slots, at {width:.2} slots per core cycle",
                slots.value
            )),
            SlotVerdict::Serialising => return Some(DispatchSlots::serialising()),
            SlotVerdict::Unclear => Some("a body is faster than its fillers alone".to_string()),
            SlotVerdict::Upper if burdened => Some("it includes instructions that each instance needs".to_string()),
            SlotVerdict::Upper if needs_group_test => {
                Some("whether it takes groups of slots of its own is unknown".to_string())
            }
            SlotVerdict::Upper => Some(self.describe_disagreement(&readings)),
        };
        if verdict == SlotVerdict::Unclear {
            return why.map(DispatchSlots::without_figure);
        }
        let counted = verdict != SlotVerdict::Microcoded;
        let count = Quantity::new(slots, Unit::Slots);
        Some(DispatchSlots { count, verdict, whole: counted.then_some(whole), fillers: agreeing, why })
    }

    /// The least figure of each kind of filler.
    fn describe_disagreement(&self, readings: &[SlotReading]) -> String {
        let estimates = estimate_all_slots(self.filler_curves, readings);
        let least = |filler: &SlotFiller| {
            let own = readings.iter().zip(&estimates).filter(|(reading, _)| reading.shape.filler == *filler);
            let slots = own.filter_map(|(_, slots)| *slots).min_by(f64::total_cmp)?;
            Some(format!("{slots:.2} among {}", filler.describe()))
        };
        let said: Vec<String> = SlotFiller::ALL.iter().filter_map(least).collect();
        format!("the fillers do not agree: {}", said.join(", "))
    }
}

/// The bodies of all passes.
pub(super) fn collect_slot_readings(passes: &[Vec<ProgramReading>]) -> Vec<SlotReading> {
    passes.iter().filter_map(|pass| pass.first()).flat_map(|first| first.slots.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::instr_table::tests::row;
    use super::super::row_analysis::tests::plan;
    use super::*;
    use crate::bodies::slot_body::SlotShape;
    use crate::experiments::filler_curves::FillerCurves;
    use crate::experiments::filler_curves::tests::curves_with_rates;
    use crate::experiments::link_costs::LinkCosts;

    const WIDTH: f64 = 6.0;

    /// What a form's row says if an instance takes these slots among each kind of filler.
    fn estimate(name: &str, rthroughput: f64, slots: &[(SlotFiller, f64)]) -> DispatchSlots {
        let curves = curves_with_rates(&[(SlotFiller::ZeroIdiom, WIDTH), (SlotFiller::Move, WIDTH)]);
        estimate_with(name, rthroughput, slots, &curves)
    }

    fn estimate_with(
        name: &str,
        rthroughput: f64,
        slots: &[(SlotFiller, f64)],
        filler_curves: &FillerCurves,
    ) -> DispatchSlots {
        let plan = plan(name);
        let bodies = slots.iter().flat_map(|(filler, slots)| {
            [17, 23].map(|fillers| SlotReading {
                shape: SlotShape { filler: *filler, vex: false, fillers, copies: 4 },
                extra: 0,
                cycles: vec![(4.0 * (fillers as f64 + slots) + 1.0) / WIDTH; 3],
                control: None,
                disturbed: Vec::new(),
            })
        });
        let first = ProgramReading { slots: bodies.collect(), ..ProgramReading::default() };
        let link_costs = LinkCosts::default();
        let analysis =
            RowAnalysis { plan: &plan, link_costs: &link_costs, filler_curves, confidence: 0.95, nop_cycles: 0.2 };
        let slots = analysis.estimate_slots(&[vec![first]], &row("x", "", Vec::new(), rthroughput)).unwrap();
        assert_eq!(slots.find_contradiction(), None);
        slots
    }

    #[test]
    fn each_verdict_has_its_number_and_reason() {
        let both = |slots: f64| [(SlotFiller::ZeroIdiom, slots), (SlotFiller::Move, slots + 0.1)];
        let imul = "Imul_r64_rm64 r64, r64";
        let exact = estimate(imul, 1.0, &both(2.0));
        assert_eq!((exact.summarize().as_str(), exact.exact_number(), exact.why), ("2", Some(2), None));
        let upper = estimate(imul, 1.0, &both(2.0)[..1]);
        assert_eq!((upper.summarize().as_str(), upper.exact_number()), ("≤2", None));
        assert!(upper.why.unwrap().contains("2.00 among zeroed registers"));
        let large = estimate(imul, 1.0, &both(30.0));
        assert_eq!((large.summarize().as_str(), large.whole), ("microcoded", None));
        assert!(large.why.unwrap().contains("30.0 slots, at 6.00"));
        let slow = estimate(imul, 40.0, &[]);
        assert_eq!((slow.summarize().as_str(), slow.count.value), ("-", None));
        assert!(slow.why.unwrap().contains("40.0 core cycles"));
        let locked = estimate("Add_rm64_r64 m64{lock}, r64", 20.0, &[]);
        assert_eq!((locked.summarize().as_str(), locked.verdict), ("serialising", SlotVerdict::Serialising));
        let waiting = estimate("Xchg_rm64_r64 m64, r64", 5.0, &both(30.0));
        assert_eq!(waiting.verdict, SlotVerdict::Serialising);
        assert_eq!(estimate("Xchg_rm64_r64 m64, r64", 1.0, &both(2.0)).exact_number(), Some(2));
        assert_eq!(estimate("Lfence", 5.0, &both(9.0)[..1]).verdict, SlotVerdict::Serialising);
        let alone = estimate_with(imul, 1.0, &[], &curves_with_rates(&[(SlotFiller::Move, WIDTH)]));
        assert!(alone.why.unwrap().contains("fewer than two kinds"));
    }

    #[test]
    fn instructions_that_an_instance_needs_leave_a_bound() {
        let both = [(SlotFiller::ZeroIdiom, 2.0), (SlotFiller::Move, 2.0)];
        let pushed = estimate("Fld1", 1.0, &both);
        assert_eq!(pushed.summarize(), "≤2");
        assert!(pushed.why.unwrap().contains("each instance needs"));
        let alone = estimate("Fadd_sti_st0", 1.0, &both);
        assert_eq!(alone.exact_number(), Some(2), "it needs no others");
    }

    #[test]
    fn an_impossible_count_is_a_contradiction() {
        let both = [(SlotFiller::ZeroIdiom, 1.0), (SlotFiller::Move, 1.0)];
        let good = estimate("Imul_r64_rm64 r64, r64", 1.0, &both);
        let unit = Quantity { unit: Unit::CoreCycles, ..good.count };
        for bad in [
            DispatchSlots { count: unit, ..good.clone() },
            DispatchSlots { whole: None, ..good.clone() },
            DispatchSlots { verdict: SlotVerdict::Microcoded, ..good.clone() },
            DispatchSlots { why: Some("odd".to_string()), ..good.clone() },
            DispatchSlots { count: Quantity::refused(Unit::Slots), ..good.clone() },
        ] {
            assert!(bad.find_contradiction().is_some(), "{bad:?}");
        }
    }
}
