//! Compares the notes by which tracers find static probes with the places recorded by the compiled
//! markers.

use cyclescope_marker::compiled_design::CompiledDesign;
use object::{Object, ObjectSection};
use std::collections::{BTreeMap, BTreeSet};

/// A note of version 3, as described at
/// <https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>.
#[derive(Debug)]
struct Note {
    place: u64,
    base: u64,
    semaphore: u64,
    texts: Vec<String>,
}

fn word(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

fn address(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// All notes of the section: lengths of name and content, a type, then both, each padded to four
/// bytes.
fn notes(mut section: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    while !section.is_empty() {
        let (name, content, kind) = (word(section, 0), word(section, 4), word(section, 8));
        assert_eq!((kind, &section[12..12 + name]), (3, &b"stapsdt\0"[..]));
        let start = 12 + name.next_multiple_of(4);
        let it = &section[start..start + content];
        let texts = it[24..].split(|byte| *byte == 0).map(|text| String::from_utf8(text.to_vec()).unwrap());
        let mut texts: Vec<String> = texts.collect();
        assert_eq!(texts.pop().as_deref(), Some(""), "the last text ends with NUL");
        notes.push(Note { place: address(it, 0), base: address(it, 8), semaphore: address(it, 16), texts });
        section = &section[start + content.next_multiple_of(4)..];
    }
    notes
}

/// Distance of this program's code from its address in the file.
fn bias(file: &object::File, built: &[CompiledDesign]) -> u64 {
    let usdt = built.iter().find(|compiled| compiled.design.name == "usdt").unwrap();
    let code = usdt.find_function("empty", None).unwrap();
    code.start.wrapping_sub(file.section_by_name("in_cyclescope_usdt_base_empty").unwrap().address())
}

#[test]
fn notes_match_the_recorded_places() {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let built = CompiledDesign::list_built();
    let bias = bias(&file, &built);
    let section = file.section_by_name(".note.stapsdt").expect("the program has notes");
    // Tracers correct a note by this section's distance from the address in the note. Linkers that
    // drop unreferenced sections remove it, and the notes are then correct as they are.
    let base = file.section_by_name(".stapsdt.base").map_or(0, |section| section.address());
    let notes = notes(section.data().unwrap());
    let found: BTreeMap<u64, &Note> = notes.iter().map(|it| (it.place.wrapping_add(bias), it)).collect();
    assert_eq!(found.len(), notes.len(), "no two markers are at one place");
    let mut seen = BTreeSet::new();
    for compiled in built.iter().filter(|compiled| compiled.design.name.starts_with("usdt")) {
        for code in compiled.codes.iter().filter(|code| code.guard.is_some()) {
            let name = format!("{} {:?} {}", compiled.design.name, code.guard, code.context);
            let inside: Vec<_> = found.range(code.start..code.start + code.bytes.len() as u64).collect();
            let [(place, note)] = inside[..] else { panic!("{name}: {inside:?}") };
            let offset = (place - code.start) as usize;
            assert_eq!(code.bytes[offset], 0x90, "{name}: a tracer needs a NOP there");
            let semaphore = match compiled.enabled {
                // The semaphore enables the marker; this program does not patch the place.
                Some(address) => address.wrapping_sub(bias),
                None => {
                    assert_eq!(code.sites.iter().map(|site| site.place).collect::<Vec<_>>(), [offset], "{name}");
                    0
                }
            };
            assert_eq!((note.semaphore, note.base), (semaphore, base), "{name}");
            assert_eq!(note.texts, ["cyclescope", "marker", "-4@$1 8@$0"], "{name}");
            seen.insert(*place);
        }
    }
    assert_eq!(seen.len(), notes.len(), "all notes are the markers'");
}
