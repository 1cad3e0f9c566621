//! A programming language as data.

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
    pub(super) example: &'static str,
    pub(super) words: fn(&Clock) -> TemplateWords,
}

/// Words that a language puts into its template, besides those common to all languages.
pub(super) struct TemplateWords {
    pub(super) include: &'static str,
    pub(super) parameter: &'static str,
    pub(super) argument: &'static str,
    pub(super) start: String,
    pub(super) end: String,
}
