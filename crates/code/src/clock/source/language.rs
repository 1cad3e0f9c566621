//! A language as data.

use crate::clock::timing_method::Clock;

/// A language that methods can be written in.
#[derive(Debug, Clone, Copy)]
pub struct SourceLanguage {
    /// Its name on the command line.
    pub name: &'static str,
    /// A few words for help.
    pub about: &'static str,
    /// Whether it has functions of the system's library as part of the language's own text.
    pub(super) calls: bool,
    /// What each line of the opening comment begins with.
    pub(super) comment: &'static str,
    pub(super) template: &'static str,
    pub(super) example: &'static str,
    pub(super) words: fn(&Clock) -> TemplateWords,
}

/// What a language puts in the places of its template, besides what all have in common.
pub(super) struct TemplateWords {
    pub(super) include: &'static str,
    pub(super) parameter: &'static str,
    pub(super) argument: &'static str,
    pub(super) start: String,
    pub(super) end: String,
}
