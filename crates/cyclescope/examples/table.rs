//! A small instruction table: latencies and reciprocal throughput of three instructions.
//!
//!     cargo run --release -p cyclescope --example table

use cyclescope::Scope;
use cyclescope::asm::CodeMode;
use cyclescope::error::Error;
use cyclescope::record::Quantity;
use cyclescope::study::instr::experiments::survey_effort::SurveyEffort;
use cyclescope::study::instr::selection::{self, FormCriteria};
use cyclescope::study::instr::survey::{FormSurvey, SurveyEvent, SurveyState};
use cyclescope::study::instr::survey_settings::{SurveySettings, SurveyTiming};
use std::ops::ControlFlow;

fn main() -> Result<(), Error> {
    let filters = ["imul r64, r64", "mulsd xmm, xmm", "popcnt r64, r64"].map(str::to_string).to_vec();
    let wanted = FormCriteria { filters, ..FormCriteria::default() };
    let forms =
        wanted.select(selection::list_forms(CodeMode::default())).expect("each of the filters is a form's name");
    let mut scope = Scope::open()?;
    let imul_latency = scope.imul_latency()?;
    let (plan, machine) = (scope.plan().clone(), scope.machine().clone());
    let timing = SurveyTiming {
        clock: plan.clock,
        step: plan.step,
        imul_latency,
        mode: CodeMode::default(),
        adders: plan.adders,
    };
    let settings = SurveySettings { effort: SurveyEffort::FULL, seed: plan.seed, confidence: plan.confidence };
    let survey = FormSurvey::new(timing, scope.executor(), &machine.features, forms, settings)?;
    survey.run(scope.executor(), SurveyState::default(), &mut |event, _| {
        // Rows arrive when a form's last pass is finished, in the order of that pass.
        if let SurveyEvent::Row(row) = event {
            println!("{} {}", row.mnemonic, row.operands);
            for latency in row.latency.iter().filter(|latency| latency.variant.is_none()) {
                let bound = latency.bound;
                println!("  latency {} to {}: {} ({bound:?})", latency.from, latency.to, text(&latency.cost));
            }
            if let Some(throughput) = &row.throughput {
                println!("  reciprocal throughput: {}", text(&throughput.cost));
            }
            row.caveats.iter().for_each(|caveat| println!("  {}", caveat.text));
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

fn text(quantity: &Quantity) -> String {
    match (quantity.value, quantity.low, quantity.high) {
        (Some(value), Some(low), Some(high)) => format!("{value:.3} [{low:.3}, {high:.3}] core cycles"),
        _ => "no number".to_string(),
    }
}
