//! Options of a command that a result file alone may not decide: they run code outside the sandbox or
//! another program, or read another file, whose content messages could show.

use crate::args::{CommonArgs, RunArgs};
use crate::input::load_snippet::RUN_WORDS;

/// The first such option of a command.
pub fn find_trusted_option((common, args): &(CommonArgs, RunArgs)) -> Option<&'static str> {
    let executor = (!common.offer().is_default()).then_some("--executor");
    // Such a load may be a file, or compiled code.
    let beside = common.beside.iter().any(|load| load.trim_start().starts_with(RUN_WORDS)).then_some("--beside");
    executor.or(beside).or_else(|| list_trusted_sources(args).first().copied())
}

/// All such options that say what is measured.
pub fn list_trusted_sources(args: &RunArgs) -> Vec<&'static str> {
    let source = &args.source;
    let given = [
        ("--file", source.file.is_some()),
        ("--from", args.from.is_some()),
        ("--c", source.c.is_some()),
        ("--lib", source.lib.is_some()),
        ("--elf", source.elf.is_some()),
        ("--assembler", args.assembler.is_some()),
    ];
    given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
}
