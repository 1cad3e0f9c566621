//! The benchmarks of a program, and its table. Used by the attribute, not directly.

use crate::bencher::Bencher;
use crate::command_line::{CommandLine, Mode};
use crate::parts::{Cost, Plan};
use cyclescope_clock::ab::{Samples, TOO_SHORT};
use cyclescope_clock::{CoreCycles, CycleClock};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;
use std::process::exit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A benchmark function, in a list to which each adds itself before `main` begins.
#[derive(Debug)]
pub struct Entry {
    /// The module's path and the name in it.
    module: &'static str,
    name: &'static str,
    ignored: bool,
    run: fn(&mut Cases),
    next: AtomicPtr<Entry>,
}

static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

impl Entry {
    /// A function of this module, by the name that is printed.
    pub const fn new(module: &'static str, name: &'static str, ignored: bool, run: fn(&mut Cases)) -> Entry {
        Entry { module, name, ignored, run, next: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The path without the crate's own name.
    fn path(&self) -> String {
        self.module.split_once("::").map_or(String::new(), |(_, module)| format!("{module}::")) + self.name
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
    loop {
        let link = all.last().map_or(&FIRST, |entry: &&'static Entry| &entry.next);
        // SAFETY: an item in the list is null or a static, of which only the atomic changes.
        let Some(entry) = (unsafe { link.load(Ordering::Acquire).as_ref() }) else { break };
        all.push(entry);
    }
    all.sort_by_key(|entry| entry.path());
    all
}

/// Passes an item of `args` to a parameter: by value or by reference, and from a list of values or
/// of references.
#[diagnostic::on_unimplemented(
    message = "cyclescope-divan: an item of `args` can't be passed as `{Parameter}`",
    note = "items that are `Copy` are passed by value, and all by reference"
)]
pub trait Argument<Parameter> {
    /// The parameter.
    fn pass(self) -> Parameter;
}

impl<Item: Copy> Argument<Item> for &Item {
    fn pass(self) -> Item {
        *self
    }
}

impl<'a, Item> Argument<&'a Item> for &'a Item {
    fn pass(self) -> &'a Item {
        self
    }
}

impl<Item: Copy> Argument<Item> for &&Item {
    fn pass(self) -> Item {
        **self
    }
}

/// Passes an item of `args`.
pub fn pass_argument<Item, Parameter>(item: Item) -> Parameter
where
    Item: Argument<Parameter>,
{
    item.pass()
}

/// Runs the cases of a benchmark, and prints a line for each.
#[derive(Debug)]
pub struct Cases<'a> {
    clock: &'a CycleClock,
    name: String,
    ignored: bool,
    command: &'a CommandLine,
    samples: Option<&'a Samples>,
    /// Names of all cases so far, and the number of those that were selected.
    names: &'a mut BTreeSet<String>,
    selected: &'a mut usize,
}

impl Cases<'_> {
    /// Runs a case, with this argument.
    pub fn case(&mut self, arg: Option<&dyn Debug>, run: impl FnOnce(Bencher)) {
        let name = arg.map_or(self.name.clone(), |arg| format!("{}/{arg:?}", self.name));
        if !self.names.insert(name.clone()) {
            eprintln!("cyclescope-divan: two benchmarks are called {name}: give one another `name`");
            exit(2);
        }
        if !self.command.selects(&name) {
            return;
        }
        *self.selected += 1;
        let runs = self.command.runs(self.ignored);
        let mut cost = None;
        let plan = match (&self.command.mode, self.samples) {
            (Mode::List, _) if self.command.lists(self.ignored) => return println!("{name}: benchmark"),
            (Mode::List, _) => return,
            _ if !runs => return println!("{name:30} {:>12}", "ignored"),
            (Mode::Test, _) => Plan::TEST,
            (Mode::Measure, Some(samples)) => Plan::observation(samples.time()),
            (Mode::Measure, None) => Plan::TABLE,
        };
        run(Bencher::new(self.clock, plan, &mut cost));
        if self.command.mode == Mode::Test {
            return println!("{name}: ok");
        }
        println!("{}", line(&name, cost.as_ref()));
        if let Some(samples) = self.samples
            && let Err(error) = write(samples, &name, cost.as_ref())
        {
            eprintln!("cyclescope: a sample cannot be written: {error}");
            exit(1);
        }
    }
}

/// Writes a sample of each part for `cyclescope ab`.
fn write(samples: &Samples, name: &str, cost: Option<&Cost>) -> io::Result<()> {
    let Some(cost) = cost else { return samples.unmeasured(name, "it measured nothing") };
    let measured = || cost.parts.iter().filter(|span| span.cycles > CoreCycles(0.0));
    if measured().next().is_none() {
        return samples.unmeasured(name, TOO_SHORT);
    }
    measured().try_for_each(|span| samples.cycles(name, cost.iterations, span.cycles))
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
    let command = CommandLine::parse(std::env::args().skip(1)).unwrap_or_else(|why| {
        eprintln!("cyclescope-divan: {why}");
        exit(2);
    });
    let clock = CycleClock::new();
    let samples = Samples::from_environment().filter(|_| command.mode == Mode::Measure);
    if command.mode == Mode::Measure {
        clock.caveats().iter().for_each(|caveat| eprintln!("cyclescope: core cycles are in doubt: {caveat}"));
        println!("{:30} {:>12}  {:24} {:>10}", "benchmark (core cycles)", "median", "95 % interval", "iterations");
    }
    let (mut names, mut selected) = (BTreeSet::new(), 0);
    for entry in entries() {
        (entry.run)(&mut Cases {
            clock: &clock,
            name: entry.path(),
            ignored: entry.ignored,
            command: &command,
            samples: samples.as_ref(),
            names: &mut names,
            selected: &mut selected,
        });
    }
    if selected == 0 {
        eprintln!("cyclescope-divan: no benchmark is selected by these arguments: --list without a filter shows all");
        exit(2);
    }
}
