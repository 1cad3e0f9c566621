//! Directives of assemblers, and what they mean for a snippet.

use super::other_machine::{NARROW_CODE, WIDE_CODE};
use super::text_words::{first_word, line_start, split_statements, strip_comment};
use crate::asm::{CodeMode, InstructionSyntax};
use cyclescope_core::error::BadSnippet;

/// What a directive means for a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    /// It makes no code: symbols, debugging, unwinding.
    NoCode,
    /// Code follows.
    CodeSection,
    /// Data follows.
    DataSection,
    /// The next code is aligned.
    Alignment,
    /// Bytes, words or text.
    Data,
    /// Code of this syntax follows.
    Syntax(InstructionSyntax),
    /// Code of a mode of this many bits follows.
    Mode(u32),
    /// Only an assembler can expand it.
    Macro,
}

/// Directives by their first word, without the dot that some assemblers write.
const DIRECTIVES: &[(Directive, &[&str])] = &[
    (
        Directive::NoCode,
        &[
            "file",
            "loc",
            "ident",
            "globl",
            "global",
            "extern",
            "local",
            "type",
            "size",
            "weak",
            "hidden",
            "protected",
            "internal",
            "comm",
            "lcomm",
            "addrsig",
            "addrsig_sym",
            "cfi",
            "def",
            "scl",
            "endef",
            "cv_file",
            "cv_loc",
            "cv_func_id",
            "cv_linetable",
            "cv_filechecksums",
            "cv_stringtable",
            "seh_proc",
            "private_extern",
            "subsections_via_symbols",
            "build_version",
            "no_dead_strip",
            "version",
            "default",
            "public",
            "extrn",
            "end",
            "includelib",
            "title",
            "assume",
            "intel_mnemonic",
            "att_mnemonic",
            "symver",
            "lto_discard",
            "linkonce",
            "cg_profile",
            "weakref",
            "data_region",
            "end_data_region",
            "set",
            "equiv",
            "eqv",
            "option",
            "endprolog",
            "pushreg",
            "setframe",
            "allocstack",
            "savereg",
            "savexmm128",
            "gnu_attribute",
            "indirect_symbol",
            "format",
        ],
    ),
    (Directive::CodeSection, &["text", "code"]),
    (Directive::DataSection, &["data", "bss", "rodata", "const", "cstring", "literal4", "literal8", "literal16"]),
    (
        Directive::Alignment,
        &["p2align", "p2alignw", "p2alignl", "align", "balign", "balignw", "balignl", "alignb", "npad"],
    ),
    (
        Directive::Data,
        &[
            "byte", "2byte", "4byte", "8byte", "word", "short", "hword", "value", "long", "int", "quad", "octa",
            "ascii", "asciz", "string", "zero", "skip", "space", "fill", "float", "single", "double", "uleb128",
            "sleb128", "tfloat", "inst", "db", "dw", "dd", "dq", "dt", "do", "dy", "dz", "resb", "resw", "resd",
            "resq", "incbin", "string16", "string32", "string8", "xword", "org",
        ],
    ),
    (Directive::Mode(64), &["code64", "use64"]),
    (Directive::Mode(32), &["code32", "use32", "386", "486", "586", "686", "model"]),
    (Directive::Mode(16), &["code16", "code16gcc", "use16"]),
    (
        Directive::Macro,
        &[
            "macro",
            "endm",
            "endmacro",
            "rept",
            "endr",
            "rep",
            "irp",
            "irpc",
            "exitm",
            "altmacro",
            "noaltmacro",
            "include",
            "if",
            "ifdef",
            "ifndef",
            "ifb",
            "ifnb",
            "elseif",
            "else",
            "endif",
            "equ",
            "purgem",
            "times",
            "struc",
            "endstruc",
            "istruc",
            "iend",
            "abort",
            "err",
            "error",
            "subsection",
            "allow_index_reg",
        ],
    ),
];

