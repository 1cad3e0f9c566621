//! Programs of steps in a loop: assembly as text, or machine code that a function generates for a
//! count.

use super::step_loop::{StepLoop, assemble, loop_in_pages};
use iced_x86::CpuidFeature;

/// How the program for a count is made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProgramSource {
    /// Assembly that a loop repeats.
    Asm(&'static str, AsmLoop),
    /// A function of the count.
    Generated(fn(usize) -> StepLoop),
    /// A function of the count and of the row's inputs.
    Built(fn(usize, &Inputs) -> StepLoop, Inputs),
}

/// Texts that replace `{a}` to `{d}` in assembly and labels, or that a builder uses.
pub(crate) type Texts = [&'static str; 4];

/// The inputs of a builder, which a row sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs {
    /// Texts; the label may use them too.
    pub texts: Texts,
    /// Numbers.
    pub numbers: [usize; 4],
}

/// The loop around assembly. R14 points to the start of its pages.
///
/// In all texts, `{n}` is the count of the row, and `{a}` to `{d}` are `texts`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsmLoop {
    /// Untimed setup.
    pub setup: &'static str,
    /// Untimed setup after `setup`.
    pub before: &'static str,
    /// Untimed code after the loop.
    pub following: &'static str,
    /// A step begins with the first `n` of these texts; `n` is the count of the row.
    pub counted: &'static [&'static str],
    /// Steps per iteration.
    pub copies: usize,
    /// Pages of memory.
    pub pages: u64,
    /// Iterations of the shorter call; by default some ten thousand steps.
    pub iterations: Option<u64>,
    /// Texts for `{a}` to `{d}`.
    pub texts: Texts,
}

/// Iterations of the shorter call if steps take some hundred cycles: longer calls are more often
/// disturbed.
pub(crate) const ITERATIONS_SLOW: u64 = 8;

impl AsmLoop {
    /// The loop of [`asm`]: 32 steps and 18 pages. R12 is zero, and RSP points to the end of the
    /// pages.
    pub(crate) const REPEATED: AsmLoop = AsmLoop {
        setup: "xor r12d, r12d; lea rsp, [r14 + 73728]",
        before: "",
        following: "",
        counted: &[],
        copies: 32,
        pages: 18,
        iterations: None,
        texts: [""; 4],
    };
    /// `REPEATED` with fewer iterations, for steps of some hundred cycles.
    pub(crate) const SLOW: AsmLoop = AsmLoop { iterations: Some(ITERATIONS_SLOW), ..AsmLoop::REPEATED };

    /// A loop of this number of steps that sets no register but R14.
    pub(crate) const fn bare(copies: usize, pages: u64) -> AsmLoop {
        AsmLoop { setup: "", copies, pages, ..AsmLoop::REPEATED }
    }

    /// Sets the texts for `{a}` to `{d}`.
    pub(crate) const fn with(self, texts: Texts) -> AsmLoop {
        AsmLoop { texts, ..self }
    }

    /// A program of this loop.
    pub(crate) const fn asm(self, text: &'static str) -> ProgramVariant {
        ProgramVariant::from_program("", ProgramSource::Asm(text, self))
    }

    /// The machine code for a count.
    pub(crate) fn assemble(&self, text: &str, n: usize) -> StepLoop {
        let code = |text: &str| match text {
            "" => Vec::new(),
            text => assemble(&fill_in(text, &self.texts, n)),
        };
        let step = [&self.counted[..n.min(self.counted.len())], &[text]].concat().join("; ");
        let steps = loop_in_pages(code(&step).repeat(self.copies), self.copies, self.pages);
        StepLoop {
            init: [code(self.setup), code(self.before)].concat(),
            following: code(self.following),
            iterations: self.iterations.unwrap_or(steps.iterations),
            ..steps
        }
    }
}

/// Replaces the placeholders of a text.
fn fill_in(text: &str, texts: &Texts, n: usize) -> String {
    let filled =
        ["{a}", "{b}", "{c}", "{d}"].iter().zip(texts).fold(text.to_string(), |all, (key, own)| all.replace(key, own));
    filled.replace("{n}", &n.to_string())
}

impl ProgramSource {
    fn build(&self, n: usize) -> StepLoop {
        match self {
            ProgramSource::Asm(text, around) => around.assemble(text, n),
            ProgramSource::Generated(generate) => generate(n),
            ProgramSource::Built(build, inputs) => build(n, inputs),
        }
    }

    fn texts(&self) -> Texts {
        match self {
            ProgramSource::Asm(_, AsmLoop { texts, .. }) | ProgramSource::Built(_, Inputs { texts, .. }) => *texts,
            ProgramSource::Generated(_) => [""; 4],
        }
    }
}

/// A program by count, and its control, which is subtracted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramFamily {
    /// The label in results. `{a}` to `{d}` are its texts and `{text}` its assembly. If it is
    /// empty, the assembly is the label.
    pub name: &'static str,
    /// The program.
    pub program: ProgramSource,
    /// A program of the same number of steps without the event. Its cost is subtracted.
    pub control: Option<ProgramSource>,
}

impl ProgramFamily {
    /// A program that a function generates.
    pub(crate) const fn new(name: &'static str, generate: fn(usize) -> StepLoop) -> ProgramFamily {
        ProgramFamily { name, program: ProgramSource::Generated(generate), control: None }
    }

