//! The definition of a design.

use super::super::call_guard::{self, CallGuard};

/// A kind of tracing site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteDesign {
    /// Name in records and on the command line.
    pub name: &'static str,
    /// One-line description of its site.
    pub about: &'static str,
    /// Its users, or its documentation.
    pub source: &'static str,
    /// Language of its text.
    pub language: DesignLanguage,
    /// Code before the functions.
    pub declarations: &'static str,
    /// Code in the marker's place in the loop without the marker, usually empty.
    pub base: &'static str,
    /// The marker. In C, `CALL_PROBE` is replaced with the guarded probe call, and `ENABLED` with
    /// the variable that enables it. In Rust, `NUMBER` and `POINTER` are its arguments.
    pub site: &'static str,
    /// How to enable it.
    pub enabling: Enabling,
    /// The package that it needs, if that is not always installed. Such a design is compiled at run
    /// time.
    pub package: Option<DesignPackage>,
    /// Names of the measured states, if the others would add no information; empty for all.
    pub only: &'static [&'static str],
}

/// A package of the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DesignPackage {
    /// The header that users include.
    pub header: &'static str,
    /// Arguments for the linker.
    pub libraries: &'static [&'static str],
    /// Files that its headers include in turn: their names and contents.
    pub files: &'static [(&'static str, &'static str)],
    /// Name of the Debian package.
    pub debian: &'static str,
}

/// The language of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DesignLanguage {
    /// Compiled with the build's C compiler.
    C,
    /// Compiled with this library, by the same compiler with the same options.
    Rust,
}

/// The way to enable a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enabling {
    /// None: there is no marker.
    Never,
    /// A variable of this number of bytes becomes 1.
    Variable(usize),
    /// The byte at each recorded place becomes 1.
    Immediate,
    /// The NOP at each recorded place becomes a jump to the recorded target.
    Jump,
    /// The NOP at a function's entry becomes a call of the recorded target.
    Entry,
    /// A replacement of the empty probe with another one.
    Probe,
    /// A tracer's breakpoint, which only the tracer can set.
    Tracer,
    /// Its library, in one of these states. A library may have only one.
    Switch(&'static [LibraryState]),
}

/// A state of a marker's library. Its number is its index in [`Enabling::Switch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LibraryState {
    /// Name in records.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// The listener of the process. World 0 has none. A process can only be in one world,
    /// permanently.
    pub world: u32,
    /// Whether the library's maximum level lets the marker pass.
    pub passes: bool,
    /// The state to compare it with; `None` for the loop without the marker.
    pub over: Option<&'static str>,
    /// Whether it is measured. The others only count hits.
    pub measured: bool,
    /// Expected hits per loop, if its listener counts.
    pub hits: Option<u64>,
}

/// The measured states of a marker's variant, whose probe calls cost the same as the original's.
pub(super) const UNGUARDED_CALL: &[&str] = &["dormant", "empty"];

/// The site of a static key, with the NOP's bytes as assembler text.
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
    pub fn calls_probe(&self) -> bool {
        self.site.contains("CALL_PROBE") || self.declarations.contains("CALL_PROBE")
    }

    /// Why it has no 32-bit code; `None` if it has.
    pub fn narrow_obstacle(&self) -> Option<&'static str> {
        match (self.language, &self.package) {
            (DesignLanguage::Rust, _) => Some("it is a Rust macro; markers in 32-bit code are compiled from C"),
            (DesignLanguage::C, Some(_)) => Some("its package is used for 64-bit code only"),
            (DesignLanguage::C, None) => None,
        }
    }

    /// Its name as an identifier.
    pub fn identifier(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The guards that its site is compiled with, one function each. A library has its own
    /// protection around calls.
    pub fn guards(&self) -> &'static [CallGuard] {
        match self.language {
            DesignLanguage::C => call_guard::ALL,
            DesignLanguage::Rust => &call_guard::ALL[..1],
        }
    }
}
