//! The command that repeats a result: seed and every option that is not the default, quoted for a shell.

use crate::args::{AbArgs, CallArgs, Common, EvaluateArgs, InstrArgs, MarkerArgs, RunArgs};
use clap::ValueEnum;
use cyclescope::measure::Precision;
use std::fmt::Display;
use std::path::Path;

/// A command line under construction.
struct CommandLine(Vec<String>);

impl CommandLine {
    fn option(&mut self, name: &str, value: &Option<impl Display>) {
        if let Some(value) = value {
            self.0.push(name.to_string());
            self.0.push(value.to_string());
        }
    }

    fn flag(&mut self, name: &str, set: bool) {
        if set {
            self.0.push(name.to_string());
        }
    }

    fn common(&mut self, common: &Common, seed: u64) {
        self.option(
            "--executor",
            &Some(common.offer()).filter(|offer| !offer.is_default()).map(|offer| offer.name),
        );
        self.option("--clock", &(!common.clock.is_empty()).then(|| common.clock.join(",")));
        self.option("--cpu", &common.cpu);
        self.flag("--quick", common.quick);
        self.flag("--force", common.force);
        common.beside.iter().for_each(|snippet| self.option("--beside", &Some(snippet)));
        common.beside_cpu.iter().for_each(|cpu| self.option("--beside-cpu", &Some(cpu)));
        self.option("--seed", &Some(seed));
    }

    fn calling(&mut self, with: &CallArgs) {
        self.option("--setup", &with.setup);
        self.option("--serialize", &with.serialize.map(name));
        with.values.iter().for_each(|value| self.option("--arg", &Some(value)));
        self.option("--buffer", &with.buffer);
        self.option("--contents", &with.contents);
        self.option("--stack", &with.stack);
    }

    fn quoted(self) -> String {
        // A NUL byte can't come from a command line, so joining can't fail.
        shlex::try_join(self.0.iter().map(String::as_str)).unwrap_or_default()
    }
}

/// The command that examines the same CPU in the same way.
pub fn doctor(common: &Common, seed: u64) -> String {
    let mut line = CommandLine(vec!["cyclescope".to_string(), "doctor".to_string()]);
    line.common(common, seed);
    line.quoted()
}

/// The command that evaluates timing methods with this seed.
pub fn evaluate(common: &Common, args: &EvaluateArgs, seed: u64) -> String {
    let mut line = CommandLine(vec!["cyclescope".to_string(), "evaluate".to_string()]);
    line.option("--ensembles", &args.ensembles);
    line.option("--samples", &args.samples);
    line.option("--resolution-samples", &args.resolution_samples);
    line.option("--budget", &args.budget);
    line.common(common, seed);
    line.0.extend(args.clocks.iter().cloned());
    line.quoted()
}

/// The command that surveys the same forms with this seed.
pub fn instr(common: &Common, args: &InstrArgs, seed: u64) -> String {
    let mut line = CommandLine(vec!["cyclescope".to_string(), "instr".to_string()]);
    let joined = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
    line.option("--mnemonic", &joined(&args.mnemonic));
    line.option("--isa", &joined(&args.isa));
    line.flag("--all", args.all);
    line.option("--from", &args.from.as_ref().map(|path| path.display().to_string()));
    line.common(common, seed);
    line.option("--explain", &args.explain);
    if !args.filters.is_empty() {
        line.0.push("--".to_string());
        line.0.extend(args.filters.iter().cloned());
    }
    line.quoted()
}

/// What follows `cyclescope instr NAME` in the command that measures one form with this seed; the list that it comes
/// from may have its init code.
pub fn form_options(common: &Common, args: &InstrArgs, seed: u64) -> String {
    let mut line = CommandLine(Vec::new());
    line.option("--from", &args.from.as_ref().map(|path| path.display().to_string()));
    line.common(common, seed);
    line.quoted()
}

/// The command of a study that takes names only, with this seed.
pub fn plain(study: &str, common: &Common, subjects: &[String], seed: u64) -> String {
    let mut line = CommandLine(vec!["cyclescope".to_string(), study.to_string()]);
    line.common(common, seed);
    line.0.extend(subjects.iter().cloned());
    line.quoted()
}

