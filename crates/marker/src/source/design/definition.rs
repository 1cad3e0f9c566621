//! What a design is made of.

use super::super::call_guard::{self, CallGuard};

/// One way to make a tracing site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteDesign {
    /// Its name in records and on the command line.
    pub name: &'static str,
    /// One line: what its site is.
    pub about: &'static str,
    /// Who uses it, or where it is described.
    pub source: &'static str,
    /// The language of its text.
    pub language: DesignLanguage,
    /// The code before the functions.
    pub declarations: &'static str,
    /// What the loop without the marker has in the marker's place: mostly nothing.
    pub base: &'static str,
    /// The marker. In C `CALL_PROBE` is replaced by the guarded call of the probe, and `ENABLED` by the variable that
    /// enables it; in Rust `NUMBER` and `POINTER` are its arguments.
    pub site: &'static str,
    /// How it is enabled.
    pub enabling: Enabling,
    /// What it is made with, where that is not always there. Such a design is compiled at run time.
    pub package: Option<DesignPackage>,
    /// The names of the states that it is measured in, where not all that it can be in tell something new.
    pub only: &'static [&'static str],
}

/// A package of the distribution's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DesignPackage {
    /// The header that users include.
    pub header: &'static str,
    /// The linker's arguments.
    pub libraries: &'static [&'static str],
    /// Files that its headers include by themselves, beside the text that is compiled: their names, and what is in them.
    pub files: &'static [(&'static str, &'static str)],
    /// Debian's name of the package.
    pub debian: &'static str,
}

/// What a design is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesignLanguage {
    /// Compiled with the build's C compiler.
    C,
    /// Compiled with this library, by the same compiler and with the same options.
    Rust,
}

/// What enables a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enabling {
    /// Nothing: there is no marker.
    Never,
    /// A variable of this number of bytes becomes 1.
    Variable(usize),
    /// The byte at each recorded place becomes 1.
    Immediate,
    /// The NOP at each recorded place becomes a jump to the recorded target.
    Jump,
    /// The NOP at a function's entry becomes a call of the recorded target.
    Entry,
    /// Nothing: another probe takes the empty one's place.
    Probe,
    /// A tracer's breakpoint, which only it can set.
    Tracer,
    /// Its library, which is put into one of these states; or which stays in the only one.
    Switch(&'static [LibraryState]),
}

/// A state of the library that a marker is made with. Its number is its place in [`Enabling::Switch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryState {
    /// Its name in records.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// Who listens: nobody in world 0. A process can be in one world only, once and for all.
    pub world: u32,
    /// Whether the library's maximum level lets the marker pass.
    pub passes: bool,
    /// The state that its increment is taken over; none for the loop without the marker.
    pub over: Option<&'static str>,
    /// Whether it is measured. The others are there to count hits.
    pub measured: bool,
    /// Where the listener counts hits: how many a loop it has to count.
    pub hits: Option<u64>,
}

/// The states of a variant of a marker: the calls of its probe are the other's.
pub(super) const UNGUARDED_CALL: &[&str] = &["dormant", "empty"];

/// The site of a static key: the NOP's bytes, as the assembler takes them.
macro_rules! static_key {
    ($nop:literal) => {
        concat!(
            r#"{
        __label__ enabled, disabled;
        asm goto("1: .byte "#,
            $nop,
            r#"\n\t" MARKER_RECORD("1b", "%l[enabled]") : : : : enabled);
        goto disabled;
        enabled: __attribute__((cold)); { CALL_PROBE }
        disabled:;
    }"#
        )
    };
}

pub(super) use static_key;

impl SiteDesign {
    /// Whether it calls a probe.
    pub(crate) fn calls_probe(&self) -> bool {
        self.site.contains("CALL_PROBE") || self.declarations.contains("CALL_PROBE")
    }

    /// Its name as an identifier.
    pub fn identifier(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The guards that its site is compiled with, each one time. What a library does around its calls is its own.
    pub(crate) fn guards(&self) -> &'static [CallGuard] {
        match self.language {
            DesignLanguage::C => call_guard::ALL,
            DesignLanguage::Rust => &call_guard::ALL[..1],
        }
    }
}
