//! The benchmarks of a program, and its table. Used by the attribute, not directly.

use crate::bencher::Bencher;
use crate::parts::{Cost, Plan};
use cyclescope_clock::ab::Samples;
use cyclescope_clock::{CoreCycles, CycleClock};
use std::fmt::Debug;
use std::process::exit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A benchmark function, in a list to which each adds itself before `main` begins.
#[derive(Debug)]
pub struct Entry {
    name: &'static str,
    run: fn(&mut Cases),
    next: AtomicPtr<Entry>,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

impl Entry {
    /// A function with this path.
    pub const fn new(name: &'static str, run: fn(&mut Cases)) -> Entry {
        Entry { name, run, next: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Adds the function to the list. Only one thread runs before `main`.
    pub fn register(&'static self) {
        let next = FIRST.swap(ptr::from_ref(self).cast_mut(), Ordering::AcqRel);
        self.next.store(next, Ordering::Release);
    }
}

/// The benchmarks of a program, by name.
fn entries() -> Vec<&'static Entry> {
    let mut all = Vec::new();
    // SAFETY: an item in the list is null or a static, of which only the atomic changes.
    while let Some(entry) =
        unsafe { all.last().map_or(&FIRST, |entry: &&'static Entry| &entry.next).load(Ordering::Acquire).as_ref() }
    {
        all.push(entry);
    }
    all.sort_by_key(|entry| entry.name);
    all
}

/// Runs the cases of a benchmark, and prints a line for each.
#[derive(Debug)]
pub struct Cases<'a> {
    clock: &'a CycleClock,
    name: &'a str,
    filters: &'a [String],
    samples: Option<&'a Samples>,
}

impl Cases<'_> {
    /// Runs a case, with this argument.
    pub fn case(&mut self, arg: Option<&dyn Debug>, run: impl FnOnce(Bencher)) {
        let name = arg.map_or(self.name.to_string(), |arg| format!("{}/{arg:?}", self.name));
        if !self.filters.is_empty() && !self.filters.iter().any(|filter| name.contains(filter)) {
            return;
        }
        let mut cost = None;
        let plan = self.samples.map_or(Plan::TABLE, |samples| Plan::observation(samples.time()));
        run(Bencher::new(self.clock, plan, &mut cost));
        println!("{}", line(&name, cost.as_ref()));
        if let (Some(samples), Some(cost)) = (self.samples, cost) {
            write(samples, &name, &cost);
        }
    }
}

/// Writes a sample of each part for `cyclescope ab`.
fn write(samples: &Samples, name: &str, cost: &Cost) {
    for span in &cost.parts {
        // If a part takes no longer than the readings, nothing is known about it.
        if span.cycles > CoreCycles(0.0)
            && let Err(error) = samples.cycles(name, cost.iterations, span.cycles)
        {
            eprintln!("cyclescope: a sample cannot be written: {error}");
            exit(1);
        }
    }
}

fn line(name: &str, cost: Option<&Cost>) -> String {
    let Some(Cost { cycles, interval: [low, high], iterations, parts }) = cost else {
        return format!("{name:30} measured nothing");
    };
    let (moved, parts) = (parts.iter().filter(|span| span.moved).count(), parts.len());
    let iterations = iterations * parts as u64;
    let interval = format!("{low:.2} to {high:.2}");
    let moved = if 20 * moved > parts {
        format!(", the core's clock moved in {moved} of {parts} parts")
    } else {
        String::new()
    };
    format!("{name:30} {cycles:12.2}  {interval:24} {iterations:10}{moved}")
}

/// Runs all benchmarks, or those whose names contain one of the arguments, and prints a table of
/// core cycles.
pub fn main() {
    let (options, filters): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).filter(|arg| arg != "--bench").partition(|arg| arg.starts_with('-'));
    if let Some(option) = options.first() {
        eprintln!("cyclescope-divan has no option {option}: it takes parts of the names of benchmarks");
        exit(2);
    }
    let clock = CycleClock::new();
    clock.caveats().iter().for_each(|caveat| eprintln!("cyclescope: core cycles are in doubt: {caveat}"));
    let samples = Samples::from_environment();
    println!("{:30} {:>12}  {:24} {:>10}", "benchmark (core cycles)", "median", "95 % interval", "iterations");
    for Entry { name, run, .. } in entries() {
        // The crate's own name is left out.
        let name = name.split_once("::").map_or(*name, |(_, name)| name);
        run(&mut Cases { clock: &clock, name, filters: &filters, samples: samples.as_ref() });
    }
}
