//! AT&T's instruction names: the Intel name, and the size of a memory operand given by a suffix.

use crate::asm::CodeMode;
use crate::asm::mnemonic;

/// An instruction in Intel's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IntelName {
    /// Intel mnemonic.
    pub(super) mnemonic: String,
    /// Bytes of a memory operand and of the general-purpose registers.
    pub(super) size: Option<u32>,
    /// Whether `size` also applies to all general-purpose registers.
    pub(super) registers: bool,
}

/// Names that are not a mnemonic with a suffix: GNU as, "AT&T Mnemonic versus Intel Mnemonic". The
/// size is that of the source.
const IRREGULAR_NAMES: [(&str, &str, Option<u32>); 26] = [
    ("cbtw", "cbw", None),
    ("cwtl", "cwde", None),
    ("cltq", "cdqe", None),
    ("cwtd", "cwd", None),
    ("cltd", "cdq", None),
    ("cqto", "cqo", None),
    ("movzb", "movzx", Some(1)),
    ("movzbw", "movzx", Some(1)),
    ("movzbl", "movzx", Some(1)),
    ("movzbq", "movzx", Some(1)),
    ("movzw", "movzx", Some(2)),
    ("movzwl", "movzx", Some(2)),
    ("movzwq", "movzx", Some(2)),
    ("movsbw", "movsx", Some(1)),
    ("movsbl", "movsx", Some(1)),
    ("movsbq", "movsx", Some(1)),
    ("movswl", "movsx", Some(2)),
    ("movswq", "movsx", Some(2)),
    ("movslq", "movsxd", Some(4)),
    ("movabsq", "movabs", None),
    ("lret", "retf", None),
    ("lretq", "retfq", None),
    ("smovb", "movsb", None),
    ("smovl", "movsd", None),
    ("ssto", "stosd", None),
    ("slod", "lodsd", None),
];

const SIZE_SUFFIXES: [(&str, u32); 4] = [("b", 1), ("w", 2), ("l", 4), ("q", 8)];
/// Suffixes of conversions to a narrower vector: the size of the operand in memory.
const VECTOR_SUFFIXES: [(&str, u32); 3] = [("x", 16), ("y", 32), ("z", 64)];
/// Suffixes of x87 instructions on floating-point numbers, and on integers.
const FLOAT_SUFFIXES: [(&str, u32); 3] = [("s", 4), ("l", 8), ("t", 10)];
const INTEGER_SUFFIXES: [(&str, u32); 4] = [("s", 2), ("ll", 8), ("l", 4), ("q", 8)];

const FLOAT_MNEMONICS: [&str; 11] =
    ["fld", "fst", "fstp", "fadd", "fmul", "fcom", "fcomp", "fsub", "fsubr", "fdiv", "fdivr"];
const INTEGER_MNEMONICS: [&str; 12] =
    ["fild", "fist", "fistp", "fisttp", "fiadd", "fimul", "ficom", "ficomp", "fisub", "fisubr", "fidiv", "fidivr"];

/// Possible meanings of an AT&T mnemonic (in lower case), likeliest first.
pub(super) fn find_intel_names(written: &str, mode: CodeMode) -> Vec<IntelName> {
    let mut found = Vec::new();
    let mut add = |mnemonic: &str, size: Option<u32>, registers: bool| {
        if !mnemonic::find_patterns(mnemonic, mode).is_empty() {
            found.push(IntelName { mnemonic: mnemonic.to_string(), size, registers });
        }
    };
    for (_, intel, size) in IRREGULAR_NAMES.iter().filter(|(name, ..)| *name == written) {
        add(intel, *size, false);
    }
    add(written, None, false);
    for (base, suffixes) in
        [(&FLOAT_MNEMONICS[..], &FLOAT_SUFFIXES[..]), (&INTEGER_MNEMONICS[..], &INTEGER_SUFFIXES[..])]
    {
        for (suffix, size) in suffixes {
            let stem = written.strip_suffix(suffix).filter(|stem| base.contains(stem));
            stem.into_iter().for_each(|stem| add(stem, Some(*size), false));
        }
    }
    if written.starts_with('f') {
        return found;
    }
    for (suffix, size) in SIZE_SUFFIXES {
        written.strip_suffix(suffix).into_iter().for_each(|stem| add(stem, Some(size), true));
    }
    if written.starts_with("vcvt") || written.starts_with("vfpclass") {
        for (suffix, size) in VECTOR_SUFFIXES {
            written.strip_suffix(suffix).into_iter().for_each(|stem| add(stem, Some(size), false));
        }
    }
    found
}

/// The opposite direction of an x87 subtraction or division. AT&T's assembler swapped these names,
/// and the syntax keeps them: "fsub" with a destination other than the top is Intel's "fsubr".
pub(super) fn reverse_x87_direction(mnemonic: &str) -> Option<&'static str> {
    const PAIRS: [(&str, &str); 4] = [("fsub", "fsubr"), ("fdiv", "fdivr"), ("fsubp", "fsubrp"), ("fdivp", "fdivrp")];
    PAIRS.iter().find_map(|(one, other)| match mnemonic {
        name if name == *one => Some(*other),
        name if name == *other => Some(*one),
        _ => None,
    })
}
