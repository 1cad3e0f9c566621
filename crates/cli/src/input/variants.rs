//! The variants of a `run`: the options that measure each of them alone.
//!
//! Each `--versus` names another variant of the form of the first one. Or it gives words to a
//! variable, as in `--versus 'F=-O2|-O3' --cflags '{F}'`, and each word makes a variant. Variants
//! differ in what is measured only: all share the way of measuring, so that they can run in the same
//! rounds.

use crate::args::template::{BoundVariable, parse_variant_words};
use crate::args::{CallTarget, RunArgs, Sweep};
use crate::output::Failure;
use cyclescope::study::run::VARIANTS_MOST;
use std::path::PathBuf;

/// A variant: its name, if words make the variants, and the options that measure it alone.
#[derive(Debug)]
pub struct RunVariant {
    /// Such as `F = -O2`.
    pub name: Option<String>,
    /// Its options.
    pub args: RunArgs,
}

impl RunVariant {
    /// Adds the name to a failure.
    pub fn name_failure<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        match &self.name {
            Some(name) => result.map_err(|failure| failure.with_subject(name)),
            None => result,
        }
    }
}

/// Reads the snippet's text that the options name.
type TextReader<'a> = &'a dyn Fn(&RunArgs) -> Result<Option<String>, Failure>;

/// The variants that the options name, the first one first. Words of `--versus` may be in the text of
/// a file, which `read_text` reads.
pub fn expand_variants(args: &RunArgs, read_text: TextReader) -> Result<Vec<RunVariant>, Failure> {
    let words: Vec<_> = args.versus.iter().filter_map(|value| parse_variant_words(value)).collect();
    let variants = match words.into_iter().next() {
        Some(sweep) if args.versus.len() == 1 && args.versus_call.is_empty() => {
            let sweep = sweep.map_err(|expected| {
                Failure::usage(
                    format!("--versus '{}' is invalid: {expected}", args.versus[0]),
                    Some("see cyclescope run --help"),
                )
            })?;
            expand_words(args, &sweep, read_text)?
        }
        Some(_) => {
            let remedy = "give all variants as words of one variable, as in --versus 'F=-O2|-O3|-Os'";
            return Err(Failure::usage("--versus with words excludes other --versus and --versus-call", Some(remedy)));
        }
        None => expand_others(args)?,
    };
    if variants.len() > VARIANTS_MOST {
        let remedy = "leave some out, or measure each alone with --sweep";
        let text = format!("{} variants are more than {VARIANTS_MOST}", variants.len());
        return Err(Failure::usage(text, Some(remedy)));
    }
    Ok(variants)
}

/// A variant for each word of a variable.
fn expand_words(args: &RunArgs, sweep: &Sweep, read_text: TextReader) -> Result<Vec<RunVariant>, Failure> {
    let Sweep { variable, values, .. } = sweep;
    let mut is_used = false;
    let mut variants = Vec::with_capacity(values.len());
    for value in values {
        let bound = BoundVariable { variable, value, option: "--versus", other: None };
        let mut filled = alone(args);
        is_used |= fill_paths(bound, &mut filled)?;
        if filled.source.file.is_some() {
            filled.source.snippet = read_text(&filled)?;
            filled.source.file = None;
        }
        is_used |= fill_texts(bound, &mut filled)?;
        variants.push(RunVariant { name: Some(format!("{variable} = {}", value.describe())), args: filled });
    }
    if is_used {
        return Ok(variants);
    }
    let remedy = format!(
        "write {{{variable}}} where its words belong: in a snippet, --init, --setup, --hex, --cflags, --cc, --call, --arg, \
         --buffer, --contents, --stack or a file's name"
    );
    Err(Failure::usage(format!("no text of the command has {{{variable}}}, the variable of --versus"), Some(&remedy)))
}

/// Inserts a word into the texts that may differ between variants. Returns whether any of them had
/// the variable.
fn fill_texts(bound: BoundVariable, args: &mut RunArgs) -> Result<bool, Failure> {
    let mut is_changed = false;
    let RunArgs { source, init, call, cflags, cc, call_with, .. } = args;
    is_changed |= call_with.fill_word(bound)?;
    let texts = [&mut source.snippet, &mut source.hex, init, cflags, cc, &mut call_with.setup];
    for text in texts.into_iter().flatten() {
        let filled = bound.fill_text(text)?;
        is_changed |= filled.is_changed;
        *text = filled.text;
    }
    if let Some(call) = call {
        let filled = bound.fill_text(&call.text)?;
        is_changed |= filled.is_changed;
        *call = CallTarget::new(&filled.text);
    }
    Ok(is_changed)
}

