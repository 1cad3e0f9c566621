//! Examples of the assembler's syntax: bytes that GNU as produces, and errors at the right
//! position.

use cyclescope_code::asm::{InstructionSyntax, Listing, parse_assembly, parse_with_syntax};
use cyclescope_core::error::BadSnippet;

/// The bytes in hexadecimal, or the error.
fn assemble(text: &str) -> String {
    bytes(parse_assembly(text))
}

fn bytes(parsed: Result<Listing, BadSnippet>) -> String {
    match parsed {
        Ok(listing) => listing.bytes().iter().map(|b| format!("{b:02x}")).collect(),
        Err(e) => format!("{e}"),
    }
}

#[test]
fn examples_give_known_bytes() {
    give_known_bytes(include_str!("../data/encodings.txt"), 100, assemble);
}

#[test]
fn examples_in_att_syntax_give_known_bytes() {
    let examples = include_str!("../data/encodings-att.txt");
    give_known_bytes(examples, 200, |text| bytes(parse_with_syntax(text, InstructionSyntax::Att)));
    // The same without naming the syntax, if a sigil shows it.
    let plain: Vec<&str> = examples.lines().filter(|line| line.contains('%') || line.contains('$')).collect();
    give_known_bytes(&plain.join("\n"), 180, assemble);
}

#[test]
fn errors_in_att_syntax_are_reported() {
    for (text, column, message) in [
        ("jmp %rax", 5, "indirect"),
        ("addl %rax, %rbx", 12, "size of the suffix"),
        ("mov (%rax,%rbx,3), %rcx", 11, "scaled by 3"),
        ("mov (%rax, %rcx", 16, "ends too early"),
        ("movl $1, %rbxx", 11, "does not belong here"),
        ("addll $1, %eax", 1, "no instruction"),
        ("mov (,,4), %rax", 8, "no index"),
        ("add $1, (%rax)", 9, "ambiguous"),
    ] {
        let error = parse_assembly(text).expect_err(text);
        assert_eq!((error.line, error.message.contains(message)), (1, true), "{text}: {error}");
        assert_eq!(error.column, column, "{text}: {error}");
    }
}

