//! An evaluation on one screen: the verdict, then a table of the methods.

use super::method_table::executor_place;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::{format_count, shorten_text};
use crate::output::{Failure, Output, WIDTH};
use comfy_table::CellAlignment;
use cyclescope::asm::CodeMode;
use cyclescope::executor::DEFAULT_OFFER;
use cyclescope::study::evaluate::contamination::{Contamination, ContaminationFault, FAULTS, PromiseVerdict};
use cyclescope::study::evaluate::evaluation::{Evaluation, MethodEvaluation};
use cyclescope::study::evaluate::record::EvaluateOrigin;
use cyclescope::study::evaluate::verdict::{EvaluationVerdict, RecommendedMethod};

/// Lines of the screen.
const SCREEN_LINES: usize = 24;
/// Lines around the verdict and the table's rows: title, blank line, heading, notes.
const FRAME_LINES: usize = 6;
/// Findings that are printed; the others are counted.
const FINDINGS_MOST: usize = 2;
/// Methods that are printed at least.
const ROWS_LEAST: usize = 4;
/// Width of a value beside its label.
const VALUE_WIDTH: usize = WIDTH - 20;

/// Prints the verdict and the methods.
pub fn print_summary(
    page: &mut TextPage,
    evaluation: &Evaluation,
    around: &EvaluateOrigin,
    mode: CodeMode,
) -> Result<(), Failure> {
    page.begin_section(&describe_title(around, mode))?;
    let mut used = FRAME_LINES;
    for verdict in &evaluation.verdicts {
        used += print_verdict(page, verdict)?;
    }
    page.output.write_line("")?;
    print_methods(page, evaluation, SCREEN_LINES.saturating_sub(used))?;
    print_note(
        page,
        "overhead: core cycles of an empty pair. 1 by: readings that resolve one core cycle. lets in: faults seen next \
         to other code; !: against a promise; ?: others are undecided. --why prints every table and reason.",
    )
}

/// The title, with the mode of the code if it is not the usual one.
fn describe_title(around: &EvaluateOrigin, mode: CodeMode) -> String {
    let code = if mode.is_default() { String::new() } else { format!(" in {}-bit code", mode.bits()) };
    shorten_text(&format!("Timing methods{code} on {}, CPU {}", around.cpu_model, around.cpu), WIDTH)
}

/// Prints the recommendations of an executor, and returns the number of lines.
fn print_verdict(page: &mut TextPage, verdict: &EvaluationVerdict) -> Result<usize, Failure> {
    let place = describe_place(verdict.executor);
    let mut lines = 0;
    for (code, recommended) in [("short", &verdict.short_code), ("long", &verdict.long_code)] {
        let label = format!("{code} code");
        match recommended {
            Some(method) => {
                page.print_painted_row(&label, &format!("{}{place}", method.clock), Output::bold)?;
                page.print_row("", &shorten_text(&describe_recommended(method), VALUE_WIDTH))?;
                lines += 2;
            }
            None => {
                let why = verdict.caveats.first().map_or("no method is suitable here", |caveat| &caveat.text);
                page.print_row(&label, &shorten_text(&format!("none{place}: {why}"), VALUE_WIDTH))?;
                lines += 1;
            }
        }
    }
    for finding in verdict.findings.iter().take(FINDINGS_MOST) {
        page.print_painted_row("finding", &shorten_text(finding, VALUE_WIDTH), Output::yellow)?;
        lines += 1;
    }
    let more = verdict.findings.len().saturating_sub(FINDINGS_MOST);
    if more > 0 {
        page.print_row("", &format!("and {}", format_count(more as u64, "more finding")))?;
        lines += 1;
    }
    Ok(lines)
}

/// Where a method ran, unless on the default executor.
fn describe_place(executor: &str) -> String {
    if executor == DEFAULT_OFFER.name { String::new() } else { format!(" in {}", executor_place(executor)) }
}

/// What to subtract, and the shortest code for one reading.
fn describe_recommended(method: &RecommendedMethod) -> String {
    let [five, one] = method.shortest_once;
    let once = format!("good to 5 % from {five:.0} cycles, 1 % from {one:.0}");
    match method.overhead.value {
        Some(overhead) => format!("subtract {overhead:.1}; {once}"),
        None => once,
    }
}

