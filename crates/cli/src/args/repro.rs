//! The command that repeats a result: every non-default option and the seed, quoted for a shell.
//!
//! The words come from the parsed options. A field that serde skips says where results go or what
//! is printed, and is left out.

use super::common::CommonArgs;
use super::grammar::build_grammar;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// Groups of options whose order differs from the help's.
const OPTION_ORDER: [&[&str]; 3] = [
    &[
        "from",
        "to",
        "hit",
        "arguments",
        "call",
        "versus",
        "versus_call",
        "cflags",
        "cc",
        "setup",
        "serialize",
        "values",
        "buffer",
        "contents",
        "stack",
        "init",
        "syntax",
        "assembler",
        "define",
        "include",
        "include_dir",
    ],
    &["budget", "timeout", "whole", "builds", "against"],
    &["quick", "force", "beside", "beside_cpu", "beside_shared", "seed"],
];
/// Options that follow the common options.
const BEHIND_COMMON: [&str; 1] = ["explain"];
/// Arguments that are names and need no `--` before them.
const NAME_ARGUMENTS: [&str; 2] = ["clocks", "subjects"];

/// Formats the whole command for these options and this seed.
pub fn format_repro(name: &str, args: &impl Serialize, common: &CommonArgs, seed: u64) -> String {
    let first = ["cyclescope", name].map(str::to_string);
    quote_words(first.into_iter().chain(collect_words(name, args, common, seed)))
}

/// Formats the words after the command's name.
pub fn format_repro_options(name: &str, args: &impl Serialize, common: &CommonArgs, seed: u64) -> String {
    quote_words(collect_words(name, args, common, seed).into_iter())
}

fn quote_words(words: impl Iterator<Item = String>) -> String {
    // Joining can't fail, because no command line contains a NUL byte.
    let words: Vec<String> = words.collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default()
}

fn collect_words(name: &str, args: &impl Serialize, common: &CommonArgs, seed: u64) -> Vec<String> {
    static GRAMMAR: LazyLock<clap::Command> = LazyLock::new(build_grammar);
    let own = GRAMMAR.find_subcommand(name).map_or(Vec::new(), order_arguments);
    let (values, common) =
        (serialize_fields(args), serialize_fields(&CommonArgs { seed: Some(seed), ..common.clone() }));
    let behind = |arg: &&clap::Arg| BEHIND_COMMON.contains(&arg.get_id().as_str());
    let options = |args: &[&clap::Arg], behind_common: bool| -> Vec<String> {
        let args = args.iter().filter(|arg| !arg.is_positional() && behind(arg) == behind_common);
        args.flat_map(|arg| option_words(arg, &values)).collect()
    };
    let mut words = options(&own, false);
    words.extend(order_arguments(&GRAMMAR).iter().flat_map(|arg| option_words(arg, &common)));
    words.extend(options(&own, true));
    for arg in own.iter().filter(|arg| arg.is_positional()) {
        let given = format_values(arg, &values);
        let is_name = NAME_ARGUMENTS.contains(&arg.get_id().as_str());
        words.extend((!is_name && !given.is_empty()).then(|| "--".to_string()));
        words.extend(given);
    }
    words
}

fn serialize_fields(args: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(args) {
        Ok(Value::Object(fields)) => fields,
        // The command has no options.
        _ => Map::new(),
    }
}

/// The arguments in printing order: each group of [`OPTION_ORDER`] appears at its first member.
fn order_arguments(command: &clap::Command) -> Vec<&clap::Arg> {
    let all: Vec<&clap::Arg> = command.get_arguments().collect();
    let place = |id: &str| {
        let own = all.iter().position(|arg| arg.get_id() == id).unwrap_or(all.len());
        let group = OPTION_ORDER.iter().find(|group| group.contains(&id));
        let first = group.and_then(|group| all.iter().position(|arg| group.contains(&arg.get_id().as_str())));
        (first.unwrap_or(own), group.and_then(|group| group.iter().position(|other| *other == id)))
    };
    let mut ordered = all.clone();
    ordered.sort_by_key(|arg| place(arg.get_id().as_str()));
    ordered
}

/// The words of an option and its values; empty if the option wasn't given.
fn option_words(arg: &clap::Arg, values: &Map<String, Value>) -> Vec<String> {
    let name = format!("--{}", arg.get_long().unwrap_or_default());
    if values.get(arg.get_id().as_str()) == Some(&Value::Bool(true)) {
        return vec![name];
    }
    let given = format_values(arg, values);
    match arg.get_value_delimiter() {
        Some(delimiter) if !given.is_empty() => vec![name, given.join(&delimiter.to_string())],
        _ => given.into_iter().flat_map(|text| [name.clone(), text]).collect(),
    }
}

/// The values of an argument as words.
fn format_values(arg: &clap::Arg, values: &Map<String, Value>) -> Vec<String> {
    match values.get(arg.get_id().as_str()) {
        Some(Value::Array(all)) => all.iter().filter_map(format_value).collect(),
        Some(value) => format_value(value).into_iter().collect(),
        None => Vec::new(),
    }
}

