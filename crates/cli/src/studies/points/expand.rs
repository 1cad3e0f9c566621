//! Expands a command into points: its options with each value of a sweep, or with each snippet of a
//! list.

use super::trusted_options::list_trusted_sources;
use crate::args::template::{BoundVariable, find_variant_variable, parse_variant_words};
use crate::args::{RunArgs, Sweep, SweepValue, parse_run_words};
use crate::input::source;
use crate::output::Failure;
use cyclescope::asm::to_hex;
use cyclescope::input::InputKind;
use cyclescope::pasted::PastedRegion;
use cyclescope::record::ErrorRecord;
use cyclescope::study::points::{ListedSnippet, PointLabel, read_list};
use cyclescope::study::run::AdviceTexts;
use std::ffi::OsString;
use std::path::Path;

/// A point: its label, and the options that measure it alone.
pub struct PointRequest {
    /// What distinguishes the point from the others.
    pub label: PointLabel,
    /// Where its code is, for error messages.
    pub place: String,
    /// The options that measure it.
    pub args: RunArgs,
    /// The texts of the command that advice repeats.
    pub advice: AdviceTexts,
    /// Why it can't be measured, if its text shows that.
    pub refusal: Option<Box<ErrorRecord>>,
}

/// Expands these options, which hold the first value of a sweep; `words` are those of the command.
pub fn expand_points(args: &RunArgs, words: &[OsString]) -> Result<Vec<PointRequest>, Failure> {
    match (&args.points.sweep, args.list()) {
        (Some(_), Some(_)) => {
            let remedy = "leave out --from or --sweep";
            Err(Failure::usage("a list of snippets can't be combined with --sweep", Some(remedy)))
        }
        (Some(sweep), _) => expand_sweep(sweep, args, words),
        (None, Some(path)) => read_point_list(path, args),
        (None, None) => {
            if let Some(points) = expand_regions(args)? {
                return Ok(points);
            }
            let remedy = "add --sweep 'N=64..1M*2' and use {N}, or name a list of snippets with --from";
            Err(Failure::usage("--out, --csv and --plots need --sweep or --from", Some(remedy)))
        }
    }
}

fn expand_sweep(sweep: &Sweep, args: &RunArgs, words: &[OsString]) -> Result<Vec<PointRequest>, Failure> {
    // Standard input can be read only once.
    let is_stdin = args.source.snippet.as_deref() == Some("-");
    let stdin = if is_stdin { source::read_stdin(args)?.source.snippet } else { None };
    let variable = &sweep.variable;
    let command = words;
    let other = find_variant_variable(words);
    let mut all = Vec::with_capacity(sweep.values.len());
    let mut is_changed = false;
    for value in &sweep.values {
        let with = BoundVariable { variable, value, option: "--sweep", other: other.as_deref() };
        let place = format!("{variable} = {}", value.describe());
        let (words, in_words) = with.fill_words(words)?;
        let mut filled = parse_run_words(words).map_err(|error| error.with_subject(&place))?.1;
        // A result file alone may not decide them, and only its first value was checked.
        if list_trusted_sources(&filled) != list_trusted_sources(args) {
            let text = format!("{place} changes which of the options --file, --c, --lib, --elf and others are given");
            return Err(Failure::usage(text, Some("write options in the command, and only their values in --sweep")));
        }
        let texts = SnippetTexts::read(&filled, stdin.as_deref()).map_err(|error| error.with_subject(&place))?;
        let in_texts = texts.fill_args(with, &mut filled)?;
        is_changed |= in_words || in_texts;
        let variable = variable.clone();
        let given = |option: &str| find_option_text(command, option).unwrap_or_default();
        let advice = AdviceTexts {
            init: given("--init"),
            setup: given("--setup"),
            is_att: source::read_advice_texts(&filled).is_att,
        };
        let label = match value.clone() {
            SweepValue::Number(value) => PointLabel::Value { variable, value },
            SweepValue::Word(word) => PointLabel::Word { variable, word },
        };
        all.push(PointRequest { label, place, args: filled, advice, refusal: None });
    }
    if is_changed {
        return Ok(all);
    }
    let remedy = format!(
        "write {{{variable}}} where its value belongs: in a snippet, or as in --buffer '{{{variable}}}', \
         --arg '{{{variable}/8}}', --loop '{{{variable}}}' or --cflags '-D{variable}={{{variable}}}'"
    );
    Err(Failure::usage(format!("the command does not use {variable}, the variable of --sweep"), Some(&remedy)))
}

