//! `cyclescope compare`: compares two result files, or one with a published table.

mod compare_input;
mod core_pairs;
mod explain;
mod port_pairs;
mod tables;

use self::core_pairs::{CorePair, CorePairCounts, CorePairs};
use crate::args::{CommonArgs, CompareArgs};
use crate::output::page::TextPage;
use crate::output::{Failure, Output, print_warning};
use compare_input::{CompareInput, InputContent};
use cyclescope::record::exit;
use cyclescope::study::instr::tables::compare::{QuantityDifference, TableComparison, Tolerance};
use cyclescope::study::instr::tables::compare::{compare_results, compare_with_reference};
use cyclescope::study::ports::ports_comparison::{
    SharingComparison, SharingCounts, SharingDifference, compare_sharing,
};
use serde::Serialize;

/// Number of differences shown by default.
const SHOWN_MOST: usize = 20;

/// Runs the command and returns the exit code.
pub fn run_compare(common: &CommonArgs, args: &CompareArgs, output: &mut Output) -> Result<u8, Failure> {
    if let Some(name) = common.first_measuring_option() {
        let text = format!("{name} has no effect, because compare measures nothing");
        return Err(Failure::usage(text, Some("leave it out")));
    }
    let (a, b) = (CompareInput::read(&args.a)?, CompareInput::read(&args.b)?);
    if let (InputContent::Core { records: ours, .. }, InputContent::Core { records: theirs, .. }) =
        (&a.content, &b.content)
    {
        return compare_cores(args, [&a, &b], &CorePairs::from_records(ours, theirs), output);
    }
    if let (InputContent::Ports { ports: ours, .. }, InputContent::Ports { ports: theirs, .. }) =
        (&a.content, &b.content)
    {
        return compare_ports(args, [&a, &b], &compare_sharing(ours, theirs), output);
    }
    let ours = match &a.content {
        InputContent::Results(ours) => ours,
        InputContent::Core { .. } | InputContent::Ports { .. } => return Err(mixed_inputs_failure(&a, &b)),
        InputContent::Reference(_) => {
            let remedy = "name the file from `cyclescope instr --out` first, then the published table";
            return Err(Failure::usage(format!("{} is not a result file", a.path), Some(remedy)));
        }
    };
    let comparison = match &b.content {
        InputContent::Results(theirs) => {
            let tolerance = args.tolerance.unwrap_or(Tolerance::RESULTS);
            compare_results(&ours.rows, &theirs.rows, tolerance)
        }
        InputContent::Reference(reference) => {
            let tolerance = args.tolerance.unwrap_or(Tolerance::PUBLISHED);
            compare_with_reference(&ours.rows, reference, tolerance)
        }
        InputContent::Core { .. } | InputContent::Ports { .. } => return Err(mixed_inputs_failure(&b, &a)),
    };
    [&a, &b].iter().for_each(|input| input.print_warnings());
    if output.is_json() {
        print_json_lines(&[a, b], &comparison, output)?;
    } else {
        let differences = &comparison.differences;
        let shown = if args.all { differences.len() } else { differences.len().min(SHOWN_MOST) };
        tables::print_comparison(&[&a, &b], &comparison, shown, output)?;
        if args.explain {
            explain::explain_differences(&[&a, &b], &differences[..shown], output)?;
        }
    }
    if comparison.forms.both == 0 {
        print_warning("nothing was compared, because the files have no form in common");
    }
    // A check that compares nothing must not pass.
    let different = args.fail_on_diff && (!comparison.differences.is_empty() || comparison.forms.both == 0);
    Ok(if different { exit::DIFFERENT } else { exit::DONE })
}

/// The failure for comparing numbers of a core, or ports, with something else.
fn mixed_inputs_failure(one: &CompareInput, other: &CompareInput) -> Failure {
    let what = if matches!(one.content, InputContent::Ports { .. }) { "ports" } else { "numbers of a core" };
    let text = format!("{} has {what}, but {} has none", one.path, other.path);
    Failure::usage(text, Some("name two files of the same kind"))
}

/// Refuses options that only have an effect on tables of instructions.
fn refuse_row_options(args: &CompareArgs, study: &str) -> Result<(), Failure> {
    for (name, given) in [("--tolerance", args.tolerance.is_some()), ("--explain", args.explain)] {
        if given {
            let text = format!("{name} has no effect on two results of {study}");
            return Err(Failure::usage(text, Some("leave it out")));
        }
    }
    Ok(())
}