fn format_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // `Display` prints 2 rather than 2.0.
        Value::Number(number) if number.is_f64() => number.as_f64().map(|number| number.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;

    /// Formats the command and checks that clap knows every option in it.
    fn known(name: &str, args: &impl Serialize, common: &CommonArgs) -> String {
        let grammar = build_grammar();
        let own = grammar.find_subcommand(name).unwrap();
        for (command, fields) in [(own, serialize_fields(args)), (&grammar, serialize_fields(common))] {
            let ids: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
            assert!(fields.keys().all(|field| ids.contains(&field.as_str())), "{name}: {fields:?}, {ids:?}");
        }
        format_repro(name, args, common, 7)
    }

    fn repro(arguments: &[&str]) -> String {
        let cli = Cli::try_parse_from([&["cyclescope"], arguments].concat()).unwrap();
        match &cli.command {
            Some(CliCommand::Run(args)) => known("run", args, &cli.common),
            Some(CliCommand::Evaluate(args)) => known("evaluate", args, &cli.common),
            Some(CliCommand::Ab(args)) => known("ab", args, &cli.common),
            Some(CliCommand::Replay(args)) => known("replay", args, &cli.common),
            Some(CliCommand::Doctor) => known("doctor", &(), &cli.common),
            Some(CliCommand::Instr(args)) => known("instr", args, &cli.common),
            Some(CliCommand::Marker(args)) => known("marker", args, &cli.common),
            other => panic!("{other:?} is no run"),
        }
    }

    #[test]
    fn repro_parses_to_the_same_command() {
        let lines = [
            vec!["run", "imul rax, rax; nop"],
            vec!["run", "--hex", "90", "--interval", "0.5%", "--confidence", "0.99", "--loop", "3", "--quick"],
            vec!["run", "--clock", "rdtscp", "--cold", "code,data", "--init", "mov rax, 1", "it's"],
            vec!["run", "--assembler", "nasm", "-x"],
            vec!["run", "--syntax", "att", "--counts", "incl %eax"],
            vec!["run", "--c", "f.c", "--arg", "-1", "--arg", "size", "--buffer", "64K", "--contents", "a b"],
            vec![
                "run",
                "--elf",
                "a.o",
                "--call",
                "f",
                "--cflags",
                "-lm",
                "--serialize",
                "float-result",
                "--arg",
                "0.5f",
            ],
            vec!["run", "--versus", "b", "--versus", "c|d", "a"],
            vec!["run", "--c", "f.c", "--versus", "F=-O2|-O3 -march=native", "--cflags", "{F}", "--cc", "gcc -m64"],
            vec!["run", "--elf", "a", "--from", "f", "--to", "f+0x10", "--args", "-n '1 2'", "--timeout", "2.5"],
            vec!["doctor", "--quick", "--cpu", "0"],
            vec!["instr", "vpadd*", "lea r64, [b+i*s]", "--isa", "avx2,sse2", "--mnemonic", "sub", "--quick"],
            vec!["instr", "--from", "a list.csv", "--all"],
            vec!["instr", "--explain", "Vaddps_zmm{k}{z}"],
            vec!["marker", "usdt*", "flag", "--context", "l1,empty", "--state", "dormant", "--quick"],
            vec!["marker", "--all", "--clock", "rdtscp"],
            vec!["evaluate", "--clock", "rdtsc,rdtscp", "rdpru", "--ensembles", "10", "--budget", "2.5"],
        ];
        for line in lines {
            let first = repro(&line);
            let words = shlex::split(&first).unwrap();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(repro(&words[1..]), first);
            assert!(first.contains("--seed 7"));
        }
    }
    #[test]
    fn repro_has_a_fixed_order_and_omits_output_options() {
        for (given, expected) in [
            (
                "run --json --seed 1 --c f.c --buffer 64K --serialize --setup s --arg 0x10 --arg 0.5f --call f --csv a",
                "run --c f.c --call f --setup s --serialize fence --arg 16 --arg 0.5f --buffer 65536 --seed 7",
            ),
            (
                "run --interval 2% --budget 2.0 --cold tlb,code --beside nop --force --quick nop --evidence e \
                 --executor user",
                "run --interval 2% --budget 2 --cold tlb,code --quick --force --beside nop --seed 7 -- nop",
            ),
            (
                "run --hit 2 --elf a --to f+4 --timeout 3 --from f --args x --quick",
                "run --elf a --from f --to f+4 --hit 2 --args x --timeout 3 --quick --seed 7",
            ),
            ("instr --explain X --quick --cpu 1", "instr --cpu 1 --quick --seed 7 --explain X"),
            ("instr a b --csv c --out o", "instr --seed 7 -- a b"),
            (
                "ab --builds 3 --within 1% --budget 2 --markdown a b",
                "ab --within 1% --budget 2 --builds 3 --seed 7 -- a b",
            ),
            ("replay --measure d --clock rdtscp", "replay --measure --clock rdtscp --seed 7 -- d"),
            ("evaluate rdtscp --series --plots d", "evaluate --seed 7 rdtscp"),
        ] {
            let words = shlex::split(&repro(&given.split(' ').collect::<Vec<_>>())).unwrap();
            assert_eq!(words.join(" "), format!("cyclescope {expected}"));
        }
    }
}
