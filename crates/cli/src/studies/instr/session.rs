//! The session of a survey: its options, from the command line or a resumed file.

use super::form_selection::forms_identity;
use crate::args::{CommonArgs, InstrArgs};
use crate::output::Failure;
use crate::session::result_file::foreign_file;
use crate::session::resume::{ResumedFile, ResumedSettings};
use cyclescope::asm::CodeMode;
use cyclescope::events::CounterRequest;
use cyclescope::measure::Plan;
use cyclescope::study::instr::ResumedSurvey;
use cyclescope::study::instr::experiments::survey_effort::SurveyEffort;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::rows::instr_table::InstrTable;
use cyclescope::study::instr::session::{InstrSession, LinkCostsRecord};
use std::path::Path;

/// Builds the session of these options.
pub fn build_session(
    common: &CommonArgs,
    args: &InstrArgs,
    forms: &[TargetForm],
    plan: &Plan,
    effort: SurveyEffort,
    cpu: u32,
    counters: Option<CounterRequest>,
) -> InstrSession {
    InstrSession {
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: plan.seed,
        bits: args.code_mode.mode(),
        quick: common.quick,
        effort,
        confidence: plan.confidence,
        clock: plan.clock.name.to_string(),
        executor: common.offer().name.to_string(),
        cpu,
        filters: args.filters.clone(),
        mnemonic: args.mnemonic.clone(),
        isa: args.isa.clone(),
        all: args.all,
        // The list is read again on resume, perhaps from another directory.
        from: args.from.as_ref().map(|path| std::path::absolute(path).unwrap_or(path.clone())),
        forms: forms.len(),
        counters,
        identity: forms_identity(forms),
    }
}

/// Reads the complete lines that the survey uses from a file to resume; none if the first line is
/// incomplete.
pub fn read_resumed(
    path: &Path,
    content: &[u8],
) -> Result<(Option<ResumedFile<InstrSession>>, ResumedSurvey), Failure> {
    if content.is_empty() {
        return Ok((None, ResumedSurvey::default()));
    }
    let name = path.display().to_string();
    let InstrTable { machine, rows, .. } =
        InstrTable::read(content).map_err(|error| Failure::from_file(&name, error))?;
    let machine = machine.ok_or_else(|| foreign_file(path, super::NAME))?;
    let resumed = ResumedFile::new(path, super::NAME, machine)?;
    let refuse = |why: String| {
        let text = format!("the file's first line lacks the cost of the links: {why}");
        Failure::usage(text, Some("start a new file with --out"))
    };
    let gauge: LinkCostsRecord =
        serde_json::from_value(resumed.head["gauge"].clone()).map_err(|error| refuse(error.to_string()))?;
    if !gauge.is_possible() {
        return Err(refuse("one is negative".to_string()));
    }
    let kept = ResumedSurvey { head: Some((resumed.head.clone(), gauge)), rows, parts: Vec::new() };
    Ok((Some(resumed), kept))
}

/// The failure for a list that the resumed file names and that can't be used. It says nothing about
/// its content, because the file's author may not be allowed to read it.
pub fn hide_list(list: &Path) -> Failure {
    let text = format!("the file to resume names the list {}, which has changed or is none", list.display());
    Failure::usage(text, Some("name the list with --from to see what is wrong, or start a new file with --out"))
}

/// The failure for a file of a mode, if another one is asked for.
fn refuse_other_mode(path: &Path, kept: CodeMode, asked: CodeMode) -> Failure {
    let (kept, asked) = (kept.bits(), asked.bits());
    let text = format!("{} has forms of {kept}-bit mode, and --bits asks for {asked}-bit mode", path.display());
    let remedy = format!("resume it without --bits, or measure {asked}-bit mode into another file with --out");
    Failure::usage(text, Some(&remedy))
}

