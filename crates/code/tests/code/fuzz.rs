//! Random text must never make the assembler panic, and accepted text must be sound.

use cyclescope_code::asm::{Listing, forms, parse_assembly, parse_hex};

/// Number of strings in an ordinary test run; `CYCLESCOPE_FUZZ_STRINGS` overrides it.
const STRINGS: u64 = 200_000;

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

const REGISTERS: &[&str] = &[
    "rax", "ecx", "dx", "bl", "ah", "spl", "r8", "r15d", "r9b", "rsp", "rip", "xmm0", "xmm31", "ymm7", "zmm16", "k1",
    "k0", "st", "st(1)", "st(9)", "mm3", "cr0", "dr7", "fs", "tmm2", "bnd1",
];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0x7f",
    "0x80",
    "255",
    "0x12345678",
    "0xffffffffffffffff",
    "99999999999999999999",
    "1b",
    "1f",
    "0b11",
    "0o7",
    "0ffh",
    "1_0",
    "010",
    "$",
    ".",
    "'x'",
    "(1+2)*3",
    "8/0",
    "-(-2)",
];
const PUNCTUATION: &[&str] =
    &[",", "[", "]", "(", ")", "+", "-", "*", "/", ":", ";", "\n", "#", "//", "{", "}", "$", "'", "\\", "é", "\u{0}"];
const WORDS: &[&str] = &[
    "byte",
    "dword ptr",
    "qword ptr",
    "zmmword ptr",
    "ptr",
    "short",
    "far",
    "rel",
    "bcst",
    "{k1}",
    "{k1}{z}",
    "{1to16}",
    "{rn-sae}",
    "{sae}",
    "{vex}",
    "{evex}",
    "{disp32}",
    "{load}",
    "lock",
    "rep",
    "repne",
    "data16",
    "x:",
    "x",
    "1:",
    "xacquire",
    "notrack",
    "fs:",
    "gs:[",
];

fn address(random: &mut Random) -> String {
    let (base, index) = (random.pick(REGISTERS), random.pick(REGISTERS));
    let (scale, displacement) = (random.pick(&["1", "2", "3", "8"]), random.pick(NUMBERS));
    match random.below(5) {
        0 => format!("[{base}]"),
        1 => format!("[{base}+{index}*{scale}]"),
        2 => format!("[{base}+{index}*{scale}+{displacement}]"),
        3 => format!("dword ptr [{displacement}-{base}]"),
        _ => format!("{displacement}[{base}]"),
    }
}

/// Nearly valid statements, loose tokens, or raw bytes.
fn text(random: &mut Random, mnemonics: &[String]) -> String {
    let mut text = String::new();
    match random.below(4) {
        0 | 1 => {
            for _ in 0..=random.below(3) {
                text.push_str(&mnemonics[random.below(mnemonics.len())]);
                for n in 0..random.below(5) {
                    text.push_str(if n == 0 { " " } else { ", " });
                    match random.below(4) {
                        0 | 1 => text.push_str(random.pick(REGISTERS)),
                        2 => text.push_str(&address(random)),
                        _ => text.push_str(random.pick(NUMBERS)),
                    }
                    if random.below(8) == 0 {
                        text.push_str(random.pick(WORDS));
                    }
                }
                text.push(';');
            }
        }
        2 => {
            for _ in 0..random.below(14) {
                let words = [REGISTERS, NUMBERS, PUNCTUATION, WORDS][random.below(4)];
                text.push_str(random.pick(words));
                text.push_str(random.pick(&["", " "]));
            }
        }
        _ => {
            let bytes: Vec<u8> = (0..random.below(24)).map(|_| random.next() as u8).collect();
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    text
}

/// Runs this many strings; returns how many assembled.
fn fuzz(strings: u64, seed: u64) -> u64 {
    let mut mnemonics: Vec<String> = forms::all_forms().map(|form| form.mnemonic()).collect();
    mnemonics.dedup();
    let mut random = Random(seed);
    let mut accepted = 0;
    for _ in 0..strings {
        let text = text(&mut random, &mnemonics);
        match parse_assembly(&text) {
            Ok(listing) => {
                accepted += 1;
                assert!(listing.instructions().iter().all(|i| !i.is_invalid()), "{text:?}");
                assert!(listing.instructions().iter().map(|i| i.len()).sum::<usize>() == listing.bytes().len());
                let lines = text.lines().count() as u32 + 1;
                assert!((0..listing.instructions().len()).all(|n| listing.position(n).unwrap().line <= lines));
            }
            Err(e) => {
                // The position is in the text or just after it.
                let line = text.split('\n').nth(e.line as usize - 1).unwrap_or_else(|| panic!("{text:?}: {e}"));
                assert!((e.column as usize) <= line.chars().count() + 1, "{text:?}: {e}");
            }
        }
        drop(parse_hex(&text).map(|bytes| Listing::from_bytes(&bytes).text()));
    }
    accepted
}

#[test]
fn random_text_never_panics() {
    let wanted = std::env::var("CYCLESCOPE_FUZZ_STRINGS");
    let strings = wanted.map_or(STRINGS, |text| text.parse().expect("a number of strings"));
    let start = std::time::Instant::now();
    let accepted = fuzz(strings, 1);
    println!("{strings} strings, {accepted} assembled, {:.1} s", start.elapsed().as_secs_f64());
    assert!(accepted > strings / 100, "only {accepted} of {strings} strings assemble: the grammar is outdated");
}