/// Prints the recommended methods, then the others from the cheapest, in at most `rows_most` rows.
fn print_methods(page: &mut TextPage, evaluation: &Evaluation, rows_most: usize) -> Result<(), Failure> {
    let mut methods: Vec<&MethodEvaluation> = evaluation.methods.iter().collect();
    methods.sort_by(|a, b| {
        let rank = |found: &MethodEvaluation| (!is_recommended(evaluation, found), find_overhead(found));
        let ((other_a, cost_a), (other_b, cost_b)) = (rank(a), rank(b));
        other_a.cmp(&other_b).then(cost_a.total_cmp(&cost_b))
    });
    let rows_most = rows_most.max(ROWS_LEAST);
    let shown = if methods.len() > rows_most { rows_most - 1 } else { methods.len() };
    let mut rows = new_table(&["method", "overhead", "1 by", "lets in"]);
    rows.column_mut(3).expect("there are four").set_cell_alignment(CellAlignment::Left);
    for found in &methods[..shown] {
        let overhead = found.method.as_ref().and_then(|method| method.overhead);
        let readings = found.resolution.by_samples.first().and_then(|ladder| ladder.one_cycle_from);
        let overhead = overhead.map_or("-".to_string(), |cost| format!("{:.1} ± {:.1}", cost.value, cost.half_width()));
        rows.add_row([
            format!("{}{}", found.candidate.clock.name, describe_place(found.candidate.executor)),
            overhead,
            readings.map_or("-".to_string(), |readings| readings.to_string()),
            describe_faults(&found.contamination),
        ]);
    }
    print_table(page, &rows)?;
    match methods.len() - shown {
        0 => Ok(()),
        more => page.output.write_line(format!("  and {more} dearer ones")),
    }
}

fn is_recommended(evaluation: &Evaluation, found: &MethodEvaluation) -> bool {
    let of = |verdict: &EvaluationVerdict| {
        let recommended = [&verdict.short_code, &verdict.long_code].into_iter().flatten();
        verdict.executor == found.candidate.executor
            && recommended.into_iter().any(|method| method.clock == found.candidate.clock.name)
    };
    evaluation.verdicts.iter().any(of)
}

/// The cost of an empty pair; infinite if it is unknown.
fn find_overhead(found: &MethodEvaluation) -> f64 {
    found.method.as_ref().and_then(|method| method.overhead).map_or(f64::INFINITY, |overhead| overhead.value)
}

/// The faults that were seen, in at most 33 characters.
fn describe_faults(rows: &[Contamination]) -> String {
    let verdict = |fault| rows.iter().find(|row| row.fault == fault).map(|row| row.verdict);
    let is_seen =
        |fault: &ContaminationFault| matches!(verdict(*fault), Some(PromiseVerdict::Visible | PromiseVerdict::Broken));
    let (seen, unseen): (Vec<_>, Vec<_>) = FAULTS.into_iter().partition(is_seen);
    let open = unseen.iter().any(|fault| verdict(*fault) == Some(PromiseVerdict::Unclear));
    let broken = seen.iter().any(|fault| verdict(*fault) == Some(PromiseVerdict::Broken));
    let words = match (seen.len(), unseen.as_slice()) {
        (0, _) if rows.iter().all(|row| row.cost.known().is_none()) => return "-".to_string(),
        (0, _) => "nothing".to_string(),
        (_, []) => "everything".to_string(),
        (_, [spared]) => format!("all but {}", fault_word(*spared)),
        _ => seen.iter().map(|fault| fault_word(*fault)).collect::<Vec<_>>().join(" "),
    };
    format!("{words}{}{}", if broken { " !" } else { "" }, if open { " ?" } else { "" })
}

/// A fault in the word that heads its column among the contaminations.
fn fault_word(fault: ContaminationFault) -> &'static str {
    match fault {
        ContaminationFault::LeadingUnfinished => "leading",
        ContaminationFault::BodyStartedEarly => "early",
        ContaminationFault::BodyUnfinished => "unfinished",
        ContaminationFault::FollowingInTheWay => "following",
        ContaminationFault::StoresNotDrained => "stores",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope::machine::fact::Fact;
    use cyclescope::statistics::Interval;

    #[test]
    fn the_title_names_32_bit_code() {
        let around =
            EvaluateOrigin { cpu: 1, cpu_model: "Zen".to_string(), seed: 1, repro: "cyclescope evaluate".to_string() };
        assert_eq!(describe_title(&around, CodeMode::Bits64), "Timing methods on Zen, CPU 1");
        assert_eq!(describe_title(&around, CodeMode::Bits32), "Timing methods in 32-bit code on Zen, CPU 1");
    }

    #[test]
    fn faults_are_named_shortly() {
        use PromiseVerdict::{Broken, Kept, NotVisible, Unclear, Visible};
        let describe = |verdicts: [PromiseVerdict; 5]| {
            let row = |(fault, verdict)| Contamination {
                fault,
                promised: true,
                neighbour: "",
                size: None,
                cost: Fact::Known(Interval::with_margin(1.0, 0.1)),
                shared: false,
                second: None,
                verdict,
            };
            describe_faults(&FAULTS.into_iter().zip(verdicts).map(row).collect::<Vec<_>>())
        };
        assert_eq!(describe([Kept, Kept, Kept, Kept, NotVisible]), "nothing");
        assert_eq!(describe([Kept, Unclear, Kept, Kept, Visible]), "stores ?");
        assert_eq!(describe([Kept, Broken, Kept, Kept, Visible]), "early stores !");
        assert_eq!(describe([Visible, Visible, Visible, Unclear, Visible]), "all but following ?");
        assert_eq!(describe([Visible; 5]), "everything");
        assert_eq!(describe_faults(&[]), "-");
        let longest = describe([Broken, Unclear, Visible, Visible, Kept]);
        assert_eq!(longest, "leading unfinished following ! ?");
        assert!(longest.chars().count() <= 33);
    }
}
