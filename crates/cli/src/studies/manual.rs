//! `cyclescope manual`: man pages and shell completions, in the folders where the shells and `man`
//! look for them.

use crate::args::ManualArgs;
use crate::args::grammar::build_grammar;
use crate::output::table_file::write_whole_file;
use crate::output::{Failure, Output};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::io;
use std::path::{Path, PathBuf};

/// A shell with the folder of its completions and their file's name.
const COMPLETIONS: &[(Shell, &str, &str)] = &[
    (Shell::Bash, "bash-completion/completions", "cyclescope"),
    (Shell::Fish, "fish/vendor_completions.d", "cyclescope.fish"),
    (Shell::Zsh, "zsh/site-functions", "_cyclescope"),
];
const PAGES_FOLDER: &str = "man/man1";

/// Writes the files, prints their names, and returns the exit code.
pub fn run_manual(args: &ManualArgs, output: &mut Output) -> Result<u8, Failure> {
    let files = render_manual().map_err(|error| Failure::from_system("writing the manual failed", &error))?;
    for (name, bytes) in files {
        let path = args.dir.join(name);
        let written = std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")));
        written.and_then(|()| write_whole_file(&path, &bytes)).map_err(|error| {
            let remedy = "name a directory where you may write";
            Failure::from_writing(format!("can't write {}", path.display()), &error, remedy)
        })?;
        output.write_line(path.display().to_string())?;
    }
    Ok(cyclescope::record::exit::DONE)
}

/// Each file with its path below the directory.
fn render_manual() -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut grammar = build_grammar();
    let mut files = Vec::new();
    for (shell, folder, file) in COMPLETIONS {
        let mut script = Vec::new();
        clap_complete::generate(*shell, &mut grammar, "cyclescope", &mut script);
        files.push((Path::new(folder).join(file), script));
    }
    // Gives each command the name of its page.
    grammar.build();
    push_pages(&grammar, &mut files)?;
    Ok(files)
}

/// Adds the page of a command and those of its subcommands.
fn push_pages(command: &Command, files: &mut Vec<(PathBuf, Vec<u8>)>) -> io::Result<()> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    let name = command.get_display_name().unwrap_or(command.get_name());
    files.push((Path::new(PAGES_FOLDER).join(format!("{name}.1")), page));
    let mut documented = command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
    documented.try_for_each(|below| push_pages(below, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_completions() {
        let files = render_manual().expect("text in memory");
        let text = |name: &str| {
            let found = files.iter().find(|(path, _)| path == Path::new(name));
            String::from_utf8(found.unwrap_or_else(|| panic!("no {name}")).1.clone()).expect("text")
        };
        for command in build_grammar().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = text(&format!("man/man1/cyclescope-{}.1", command.get_name()));
            assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{}", command.get_name());
            for (_, folder, file) in COMPLETIONS {
                let script = text(&format!("{folder}/{file}"));
                assert!(
                    script.contains(command.get_name()) && script.contains("seed"),
                    "{file}: {}",
                    command.get_name()
                );
            }
        }
        // Studies without options of their own, and commands of commands.
        assert!(text("man/man1/cyclescope-uarch.1").contains("datasheet"));
        assert!(text("man/man1/cyclescope-counters-list.1").contains("counters"));
        let has_page = |name: &str| files.iter().any(|(path, _)| path.ends_with(name));
        assert!(!has_page("cyclescope-manual.1") && !has_page("cyclescope-help.1"));
    }
}
