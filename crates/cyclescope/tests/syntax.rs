//! The assembler's syntax, example by example: bytes that GNU as gives, and errors at the right place.

use cyclescope::asm::parse;

/// The bytes in hexadecimal, or the error.
fn assemble(text: &str) -> String {
    match parse(text) {
        Ok(listing) => listing.bytes().iter().map(|b| format!("{b:02x}")).collect(),
        Err(e) => format!("{e}"),
    }
}

#[test]
fn examples_give_known_bytes() {
    let examples = include_str!("data/encodings.txt");
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
    assert!(count > 100, "only {count} examples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