/// The command that surveys the same markers with this seed.
pub fn marker(common: &Common, args: &MarkerArgs, seed: u64) -> String {
    let mut line = CommandLine(vec!["cyclescope".to_string(), "marker".to_string()]);
    let joined = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
    line.option("--context", &joined(&args.context));
    line.option("--state", &joined(&args.state));
    line.flag("--all", args.all);
    line.option("--around", &args.around.as_ref().map(|file| file.display().to_string()));
    line.option("--around-snippet", &args.around_snippet);
    line.option("--cflags", &args.cflags);
    line.common(common, seed);
    if !args.designs.is_empty() {
        line.0.push("--".to_string());
        line.0.extend(args.designs.iter().cloned());
    }
    line.quoted()
}

/// The command that compares the same programs with this seed.
pub fn ab(common: &Common, args: &AbArgs, seed: u64) -> String {
    let mut line = CommandLine(vec!["cyclescope".to_string(), "ab".to_string()]);
    let percent = |share: f64| format!("{}%", 100.0 * share);
    line.option("--within", &args.within.map(percent));
    line.option("--fail-on-slower", &args.fail_on_slower.map(percent));
    line.flag("--fail-on-unclear", args.fail_on_unclear);
    line.option("--budget", &args.budget);
    line.option("--timeout", &args.timeout);
    line.flag("--whole", args.whole);
    line.option("--builds", &args.builds);
    line.option("--against", &args.against.as_ref().map(|path| path.display().to_string()));
    line.common(common, seed);
    line.0.push("--".to_string());
    line.0.extend(args.programs.iter().cloned());
    line.quoted()
}

/// The command that measures again from evidence.
pub fn replay(common: &Common, directory: &Path, seed: u64) -> String {
    let words = ["cyclescope", "replay", "--measure"];
    let mut line = CommandLine(words.map(str::to_string).to_vec());
    line.common(common, seed);
    line.0.extend(["--".to_string(), directory.display().to_string()]);
    line.quoted()
}

/// The command that repeats a run with this seed. What was read from standard input is in it as text.
pub fn run(common: &Common, args: &RunArgs, stdin: Option<&str>, seed: u64) -> String {
    let mut line = CommandLine(vec!["cyclescope".to_string(), "run".to_string()]);
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    line.option("--file", &path(&args.source.file));
    line.option("--hex", &args.source.hex);
    line.option("--c", &path(&args.source.c));
    line.option("--lib", &path(&args.source.lib));
    line.option("--elf", &path(&args.source.elf));
    line.option("--call", &args.call);
    line.option("--versus", &args.versus);
    line.option("--versus-call", &args.versus_call);
    line.option("--cflags", &args.cflags);
    line.calling(&args.call_with);
    line.option("--init", &args.init);
    line.option("--syntax", &args.syntax.map(name));
    line.option("--assembler", &args.assembler.map(name));
    line.option("--unroll", &args.unroll);
    line.option("--loop", &args.loop_count);
    line.option("--warm-up", &args.warm_up);
    line.option("--samples", &args.samples);
    line.option("--layouts", &args.layouts);
    line.option("--interval", &args.interval.map(width));
    line.option("--confidence", &args.confidence);
    line.option("--budget", &args.budget);
    line.flag("--counts", args.counts);
    let cold: Vec<String> = args.cold.iter().copied().map(name).collect();
    line.option("--cold", &(!cold.is_empty()).then(|| cold.join(",")));
    line.common(common, seed);
    if let Some(snippet) = &args.source.snippet {
        line.0.push("--".to_string());
        line.0.push(stdin.unwrap_or(snippet).to_string());
    }
    line.quoted()
}

fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default()
}

fn width(precision: Precision) -> String {
    if precision.share > 0.0 { format!("{}%", 100.0 * precision.share) } else { precision.cycles.to_string() }
}

#[cfg(test)]
mod tests {
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn repro(arguments: &[&str]) -> String {
        let cli = Cli::try_parse_from([&["cyclescope"], arguments].concat()).unwrap();
        match &cli.command {
            Some(Command::Run(args)) => super::run(&cli.common, args, None, 7),
            Some(Command::Evaluate(args)) => super::evaluate(&cli.common, args, 7),
            Some(Command::Doctor) => super::doctor(&cli.common, 7),
            Some(Command::Instr(args)) => super::instr(&cli.common, args, 7),
            Some(Command::Marker(args)) => super::marker(&cli.common, args, 7),
            other => panic!("{other:?} is no run"),
        }
    }

    #[test]
    fn the_repro_parses_to_the_same_command() {
        let lines = [
            vec!["run", "imul rax, rax; nop"],
            vec![
                "run",
                "--hex",
                "90",
                "--interval",
                "0.5%",
                "--confidence",
                "0.99",
                "--loop",
                "3",
                "--quick",
            ],
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
}