/// Fills options that weren't given with those of a session.
pub fn adopt_options(
    session: &InstrSession,
    common: &CommonArgs,
    args: &InstrArgs,
    path: &Path,
) -> Result<(CommonArgs, InstrArgs), Failure> {
    let InstrSession { seed, quick, cpu, clock, executor, .. } = session;
    let kept = ResumedSettings { executor, clock, seed: *seed, quick: *quick, cpu: *cpu };
    let (common, mut args) = (kept.adopt_options(common, path)?, args.clone());
    if let Some(asked) = args.code_mode.bits.filter(|asked| *asked != session.bits) {
        return Err(refuse_other_mode(path, session.bits, asked));
    }
    if args.filters.is_empty() && args.mnemonic.is_empty() && !args.all && args.from.is_none() {
        (args.filters, args.mnemonic) = (session.filters.clone(), session.mnemonic.clone());
        (args.all, args.from) = (session.all, session.from.clone());
        if args.isa.is_empty() {
            args.isa = session.isa.clone();
        }
    }
    args.code_mode.bits = Some(session.bits).filter(|bits| !bits.is_default());
    args.events = args.events.with_names(session.counters.as_ref());
    Ok((common, args))
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::*;
    use crate::args::{Cli, CliCommand};
    use crate::output::report::{GivenReport, require_harmless_lines, require_harmless_report};
    use clap::Parser;
    use cyclescope::study::ResultRecord;
    use cyclescope::study::instr::tables::{export, summary::SurveySummary};
    use cyclescope_fuzz::{InputShape, fuzz_reader};

    #[test]
    fn a_file_of_another_mode_is_refused_by_both_names() {
        let seed = include_bytes!("../../../../cyclescope/tests/hostile/results.jsonl");
        let path = Path::new("a.jsonl");
        let (resumed, _) = read_resumed(path, seed).map_err(|refused| refused.text().to_string()).expect("a good file");
        let wide = resumed.expect("it has a first line").session;
        let narrow = InstrSession { bits: CodeMode::Bits32, ..wide.clone() };
        let adopt = |session: &InstrSession, bits: &[&str]| {
            let words = [&["cyclescope", "instr", "--executor", "user", "nop"], bits].concat();
            let cli = Cli::try_parse_from(words).expect("a command");
            let Some(CliCommand::Instr(args)) = &cli.command else { unreachable!("the command is instr") };
            let adopted = adopt_options(session, &cli.common, args, path);
            adopted.map(|(_, args)| args.code_mode.mode()).map_err(|refused| refused.text().to_string())
        };
        for (session, mode) in [(&wide, CodeMode::Bits64), (&narrow, CodeMode::Bits32)] {
            let (own, other) = mode.choose([("64", "32"), ("32", "64")]);
            assert_eq!(adopt(session, &[]), Ok(mode));
            assert_eq!(adopt(session, &["--bits", own]), Ok(mode));
            let text = format!("a.jsonl has forms of {own}-bit mode, and --bits asks for {other}-bit mode");
            assert_eq!(adopt(session, &["--bits", other]), Err(text));
        }
    }

    #[test]
    fn any_fields_of_a_resumed_file_are_presented_or_refused() {
        let seed = include_bytes!("../../../../cyclescope/tests/hostile/results.jsonl").to_vec();
        let path = Path::new("a.jsonl");
        let (_, kept) = read_resumed(path, &seed).map_err(|refused| refused.text().to_string()).expect("a good file");
        assert!(kept.rows.len() > 1, "{} rows", kept.rows.len());
        fuzz_reader("resumed_instr", InputShape::Fields, &[seed], |bytes| {
            let Ok((_, ResumedSurvey { head, rows, .. })) = read_resumed(path, bytes) else { return };
            let (all, summary): (Vec<_>, _) = (rows.iter().collect(), SurveySummary::from_rows(&rows));
            require_harmless_report(&GivenReport {
                print: &|output| {
                    tables::print_rows(&all, output).and_then(|()| tables::print_summary(&summary, 1.0, output))
                },
                table: export::build_latency_table(&rows),
                summary: export::build_summary_table(&rows),
                draw: &Vec::new,
            });
            let lines = rows.iter().map(|row| ResultRecord::new("instr", row).line);
            let head = head.map(|(head, _)| ResultRecord::from_resumed_line("machine", &head).line);
            require_harmless_lines(lines.chain(head).collect::<Vec<_>>().iter().map(String::as_str));
        });
    }
}
