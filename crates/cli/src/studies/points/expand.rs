//! The points of a command: its options with each value of a sweep, or each snippet of a list.

use crate::args::grammar::grammar;
use crate::args::template::Value;
use crate::args::{Cli, Command, Common, RunArgs, Sweep};
use crate::input::source;
use crate::output::Failure;
use clap::FromArgMatches;
use cyclescope::input::Kind;
use cyclescope::record::ErrorRecord;
use cyclescope::study::points::{Label, Listed, read};
use std::ffi::OsString;
use std::path::Path;

/// A point: what tells it from the others, and the options that measure it alone.
pub struct Asked {
    /// What tells it from the others.
    pub label: Label,
    /// Where its code stands, for errors.
    pub place: String,
    /// Its options.
    pub args: RunArgs,
}

/// The points of these options, which have the first value of a sweep in them; `words` are those of the command.
pub fn expanded(args: &RunArgs, words: &[OsString]) -> Result<Vec<Asked>, Failure> {
    match (&args.points.sweep, &args.points.from) {
        (Some(sweep), _) => swept(sweep, args, words),
        (None, Some(path)) => listed(path, args),
        (None, None) => {
            let remedy = "add --sweep 'N=64..1M*2' and write {N}, or name a list of snippets with --from";
            Err(Failure::usage("--out, --csv and --plots are for many points", Some(remedy)))
        }
    }
}

fn swept(sweep: &Sweep, args: &RunArgs, words: &[OsString]) -> Result<Vec<Asked>, Failure> {
    let texts = Texts::read(args)?;
    let variable = &sweep.variable;
    let mut all = Vec::with_capacity(sweep.values.len());
    let mut is_changed = false;
    for &value in &sweep.values {
        let with = Value { variable, value };
        let place = format!("{variable} = {value}");
        let (words, in_words) = with.fill_words(words)?;
        let mut args = parsed(words).map_err(|error| at(&place, error))?.1;
        let in_texts = texts.fill(with, &mut args)?;
        is_changed |= in_words || in_texts;
        all.push(Asked { label: Label::Value { variable: variable.clone(), value }, place, args });
    }
    if is_changed {
        return Ok(all);
    }
    let remedy = format!(
        "write {{{variable}}} where its values belong: in a snippet, or as in --buffer '{{{variable}}}' --arg '{{{variable}/8}}', \
         --loop '{{{variable}}}', --cflags '-D{variable}={{{variable}}}'"
    );
    Err(Failure::usage(format!("{variable} of --sweep stands nowhere in the command"), Some(&remedy)))
}

/// The options of `run` in the words of a command.
pub fn parsed(words: Vec<OsString>) -> Result<(Common, RunArgs), Failure> {
    let matches = grammar().try_get_matches_from(words);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
        let text = error.to_string();
        let text = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").to_string();
        Failure::usage(text, Some("see cyclescope run --help"))
    })?;
    match cli.command {
        Some(Command::Run(args)) => Ok((cli.common, *args)),
        _ => Err(Failure::usage("the command is no `cyclescope run`", None)),
    }
}

/// A failure with the place of the code that it is about.
pub fn at(place: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Error(record) => {
            let text = format!("{place}: {}", record.text);
            Failure::Error(Box::new(ErrorRecord { text, ..*record }))
        }
        closed => closed,
    }
}

/// Texts of snippets that are in files.
struct Texts {
    snippet: Option<String>,
    versus: Option<String>,
}

impl Texts {
    /// Reads them, where the options name files or standard input.
    fn read(args: &RunArgs) -> Result<Texts, Failure> {
        let from_file = args.source.file.is_some();
        let is_read = from_file || args.source.snippet.as_deref() == Some("-");
        let snippet = if is_read { source::read(args)?.map(|text| text.text) } else { None };
        let versus = args.versus.as_ref().filter(|_| from_file);
        let versus = versus.map(|path| source::read_file(Path::new(path), Kind::Snippet)).transpose()?;
        Ok(Texts { snippet, versus })
    }

    /// Puts the texts with a value into the options, in the place of the files, and says whether the variable was in them.
    fn fill(&self, with: Value, args: &mut RunArgs) -> Result<bool, Failure> {
        let Some(snippet) = &self.snippet else { return Ok(false) };
        let snippet = with.fill(snippet)?;
        let mut is_changed = snippet.is_changed;
        args.source.file = None;
        args.source.snippet = Some(snippet.text);
        if let Some(versus) = &self.versus {
            let versus = with.fill(versus)?;
            is_changed |= versus.is_changed;
            args.versus = Some(versus.text);
        }
        Ok(is_changed)
    }
}

fn listed(path: &Path, args: &RunArgs) -> Result<Vec<Asked>, Failure> {
    let file = path.display().to_string();
    let content = source::read_file(path, Kind::List)?;
    let all = read(&content).map_err(|error| Failure::file(&file, error))?;
    let asked = |listed: Listed| {
        let Listed { line, name, snippet, hex, init } = listed;
        let mut args = args.clone();
        args.source.snippet = snippet;
        args.source.hex = hex;
        args.init = init.or(args.init);
        Asked { label: Label::Name { name }, place: format!("{file}, line {line}"), args }
    };
    Ok(all.into_iter().map(asked).collect())
}
