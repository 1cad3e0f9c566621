//! Measures cyclescope itself, here and now: known costs, blocks, coverage, additivity, traps,
//! speed, timing methods, tables of instructions, markers, ports, program comparisons, users' programs,
//! rivals.
//!
//! Each section is a file with a requirement and a function that prints its results. It measures
//! with the library as `cyclescope run` does. A missed requirement is printed as missed, and the
//! other sections continue. The last lines name all missed ones; the exit code is 1 then.

mod ab;
mod additivity;
mod blocks;
mod busy_loop;
mod cost_table;
mod costs;
mod coverage;
mod evaluate;
mod immediates;
mod instr;
mod instrument_error;
mod lab;
mod marker;
mod mixes;
mod options;
mod programs;
mod report;
mod rivals;
mod speed;
mod tally;
mod traps;

use clap::Parser;
use lab::{Demand, Lab, SectionResult};
use options::BenchOptions;
use std::process::ExitCode;

/// A part of the program that can run alone.
struct BenchSection {
    name: &'static str,
    proves: &'static str,
    run: fn(&mut Lab) -> SectionResult,
}

/// All sections, in the order in which they run.
const SECTIONS: &[BenchSection] = &[
    BenchSection {
        name: "costs",
        proves: "known costs are read, idle and with a busy loop",
        run: costs::check_known_costs,
    },
    BenchSection {
        name: "blocks",
        proves: "blocks that outrun the decoders cost what a C program's loop of them takes",
        run: blocks::check_blocks,
    },
    BenchSection { name: "coverage", proves: "intervals have their stated coverage", run: coverage::check_coverage },
    BenchSection {
        name: "additivity",
        proves: "k more additions cost k more cycles",
        run: additivity::check_additivity,
    },
    BenchSection { name: "traps", proves: "hard cases are measured right or refused", run: traps::check_traps },
    BenchSection {
        name: "speed",
        proves: "how long a measurement takes, and which part of it",
        run: speed::check_speed,
    },
    BenchSection {
        name: "evaluate",
        proves: "timing methods get the same verdict each time",
        run: evaluate::check_evaluation,
    },
    BenchSection {
        name: "immediates",
        proves: "tables find the constants that change costs, and no others",
        run: immediates::check_immediates,
    },
    BenchSection { name: "instr", proves: "tables of instructions are reproducible", run: instr::check_tables },
    BenchSection { name: "marker", proves: "surveys of markers are reproducible", run: marker::check_markers },
    BenchSection { name: "mixes", proves: "ports predict the time of random mixes", run: mixes::check_mixes },
    BenchSection {
        name: "ab",
        proves: "differences between programs are found, and only true ones",
        run: ab::check_comparisons,
    },
    BenchSection {
        name: "programs",
        proves: "regions, the header and pytest-benchmark read what a loop with the system's clock does",
        run: programs::check_programs,
    },
    BenchSection {
        name: "rivals",
        proves: "how other ways of timing read the same function",
        run: rivals::compare_rivals,
    },
];

fn main() -> ExitCode {
    let options = BenchOptions::parse();
    if options.list {
        for section in SECTIONS {
            println!("{:<12}{}", section.name, section.proves);
        }
        return ExitCode::SUCCESS;
    }
    match run_sections(options) {
        Ok(demands) => report::print_missed(&demands),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_sections(options: BenchOptions) -> SectionResult<Vec<Demand>> {
    let exists = |name: &String| SECTIONS.iter().any(|section| section.name == name);
    if let Some(name) = options.sections.iter().find(|name| !exists(name)) {
        return Err(format!("there is no section {name}; --list shows all").into());
    }
    let mut lab = Lab::new(options)?;
    for section in SECTIONS {
        let wanted = &lab.options.sections;
        if wanted.is_empty() || wanted.iter().any(|name| name == section.name) {
            println!("\n== {}: {}\n", section.name, section.proves);
            (section.run)(&mut lab)?;
        }
    }
    report::print_report(&lab);
    Ok(lab.demands)
}
