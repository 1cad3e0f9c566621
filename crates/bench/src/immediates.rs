//! Constants in code: whether tables of instructions find those that change the cost, and no
//! others.
//!
//! The reference is a measurement of the same instruction with each constant, as `cyclescope run`
//! makes it: of independent copies, and of a chain. It shares neither programs nor rules with the
//! tables. Nothing here states a constant's cost: both ways are compared on which constants matter
//! on this CPU.

use crate::lab::{Lab, SectionResult};
use cyclescope::asm;
use cyclescope::asm::CodeMode;
use cyclescope::asm::forms::{self, InstructionForm};
use cyclescope::run::RunRequest;
use cyclescope::snippet::Snippet;
use cyclescope::study::instr::experiments::survey_effort::SurveyEffort;
use cyclescope::study::instr::forms::encoded_constant::EncodedConstant;
use cyclescope::study::instr::forms::form_anatomy::encode_instructions;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::rows::instr_row::InstrRow;
use cyclescope::study::instr::survey::FormSurvey;
use cyclescope::study::instr::survey_settings::SurveySettings;
use iced_x86::{Code, Instruction};

/// Copies in a throughput snippet; each writes its own register.
const COPIES: usize = 6;
/// Two costs differ if the difference exceeds this share and these core cycles, plus both half
/// widths. A chain has its own limit.
const SHARE: f64 = 0.06;
const CYCLES: f64 = 0.02;
const CHAIN_CYCLES: f64 = 0.25;
/// Forms of the list that this CPU must have before the requirement is judged.
const MIN_FORMS: usize = 40;

/// A line of the list.
#[derive(Debug)]
struct ImmediateCase {
    operands: &'static str,
    copies: &'static str,
    chain: &'static str,
    /// The operands where the chain starts and ends.
    pair: Option<(&'static str, &'static str)>,
    constants: Vec<EncodedConstant>,
}

/// Whether a constant changes the rate and the latency, compared with the general one.
type ConstantEffect = [bool; 2];

fn parse_number(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(sign * value)
}

fn parse_list() -> Vec<ImmediateCase> {
    let lines = include_str!("immediates.txt").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [operands, copies, chain, pair, constants] = cells[..] else { return None };
        let (kind, values) = constants.split_once(' ')?;
        let values: Vec<i64> = values.split_whitespace().map(parse_number).collect::<Option<_>>()?;
        let constant = |value: i64| match kind {
            "immediate" => Some(EncodedConstant::Immediate(value)),
            "scale" => Some(EncodedConstant::Scale(value as u32)),
            "displacement" => Some(EncodedConstant::Displacement(value as i32)),
            _ => None,
        };
        let constants = values.into_iter().map(constant).collect::<Option<_>>()?;
        Some(ImmediateCase { operands, copies, chain, pair: pair.split_once(' '), constants })
    };
    lines.map(|line| read(line).unwrap_or_else(|| panic!("a line of five cells: {line}"))).collect()
}

impl ImmediateCase {
    /// The template with the general constant.
    fn fill_template(&self, template: &str) -> String {
        match self.constants[0] {
            EncodedConstant::Immediate(value) if value < 0 => template.replace('#', &format!("-{:#x}", -value)),
            EncodedConstant::Immediate(value) => template.replace('#', &format!("{value:#x}")),
            _ => template.to_string(),
        }
    }

    /// Independent copies.
    fn independent_copies(&self) -> String {
        let first = if self.copies.contains("17") { 20 } else { 0 };
        let first = if self.copies.contains(" r@") { 8 } else { first };
        let one = |copy: usize| self.fill_template(self.copies).replace('@', &(first + copy).to_string());
        (0..COPIES).map(one).collect::<Vec<_>>().join("; ")
    }

    /// The instruction, and the form that tables have a row for.
    fn find_form(&self) -> (Code, InstructionForm) {
        let listing =
            asm::parse_assembly(&self.independent_copies()).unwrap_or_else(|error| panic!("{}: {error}", self.copies));
        let code = listing.instructions()[0].code();
        let is_it = |form: &InstructionForm| form.code == code && form.describe_operands() == self.operands;
        (code, forms::all_forms().find(is_it).unwrap_or_else(|| panic!("{code:?} has no {}", self.operands)))
    }

    /// A snippet with another constant in all instances.
    fn snippet_with_constant(
        &self,
        lab: &Lab,
        text: &str,
        constant: EncodedConstant,
    ) -> SectionResult<Option<Snippet>> {
        let Some(general) = lab.assemble_snippet(text, "")? else { return Ok(None) };
        let listing = asm::Listing::from_bytes(general.code());
        let put = |one: &Instruction| constant.apply_to(one);
        let Some(instances) = listing.instructions().iter().map(put).collect::<Option<Vec<_>>>() else {
            return Err(format!("{text} has no {constant}").into());
        };
        Ok(encode_instructions(CodeMode::default(), &instances).map(|code| Snippet::new(code, Vec::new(), "")))
    }

