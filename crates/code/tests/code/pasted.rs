//! Texts of other programs: each must become the bytes that the assembler made, or be refused with
//! a reason and a remedy.
//!
//! The files in `pasted_texts` hold the cases, those in `narrow_texts` the ones of 32-bit code. A
//! line `=== NAME` begins one. The next lines hold its bytes, one region a line after `==> `, or
//! `==! REASON | REMEDY` for a refusal. The text follows. The texts are output of the named programs for small functions, or written by hand in
//! its form; the bytes are those of the text, or of GNU as.

use cyclescope_code::asm::{ALL_MODES, CodeMode, to_hex};
use cyclescope_code::pasted::{PastedText, read_for_mode, read_pasted};
use cyclescope_fuzz::{InputShape, fuzz_reader, thread_time};
use std::path::Path;
use std::time::Duration;

/// What a text must become.
#[derive(Debug, PartialEq, Eq)]
enum Expected {
    /// Machine code of each region.
    Regions(Vec<String>),
    /// An error with these words, and a remedy with these.
    Refusal(String, String),
}

struct PastedCase {
    name: String,
    text: String,
    expected: Expected,
}

fn read_cases(mode: CodeMode) -> Vec<PastedCase> {
    let name = if mode == CodeMode::Bits64 { "tests/pasted_texts" } else { "tests/narrow_texts" };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let content = std::fs::read_to_string(&file).expect("text");
        cases.extend(content.split("=== ").skip(1).map(parse_case));
    }
    cases
}

fn parse_case(content: &str) -> PastedCase {
    let (name, mut rest) = content.split_once('\n').expect("a name");
    let (mut regions, mut refusal) = (Vec::new(), None);
    while let Some((line, after)) = rest.split_once('\n').filter(|(line, _)| line.starts_with("==")) {
        match (line.strip_prefix("==> "), line.strip_prefix("==! ")) {
            (Some(bytes), _) => regions.push(bytes.to_string()),
            (_, Some(words)) => refusal = words.split_once(" | "),
            _ => panic!("{name}: {line}"),
        }
        rest = after;
    }
    let expected = match refusal {
        Some((reason, remedy)) => Expected::Refusal(reason.to_string(), remedy.to_string()),
        None => Expected::Regions(regions),
    };
    PastedCase { name: name.to_string(), text: rest.to_string(), expected }
}

/// What the reader says about a text: bytes of each region, or an error.
fn read(text: &str, mode: CodeMode) -> Result<(PastedText, Vec<String>), (String, String)> {
    let found =
        read_for_mode(text, mode, None, None).map_err(|error| (error.message, error.expected.unwrap_or_default()))?;
    let mut regions = Vec::new();
    for region in &found.regions {
        match &region.code {
            Ok(code) => regions.push(to_hex(code.listing.bytes()).replace(' ', "")),
            Err(error) => return Err((error.message.clone(), error.expected.clone().unwrap_or_default())),
        }
    }
    Ok((found, regions))
}

#[test]
fn texts_of_other_programs_become_their_code() {
    let count = become_their_code(CodeMode::Bits64);
    assert!(count[0] > 520 && count[1] > 420, "{count:?}");
}

#[test]
fn texts_with_32_bit_code_become_their_code() {
    let count = become_their_code(CodeMode::Bits32);
    assert!(count[0] > 20 && count[1] > 15, "{count:?}");
}

/// Reads all texts of a mode. Returns their number, and that of those with code.
fn become_their_code(mode: CodeMode) -> [usize; 2] {
    let cases = read_cases(mode);
    let mut failures = Vec::new();
    let (mut readable, mut wrong) = (0, 0);
    for PastedCase { name, text, expected } in &cases {
        readable += usize::from(matches!(expected, Expected::Regions(_)));
        match (read(text, mode), expected) {
            (Ok((_, found)), Expected::Regions(regions)) if found == *regions => {}
            (Err((what, help)), Expected::Refusal(reason, remedy))
                if what.contains(reason) && help.contains(remedy) => {}
            (Ok((from, found)), _) => {
                wrong += 1;
                failures.push(format!("{name}, read as {}: {found:?} for {expected:?}\n{text}", from.source));
            }
            (Err(error), _) => failures.push(format!("{name}: {error:?} for {expected:?}\n{text}")),
        }
    }
    println!("{} texts, {readable} with code, {} failures, {wrong} with other code", cases.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    [cases.len(), readable]
}

/// Longest processor time of one changed text, a hundred times what they take.
const READING_TIME_MOST: Duration = Duration::from_secs(1);

#[test]
fn changed_texts_are_read_or_refused_in_time() {
    for mode in ALL_MODES {
        let seeds: Vec<Vec<u8>> = read_cases(mode).into_iter().map(|case| case.text.into_bytes()).collect();
        for (part, seeds) in seeds.chunks(64).enumerate() {
            fuzz_reader(&format!("pasted texts {} {part}", mode.bits()), InputShape::Bytes, seeds, |bytes| {
                let started = thread_time();
                let found = read_for_mode(&String::from_utf8_lossy(bytes), mode, None, None);
                assert!(thread_time() - started < READING_TIME_MOST, "it takes too long");
                // What was read has code, and each of its instructions a place in the text.
                let regions = found.iter().flat_map(|found| &found.regions);
                for code in regions.filter_map(|region| region.code.as_ref().ok()) {
                    let count = code.listing.instructions().len();
                    assert!((0..count).all(|index| code.listing.position(index).is_some()));
                }
            });
        }
    }
}

/// Bytes of a short text, and how many times longer a long one is: the most that a command reads.
const SHORT_TEXT: usize = 512 << 10;
const LONGER: usize = 8;

/// How many times longer than in proportion a long text may take. Time that grows with the square of
/// the length would be 8 times longer.
const DISPROPORTION_MOST: f64 = 3.0;

#[test]
fn time_grows_in_proportion_to_the_text() {
    for line in [
        "nop\n",
        "nop;",
        "90 ",
        "; a comment\n",
        "  40:\t90  \tnop\n",
        "label_of_16_char:\n",
        "function_16_char: ret\n",
        "\t.p2align 4,,10  # fast\n",
        "# LLVM-MCA-BEGIN\n# LLVM-MCA-END   \n",
        "0000000000000000 <f>:\n   0:\tnop\n",
    ] {
        let time_of = |bytes: usize| {
            let text = line.repeat(bytes / line.len());
            let started = thread_time();
            let _ = read_pasted(&text, None);
            (thread_time() - started).as_secs_f64()
        };
        // Other programs slow one or the other by turns.
        let ratios = (0..3).map(|_| time_of(LONGER * SHORT_TEXT) / time_of(SHORT_TEXT));
        let mut tried = Vec::new();
        let is_proportional =
            ratios.inspect(|ratio| tried.push(*ratio)).any(|ratio| ratio < DISPROPORTION_MOST * LONGER as f64);
        assert!(is_proportional, "{line:?} takes {tried:?} times longer");
    }
}
