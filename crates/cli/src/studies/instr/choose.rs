//! From the command line to the forms that are meant.

use crate::args::InstrArgs;
use crate::output::Failure;
use cyclescope::input::{self, Kind};
use cyclescope::random::mix;
use cyclescope::study::instr::forms::wanted::WantedForm;
use cyclescope::study::instr::list;
use cyclescope::study::instr::selection::{Criteria, Unmatched, all, full_name};
use std::path::Path;

/// The forms that the options select.
pub fn forms(args: &InstrArgs) -> Result<Vec<WantedForm>, Failure> {
    let mut criteria =
        Criteria { filters: args.filters.clone(), mnemonics: args.mnemonic.clone(), isa: args.isa.clone() };
    criteria.filters.extend(args.explain.clone());
    if names_nothing(args) {
        let remedy = "cyclescope instr 'vpadd*', or --mnemonic, --isa, --from; --all measures everything";
        return Err(Failure::usage("no instruction is named", Some(remedy)));
    }
    if args.all && !(criteria.filters.is_empty() && criteria.mnemonics.is_empty()) {
        let remedy = "leave --all or the filter out; --isa goes with both";
        return Err(Failure::usage("--all already selects every form", Some(remedy)));
    }
    let forms = match &args.from {
        Some(path) => listed(path)?,
        None => all(),
    };
    criteria.select(forms).map_err(|unmatched| refused(&unmatched))
}

/// Whether no option selects anything.
pub fn names_nothing(args: &InstrArgs) -> bool {
    let names =
        args.filters.is_empty() && args.mnemonic.is_empty() && args.isa.is_empty() && args.explain.is_none();
    names && !args.all && args.from.is_none()
}

fn listed(path: &Path) -> Result<Vec<WantedForm>, Failure> {
    let name = path.display().to_string();
    let content = input::read(path, Kind::List)
        .map_err(|bad| Failure::input(&bad, "name a CSV file with a column `instruction`"))?;
    list::read(&content).map_err(|error| Failure::file(&name, error))
}

fn refused(unmatched: &Unmatched) -> Failure {
    let (text, near) = match unmatched {
        Unmatched::Filter(filter, near) => (format!("no form matches `{filter}`"), near.as_slice()),
        Unmatched::Mnemonic(name, near) => (format!("there is no instruction `{name}`"), near.as_slice()),
        Unmatched::Isa(name, near) => (format!("there is no CPUID feature `{name}`"), near.as_slice()),
        Unmatched::Together => {
            let text = "--isa leaves none of the forms that the filters select";
            return Failure::usage(text, Some("leave --isa out, or name other features"));
        }
    };
    let list = "`cyclescope instr --all --list` shows all forms and their features";
    let remedy = match near {
        [] => list.to_string(),
        near => format!("did you mean {}? {list}", near.join(", ")),
    };
    Failure::usage(text, Some(&remedy))
}

/// A number that identifies a list of forms, with their questions and init code.
pub fn identity(forms: &[WantedForm]) -> String {
    let mut number = 0;
    for wanted in forms {
        let questions = [u8::from(wanted.latency), u8::from(wanted.throughput)];
        let bytes =
            full_name(wanted).into_bytes().into_iter().chain(questions).chain(wanted.init.iter().copied());
        number = bytes.fold(mix(number, 1), |number, byte| mix(number, u64::from(byte)));
    }
    format!("{number:016x}")
}