/// Compares two results of `ports`, and returns the exit code.
fn compare_ports(
    args: &CompareArgs,
    inputs: [&CompareInput; 2],
    comparison: &SharingComparison,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse_row_options(args, "ports")?;
    inputs.iter().for_each(|input| input.print_warnings());
    let SharingComparison { counts, differences } = comparison;
    if output.is_json() {
        let [a, b] = inputs.map(CompareInput::summarize_source);
        output.write_record("compare", &SharingSummary { part: "sharing", a, b, counts: *counts })?;
        let mut lines = differences.iter().map(|difference| SharingLine { part: "pair", difference });
        lines.try_for_each(|line| output.write_record("compare", &line))?;
    } else {
        let shown = if args.all { differences.len() } else { differences.len().min(SHOWN_MOST) };
        let mut page = TextPage::new(output);
        page.begin_section("Compared")?;
        tables::print_sources(&mut page, &inputs)?;
        port_pairs::print_sharing(comparison, shown, &mut page)?;
    }
    let compared = counts.agree + counts.differ;
    if compared == 0 {
        print_warning("nothing was compared: no pair of forms has an answer in both files");
    }
    let different = !differences.is_empty() || compared == 0;
    Ok(if args.fail_on_diff && different { exit::DIFFERENT } else { exit::DONE })
}

/// The first JSON line for two results of `ports`.
#[derive(Serialize)]
struct SharingSummary<'a> {
    part: &'static str,
    a: SourceSummary<'a>,
    b: SourceSummary<'a>,
    #[serde(flatten)]
    counts: SharingCounts,
}

/// The other JSON lines for two results of `ports`.
#[derive(Serialize)]
struct SharingLine<'a> {
    part: &'static str,
    #[serde(flatten)]
    difference: &'a SharingDifference<'a>,
}

/// Compares two results of `uarch`, and returns the exit code.
fn compare_cores(
    args: &CompareArgs,
    inputs: [&CompareInput; 2],
    pairs: &CorePairs,
    output: &mut Output,
) -> Result<u8, Failure> {
    refuse_row_options(args, "uarch")?;
    inputs.iter().for_each(|input| input.print_warnings());
    let counts = pairs.count_outcomes();
    let (different, apart) = (counts.has_differences(), counts.has_none_in_common());
    if output.is_json() {
        let [a, b] = inputs.map(CompareInput::summarize_source);
        output.write_record("compare", &CoreSummary { part: "summary", a, b, counts })?;
        pairs.0.iter().try_for_each(|pair| output.write_record("compare", &CorePairLine { part: "number", pair }))?;
    } else {
        let mut page = TextPage::new(output);
        page.begin_section("Compared")?;
        tables::print_sources(&mut page, &inputs)?;
        pairs.print(&mut page)?;
    }
    if apart {
        print_warning("nothing was compared, because the files have no number in common");
    }
    Ok(if args.fail_on_diff && (different || apart) { exit::DIFFERENT } else { exit::DONE })
}

/// The first JSON line for two results of `uarch`.
#[derive(Serialize)]
struct CoreSummary<'a> {
    part: &'static str,
    a: SourceSummary<'a>,
    b: SourceSummary<'a>,
    #[serde(flatten)]
    counts: CorePairCounts,
}

/// The other JSON lines for two results of `uarch`.
#[derive(Serialize)]
struct CorePairLine<'a> {
    part: &'static str,
    #[serde(flatten)]
    pair: &'a CorePair<'a>,
}

/// The first JSON line of a comparison.
#[derive(Serialize)]
struct ComparisonSummary<'a> {
    part: &'static str,
    a: SourceSummary<'a>,
    b: SourceSummary<'a>,
    #[serde(flatten)]
    comparison: &'a TableComparison,
    differences: usize,
}

#[derive(Serialize)]
struct SourceSummary<'a> {
    file: &'a str,
    /// `results`, `reference`, `core` or `ports`.
    holds: &'static str,
    /// Number of rows, lines of a published table, or numbers of a core.
    entries: usize,
    processor: Option<&'a str>,
    /// Where the code ran; null for a published table or a core.
    executor: Option<&'a str>,
    /// Number of an incomplete last line.
    cut_line: Option<u64>,
}

impl CompareInput {
    fn summarize_source(&self) -> SourceSummary<'_> {
        let (holds, entries, cut_line) = match &self.content {
            InputContent::Results(table) => ("results", table.rows.len(), table.cut),
            InputContent::Reference(reference) => ("reference", reference.entries.len(), None),
            InputContent::Core { table, records } => ("core", records.len(), table.cut),
            InputContent::Ports { table, ports } => ("ports", ports.rows.len(), table.cut),
        };
        let executor = self.executor();
        SourceSummary { file: &self.path, holds, entries, processor: self.processor(), executor, cut_line }
    }
}

/// The other JSON lines.
#[derive(Serialize)]
struct DifferenceLine<'a> {
    part: &'static str,
    #[serde(flatten)]
    difference: &'a QuantityDifference,
}