/// Directives of NASM and MASM that have no dot. Their names must not be instructions.
const DOTLESS: [&str; 42] = [
    "format",
    "global",
    "extern",
    "use64",
    "use32",
    "use16",
    "default",
    "public",
    "extrn",
    "end",
    "includelib",
    "title",
    "assume",
    "align",
    "alignb",
    "npad",
    "db",
    "dw",
    "dd",
    "dq",
    "dt",
    "do",
    "dy",
    "dz",
    "resb",
    "resw",
    "resd",
    "resq",
    "incbin",
    "times",
    "struc",
    "endstruc",
    "istruc",
    "iend",
    "include",
    "macro",
    "endm",
    "equ",
    "org",
    "option",
    "comm",
    "endif",
];

impl Directive {
    /// The directive in a statement, if it is one.
    pub(super) fn parse(statement: &str) -> Option<Directive> {
        let statement = statement.trim();
        // NASM's older form: `[bits 64]`.
        let inner = statement.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(statement);
        let word = first_word(inner);
        let argument = inner.trim()[word.len()..].trim();
        match word.as_str() {
            "include" if argument == "listing.inc" => return Some(Directive::NoCode),
            "bits" | ".bits" => return argument.parse().ok().map(Directive::Mode),
            // A loop of C.
            "do" if argument.is_empty() || argument.starts_with('{') => return None,
            "section" | ".section" | ".pushsection" | "segment" if !argument.is_empty() => {
                return Some(section_kind(argument));
            }
            ".popsection" | ".previous" => return Some(Directive::CodeSection),
            ".intel_syntax" => return Some(parse_intel_syntax(argument)),
            ".att_syntax" => return Some(Directive::Syntax(InstructionSyntax::Att)),
            _ => {}
        }
        if let Some(found) = parse_masm(statement) {
            return Some(found);
        }
        if is_preprocessor(statement) {
            return Some(Directive::Macro);
        }
        let name = match word.strip_prefix('.') {
            Some(name) if name.starts_with("cfi_") || name.starts_with("seh_") => return Some(Directive::NoCode),
            Some(name) => name,
            None if DOTLESS.contains(&word.as_str()) => word.as_str(),
            None => return None,
        };
        DIRECTIVES.iter().find(|(_, names)| names.contains(&name)).map(|(kind, _)| *kind)
    }
}

/// `.intel_syntax noprefix`; with prefixes it is a mixture of both syntaxes.
fn parse_intel_syntax(argument: &str) -> Directive {
    match argument {
        "noprefix" => Directive::Syntax(InstructionSyntax::Intel),
        _ => Directive::Macro,
    }
}

fn section_kind(argument: &str) -> Directive {
    let name = argument.trim_start_matches("__TEXT,__").trim_start_matches(['"', '\'']);
    let is_code = name.starts_with(".text")
        || name.starts_with("text")
        || argument.contains(",\"ax\"")
        || argument.contains(" executable");
    if is_code { Directive::CodeSection } else { Directive::DataSection }
}

/// `_TEXT SEGMENT`, `f ENDP`, `x EQU 8`, `x = 8`.
fn parse_masm(statement: &str) -> Option<Directive> {
    let mut words = statement.split_whitespace();
    let (name, word) = (words.next()?, words.next()?.to_ascii_lowercase());
    // A demangled name may have blanks: `int square(int) ENDP`.
    if words.last().is_some_and(|last| last.eq_ignore_ascii_case("endp")) {
        return Some(Directive::NoCode);
    }
    match word.as_str() {
        "segment" if name.to_ascii_lowercase().contains("text") => Some(Directive::CodeSection),
        "segment" => Some(Directive::DataSection),
        "ends" | "endp" => Some(Directive::NoCode),
        // A stack variable of Microsoft's compiler; code that uses it is refused.
        "=" if name.contains('$') => Some(Directive::NoCode),
        "equ" | "=" | "macro" => Some(Directive::Macro),
        "db" | "dw" | "dd" | "dq" => Some(Directive::Data),
        _ => None,
    }
}

