//! Measures cyclescope itself, here and now: known costs, coverage, additivity, traps, speed, timing methods,
//! tables of instructions, markers, programs compared, rivals.
//!
//! Each section is a file with a demand and a function that prints what was found. It measures with the library
//! as `cyclescope run` does. A demand that is missed is printed as missed and lets the other sections go on; the last lines name
//! all that are missed, and the exit code is 1 then.

mod ab;
mod additivity;
mod busy;
mod costs;
mod coverage;
mod evaluate;
mod immediates;
mod instr;
mod instrument;
mod lab;
mod marker;
mod options;
mod report;
mod rivals;
mod speed;
mod table;
mod tally;
mod traps;

use clap::Parser;
use lab::{Demand, Lab, Outcome};
use options::Options;
use std::process::ExitCode;

/// A part of the program that can be run alone.
struct Section {
    name: &'static str,
    proves: &'static str,
    run: fn(&mut Lab) -> Outcome,
}

/// All sections, in the order in which they run.
const SECTIONS: &[Section] = &[
    Section { name: "costs", proves: "known costs are read, idle and beside a busy loop", run: costs::run },
    Section { name: "coverage", proves: "intervals have their stated coverage", run: coverage::run },
    Section { name: "additivity", proves: "k more additions cost k more cycles", run: additivity::run },
    Section { name: "traps", proves: "what is hard to measure is right or refused", run: traps::run },
    Section { name: "speed", proves: "how long a measurement takes, and which part of it", run: speed::run },
    Section { name: "evaluate", proves: "timing methods get the same verdict each time", run: evaluate::run },
    Section {
        name: "immediates",
        proves: "tables find the constants in code that matter, and no others",
        run: immediates::run,
    },
    Section { name: "instr", proves: "tables of instructions say the same each time", run: instr::run },
    Section { name: "marker", proves: "surveys of markers say the same each time", run: marker::run },
    Section { name: "ab", proves: "programs are told to differ where they do, and only there", run: ab::run },
    Section { name: "rivals", proves: "how other ways of timing read the same function", run: rivals::run },
];

fn main() -> ExitCode {
    let options = Options::parse();
    if options.list {
        for section in SECTIONS {
            println!("{:<12}{}", section.name, section.proves);
        }
        return ExitCode::SUCCESS;
    }
    match run(options) {
        Ok(demands) => report::end(&demands),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Outcome<Vec<Demand>> {
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
    report::print(&lab);
    Ok(lab.demands)
}