/// Prints the comparison as JSON lines, with all differences.
fn print_json_lines(
    [a, b]: &[CompareInput; 2],
    comparison: &TableComparison,
    output: &mut Output,
) -> Result<(), Failure> {
    let (a, b) = (a.summarize_source(), b.summarize_source());
    let differences = comparison.differences.len();
    output.write_record("compare", &ComparisonSummary { part: "summary", a, b, comparison, differences })?;
    for difference in &comparison.differences {
        output.write_record("compare", &DifferenceLine { part: "difference", difference })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report::require_harmless_lines;
    use crate::studies::simulated_uarch_lines;
    use cyclescope_fuzz::{InputShape, find_terminal_command, fuzz_reader};

    /// Reads both files, and prints their comparison in every form.
    fn present(a: &[u8], b: &[u8]) -> Result<(), Failure> {
        let [a, b] = [CompareInput::from_bytes("a".to_string(), a)?, CompareInput::from_bytes("b".to_string(), b)?];
        let inputs = [&a, &b];
        let print = |json: bool, output: &mut Output| match (&a.content, &b.content) {
            (InputContent::Core { records, .. }, InputContent::Core { records: others, .. }) => {
                let pairs = CorePairs::from_records(records, others);
                if json {
                    return pairs
                        .0
                        .iter()
                        .try_for_each(|pair| output.write_record("compare", &CorePairLine { part: "number", pair }));
                }
                let mut page = TextPage::new(output);
                tables::print_sources(&mut page, &inputs)?;
                pairs.print(&mut page)
            }
            (InputContent::Ports { ports, .. }, InputContent::Ports { ports: others, .. }) => {
                let comparison = compare_sharing(ports, others);
                if json {
                    let mut lines =
                        comparison.differences.iter().map(|difference| SharingLine { part: "pair", difference });
                    return lines.try_for_each(|line| output.write_record("compare", &line));
                }
                let mut page = TextPage::new(output);
                tables::print_sources(&mut page, &inputs)?;
                port_pairs::print_sharing(&comparison, comparison.differences.len(), &mut page)
            }
            (InputContent::Results(ours), other) => {
                let comparison = match other {
                    InputContent::Results(theirs) => compare_results(&ours.rows, &theirs.rows, Tolerance::RESULTS),
                    InputContent::Reference(table) => compare_with_reference(&ours.rows, table, Tolerance::PUBLISHED),
                    InputContent::Core { .. } | InputContent::Ports { .. } => return Ok(()),
                };
                if json {
                    let differences = comparison.differences.iter();
                    let mut lines = differences.map(|difference| DifferenceLine { part: "difference", difference });
                    return lines.try_for_each(|line| output.write_record("compare", &line));
                }
                tables::print_comparison(&inputs, &comparison, comparison.differences.len(), output)?;
                explain::explain_differences(&inputs, &comparison.differences, output)
            }
            _ => Ok(()),
        };
        assert_eq!(find_terminal_command(&Output::capture(false, |output| print(false, output))), None);
        let lines = Output::capture(true, |output| print(true, output));
        require_harmless_lines(String::from_utf8(lines).expect("text").lines());
        Ok(())
    }

    #[test]
    fn any_fields_are_compared_or_refused() {
        let instr = include_bytes!("../../../../cyclescope/tests/hostile/results.jsonl").to_vec();
        let ports = include_bytes!("../../../../cyclescope/tests/hostile/ports.jsonl").to_vec();
        let runs = include_bytes!("../points/recorded_comparison.jsonl").to_vec();
        let core: Vec<String> = simulated_uarch_lines().iter().map(ToString::to_string).collect();
        let core = core.join("\n").into_bytes();
        let published =
            b"mnemonic,operands,rthroughput_cycles,latency_cycles,from,to\nadd,\"r64, r64\",0.5,2,op1,op1\n\
            nop,,<=0.2,,,\nimul,\"r64, r64\",1-2,5,,\n"
                .to_vec();
        // Each file is compared with a good one of its kind; changed ones differ from it.
        for (name, seed, good) in [
            ("fields_of_instr", &instr, &instr),
            ("fields_of_ports", &ports, &ports),
            ("fields_of_runs", &runs, &runs),
            ("fields_of_uarch", &core, &core),
            ("fields_of_published", &published, &instr),
        ] {
            let is_table = name == "fields_of_published";
            let (a, b) = if is_table { (good, seed) } else { (seed, good) };
            assert!(present(a, b).is_ok(), "{name}");
            fuzz_reader(name, InputShape::Fields, std::slice::from_ref(seed), |bytes| {
                let (a, b) = if is_table { (&good[..], bytes) } else { (bytes, &good[..]) };
                if let Err(refused) = present(a, b) {
                    assert!(!refused.text().is_empty());
                }
            });
        }
    }
}
