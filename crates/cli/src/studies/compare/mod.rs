//! `cyclescope compare`: two result files, or one and a published table.

mod core;
mod explain;
mod input;
mod tables;

use self::core::{Counts, Pair, Pairs};
use crate::args::{Common, CompareArgs};
use crate::output::page::Page;
use crate::output::{Failure, Output, warn};
use cyclescope::record::exit;
use cyclescope::study::instr::tables::compare::{Comparison, Difference, Tolerance};
use cyclescope::study::instr::tables::compare::{against_reference, against_results};
use input::{Content, Input};
use serde::Serialize;

/// Differences that are shown unless all are asked for.
const SHOWN: usize = 20;

/// Runs the command and returns the exit code.
pub fn compare(common: &Common, args: &CompareArgs, output: &mut Output) -> Result<u8, Failure> {
    if let Some(name) = common.measuring() {
        let text = format!("{name} has no effect: compare measures nothing");
        return Err(Failure::usage(text, Some("leave it out")));
    }
    let (a, b) = (Input::read(&args.a)?, Input::read(&args.b)?);
    if let (Content::Core { records: ours, .. }, Content::Core { records: theirs, .. }) =
        (&a.content, &b.content)
    {
        return cores(args, [&a, &b], &Pairs::of(ours, theirs), output);
    }
    let ours = match &a.content {
        Content::Results(ours) => ours,
        Content::Core { .. } => return Err(mixed(&a, &b)),
        Content::Reference(_) => {
            let remedy =
                "name the file that `cyclescope instr --out` wrote first, and a published table after it";
            return Err(Failure::usage(format!("{} is not a result file", a.path), Some(remedy)));
        }
    };
    let comparison = match &b.content {
        Content::Results(theirs) => {
            let tolerance = args.tolerance.unwrap_or(Tolerance::RESULTS);
            against_results(&ours.rows, &theirs.rows, tolerance)
        }
        Content::Reference(reference) => {
            let tolerance = args.tolerance.unwrap_or(Tolerance::PUBLISHED);
            against_reference(&ours.rows, reference, tolerance)
        }
        Content::Core { .. } => return Err(mixed(&b, &a)),
    };
    [&a, &b].iter().for_each(|input| input.warn());
    if output.is_json() {
        records(&[a, b], &comparison, output)?;
    } else {
        let differences = &comparison.differences;
        let shown = if args.all { differences.len() } else { differences.len().min(SHOWN) };
        tables::print_all(&[&a, &b], &comparison, shown, output)?;
        if args.explain {
            explain::explain(&[&a, &b], &differences[..shown], output)?;
        }
    }
    if comparison.forms.both == 0 {
        warn("the two files have no form in common: nothing was compared");
    }
    // A check that compares nothing must not pass.
    let different = args.fail_on_diff && (!comparison.differences.is_empty() || comparison.forms.both == 0);
    Ok(if different { exit::DIFFERENT } else { exit::DONE })
}

/// The refusal of numbers of a core beside something else.
fn mixed(core: &Input, other: &Input) -> Failure {
    let text = format!("{} has numbers of a core, and {} has none", core.path, other.path);
    Failure::usage(text, Some("name two files of the same kind"))
}

/// Compares two results of `uarch`, and returns the exit code.
fn cores(args: &CompareArgs, inputs: [&Input; 2], pairs: &Pairs, output: &mut Output) -> Result<u8, Failure> {
    for (name, given) in [("--tolerance", args.tolerance.is_some()), ("--explain", args.explain)] {
        if given {
            let text = format!("{name} has no effect between two results of uarch");
            return Err(Failure::usage(text, Some("leave it out")));
        }
    }
    inputs.iter().for_each(|input| input.warn());
    let counts = pairs.counts();
    let (different, apart) = (counts.are_different(), counts.are_apart());
    if output.is_json() {
        let [a, b] = inputs.map(Input::source);
        output.record("compare", &CoreSummary { part: "summary", a, b, counts })?;
        pairs.0.iter().try_for_each(|pair| output.record("compare", &Number { part: "number", pair }))?;
    } else {
        let mut page = Page::new(output);
        page.section("Compared")?;
        tables::sources(&mut page, &inputs)?;
        pairs.print(&mut page)?;
    }
    if apart {
        warn("the two files have no number in common: nothing was compared");
    }
    Ok(if args.fail_on_diff && (different || apart) { exit::DIFFERENT } else { exit::DONE })
}

/// The first line of JSON of two results of `uarch`.
#[derive(Serialize)]
struct CoreSummary<'a> {
    part: &'static str,
    a: Source<'a>,
    b: Source<'a>,
    #[serde(flatten)]
    counts: Counts,
}

/// Every other line of theirs.
#[derive(Serialize)]
struct Number<'a> {
    part: &'static str,
    #[serde(flatten)]
    pair: &'a Pair<'a>,
}

/// The first line of JSON.
#[derive(Serialize)]
struct Summary<'a> {
    part: &'static str,
    a: Source<'a>,
    b: Source<'a>,
    #[serde(flatten)]
    comparison: &'a Comparison,
    differences: usize,
}

#[derive(Serialize)]
struct Source<'a> {
    file: &'a str,
    /// `results`, `reference` or `core`.
    holds: &'static str,
    /// Rows, lines of a published table, or numbers of a core.
    entries: usize,
    processor: Option<&'a str>,
    /// Where the code ran; null for a published table, and for a core.
    executor: Option<&'a str>,
    /// The number of a last line that is cut.
    cut_line: Option<u64>,
}

impl Input {
    fn source(&self) -> Source<'_> {
        let (holds, entries, cut_line) = match &self.content {
            Content::Results(table) => ("results", table.rows.len(), table.cut),
            Content::Reference(reference) => ("reference", reference.entries.len(), None),
            Content::Core { table, records } => ("core", records.len(), table.cut),
        };
        let executor = self.executor();
        Source { file: &self.path, holds, entries, processor: self.processor(), executor, cut_line }
    }
}

/// Every other line of JSON.
#[derive(Serialize)]
struct Different<'a> {
    part: &'static str,
    #[serde(flatten)]
    difference: &'a Difference,
}

/// Prints the comparison as JSON lines, all differences included.
fn records([a, b]: &[Input; 2], comparison: &Comparison, output: &mut Output) -> Result<(), Failure> {
    let (a, b) = (a.source(), b.source());
    let differences = comparison.differences.len();
    output.record("compare", &Summary { part: "summary", a, b, comparison, differences })?;
    for difference in &comparison.differences {
        output.record("compare", &Different { part: "difference", difference })?;
    }
    Ok(())
}
