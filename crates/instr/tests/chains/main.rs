//! Reads the machine code of every experiment of every form, independently of how it was built.
//! Chains must be closed: each link reads the previous one's output. Throughput programs must carry
//! no dependency.

mod broken;
mod causes;
mod everything;
mod ports;
mod reader;
mod ring_0;
mod values;
mod verdict;

use causes::{Cause, cause};
use cyclescope_code::asm::{Listing, forms, forms::InstructionForm, forms::OperandChoice};
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_exec::PrivilegeRing;
use cyclescope_instr::experiments::experiment::{ChainVariation, ExperimentMeaning, FormExperiment};
use cyclescope_instr::experiments::form_plan::FormPlan;
use cyclescope_instr::forms::form_anatomy::FormAnatomy;
use cyclescope_instr::forms::skip::find_skip;
use everything::everything;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use ports::Port;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;
use verdict::Others;

/// A dependency over fewer instances than this could affect the figure.
const NEAR: usize = 3;

/// The plan of a form, and an instance built by the test. An error gives the reason to skip.
pub fn plan(form: InstructionForm, features: &CpuFeatures) -> Result<(FormPlan, Instruction), String> {
    let anatomy = FormAnatomy::from_form(form).expect("every form has an instance");
    if let Some(skip) = find_skip(&anatomy, features, PrivilegeRing::Three) {
        return Err(skip.code().to_string());
    }
    let bases = [Register::R14, Register::RDI];
    let choice = |base: &Register| OperandChoice { base: *base, ..OperandChoice::default() };
    let sample =
        bases.iter().find_map(|base| form.build_instruction(&choice(base))).expect("every form has an instance");
    Ok((FormPlan::new(anatomy, features, &form.into()), sample))
}

/// The mnemonics of links, from their names.
pub fn mnemonics(names: impl Iterator<Item = &'static str>) -> Vec<Mnemonic> {
    static BY_NAME: LazyLock<HashMap<String, Mnemonic>> = LazyLock::new(|| {
        Mnemonic::values().map(|mnemonic| (format!("{mnemonic:?}").to_lowercase(), mnemonic)).collect()
    });
    let named = |name: &str| match name.split(' ').next().expect("a link has a name") {
        "cmovc" => Mnemonic::Cmovb,
        "cmovz" => Mnemonic::Cmove,
        word => {
            let found = BY_NAME.get(&word.to_lowercase());
            *found.unwrap_or_else(|| panic!("no instruction has the name {word}"))
        }
    };
    names.map(named).collect()
}

/// The other dependencies of a correct experiment, or what is wrong with it.
pub fn judge(experiment: &FormExperiment, sample: &Instruction) -> Result<Others, String> {
    let FormExperiment { init, period, copies, meaning, .. } = experiment;
    let meaning = match meaning {
        ExperimentMeaning::Operands { of, .. } => of,
        meaning => meaning,
    };
    let parts = if meaning.has_pairs() { 2 } else { 1 };
    let reading = reader::read(init, period, sample, *copies, parts)?;
    match meaning {
        ExperimentMeaning::Operands { .. } => Err("operands of operands".to_string()),
        ExperimentMeaning::Latency { from, to, variant, links, .. } => {
            let input = Port::named(from, variant.as_deref());
            let links = mnemonics(links.iter().map(|link| link.name(experiment.world.mode)));
            let others = verdict::chain(&reading, input, Port::named(to, None), &links)?;
            // This variant uses one register for all inputs on purpose.
            Ok(if variant.as_deref() == Some("same register") { Others::new() } else { others })
        }
        ExperimentMeaning::SameDestination { to } => {
            let to = Port::named(to, None);
            let others = verdict::independent(&reading)?;
            Ok(others.into_iter().filter(|(pair, _)| *pair != (to, to)).collect())
        }
        ExperimentMeaning::Throughput { .. } => verdict::independent(&reading),
    }
}

/// A recipe without the way in which dependencies are broken.
fn unbroken(recipe: &str) -> String {
    let end =
        [", dependencies", ", addresses put", ", registers renewed"].iter().filter_map(|end| recipe.find(end)).min();
    recipe[..end.unwrap_or(recipe.len())].to_string()
}

/// Counts over many forms.
#[derive(Debug, Default)]
struct Tally {
    forms: BTreeMap<String, usize>,
    latency: usize,
    operands: usize,
    same_destination: usize,
    throughput: usize,
    /// Recipes without a program that keeps instances apart, and other programs that don't.
    near: BTreeMap<Cause, usize>,
    /// Chains over addresses that nothing sets up.
    astray: usize,
    faults: Vec<String>,
}