/// `%rep 3` or `%define x` of NASM; a register of AT&T syntax has no word after it.
fn is_preprocessor(statement: &str) -> bool {
    const WORDS: [&str; 18] = [
        "rep", "endrep", "define", "xdefine", "assign", "macro", "endmacro", "imacro", "if", "ifdef", "ifndef", "else",
        "elif", "endif", "include", "use", "pragma", "undef",
    ];
    let word = statement.strip_prefix('%').map(first_word).unwrap_or_default();
    WORDS.contains(&word.as_str())
}

/// Error for a directive that means code of another mode.
pub(super) fn other_mode_error(line: u32, statement: &str, bits: u32) -> BadSnippet {
    let remedy = if bits == 64 { WIDE_CODE } else { NARROW_CODE };
    line_start(line).error_expecting(format!("`{}` starts {bits}-bit code", statement.trim()), remedy)
}

/// Checks text for another assembler: it must be code of this mode, and must not align code after
/// its first instruction. `comments` is whether `;` starts a comment.
///
/// # Errors
///
/// Fails at the first line that would silently become other code.
pub fn check_external_text(text: &str, comments: bool, mode: CodeMode) -> Result<(), BadSnippet> {
    let (mut has_code, mut is_data) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let statements = split_statements(strip_comment(line));
        for statement in statements.iter().take(if comments { 1 } else { usize::MAX }) {
            match Directive::parse(statement) {
                Some(Directive::Mode(bits)) if bits != mode.bits() => {
                    return Err(other_mode_error(number, statement, bits));
                }
                Some(Directive::DataSection) => is_data = true,
                Some(Directive::CodeSection) => is_data = false,
                _ if is_data => {}
                Some(Directive::Alignment) if has_code => return Err(alignment_error(number, statement)),
                Some(_) => {}
                None => has_code |= !statement.trim().is_empty() && !statement.trim().ends_with(':'),
            }
        }
    }
    Ok(())
}

fn alignment_error(line: u32, statement: &str) -> BadSnippet {
    let what = format!("`{}` holds only from the start of the snippet, which is placed anywhere", statement.trim());
    line_start(line).error_expecting(what, "delete the line: the cost is measured at many addresses")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_of_all_assemblers_are_known() {
        for (text, expected) in [
            (".cfi_startproc", Some(Directive::NoCode)),
            ("\t.type\tsum, @function", Some(Directive::NoCode)),
            (".section .rodata", Some(Directive::DataSection)),
            (".section .text.sum,\"ax\",@progbits", Some(Directive::CodeSection)),
            ("section .text", Some(Directive::CodeSection)),
            ("_TEXT SEGMENT", Some(Directive::CodeSection)),
            ("bits 32", Some(Directive::Mode(32))),
            ("[bits 32]", Some(Directive::Mode(32))),
            ("BITS 64", Some(Directive::Mode(64))),
            (".code32", Some(Directive::Mode(32))),
            (".p2align 4,,10", Some(Directive::Alignment)),
            ("%rep 3", Some(Directive::Macro)),
            ("x equ 3", Some(Directive::Macro)),
            (".intel_syntax noprefix", Some(Directive::Syntax(InstructionSyntax::Intel))),
            ("add rax, rbx", None),
            ("rep movsb", None),
            ("test rax, rax", None),
        ] {
            assert_eq!(Directive::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn text_for_other_assemblers_is_of_one_mode_and_not_aligned() {
        let check = |text, comments| check_external_text(text, comments, CodeMode::Bits64);
        assert!(check("bits 64\nalign 16\nnop ; bits 32\n", true).is_ok());
        assert!(check("nop\n.data\n.p2align 4\nx: .long 1\n", false).is_ok());
        assert!(check_external_text("bits 32\ninc eax", false, CodeMode::Bits32).is_ok());
        assert!(check_external_text("bits 64\ninc eax", false, CodeMode::Bits32).is_err());
        for text in ["nop\nbits 32\ninc eax", "nop; .code32", "nop\n.p2align 4\nnop"] {
            assert!(check(text, false).is_err(), "{text}");
        }
    }
}