/// The text of an option in the words of a command.
fn find_option_text(words: &[OsString], option: &str) -> Option<String> {
    let mut words = words.iter().filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        match word.strip_prefix(option) {
            Some("") => return words.next().map(str::to_string),
            Some(rest) if rest.starts_with('=') => return Some(rest[1..].to_string()),
            _ => {}
        }
    }
    None
}

/// Texts of snippets that come from files or standard input.
struct SnippetTexts {
    snippet: Option<String>,
    versus: Vec<String>,
}

impl SnippetTexts {
    /// Reads them, if the options name any. `stdin` is the text of standard input.
    fn read(args: &RunArgs, stdin: Option<&str>) -> Result<SnippetTexts, Failure> {
        let from_file = args.source.file.is_some();
        let snippet = match stdin {
            Some(text) => Some(text.to_string()),
            None if from_file => source::read_snippet_text(args)?,
            None => None,
        };
        // Words of a variable are no files.
        let files = args.versus.iter().filter(|value| from_file && parse_variant_words(value).is_none());
        let versus = files.map(|path| source::read_file(Path::new(path), InputKind::Snippet));
        let versus = versus.collect::<Result<_, Failure>>()?;
        Ok(SnippetTexts { snippet, versus })
    }

    /// Replaces the files in the options by their texts with the value inserted. Returns whether a
    /// text had the variable.
    fn fill_args(&self, with: BoundVariable, args: &mut RunArgs) -> Result<bool, Failure> {
        let Some(snippet) = &self.snippet else { return Ok(false) };
        let snippet = with.fill_text(snippet)?;
        let mut is_changed = snippet.is_changed;
        args.source.file = None;
        args.source.snippet = Some(snippet.text);
        for (own, versus) in args.versus.iter_mut().zip(&self.versus) {
            let versus = with.fill_text(versus)?;
            is_changed |= versus.is_changed;
            *own = versus.text;
        }
        Ok(is_changed)
    }
}

/// The regions of a pasted text, each a point; `None` if it has fewer than two.
fn expand_regions(args: &RunArgs) -> Result<Option<Vec<PointRequest>>, Failure> {
    let Some((text, found)) = source::read_regions(args)? else { return Ok(None) };
    source::warn_of_dropped(&found);
    let region = |region: &PastedRegion| {
        let name = region.name.clone();
        let advice = source::read_advice_texts(args);
        let mut args = args.clone();
        (args.source.snippet, args.source.file) = (None, None);
        let refusal = match &region.code {
            Ok(code) => {
                args.source.hex = Some(to_hex(code.listing.bytes()));
                let init = [Some(code.init.clone()).filter(|init| !init.is_empty()), args.init.take()];
                args.init = init.into_iter().flatten().reduce(|own, given| format!("{own}\n{given}"));
                None
            }
            Err(error) => match Failure::from_snippet(error, &text) {
                Failure::Error(record) => Some(record),
                Failure::ClosedPipe => None,
            },
        };
        PointRequest { label: PointLabel::Name { name }, place: format!("line {}", region.line), args, advice, refusal }
    };
    let points: Vec<PointRequest> = found.regions.iter().map(region).collect();
    match points.iter().find_map(|point| point.refusal.clone()) {
        Some(refusal) if points.iter().all(|point| point.refusal.is_some()) => Err(Failure::Error(refusal)),
        _ => Ok(Some(points)),
    }
}

fn read_point_list(path: &Path, args: &RunArgs) -> Result<Vec<PointRequest>, Failure> {
    let file = path.display().to_string();
    let content = source::read_file(path, InputKind::List)?;
    let all = read_list(&content).map_err(|error| Failure::from_file(&file, error))?;
    let asked = |listed: ListedSnippet| {
        let ListedSnippet { line, name, snippet, hex, init } = listed;
        let mut args = RunArgs { from: None, ..args.clone() };
        args.source.snippet = snippet;
        args.source.hex = hex;
        args.init = init.or(args.init);
        let (advice, place) = (source::read_advice_texts(&args), format!("{file}, line {line}"));
        PointRequest { label: PointLabel::Name { name }, place, args, advice, refusal: None }
    };
    Ok(all.into_iter().map(asked).collect())
}