/// The same for names of files.
fn fill_paths(bound: BoundVariable, args: &mut RunArgs) -> Result<bool, Failure> {
    let mut is_changed = false;
    let source = &mut args.source;
    for path in [&mut source.file, &mut source.c, &mut source.lib, &mut source.elf].into_iter().flatten() {
        // A name that isn't UTF-8 contains no variable.
        if let Some(text) = path.to_str() {
            let filled = bound.fill_text(text)?;
            is_changed |= filled.is_changed;
            *path = PathBuf::from(filled.text);
        }
    }
    Ok(is_changed)
}

/// The first variant, and the others that `--versus` and `--versus-call` name.
fn expand_others(args: &RunArgs) -> Result<Vec<RunVariant>, Failure> {
    let [sources, calls] = [args.versus.len(), args.versus_call.len()];
    if sources > 1 && calls > 1 && sources != calls {
        let text = format!("{calls} --versus-call don't belong to {sources} --versus");
        return Err(Failure::usage(text, Some("give one for each, or one for all")));
    }
    // A single value belongs to all others.
    fn value<T: Clone>(values: &[T], other: usize) -> Option<T> {
        values.get(if values.len() == 1 { 0 } else { other }).cloned()
    }
    let other = |other: usize| {
        let mut variant = alone(args);
        if let Some(source) = value(&args.versus, other) {
            let own = &mut variant.source;
            match own {
                _ if own.hex.is_some() => own.hex = Some(source),
                _ if own.file.is_some() => own.file = Some(source.into()),
                _ if own.c.is_some() => own.c = Some(source.into()),
                _ if own.lib.is_some() => own.lib = Some(source.into()),
                _ if own.elf.is_some() => own.elf = Some(source.into()),
                _ => own.snippet = Some(source),
            }
        }
        variant.call = value(&args.versus_call, other).or(variant.call);
        variant
    };
    let others = (0..sources.max(calls)).map(other);
    Ok([alone(args)].into_iter().chain(others).map(|args| RunVariant { name: None, args }).collect())
}

