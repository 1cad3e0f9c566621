//! The text of a type around the name that it declares.

use gimli::DwTag;

/// A type's text around a name, as in `int (*` and `)(long)`.
pub struct TypeText {
    pub before: String,
    pub after: String,
}

impl TypeText {
    /// Text before the name.
    pub fn new(before: impl Into<String>) -> TypeText {
        TypeText { before: before.into(), after: String::new() }
    }

    /// Declares a name of this type.
    pub fn declare(&self, name: &str) -> String {
        let blank = !name.is_empty() && !self.before.ends_with(['*', '&', '(']);
        format!("{}{}{name}{}", self.before, if blank { " " } else { "" }, self.after)
    }

    /// Adds `const` or another word. Behind a pointer's sign it belongs to the pointer.
    pub fn qualify(self, word: &str) -> TypeText {
        let before = match self.before.ends_with(['*', '&']) {
            true => format!("{}{word}", self.before),
            false => format!("{word} {}", self.before),
        };
        TypeText { before, after: self.after }
    }

    /// The text of a pointer or reference to this type.
    pub fn point(self, sign: &str) -> TypeText {
        if self.after.starts_with('[') {
            return TypeText { before: format!("{} ({sign}", self.before), after: format!("){}", self.after) };
        }
        let blank = if self.before.ends_with(['*', '&', '(']) { "" } else { " " };
        TypeText { before: format!("{}{blank}{sign}", self.before), after: self.after }
    }
}

/// GCC's names of integers, and the usual ones.
const INTEGER_NAMES: [(&str, &str); 7] = [
    ("short int", "short"),
    ("short unsigned int", "unsigned short"),
    ("unsigned int", "unsigned"),
    ("long int", "long"),
    ("long unsigned int", "unsigned long"),
    ("long long int", "long long"),
    ("long long unsigned int", "unsigned long long"),
];

/// The usual name of a number's type.
pub fn shorten_name(name: String) -> String {
    INTEGER_NAMES.iter().find(|(long, _)| *long == name).map_or(name, |(_, short)| short.to_string())
}

/// The sign of a pointer or a reference.
pub fn pointer_sign(tag: DwTag) -> &'static str {
    match tag {
        gimli::DW_TAG_reference_type => "&",
        gimli::DW_TAG_rvalue_reference_type => "&&",
        _ => "*",
    }
}
