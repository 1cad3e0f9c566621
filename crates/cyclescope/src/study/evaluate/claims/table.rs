//! The claims, as data.

use super::by_readings::CR0;
use crate::clock::{Side, Step};
use crate::study::evaluate::contamination::Fault;

/// A document that claims something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Document {
    /// Intel's.
    Paper,
    /// The notes on RDTSC(P).
    Notes,
}

impl Document {
    pub(super) fn title(self) -> &'static str {
        match self {
            Document::Paper => "Intel 324264-001",
            Document::Notes => "Notes on using rdtsc(p)",
        }
    }
}

/// How a claim is tested. Methods are named as in [`crate::clock::ALL`].
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    /// None of these faults happens.
    Excludes { method: &'static str, faults: &'static [Fault] },
    /// This fault may happen: it is seen.
    LetsIn { method: &'static str, fault: Fault },
    /// Stores are not drained when the end is read.
    LeavesStores { method: &'static str },
    /// Two methods differ by less than a step.
    Alike { one: &'static str, other: &'static str },
    /// The paper's CR0 method needs nothing after its second reading.
    NothingBehind,
    /// A step takes time of the pair, or takes none.
    Takes { method: &'static str, side: Side, step: Step, time: bool },
    /// The parts of a pair are all that it takes.
    AddsUp { method: &'static str },
    /// The first pair takes less than the second.
    Cheaper { one: &'static str, other: &'static str },
    /// One reading varies by more than counting in steps makes, or does not.
    Noisy { method: &'static str, noisy: bool },
    /// The least reading is the same in all ensembles, or is not.
    ConstantMinimum { method: &'static str, constant: bool },
    /// The variance is the same in all ensembles, or is not.
    ConstantVariance { method: &'static str, constant: bool },
    /// The least reading never falls as the paper's loop grows.
    Monotone { method: &'static str },
    /// The least reading moves with this number of iterations at most.
    Resolves { method: &'static str, most: f64 },
    /// Means of many readings tell less than a step.
    FinerByMany,
    /// Readings of RDTSCP are multiples of a step.
    Multiples,
    /// Of the same one at any core clock.
    StepIsSteady,
    /// LFENCE waits for the instructions before it.
    LfenceWaits,
    /// The core clock is not that of the TSC.
    Asynchronous,
}

impl Test {
    /// Whether it goes by this fault of a method.
    pub(super) fn asks(&self, name: &str, fault: Fault) -> bool {
        match *self {
            Test::Excludes { method, faults } => method == name && faults.contains(&fault),
            Test::LetsIn { method, fault: asked } => method == name && asked == fault,
            Test::LeavesStores { method } => method == name && fault == Fault::StoresNotDrained,
            Test::Alike { one, other } => [one, other].contains(&name) && ALL_FOUR.contains(&fault),
            Test::NothingBehind => name == CR0 && fault == Fault::FollowingInTheWay,
            _ => false,
        }
    }
}

/// A claim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: &'static str,
    pub(super) document: Document,
    /// A section, or the paragraph's subject.
    pub(super) section: &'static str,
    /// What the document says.
    pub(super) quote: &'static str,
    /// What is tested.
    pub(super) text: &'static str,
    /// Whether the document does not say so itself.
    pub(super) ours: bool,
    pub(super) criterion: &'static str,
    pub(super) test: Test,
}

const FIRST: &str = "cpuid-rdtsc";
const IMPROVED: &str = "cpuid-rdtsc-rdtscp-cpuid";

const BEFORE: &[Fault] = &[Fault::LeadingUnfinished, Fault::BodyUnfinished];
const AROUND_START: &[Fault] = &[Fault::LeadingUnfinished, Fault::BodyStartedEarly];
/// All but what becomes of stores, which is a claim of its own.
pub(super) const ALL_FOUR: &[Fault] =
    &[Fault::LeadingUnfinished, Fault::BodyStartedEarly, Fault::BodyUnfinished, Fault::FollowingInTheWay];

const EXCLUDES: &str = "holds: every interval is within half a step of the TSC; does not: one is surely seen";
const LETS_IN: &str = "holds: it is surely seen";
const TAKES: &str = "holds: more than half a step of the TSC; does not: less";
const CONSTANT: &str =
    "constant: the interval is below half a step; else the paper's 100 000 readings decide";
const EVEN: &str = "constant: less than a quarter of a squared step, beyond chance; readings 4 steps or more above the least around them are \
     dropped, as interrupts make them; not told where fewer than 6 of 10 remain";

/// All claims: the paper's in its order, then those of the notes.
pub(super) const CLAIMS: &[Entry] = &[
    Entry {
        id: "paper-cpuid-serialises",
        document: Document::Paper,
        section: "2.2",
        quote: "By doing so we guarantee that only the code that is under measurement will be executed in between the \
                RDTSC calls and that no part of that code will be executed outside the calls.",
        text: "CPUID before both RDTSCs keeps all other code out and all of the code in",
        ours: false,
        criterion: EXCLUDES,
        test: Test::Excludes { method: FIRST, faults: ALL_FOUR },
    },
    Entry {
        id: "paper-cpuid-varies",
        document: Document::Paper,
        section: "2.2",
        quote: "there is a lot of variance (in terms of clock cycles) that is intrinsically associated with the CPUID \
                instruction execution itself",
        text: "a reading with CPUID in the pair varies by more than counting in steps makes",
        ours: false,
        criterion: "holds: more than half a squared step of the TSC, twice what counting in steps makes at most; readings 4 steps or \
                    more above the least around them are dropped; not told where fewer than 6 of 10 remain",
        test: Test::Noisy { method: FIRST, noisy: true },
    },
    Entry {
        id: "paper-first-minimum",
        document: Document::Paper,
        section: "3.1.2",
        quote: "The minimum value is not constant between different ensembles",
        text: "the first method's minimum is not constant",
        ours: false,
        criterion: CONSTANT,
        test: Test::ConstantMinimum { method: FIRST, constant: false },
    },
    Entry {
        id: "paper-first-variance",
        document: Document::Paper,
        section: "3.1.2",
        quote: "The variance itself is not constant between different ensembles",
        text: "the first method's variance is not constant",
        ours: false,
        criterion: EVEN,
        test: Test::ConstantVariance { method: FIRST, constant: false },
    },
    Entry {
        id: "paper-rdtscp-waits",
        document: Document::Paper,
        section: "3.2",
        quote: "The RDTSCP instruction waits until all previous instructions have been executed before reading the \
                counter.",
        text: "RDTSCP waits for what comes before it",
        ours: false,
        criterion: EXCLUDES,
        test: Test::Excludes { method: "rdtscp", faults: BEFORE },
    },
    Entry {
        id: "paper-rdtscp-lets-begin",
        document: Document::Paper,
        section: "3.2",
        quote: "However, subsequent instructions may begin execution before the read operation is performed.",
        text: "code behind RDTSCP begins before it has read",
        ours: false,
        criterion: LETS_IN,
        test: Test::LetsIn { method: "rdtscp", fault: Fault::BodyStartedEarly },
    },
    Entry {
        id: "paper-rdtscp-end-lets-in",
        document: Document::Paper,
        section: "3.2",
        quote: "in the source code that come after the RDTSCP will occur in the code under measurement",
        text: "without CPUID behind RDTSCP, code that follows delays the second reading",
        ours: true,
        criterion: LETS_IN,
        test: Test::LetsIn { method: "cpuid-rdtsc-rdtscp", fault: Fault::FollowingInTheWay },
    },
    Entry {
        id: "paper-first-cpuid-is-a-barrier",
        document: Document::Paper,
        section: "3.2.1",
        quote: "the first CPUID call implements a barrier to avoid out-of-order execution of the instructions above and \
                below the RDTSC instruction",
        text: "nothing above or below the first RDTSC crosses it",
        ours: false,
        criterion: EXCLUDES,
        test: Test::Excludes { method: IMPROVED, faults: AROUND_START },
    },
    Entry {
        id: "paper-first-cpuid-is-free",
        document: Document::Paper,
        section: "3.2.1",
        quote: "Nevertheless, this call does not affect the measurement since it comes before the RDTSC",
        text: "the first CPUID takes no time of the pair",
        ours: false,
        criterion: "holds: less than half a step of the TSC; does not: more",
        test: Test::Takes { method: IMPROVED, side: Side::Start, step: Step::Cpuid, time: false },
    },
    Entry {
        id: "paper-last-cpuid-is-a-barrier",
        document: Document::Paper,
        section: "3.2.1",
        quote: "Finally a CPUID call guarantees that a barrier is implemented again so that it is impossible that any \
                instruction coming afterwards is executed before CPUID itself",
        text: "code that follows does not come in the way of the second reading",
        ours: false,
        criterion: EXCLUDES,
        test: Test::Excludes { method: IMPROVED, faults: &[Fault::FollowingInTheWay] },
    },
    Entry {
        id: "paper-improved-minimum",
        document: Document::Paper,
        section: "3.2.2",
        quote: "the minimum time does not change between different ensembles",
        text: "the improved method's minimum is constant",
        ours: false,
        criterion: CONSTANT,
        test: Test::ConstantMinimum { method: IMPROVED, constant: true },
    },
    Entry {
        id: "paper-improved-variance",
        document: Document::Paper,
        section: "3.2.2",
        quote: "Both the variance of variances and the variance of the minimum values are zero.",
        text: "the improved method's variance is constant",
        ours: false,
        criterion: EVEN,
        test: Test::ConstantVariance { method: IMPROVED, constant: true },
    },
    Entry {
        id: "paper-cr0-is-better-than-cpuid",
        document: Document::Paper,
        section: "3.2.3",
        quote: "Such a method is not as good as the one presented in Section 3.2.1, but it is still much better than the \
                one using CPUID to serialize code execution.",
        text: "the CR0 method's pair takes less than that of the first method",
        ours: true,
        criterion: "holds: less by more than a step of the TSC",
        test: Test::Cheaper { one: CR0, other: FIRST },
    },
    Entry {
        id: "paper-cr0-needs-nothing-behind",
        document: Document::Paper,
        section: "3.2.3",
        quote: "Read the timestamp register the second time by RDTSC and store the value in memory",
        text: "the CR0 method needs nothing after its second reading: following code does not come in its way",
        ours: true,
        criterion: EXCLUDES,
        test: Test::NothingBehind,
    },
    Entry {
        id: "paper-cr0-minimum",
        document: Document::Paper,
        section: "3.2.4",
        quote: "the variance does not change between different ensembles (the maximum fluctuation is 1 clock cycle) as \
                well as the minimum value",
        text: "the CR0 method's minimum is constant",
        ours: false,
        criterion: CONSTANT,
        test: Test::ConstantMinimum { method: CR0, constant: true },
    },
    Entry {
        id: "paper-minimum-grows",
        document: Document::Paper,
        section: "3.3.1",
        quote: "as we increase the complexity of the measured loop, the minimum measured time monotonically increases",
        text: "the least reading never falls as the loop grows",
        ours: false,
        criterion: "holds: no length's least reading is below that of the length before, of 100 000 readings each",
        test: Test::Monotone { method: IMPROVED },
    },
    Entry {
        id: "paper-resolution",
        document: Document::Paper,
        section: "3.3.1",
        quote: "the resolution of this benchmarking method is two assembly instructions",
        text: "the least reading moves with every two iterations of the loop: a step of the TSC is no longer than they",
        ours: true,
        criterion: "holds: a step of the TSC lasts 2.5 iterations at most",
        test: Test::Resolves { method: IMPROVED, most: 2.5 },
    },
    Entry {
        id: "notes-rdtsc-leading",
        document: Document::Notes,
        section: "on rdtsc, first problem",
        quote: "the leading code part could have unfinished instructions that contaminants the measured_code",
        text: "bare RDTSC counts leading code",
        ours: false,
        criterion: LETS_IN,
        test: Test::LetsIn { method: "rdtsc", fault: Fault::LeadingUnfinished },
    },
    Entry {
        id: "notes-rdtsc-early",
        document: Document::Notes,
        section: "on rdtsc, second problem",
        quote: "the measured_code could have already started its execution",
        text: "bare RDTSC lets the body begin early",
        ours: false,
        criterion: LETS_IN,
        test: Test::LetsIn { method: "rdtsc", fault: Fault::BodyStartedEarly },
    },
    Entry {
        id: "notes-rdtsc-unfinished",
        document: Document::Notes,
        section: "on rdtsc, third problem",
        quote: "the measured_code could be unfinished",
        text: "bare RDTSC misses the end of the body",
        ours: false,
        criterion: LETS_IN,
        test: Test::LetsIn { method: "rdtsc", fault: Fault::BodyUnfinished },
    },
    Entry {
        id: "notes-rdtsc-following",
        document: Document::Notes,
        section: "on rdtsc, fourth problem",
        quote: "the following_code could have started its execution, taking up hardware resources",
        text: "code that follows delays bare RDTSC",
        ours: false,
        criterion: LETS_IN,
        test: Test::LetsIn { method: "rdtsc", fault: Fault::FollowingInTheWay },
    },
    Entry {
        id: "notes-rdtscp-leaves-stores",
        document: Document::Notes,
        section: "on rdtscp",
        quote: "it does not wait for previous stores to be globally visible",
        text: "RDTSCP does not wait for stores",
        ours: false,
        criterion: "holds: it is surely seen; does not: surely not",
        test: Test::LeavesStores { method: "rdtscp" },
    },
    Entry {
        id: "notes-rdtscp-cpuid-solves-all",
        document: Document::Notes,
        section: "on cpuid",
        quote: "This way all the problems are solved.",
        text: "RDTSCP, CPUID keeps all other code out and all of the code in",
        ours: false,
        criterion: EXCLUDES,
        test: Test::Excludes { method: "rdtscp-cpuid", faults: ALL_FOUR },
    },
    Entry {
        id: "notes-first-cpuid-is-counted",
        document: Document::Notes,
        section: "on cpuid",
        quote: "the execution time of first cpuid is included in the final timing result",
        text: "the first CPUID is a part of the pair's time",
        ours: false,
        criterion: TAKES,
        test: Test::Takes { method: "rdtscp-cpuid", side: Side::Start, step: Step::Cpuid, time: true },
    },
    Entry {
        id: "notes-lfence-is-better",
        document: Document::Notes,
        section: "on cpuid",
        quote: "Turns out that the lfence instruction is a better choice.",
        text: "RDTSCP, LFENCE takes less than RDTSCP, CPUID",
        ours: true,
        criterion: "holds: less by more than a step of the TSC",
        test: Test::Cheaper { one: "rdtscp-lfence", other: "rdtscp-cpuid" },
    },
    Entry {
        id: "notes-rdtscp-lfence-fits",
        document: Document::Notes,
        section: "on lfence",
        quote: "Basically speaking lfence fits our needs here.",
        text: "RDTSCP, LFENCE keeps all other code out and all of the code in",
        ours: true,
        criterion: EXCLUDES,
        test: Test::Excludes { method: "rdtscp-lfence", faults: ALL_FOUR },
    },
    Entry {
        id: "notes-lfence-waits",
        document: Document::Notes,
        section: "on lfence",
        quote: "LFENCE does not execute until all prior instructions have completed locally, and no later instruction \
                begins execution until LFENCE completes.",
        text: "LFENCE waits here, as the notes say of Intel's and of recent AMD processors and not of earlier ones",
        ours: false,
        criterion: "holds: RDTSC behind LFENCE sees 70 % of a chain in front of both at least",
        test: Test::LfenceWaits,
    },
    Entry {
        id: "notes-lfence-rdtsc-is-rdtscp",
        document: Document::Notes,
        section: "on lfence",
        quote: "a lfence;rdtsc sequence is roughly equavalent to rdtscp",
        text: "LFENCE, RDTSC and RDTSCP take the same, and other code does the same to them",
        ours: false,
        criterion: "holds: every difference is within a step of the TSC; does not: one is beyond",
        test: Test::Alike { one: "lfence-rdtsc", other: "rdtscp" },
    },
    Entry {
        id: "notes-overhead-parts",
        document: Document::Notes,
        section: "on the overhead",
        quote: "Cycles taken to complete the first lfence [...] two movs [...] the latter rdtscp",
        text: "LFENCE, the moves and the second RDTSCP add up to the pair's time",
        ours: false,
        criterion: "holds: what remains is within half a step of the TSC",
        test: Test::AddsUp { method: "rdtscp-lfence" },
    },
    Entry {
        id: "notes-overhead-is-consistent",
        document: Document::Notes,
        section: "on the overhead",
        quote: "the measuring overhead is quite consistent while being considerably large",
        text: "the pair of RDTSCP, LFENCE varies by no more than counting in steps makes",
        ours: false,
        criterion: "holds: less than half a squared step of the TSC, twice what counting in steps makes at most; readings 4 steps or \
                    more above the least around them are dropped; not told where fewer than 6 of 10 remain",
        test: Test::Noisy { method: "rdtscp-lfence", noisy: false },
    },
    Entry {
        id: "notes-multiples",
        document: Document::Notes,
        section: "on the step",
        quote: "the clock reading rdtscp instruction gives is consistently multiple of 38",
        text: "differences of RDTSCP readings are multiples of one step, here of another size",
        ours: false,
        criterion: "holds: the step is above 1 and 99 % of the differences are multiples of it",
        test: Test::Multiples,
    },
    Entry {
        id: "notes-step-is-steady",
        document: Document::Notes,
        section: "on the step",
        quote: "no matter what frequency the processor is running at the rdtscp clock reading remains to be multiple of 38",
        text: "the step is the same at any core clock",
        ours: false,
        criterion: "holds: readings are multiples of one step at the slowest and the fastest clock alike",
        test: Test::StepIsSteady,
    },
    Entry {
        id: "notes-more-readings",
        document: Document::Notes,
        section: "on the step",
        quote: "repeated measurements have to be conducted for higher time resolution",
        text: "the mean of many readings tells less than half a step of the TSC",
        ours: false,
        criterion: "holds: less than half a step, where a step is more than two core cycles",
        test: Test::FinerByMany,
    },
    Entry {
        id: "notes-asynchronous",
        document: Document::Notes,
        section: "on frequencies",
        quote: "with constant tsc the processor clock and the tsc clock is essentially running asynchronously",
        text: "a core cycle is not a TSC tick",
        ours: false,
        criterion: "holds: the median is beside 1, or a change is seen, by 1 % and by five times the noise of a look",
        test: Test::Asynchronous,
    },
];