fn give_known_bytes(examples: &str, least: usize, assemble: impl Fn(&str) -> String) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in examples.lines().filter(|l| !l.is_empty() && !l.starts_with("##")) {
        let (bytes, text) = line.split_once(" | ").expect("bytes | text");
        let got = assemble(text);
        count += 1;
        if got != bytes.replace(' ', "") {
            wrong.push(format!("{text}\n  want {bytes}\n  got  {got}"));
        }
    }
    assert!(count > least, "only {count} examples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Text, line, column, and a part of the message.
const ERRORS: [(&str, u32, u32, &str); 52] = [
    ("imull rax, rax", 1, 1, "did you mean imul"),
    ("vadps zmm0, zmm1, zmm2", 1, 1, "did you mean vaddps"),
    ("nop\n  addd eax, 1", 2, 3, "there is no instruction `addd`"),
    ("add eax, rbx", 1, 10, "r/m32, r32"),
    ("add eax, 0x100000000", 1, 10, "does not fit in 32 bits"),
    ("add al, 300", 1, 9, "does not fit in 8 bits"),
    ("mov [rax], [rbx]", 1, 12, "does not fit `mov mem, …`"),
    ("mov [rax], 5", 1, 5, "ambiguous"),
    ("inc [rax]", 1, 5, "ambiguous"),
    ("add eax", 1, 1, "`add` lacks an operand"),
    ("nop; add eax", 1, 6, "`add` lacks an operand"),
    ("add eax, ebx, ecx", 1, 15, "one too many"),
    ("mov rax, rbxx", 1, 10, "did you mean rbx"),
    ("jmp foo", 1, 5, "neither a register nor a label"),
    ("loop: jmp lop", 1, 11, "did you mean"),
    ("mov eax, [rax", 1, 10, "not closed"),
    ("mov eax, [rax; nop", 1, 10, "not closed"),
    ("mov eax, (1+2", 1, 10, "not closed"),
    ("vaddps zmm0{k1, zmm1, zmm2", 1, 12, "not closed"),
    ("mov eax, rax]", 1, 13, "does not belong here"),
    ("mov eax, [rax+rbx+rcx]", 1, 19, "too many registers"),
    ("mov eax, [rax*3]", 1, 11, "scaled by 3"),
    ("mov eax, [rsp*2]", 1, 11, "never an index"),
    ("mov eax, [ax]", 1, 11, "cannot be part of an address"),
    ("mov eax, [rax+ecx]", 1, 15, "same width"),
    ("vaddps zmm0{k0}, zmm1, zmm2", 1, 12, "decorator"),
    ("vaddps zmm0, zmm1, [rax]{1to8}", 1, 25, "{1to16} fits"),
    ("vaddps ymm0, ymm1, ymm2, {rn-sae}", 1, 26, "decorator"),
    ("vmovaps [rax]{k1}{z}, zmm1", 1, 18, "memory destination"),
    ("add r8b, ah", 1, 10, "REX"),
    ("jrcxz $+200", 1, 7, "leaves the snippet"),
    ("jmp $-1", 1, 5, "leaves the snippet"),
    ("x: nop; x: nop", 1, 9, "already exists"),
    ("1: jmp 2b", 1, 8, "no label `2:` behind"),
    ("jmp 1f; 2:", 1, 5, "no label `1:` ahead"),
    ("eax: nop", 1, 1, "is a register"),
    ("lock add eax, 1", 1, 1, "prefix"),
    ("rep add eax, 1", 1, 1, "prefix"),
    ("lock", 1, 1, "has no instruction"),
    ("vpgatherdd zmm1, [rax+zmm2*4]", 1, 12, "needs a mask"),
    ("vpgatherdd zmm1{k1}, [rax+zmm1*4]", 1, 22, "distinct"),
    ("vpgatherdd zmm1{k1}, [rax+ymm2*4]", 1, 22, "vector register as index"),
    ("{vex} vaddps zmm0, zmm1, zmm2", 1, 1, "prefix"),
    ("{foo} add eax, 1", 1, 1, "not an encoding hint"),
    ("mov eax, dword rax", 1, 10, "size does not go with a register"),
    ("mov eax, byte ptr [rax]", 1, 10, "dword ptr fits"),
    ("mov eax, st(8)", 1, 13, "st(0) to st(7)"),
    ("mov eax,", 1, 9, "ends too early"),
    ("mov ,eax", 1, 5, "does not belong here"),
    ("mov eax, 08", 1, 10, "octal"),
    ("mov eax, 1/0", 1, 11, "division by zero"),
    ("mov eax, 99999999999999999999", 1, 10, "64 bits"),
];

#[test]
fn errors_name_the_position_and_a_valid_alternative() {
    let mut wrong = Vec::new();
    for (text, line, column, message) in ERRORS {
        match parse_assembly(text) {
            Ok(listing) => wrong.push(format!("`{text}` passes as `{}`", listing.text())),
            Err(e) if (e.line, e.column) == (line, column) && e.to_string().contains(message) => {}
            Err(e) => wrong.push(format!("`{text}`: {line}:{column} {message:?} expected, {e}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_empty_snippet_has_no_bytes() {
    for text in ["", " ", "\n;;\n", "# only a comment", "// nothing ; here\n"] {
        assert_eq!(assemble(text), "", "{text:?}");
    }
}

#[test]
fn branches_are_as_short_as_possible() {
    let ahead = |nops: usize| parse_assembly(&format!("jmp end; {} end: nop", "nop;".repeat(nops))).unwrap();
    assert_eq!(ahead(127).bytes()[..2], [0xeb, 127]);
    assert_eq!(ahead(128).bytes()[..5], [0xe9, 128, 0, 0, 0]);
    let behind = |nops: usize| parse_assembly(&format!("top: {} jnz top", "nop;".repeat(nops))).unwrap();
    assert_eq!(behind(126).bytes()[126..], [0x75, 0x80]);
    assert_eq!(behind(127).bytes()[127..], [0x0f, 0x85, 0x7b, 0xff, 0xff, 0xff]);
    // The growth of the first branch moves the second one out of reach.
    let text = format!("a: jmp end; {} jmp a; nop; nop; end:", "nop;".repeat(124));
    let listing = parse_assembly(&text).unwrap();
    assert_eq!(listing.bytes()[0], 0xe9);
    assert_eq!(listing.bytes()[5 + 124], 0xe9);
    assert!(parse_assembly(&format!("top: {} loop top", "nop;".repeat(127))).is_err());
}

#[test]
fn instructions_have_positions_and_addresses() {
    let listing = parse_assembly("nop\n  x: lea rax, [rip+x]; finit").unwrap();
    let places: Vec<(u32, u32)> =
        (0..listing.instructions().len()).filter_map(|n| listing.position(n)).map(|p| (p.line, p.column)).collect();
    // FINIT is WAIT and FNINIT.
    assert_eq!(places, [(1, 1), (2, 6), (2, 24), (2, 24)]);
    assert_eq!(listing.instructions()[1].memory_displacement64(), 1);
    assert_eq!(parse_assembly(&listing.text()).unwrap().bytes(), listing.bytes());
}
