//! The words of a command that decide what is measured, without those that say where results go.

use crate::output::EXPORTERS;
use crate::output::exporter::Exporter;
use crate::studies::run;
use std::ffi::OsString;

/// Options that say where results go, except those of formats, and whether they take a value.
const RESULT_OPTIONS: [(&str, bool); 4] =
    [("--json", false), ("--out", true), ("--resume", true), ("--evidence", true)];

/// Whether an option takes a value; `None` if it doesn't say where results go.
fn result_option(name: &str) -> Option<bool> {
    let of_format = |exporter: &&&dyn Exporter| {
        exporter.command_option(run::NAME).is_some() && name.strip_prefix("--") == Some(exporter.name())
    };
    let known = RESULT_OPTIONS.iter().find(|(option, _)| *option == name).map(|(_, takes_value)| *takes_value);
    known.or_else(|| EXPORTERS.iter().find(of_format).map(|_| true))
}

/// Removes the options that say where results go. Words after `--` aren't options.
pub fn drop_result_options(words: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::with_capacity(words.len());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            kept.push(word.clone());
            kept.extend(rest.cloned());
            break;
        }
        let text = word.to_str().unwrap_or_default();
        let name = text.split('=').next().unwrap_or_default();
        match result_option(name) {
            Some(true) if name == text => drop(rest.next()),
            Some(_) => {}
            None => kept.push(word.clone()),
        }
    }
    kept
}

/// Adds the seed and the CPU if the words lack them, so that the words determine every random
/// choice.
pub fn add_random_choices(words: &[OsString], seed: u64, cpu: u32) -> Vec<String> {
    let mut words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(program) = words.first_mut() {
        *program = "cyclescope".to_string();
    }
    let run = words.iter().position(|word| word == "run").map_or(words.len(), |run| run + 1);
    let options = words.iter().take_while(|word| *word != "--");
    let names: Vec<&str> = options.map(|word| word.split('=').next().unwrap_or_default()).collect();
    let chosen = [("--seed", seed), ("--cpu", cpu.into())];
    let chosen = chosen.iter().filter(|(name, _)| !names.contains(name));
    let chosen: Vec<String> = chosen.flat_map(|(name, value)| [name.to_string(), value.to_string()]).collect();
    words.splice(run..run, chosen);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn result_destinations_are_removed() {
        let line = "cyclescope run --json --out a --csv=b --sweep N=1 --quick --resume c -- --out {N}";
        assert_eq!(drop_result_options(&words(line)), words("cyclescope run --sweep N=1 --quick -- --out {N}"));
        assert_eq!(drop_result_options(&words("cyclescope run nop --plots")), words("cyclescope run nop"));
    }
}