impl Tally {
    fn form(&mut self, form: InstructionForm, features: &CpuFeatures) {
        let mut count = |what: String| *self.forms.entry(what).or_default() += 1;
        let (plan, sample) = match plan(form, features) {
            Ok((_, sample)) if sample.flow_control() != FlowControl::Next => {
                return count("branch".to_string());
            }
            Ok(found) => found,
            Err(reason) => return count(reason),
        };
        if has_no_program(&sample) {
            return count("no program".to_string());
        }
        count("read".to_string());
        // Each way to break a recipe's dependencies has its own program. One of them must have no
        // dependency.
        let mut recipes: BTreeMap<String, (usize, Others)> = BTreeMap::new();
        // Variations that are measured only if a chain's cost is not a whole number, is near its
        // instances' rate, or exceeds another chain's.
        let variations = [ChainVariation::Longer(8), ChainVariation::Beside(3), ChainVariation::Cleared];
        let again = (0..plan.experiments.len())
            .flat_map(|index| variations.map(|variation| (index, variation)))
            .filter_map(|(index, variation)| plan.vary_chain(index, variation));
        for experiment in plan.experiments.iter().cloned().chain(again) {
            let experiment = &experiment;
            let others = match judge(experiment, &sample) {
                Ok(others) => others,
                Err(_) if cause(&sample, (Port::Data, Port::Data)) == Some(Cause::Padlock) => {
                    self.astray += 1;
                    continue;
                }
                Err(why) => {
                    self.faults.push(format!("{}: {why}", describe(form, experiment)));
                    continue;
                }
            };
            match &experiment.meaning {
                ExperimentMeaning::Operands { .. } => self.operands += 1,
                ExperimentMeaning::Latency { .. } => self.latency += 1,
                ExperimentMeaning::SameDestination { .. } => self.same_destination += 1,
                ExperimentMeaning::Throughput { recipe, .. } => {
                    self.throughput += 1;
                    let least = others.values().min().copied().unwrap_or(reader::FAR);
                    let best = recipes.entry(unbroken(recipe)).or_insert((0, Others::new()));
                    if least > best.0 {
                        *best = (least, others);
                    }
                    continue;
                }
            }
            self.near(&others, &sample, || describe(form, experiment));
        }
        if recipes.is_empty() {
            self.faults.push(format!("{form:?}: no throughput program"));
        }
        for (recipe, (_, others)) in recipes {
            self.near(&others, &sample, || format!("{:?} {}, {recipe}", form.code, form.describe_operands()));
        }
    }

    fn near(&mut self, others: &Others, sample: &Instruction, describe: impl Fn() -> String) {
        for (pair, distance) in others.iter().filter(|(_, distance)| **distance < NEAR) {
            match cause(sample, *pair) {
                Some(cause) => *self.near.entry(cause).or_default() += 1,
                None => self.faults.push(format!("{}: {pair:?} over {distance}", describe())),
            }
        }
    }
}

/// XLATB has a fixed address. Some no-operations become prefetches with the chosen register.
fn has_no_program(sample: &Instruction) -> bool {
    let name = format!("{:?}", sample.code());
    let prefetches = name.starts_with("Reservednop") && name.ends_with("0F18");
    sample.mnemonic() == Mnemonic::Xlatb || prefetches && sample.op0_kind() == OpKind::Memory
}

fn describe(form: InstructionForm, experiment: &FormExperiment) -> String {
    let text = Listing::from_code(&experiment.period, experiment.world.mode).text().replace('\n', "; ");
    let what = match &experiment.meaning {
        ExperimentMeaning::Latency { from, to, variant, .. } => {
            format!("{from} to {to} {}", variant.as_deref().unwrap_or_default())
        }
        other => format!("{other:?}"),
    };
    format!("{:?} {}, {what}: {}", form.code, form.describe_operands(), text.chars().take(400).collect::<String>())
}

#[test]
fn every_program_has_the_stated_dependencies() {
    let features = everything();
    let all: Vec<InstructionForm> = forms::all_forms().collect();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    let tally = |thread: usize| {
        let mut tally = Tally::default();
        all.iter().skip(thread).step_by(threads).for_each(|form| tally.form(*form, &features));
        tally
    };
    let mut whole = Tally::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || tally(thread))).collect();
        for tally in running.into_iter().map(|thread| thread.join().expect("no form makes the reader panic")) {
            tally.forms.into_iter().for_each(|(what, count)| *whole.forms.entry(what).or_default() += count);
            tally.near.into_iter().for_each(|(cause, count)| *whole.near.entry(cause).or_default() += count);
            whole.latency += tally.latency;
            whole.same_destination += tally.same_destination;
            whole.throughput += tally.throughput;
            whole.astray += tally.astray;
            whole.faults.extend(tally.faults);
        }
    });
    println!("{} forms: {:?}", all.len(), whole.forms);
    println!(
        "closed chains {}, throughput programs {}, false dependency tests {}",
        whole.latency, whole.throughput, whole.same_destination
    );
    println!("near dependencies by cause {:?}, programs of Padlock astray {}", whole.near, whole.astray);
    assert!(
        whole.faults.is_empty(),
        "{} faults:\n{}",
        whole.faults.len(),
        whole.faults[..whole.faults.len().min(40)].join("\n")
    );
    assert_eq!(whole.forms.values().sum::<usize>(), all.len());
    let read = whole.forms["read"];
    assert!(read > 16_500, "{read} forms");
    assert!(whole.latency > 4 * read && whole.throughput >= 8 * read, "{} {}", whole.latency, whole.throughput);
}
