//! Writes everything that the tests run to the file that UARCH_DUMP names.

use crate::spec::{Experiment, ProgramFamily, StepLoop};
use crate::test_list::TESTS;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

fn short(text: &str) -> String {
    if text.len() < 1200 {
        return text.to_string();
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{}… {} {:x}", &text[..200], text.len(), hasher.finish())
}

fn hex(bytes: &[u8]) -> String {
    short(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn steps_text(steps: &StepLoop) -> String {
    let StepLoop { init, body, following, steps_per_iteration, iterations, memory } = steps;
    format!(
        "init {} body {} following {} steps {steps_per_iteration} iterations {iterations} memory {}",
        hex(init),
        hex(body),
        hex(following),
        short(&format!("{memory:?}"))
    )
}

fn label(family: &ProgramFamily) -> String {
    family.label()
}

fn program(family: &ProgramFamily, n: usize) -> StepLoop {
    family.program(n)
}

fn control(family: &ProgramFamily, n: usize) -> Option<StepLoop> {
    family.control(n)
}

fn dump_family(out: &mut String, key: &str, family: &ProgramFamily, counts: &[usize]) {
    writeln!(out, "{key} label {:?}", label(family)).unwrap();
    for n in counts {
        writeln!(out, "{key} n {n} program {}", steps_text(&program(family, *n))).unwrap();
        match control(family, *n) {
            Some(steps) => writeln!(out, "{key} n {n} control {}", steps_text(&steps)).unwrap(),
            None => writeln!(out, "{key} n {n} no control").unwrap(),
        }
    }
}

#[test]
fn dump_programs() {
    let Ok(path) = std::env::var("UARCH_DUMP") else { return };
    let mut text = String::new();
    let out = &mut text;
    for test in TESTS {
        let name = test.name;
        writeln!(out, "== {name}\n{:?}\n{:?}\n{:?}\n{:?}", test.about, test.definition, test.source, test.part)
            .unwrap();
        match &test.experiment {
            Experiment::Levels(levels) => {
                let [low, high] = levels.count_range;
                let all = [low, low + 1, 33, 64, 1000, 4096, (low * high).isqrt(), high.min(1 << 20)];
                let counts: Vec<usize> = all.iter().map(|n| (*n).clamp(low, high)).collect();
                writeln!(
                    out,
                    "{:?} {:?} {:?} {} {} {} {} {} {:?} {} {:?}",
                    levels.also_occupies,
                    levels.count_range,
                    levels.unit,
                    levels.min_rise,
                    levels.min_ratio,
                    levels.fills_randomly,
                    levels.single_structure,
                    levels.always_ends,
                    levels.cost_definition,
                    levels.bytes_per_count,
                    levels.witness.as_ref().map(|witness| witness.occupied)
                )
                .unwrap();
                levels.programs.iter().for_each(|family| dump_family(out, name, family, &counts));
                levels.fallback_programs.iter().for_each(|family| dump_family(out, "fallback", family, &counts));
                levels.witness.iter().for_each(|witness| dump_family(out, "witness", &witness.family, &counts));
            }
            Experiment::Batches(batches) => {
                writeln!(
                    out,
                    "{} {} {} {:?} {:?} {}",
                    batches.witness.occupied,
                    batches.uncounted_events,
                    batches.last_event_slack,
                    batches.counts,
                    batches.also_occupies,
                    batches.pacing_test
                )
                .unwrap();
                batches.programs.iter().for_each(|family| dump_family(out, name, family, batches.counts));
                dump_family(out, "single", batches.single_event, &[1]);
                dump_family(out, "witness", &batches.witness.family, batches.counts);
            }
            Experiment::CostMap(map) => {
                writeln!(out, "{} {}", map.tolerance, map.tolerance_share).unwrap();
                for row in map.rows {
                    writeln!(
                        out,
                        "row {} {} {} {} {:?}",
                        row.name, row.first_place, row.place_count, row.stride, row.required_features
                    )
                    .unwrap();
                    let counts: Vec<usize> = (0..row.place_count).collect();
                    row.programs.iter().for_each(|family| dump_family(out, row.name, family, &counts));
                }
            }
            Experiment::Sharing(sharing) => {
                writeln!(
                    out,
                    "{:?} {:?} {:?} {:?} {} {:?} {:?} {:?}",
                    sharing.idle_load,
                    sharing.load_description,
                    sharing.load_memory.map(|memory| memory()),
                    sharing.sibling_proofs,
                    sharing.tolerance_share,
                    sharing.structures,
                    sharing.structure_definition,
                    sharing.filling_load
                )
                .unwrap();
                for row in sharing.rows {
                    writeln!(out, "row {} {:?}", row.name, row.background_load).unwrap();
                    row.programs.iter().for_each(|family| dump_family(out, row.name, family, &[0, 1, 2]));
                }
            }
            Experiment::Rates(_) | Experiment::Contrast(_) => {
                match &test.experiment {
                    Experiment::Rates(rates) => writeln!(
                        out,
                        "{:?} {} {} {} {:?}",
                        rates.unit,
                        rates.bytes_per_n,
                        rates.tolerance_share,
                        rates.allow_outlier,
                        rates.required_entries
                    )
                    .unwrap(),
                    Experiment::Contrast(contrast) => {
                        writeln!(out, "{} {}", contrast.tolerance, contrast.tolerance_share).unwrap()
                    }
                    _ => unreachable!(),
                }
                for row in test.rows() {
                    writeln!(
                        out,
                        "row {} {} {} {:?} {:?} {} {}",
                        row.name,
                        row.n,
                        row.amount_per_step,
                        row.required_features,
                        row.bounding_test,
                        row.may_be_hidden,
                        row.varies_by_place
                    )
                    .unwrap();
                    for variant in row.variants {
                        writeln!(out, "{:?} {:?}", variant.required_features, variant.excluded_feature).unwrap();
                        dump_family(out, row.name, &variant.family, &[row.n]);
                    }
                }
            }
            other => writeln!(out, "{other:#?}").unwrap(),
        }
    }
    std::fs::write(path, text).unwrap();
}