    /// Sets the control: another generated program.
    pub(crate) const fn less(self, generate: fn(usize) -> StepLoop) -> ProgramFamily {
        ProgramFamily { control: Some(ProgramSource::Generated(generate)), ..self }
    }

    /// The program for a count.
    pub(crate) fn program(&self, n: usize) -> StepLoop {
        self.program.build(n)
    }

    /// The control for a count.
    pub(crate) fn control(&self, n: usize) -> Option<StepLoop> {
        self.control.map(|control| control.build(n))
    }

    /// The label with its texts filled in.
    pub(crate) fn label(&self) -> String {
        let texts = self.program.texts();
        let text = |program: &ProgramSource| match program {
            ProgramSource::Asm(text, around) => fill_in(text, &around.texts, 0),
            _ => String::new(),
        };
        let own = text(&self.program);
        if !self.name.is_empty() {
            return fill_in(self.name, &texts, 0).replace("{text}", &own);
        }
        match self.control.as_ref().map(text) {
            Some(control) if control != own => format!("{own}, less {control}"),
            _ => own,
        }
    }
}

/// A program of a row, its control, and the CPUs that can run it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgramVariant {
    /// The program by the row's `n`, and its control.
    pub family: ProgramFamily,
    /// CPU features that it needs beyond x86-64.
    pub required_features: &'static [CpuidFeature],
    /// A feature that excludes it: other variants are better on CPUs with that feature.
    pub excluded_feature: Option<CpuidFeature>,
}

/// A text that the loop [`AsmLoop::REPEATED`] repeats. The text is the label.
pub(crate) const fn asm(text: &'static str) -> ProgramVariant {
    AsmLoop::REPEATED.asm(text)
}

impl ProgramVariant {
    /// A program that a function generates.
    pub(crate) const fn new(name: &'static str, generate: fn(usize) -> StepLoop) -> ProgramVariant {
        ProgramVariant::from_program(name, ProgramSource::Generated(generate))
    }

    /// A program that a function builds from the row's inputs.
    pub(crate) const fn built(
        name: &'static str,
        build: fn(usize, &Inputs) -> StepLoop,
        texts: Texts,
        numbers: [usize; 4],
    ) -> ProgramVariant {
        ProgramVariant::from_program(name, ProgramSource::Built(build, Inputs { texts, numbers }))
    }

    const fn from_program(name: &'static str, program: ProgramSource) -> ProgramVariant {
        let family = ProgramFamily { name, program, control: None };
        ProgramVariant { family, required_features: &[], excluded_feature: None }
    }

    const fn with_control(self, control: ProgramSource) -> ProgramVariant {
        ProgramVariant { family: ProgramFamily { control: Some(control), ..self.family }, ..self }
    }

    /// Sets the control: this text in the same loop.
    pub(crate) const fn less(self, text: &'static str) -> ProgramVariant {
        match self.family.program {
            ProgramSource::Asm(_, around) => self.with_control(ProgramSource::Asm(text, around)),
            _ => panic!("only assembly has a text as control"),
        }
    }

    /// Sets the control: the same text in another loop.
    pub(crate) const fn less_in(self, around: AsmLoop) -> ProgramVariant {
        match self.family.program {
            ProgramSource::Asm(text, _) => self.with_control(ProgramSource::Asm(text, around)),
            _ => panic!("only assembly has a loop"),
        }
    }

    /// Sets the control: another generated program.
    pub(crate) const fn less_generated(self, generate: fn(usize) -> StepLoop) -> ProgramVariant {
        self.with_control(ProgramSource::Generated(generate))
    }

    /// Sets the control: the same function with other inputs.
    pub(crate) const fn less_built(self, texts: Texts, numbers: [usize; 4]) -> ProgramVariant {
        match self.family.program {
            ProgramSource::Built(build, _) => self.with_control(ProgramSource::Built(build, Inputs { texts, numbers })),
            _ => panic!("only what is built has inputs"),
        }
    }

    /// Sets the label in results. `{text}` in it is the assembly.
    pub(crate) const fn label(self, name: &'static str) -> ProgramVariant {
        ProgramVariant { family: ProgramFamily { name, ..self.family }, ..self }
    }

    /// Restricts it to CPUs with all of these features.
    pub(crate) const fn requiring(self, needs: &'static [CpuidFeature]) -> ProgramVariant {
        ProgramVariant { required_features: needs, ..self }
    }

    /// Restricts it to CPUs without this feature.
    pub(crate) const fn excluding(self, feature: CpuidFeature) -> ProgramVariant {
        ProgramVariant { excluded_feature: Some(feature), ..self }
    }

    /// Whether a CPU with these features can run it.
    pub(super) fn is_runnable(&self, has: impl Fn(&CpuidFeature) -> bool) -> bool {
        self.required_features.iter().all(&has) && !self.excluded_feature.as_ref().is_some_and(&has)
    }
}

/// A program that occupies a part of the counted structure beforehand.
#[derive(Debug)]
pub(crate) struct WitnessProgram {
    /// The program by the count of the others.
    pub family: ProgramFamily,
    /// How much it occupies.
    pub occupied: usize,
}

impl WitnessProgram {
    /// Whether it moves an end between these counts by more than the end's uncertainty, and still
    /// leaves a level before the end.
    pub(crate) fn can_move_end(&self, low: usize, high: usize) -> bool {
        self.occupied > (high - low).max(low / 20) && low >= 2 * self.occupied
    }
}