    /// Costs with each constant in separate measurements; `None` if this CPU lacks the instruction.
    fn measure_constants(&self, lab: &mut Lab, text: &str, instances: usize) -> SectionResult<Option<Vec<[f64; 2]>>> {
        let mut costs = Vec::new();
        for constant in &self.constants {
            let Some(snippet) = self.snippet_with_constant(lab, text, *constant)? else { return Ok(None) };
            let run = lab.measure(&snippet, &RunRequest::default())?;
            let cost = run.estimate().map(|found| [found.cost.value, found.cost.half_width()]);
            costs.push(cost.unwrap_or([f64::NAN, 0.0]).map(|cycles| cycles / instances as f64));
        }
        Ok(Some(costs))
    }
}

/// Whether two costs differ.
fn costs_differ(one: [f64; 2], other: [f64; 2], cycles: f64) -> bool {
    let least = cycles.max(SHARE * one[0].min(other[0])) + one[1] + other[1];
    (one[0] - other[0]).abs() > least
}

/// The effect of a constant according to a table's row.
fn read_row_effect(row: &InstrRow, listed: &ImmediateCase, constant: EncodedConstant) -> ConstantEffect {
    let name = constant.to_string();
    let mut rates = row.throughput.iter().flat_map(|throughput| &throughput.variants);
    let mut latencies = row.latency.iter().filter(|latency| latency.variant.as_ref() == Some(&name));
    let pair = listed.pair.unwrap_or_default();
    [
        rates.any(|variant| variant.variant == name),
        latencies.any(|latency| (latency.from.as_str(), latency.to.as_str()) == pair),
    ]
}

/// Runs the section.
pub fn check_immediates(lab: &mut Lab) -> SectionResult {
    let list = parse_list();
    let forms: Vec<TargetForm> = list.iter().map(|listed| TargetForm::from(listed.find_form().1)).collect();
    let plan = lab.make_plan(&RunRequest::default())?;
    let mut executor = lab.spawn_executor()?;
    let timing = lab.survey_timing(&mut executor, &plan)?;
    let settings = SurveySettings { effort: SurveyEffort::FULL, seed: plan.seed, confidence: plan.confidence };
    let features = lab.machine.features.clone();
    let survey = FormSurvey::new(timing, &mut executor, &features, forms, settings)?;
    let mut rows = Vec::new();
    for form in 0..list.len() {
        rows.push(survey.settle_form(&mut executor, form)?.0);
    }
    drop(executor);
    let (mut forms, mut constants, mut matter, mut missed, mut wrong) = (0, 0, 0, 0, 0);
    for (listed, row) in list.iter().zip(&rows) {
        let Some(rates) = listed.measure_constants(lab, &listed.independent_copies(), COPIES)? else {
            continue;
        };
        let chain = listed.fill_template(listed.chain);
        let chains = if chain.is_empty() { None } else { listed.measure_constants(lab, &chain, 1)? };
        forms += 1;
        println!("{} {}", row.code, row.operands);
        for (at, constant) in listed.constants.iter().enumerate() {
            let chain = chains.as_ref().map_or([[f64::NAN, 0.0]; 2], |chains| [chains[0], chains[at]]);
            let measured = [costs_differ(rates[0], rates[at], CYCLES), costs_differ(chain[0], chain[1], CHAIN_CYCLES)];
            let in_table = read_row_effect(row, listed, *constant);
            let word = match () {
                _ if at == 0 => "the headline's",
                _ if measured == in_table && measured.contains(&true) => "found",
                _ if measured == in_table => "alike",
                _ if (0..2).any(|what| in_table[what] && !measured[what]) => "NOT IN REFERENCE",
                _ => "MISSED",
            };
            if at > 0 {
                constants += 1;
                matter += usize::from(measured.contains(&true));
                missed += usize::from(word == "MISSED");
                wrong += usize::from(word == "NOT IN REFERENCE");
            }
            println!(
                "  {:<28} copies {:7.3} ± {:.3}, chain {:7.3} ± {:.3}: {word}",
                constant.to_string(),
                rates[at][0],
                rates[at][1],
                chain[1][0],
                chain[1][1]
            );
        }
    }
    let judged = forms >= MIN_FORMS;
    let figure = format!("{} of {matter}; {constants} constants of {forms} forms", matter - missed);
    lab.record_demand("tables find the constants that change costs", judged.then_some(missed == 0), figure);
    let text = "tables have no difference that the reference does not show";
    lab.record_demand(text, judged.then_some(wrong == 0), format!("{wrong} of {constants}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_long_enough_and_its_constants_are_in_tables() {
        let list = parse_list();
        assert!(list.len() >= MIN_FORMS, "{}", list.len());
        for listed in &list {
            let anatomy = TargetForm::from(listed.find_form().1).anatomy().unwrap();
            assert_eq!(anatomy.constants.first(), listed.constants.first(), "{listed:?}");
            for constant in &listed.constants {
                assert!(anatomy.constants.contains(constant), "{listed:?}: {constant}");
            }
            assert!(
                listed.chain.is_empty() || asm::parse_assembly(&listed.fill_template(listed.chain)).is_ok(),
                "{listed:?}"
            );
        }
    }

    #[test]
    fn costs_differ_beyond_their_intervals() {
        assert!(
            costs_differ([0.25, 0.001], [0.333, 0.001], CYCLES) && costs_differ([3.0, 0.01], [4.0, 0.01], CHAIN_CYCLES)
        );
        assert!(
            !costs_differ([0.25, 0.05], [0.333, 0.05], CYCLES) && !costs_differ([3.0, 0.01], [3.1, 0.01], CHAIN_CYCLES)
        );
    }
}
