//! Broken text: each form's text is broken in five ways, and the error must point at the position.

use cyclescope_code::asm::forms::{self, FormPrefix, OperandChoice};
use cyclescope_code::asm::{Listing, parse_assembly};
use iced_x86::Encoder;
use std::collections::BTreeSet;

/// A statement split into parts, with their columns (from 1).
struct Parts {
    text: String,
    mnemonic: usize,
    mnemonic_end: usize,
    /// Start and end of each operand.
    operands: Vec<(usize, usize)>,
}

impl Parts {
    fn split(text: String) -> Parts {
        let prefixes = ["{vex}", "{evex}", "rep", "data16", "data64", "addr32"];
        let mut at = 0;
        while let Some((word, _)) = text[at..].split_once(' ')
            && prefixes.contains(&word)
        {
            at += word.len() + 1;
        }
        let end = text[at..].find(' ').map_or(text.len(), |n| at + n);
        let mut operands = Vec::new();
        let mut start = end + 1;
        for operand in text.get(end + 1..).unwrap_or("").split(", ").filter(|o| !o.is_empty()) {
            operands.push((start, start + operand.len()));
            start += operand.len() + 2;
        }
        Parts { mnemonic: at, mnemonic_end: end, operands, text }
    }

    /// The text with a part replaced.
    fn with(&self, (start, end): (usize, usize), new: &str) -> String {
        format!("{}{new}{}", &self.text[..start], &self.text[end..])
    }

    fn operand(&self, n: usize) -> &str {
        &self.text[self.operands[n].0..self.operands[n].1]
    }
}

fn all_statements() -> impl Iterator<Item = Parts> {
    // Only the part after a prefix is broken, so `lock add` would test nothing beyond `add`.
    forms::all_forms().filter(|form| form.prefix == FormPrefix::None).map(|form| {
        let instruction = form.build_instruction(&OperandChoice::default()).expect("a listed form exists");
        let mut encoder = Encoder::new(64);
        encoder.encode(&instruction, 0).expect("a form encodes");
        Parts::split(Listing::from_bytes(&encoder.take_buffer()).text())
    })
}

/// Counts cases, and collects failures.
#[derive(Default)]
struct Tally {
    tried: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn expect(&mut self, text: &str, column: usize) {
        self.tried += 1;
        match parse_assembly(text) {
            Ok(listing) => self.wrong.push(format!("`{text}` passes as `{}`", listing.text())),
            Err(e) if (e.line, e.column as usize) == (1, column + 1) => {}
            Err(e) => self.wrong.push(format!("`{text}`: column {} expected, {e}", column + 1)),
        }
    }

    fn finish(self, at_least: usize) {
        println!("{} broken texts", self.tried);
        assert!(self.tried > at_least, "only {} texts", self.tried);
        let shown = &self.wrong[..self.wrong.len().min(30)];
        assert!(self.wrong.is_empty(), "{} errors are misplaced:\n{}", self.wrong.len(), shown.join("\n"));
    }
}

#[test]
fn a_misspelt_mnemonic_is_located() {
    let mut tally = Tally::default();
    // The error only depends on the mnemonic, and searching for similar words is slow.
    let mut seen = BTreeSet::new();
    for parts in all_statements().filter(|p| seen.insert(p.text[..p.mnemonic_end].to_string())) {
        tally.expect(&parts.with((parts.mnemonic_end, parts.mnemonic_end), "zz"), parts.mnemonic);
    }
    tally.finish(1_700);
}

#[test]
fn a_register_of_the_wrong_class_is_located() {
    let mut tally = Tally::default();
    for parts in all_statements() {
        for n in 0..parts.operands.len() {
            let at = parts.operands[n].0;
            if !parts.operand(n).starts_with('{') {
                // No instruction of current machines takes a bound register.
                tally.expect(&parts.with(parts.operands[n], "bnd3"), at);
                tally.expect(&parts.with(parts.operands[n], "rbxx"), at);
            }
        }
    }
    tally.finish(60_000);
}

#[test]
fn an_unclosed_bracket_is_located() {
    let mut tally = Tally::default();
    for parts in all_statements() {
        if let (Some(open), Some(close)) = (parts.text.find('['), parts.text.find(']')) {
            tally.expect(&parts.with((close, close + 1), ""), open);
        } else {
            tally.expect(
                &format!("{} [rax+8", parts.with((parts.mnemonic_end, parts.text.len()), "")),
                parts.mnemonic_end + 1,
            );
        }
    }
    tally.finish(16_000);
}

#[test]
fn an_oversized_constant_is_located() {
    let mut tally = Tally::default();
    for parts in all_statements() {
        let number = (0..parts.operands.len()).find(|n| parts.operand(*n).starts_with("0x1"));
        if let Some(n) = number {
            let at = parts.operands[n].0;
            tally.expect(&parts.with(parts.operands[n], "0x1_0000_0000_0000_0000"), at);
            // Only `mov r64` has a form for it.
            if parts.operand(n) != "0x123456789abcdef0" && !parts.text.starts_with("mov rbx, ") {
                tally.expect(&parts.with(parts.operands[n], "0x1_2345_6789_abcd"), at);
            }
        }
        let memory = (0..parts.operands.len()).find(|n| parts.operand(*n).contains("[rdi"));
        let string = |m: &str| m.contains("es:") || m == "xmm" || parts.text.contains("maskmov");
        if let Some(n) = memory.filter(|n| !string(parts.operand(*n))) {
            let broken = parts.operand(n).replace("[rdi", "[rdi+0x1_2345_6789_abcd");
            tally.expect(&parts.with(parts.operands[n], &broken), parts.operands[n].0);
        }
    }
    tally.finish(8_000);
}

#[test]
fn an_operand_too_many_or_too_few_is_located() {
    let mut tally = Tally::default();
    let mut shorter = 0;
    for parts in all_statements() {
        // An instruction has at most five operands, sometimes one of them implied.
        let surplus =
            format!("{}{} eax, eax, eax, eax, eax", parts.text, if parts.operands.is_empty() { "" } else { "," });
        tally.tried += 1;
        match parse_assembly(&surplus) {
            Ok(_) => tally.wrong.push(format!("`{surplus}` passes")),
            Err(e) if (e.column as usize) <= parts.mnemonic_end => tally.wrong.push(format!("`{surplus}`: {e}")),
            Err(_) => {}
        }
        let Some(&(start, _)) = parts.operands.last() else { continue };
        let cut = if parts.operands.len() == 1 { start - 1 } else { start - 2 };
        let text = &parts.text[..cut];
        tally.tried += 1;
        match parse_assembly(text) {
            // Such as `shl eax`.
            Ok(_) => shorter += 1,
            Err(e) if e.column as usize == parts.mnemonic + 1 && e.message.contains("lacks") => {}
            Err(e) if e.column as usize > parts.mnemonic_end => shorter += 1,
            Err(e) => tally.wrong.push(format!("`{text}`: {e}")),
        }
    }
    println!("{shorter} texts fit another pattern with fewer operands, or nearly");
    assert!(shorter < 1_500, "{shorter} texts with a missing operand report another error");
    tally.finish(30_000);
}