/// These options without other variants.
fn alone(args: &RunArgs) -> RunArgs {
    RunArgs { versus: Vec::new(), versus_call: Vec::new(), ..args.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;

    fn parse(arguments: &[&str]) -> RunArgs {
        match Cli::try_parse_from([&["cyclescope", "run"], arguments].concat()).unwrap().command {
            Some(CliCommand::Run(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn expand(arguments: &[&str]) -> Result<Vec<RunVariant>, Failure> {
        expand_variants(&parse(arguments), &|_| Ok(None))
    }

    #[test]
    fn words_make_variants_of_any_text() {
        let found = expand(&["--c", "{F}.c", "--cc", "{F}", "--cflags", "-O2 {F}", "--versus", "F=a|b"]).unwrap();
        let texts = |variant: &RunVariant| {
            let RunArgs { source, cc, cflags, versus, .. } = &variant.args;
            assert!(versus.is_empty());
            let path = source.c.as_ref().unwrap().display().to_string();
            [variant.name.clone().unwrap(), path, cc.clone().unwrap(), cflags.clone().unwrap()]
        };
        assert_eq!(texts(&found[0]), ["F = a", "a.c", "a", "-O2 a"]);
        assert_eq!(texts(&found[1]), ["F = b", "b.c", "b", "-O2 b"]);
        let found = expand(&["nop", "--init", "{I}", "--versus", "I=|mov eax, 1|mov eax, 2"]).unwrap();
        let inits: Vec<Option<&str>> = found.iter().map(|variant| variant.args.init.as_deref()).collect();
        assert_eq!(inits, [Some(""), Some("mov eax, 1"), Some("mov eax, 2")]);
        // A file's text has the variable.
        let args = parse(&["--file", "a.s", "--versus", "A=1|2"]);
        let found = expand_variants(&args, &|_| Ok(Some("add rax, {A}".to_string()))).unwrap();
        assert_eq!(found[1].args.source.snippet.as_deref(), Some("add rax, 2"));
    }

    #[test]
    fn words_reach_the_options_of_calls() {
        let line = ["--c", "f.c", "--arg", "{N}", "--arg", "p=buffer+{N}", "--buffer", "{N}K", "--stack", "64K"];
        let found = expand(&[&line[..], &["--contents", "{N}.bin", "--versus", "N=8|16"]].concat()).unwrap();
        let texts = |variant: &RunVariant| {
            let call = &variant.args.call_with;
            let values = call.arguments().unwrap().iter().map(|value| value.to_string()).collect::<Vec<_>>().join(" ");
            let bytes = (call.buffer_bytes().unwrap().unwrap(), call.stack_bytes().unwrap().unwrap());
            (values, bytes, call.contents.as_ref().unwrap().to_string())
        };
        assert_eq!(texts(&found[0]), ("8 p=buffer+8".to_string(), (8 << 10, 64 << 10), "8.bin".to_string()));
        assert_eq!(texts(&found[1]), ("16 p=buffer+16".to_string(), (16 << 10, 64 << 10), "16.bin".to_string()));
        let words = ["run", "--c", "f.c", "--arg", "N", "--buffer=N", "--versus", "N=8|16"];
        let words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
        let braced = crate::args::template::brace_variant_variable(words);
        let braced: Vec<&str> = braced[1..].iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(expand(&braced).unwrap()[1].args.call_with.buffer_bytes().unwrap(), Some(16));
        for (arguments, says) in [
            (&["--arg", "{N}", "--versus", "N=8|1.2.3"][..], "--arg '1.2.3' is invalid"),
            (&["--buffer", "{N}", "--versus", "N=8|0"], "--buffer '0' is invalid"),
            (&["--buffer", "{M}", "--versus", "N=8|9"], "--versus defines N"),
        ] {
            let failure = expand(&[&["--c", "f.c"], arguments].concat()).unwrap_err();
            assert!(failure.text().contains(says), "{arguments:?}: {failure:?}");
        }
    }

    #[test]
    fn other_variants_have_the_form_of_the_first() {
        let sources = |arguments: &[&str]| -> Vec<String> {
            let source = |variant: &RunVariant| {
                let RunArgs { source, call, .. } = &variant.args;
                let path = [&source.file, &source.c, &source.lib, &source.elf].into_iter().flatten().next();
                let path = path.map(|path| path.display().to_string());
                let text = source.snippet.clone().or(source.hex.clone()).or(path).unwrap();
                [Some(text), call.as_ref().map(|call| call.text.clone())]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            expand(arguments).unwrap().iter().map(source).collect()
        };
        assert_eq!(sources(&["nop", "--versus", "x = 1|2", "--versus", "./F=a|b"]), ["nop", "x = 1|2", "./F=a|b"]);
        assert_eq!(sources(&["--hex", "90", "--versus", "cc"]), ["90", "cc"]);
        assert_eq!(sources(&["--file", "a", "--versus", "b", "--versus", "c"]), ["a", "b", "c"]);
        assert_eq!(sources(&["--c", "a", "--versus", "b", "--versus", "c", "--versus-call", "g"]), ["a", "b g", "c g"]);
        assert_eq!(
            sources(&["--lib", "a", "--call", "f", "--versus-call", "g", "--versus-call", "h"]),
            ["a f", "a g", "a h"]
        );
        assert_eq!(
            sources(&["--elf", "a", "--call", "f", "--versus", "b", "--versus-call", "g", "--versus-call", "h"]),
            ["a f", "b g", "b h"]
        );
    }

    #[test]
    fn variants_that_do_not_fit_are_refused() {
        for (arguments, says) in [
            (&["nop", "--versus", "F=a|b"][..], "no text of the command has {F}"),
            (&["{F}", "--versus", "F=a|b", "--versus", "nop"], "excludes other --versus"),
            (&["{G}", "--versus", "F=a|b"], "--versus defines F"),
            (&["{F*2}", "--versus", "F=1|2"], "are words"),
            (&["{F}", "--versus", "F='a|b"], "is not closed"),
            (&["{F}", "--versus", "F=a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q"], "17 variants"),
        ] {
            let failure = expand(arguments).unwrap_err();
            assert!(failure.text().contains(says), "{arguments:?}: {failure:?}");
        }
        let calls = ["--versus-call", "g", "--versus-call", "h"];
        let many = [&["--c", "a", "--versus", "b", "--versus", "c", "--versus", "d"], &calls[..]].concat();
        assert!(expand(&many).unwrap_err().text().contains("don't belong"));
    }
}
