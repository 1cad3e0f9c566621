//! A programming language as data.

use crate::asm::CodeMode;
use crate::clock::timing_method::Clock;

/// A language in which timing methods can be written.
#[derive(Debug, Clone, Copy)]
pub struct SourceLanguage {
    /// Name on the command line.
    pub name: &'static str,
    /// A few words for the help text.
    pub about: &'static str,
    /// Whether it can call functions of the system's library.
    pub(super) calls: bool,
    /// Start of each line in the opening comment.
    pub(super) comment: &'static str,
    pub(super) template: &'static str,
    /// Examples for 64-bit mode and for 32-bit code.
    pub(super) examples: [&'static str; 2],
    /// Words of its template that differ by mode: the place, and its text in both modes.
    pub(super) mode_words: &'static [(&'static str, [&'static str; 2])],
    pub(super) words: fn(&Clock, CodeMode) -> TemplateWords,
}

/// Words that a language puts into its template, besides those common to all languages
/// and those of the mode alone.
pub(super) struct TemplateWords {
    pub(super) include: String,
    pub(super) parameter: &'static str,
    pub(super) argument: &'static str,
    pub(super) start: String,
    pub(super) end: String,
}
