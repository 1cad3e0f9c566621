//! Round trips, and files that are cut, changed or forged.

use super::*;
use cyclescope_code::clock::Clock;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_core::input::InputKind;
use cyclescope_exec::{Batch, Layout, PlacedProgram, ProgramCall, Sample};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use proptest::prelude::*;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The directory of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("cyclescope-container-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn origin() -> EvidenceOrigin {
    let machine = serde_json::json!({ "cpu": "none", "half": 0.5 });
    EvidenceOrigin { study: "test".to_string(), repro: "cyclescope test".to_string(), machine }
}

fn program(copies: usize) -> Program {
    let clock = Clock::find_named("rdtscp-lfence").unwrap();
    ProgramRecipe { snippet: &[0x90], copies, ..ProgramRecipe::empty(clock) }.build()
}

fn layout(seed: u64) -> Layout {
    let code = vec![PlacedProgram { program: 0, offset: 64 }];
    Layout { code, round: vec![ProgramCall { place: 0, loop_count: 1 }], data: vec![1, -2, 3, -4, 5], seed }
}

/// A batch of programs with this number of copies, in one layout.
fn batch(copies: &[usize]) -> Batch {
    Batch {
        programs: copies.iter().copied().map(program).collect(),
        warm_up: 1,
        rounds: 2,
        layouts: vec![layout(copies[0] as u64)],
        memory: ProgramMemory { vectors: FloatElement::default(), areas: Vec::new() },
        delay: 3,
        events: Vec::new(),
        deadline: Duration::from_secs(1),
    }
}

fn kept(number: u64) -> StudyEvent {
    StudyEvent::Kept { of: serde_json::json!({ "number": number }) }
}

fn samples(number: u64) -> Vec<Sample> {
    (0..50).map(|at| Sample { start: 1000 * number + 40 * at, end: 1000 * number + 40 * at + 26 }).collect()
}

/// A finished container with three events.
fn small(directory: &Path) {
    let mut writer = ContainerWriter::create(directory, origin()).unwrap();
    fill(&mut writer, 0..3);
    writer.set_facts(&[1, 2]).unwrap();
    writer.finish().unwrap();
}

fn fill(writer: &mut ContainerWriter, numbers: std::ops::Range<u64>) {
    for number in numbers {
        writer.add_batch(&batch(&[number as usize])).unwrap();
        writer.add_event(&kept(number), &samples(number)).unwrap();
        writer.add_record("test", &Facts { number }).unwrap();
    }
}

#[derive(Serialize)]
struct Facts {
    number: u64,
}

/// Reads all events, or returns the first error.
fn events(container: &EvidenceContainer) -> Result<Vec<(StudyEvent, Vec<Sample>)>, ContainerError> {
    let mut events = container.events()?;
    let mut all = Vec::new();
    while let Some(event) = events.take_event(usize::MAX)? {
        all.push(event);
    }
    Ok(all)
}

#[test]
fn a_container_reads_back_as_written() {
    let folder = Folder::new("whole");
    small(&folder.0);
    let container = EvidenceContainer::open(&folder.0).unwrap();
    container.require_finished().unwrap();
    assert_eq!((&container.manifest.origin, container.facts::<Vec<u64>>().unwrap()), (&origin(), vec![1, 2]));
    let all = events(&container).unwrap();
    assert_eq!(all, (0..3).map(|number| (kept(number), samples(number))).collect::<Vec<_>>());
    let records: Result<Vec<_>, _> = container.records().unwrap().collect();
    let numbers: Vec<u64> = records.unwrap().iter().map(|line| line["number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let layouts: Vec<Layout> =
        container.layouts().unwrap().map(|line| serde_json::from_value(line.unwrap()).unwrap()).collect();
    assert_eq!(layouts, [layout(0), layout(1), layout(2)]);
    let code = container.programs().unwrap().map(|line| line.unwrap()["code"].as_str().unwrap().len() / 2);
    assert_eq!(code.collect::<Vec<_>>(), [0, 1, 2].map(|copies| program(copies).len()));
}

#[test]
fn events_are_as_long_as_can_be_read_or_are_an_error() {
    let folder = Folder::new("heads");
    let mut writer = ContainerWriter::create(&folder.0, origin()).unwrap();
    // The memory of a large region.
    let large = |bytes: usize| StudyEvent::Kept { of: "x".repeat(bytes).into() };
    writer.add_event(&large(33 << 20), &samples(1)).unwrap();
    assert_eq!(writer.add_event(&large(64 << 20), &[]).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    writer.set_facts(&1).unwrap();
    writer.finish().unwrap();
    let mut events = EvidenceContainer::open(&folder.0).unwrap().events().unwrap();
    assert_eq!(events.take_event(usize::MAX).unwrap(), Some((large(33 << 20), samples(1))));
    assert!(events.take_event(usize::MAX).unwrap().is_none());
}

#[test]
fn facts_that_could_not_be_read_again_are_an_error() {
    let folder = Folder::new("facts");
    let mut writer = ContainerWriter::create(&folder.0, origin()).unwrap();
    writer.set_facts(&"x".repeat(InputKind::Manifest.most_bytes() as usize)).unwrap();
    let error = writer.finish().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    assert!(error.to_string().contains("64 MiB"), "{error}");
}

#[test]
fn a_program_is_written_once() {
    let folder = Folder::new("once");
    let mut writer = ContainerWriter::create(&folder.0, origin()).unwrap();
    let facts = writer.add_batch(&batch(&[1, 2, 1])).unwrap();
    assert_eq!((facts.programs, facts.first_layout, facts.layouts), (vec![0, 1, 0], 0, 1));
    let facts = writer.add_batch(&batch(&[3, 2])).unwrap();
    assert_eq!((facts.programs, facts.first_layout, facts.layouts), (vec![2, 1], 1, 1));
    writer.finish().unwrap();
    let container = EvidenceContainer::open(&folder.0).unwrap();
    assert_eq!((container.programs().unwrap().count(), container.layouts().unwrap().count()), (3, 2));
}

#[test]
fn a_nonempty_directory_is_refused() {
    let folder = Folder::new("taken");
    small(&folder.0);
    assert_eq!(ContainerWriter::create(&folder.0, origin()).err().unwrap().kind(), io::ErrorKind::AlreadyExists);
}

#[test]
fn every_changed_byte_is_detected() {
    let folder = Folder::new("flipped");
    small(&folder.0);
    for file in PART_FILES.into_iter().chain([MANIFEST]) {
        let path = folder.0.join(file);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, &changed).unwrap();
            assert!(EvidenceContainer::open(&folder.0).is_err(), "{file} byte {at}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(EvidenceContainer::open(&folder.0).is_err(), "{file} cut to {length}");
        }
        fs::write(&path, [&whole[..], b"\n"].concat()).unwrap();
        assert!(EvidenceContainer::open(&folder.0).is_err(), "{file} and more");
        fs::remove_file(&path).unwrap();
        let missing = EvidenceContainer::open(&folder.0).unwrap_err();
        assert!(matches!(missing, ContainerError::Missing { .. }), "{missing}");
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(events(&EvidenceContainer::open(&folder.0).unwrap()).unwrap().len(), 3);
}

/// Replaces the bytes of a file, and gives the manifest their digest.
fn reseal(directory: &Path, honest: &Manifest, part: ContainerPart, packed: &[u8], raw_bytes: u64) {
    fs::write(directory.join(part.file_name()), packed).unwrap();
    let mut manifest = honest.clone();
    let facts = manifest.files.get_mut(part.file_name()).unwrap();
    (facts.bytes, facts.raw_bytes) = (packed.len() as u64, raw_bytes);
    facts.sha256 = ContentDigest::hex_of(packed);
    manifest.write(directory).unwrap();
}

fn pack(content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    GzEncoder::new(content, Compression::new(3)).read_to_end(&mut packed).unwrap();
    packed
}

#[test]
fn a_changed_file_is_detected_although_the_manifest_has_its_new_digest() {
    let folder = Folder::new("resealed");
    small(&folder.0);
    let honest = Manifest::read(&folder.0).unwrap();
    let read = |container: &EvidenceContainer| container.records().unwrap().map(Result::unwrap).collect::<Vec<_>>();
    let records = read(&EvidenceContainer::open(&folder.0).unwrap());
    for part in ContainerPart::ALL {
        let whole = fs::read(folder.0.join(part.file_name())).unwrap();
        let mut content = Vec::new();
        GzDecoder::new(&whole[..]).read_to_end(&mut content).unwrap();
        let open = |packed: &[u8], raw_bytes: usize| {
            reseal(&folder.0, &honest, part, packed, raw_bytes as u64);
            EvidenceContainer::open(&folder.0)
        };
        for at in (0..content.len()).step_by(7) {
            let mut changed = content.clone();
            changed[at] ^= 1 << (at % 8);
            let error = open(&pack(&changed), changed.len()).unwrap_err();
            assert!(matches!(error, ContainerError::Damaged { .. }), "{part:?} byte {at}: {error}");
        }
        for (at, byte) in whole.iter().enumerate() {
            let mut changed = whole.clone();
            changed[at] = byte.wrapping_add(1);
            // DEFLATE can write the same records in several ways.
            match open(&changed, content.len()) {
                Ok(container) => assert!(part == ContainerPart::Records && read(&container) == records, "byte {at}"),
                Err(error) => assert!(matches!(error, ContainerError::Damaged { .. }), "{part:?} byte {at}: {error}"),
            }
        }
        assert!(open(&[&whole[..], b"x"].concat(), content.len()).is_err(), "{part:?} and more");
        assert!(open(&pack(&[&content[..], b"\n"].concat()), content.len()).is_err(), "{part:?} and hidden content");
        open(&whole, content.len()).expect("as before");
    }
}

#[test]
fn a_changed_manifest_is_detected_although_its_digest_is_new() {
    let folder = Folder::new("manifest");
    small(&folder.0);
    let honest = Manifest::read(&folder.0).unwrap();
    let changes: [fn(&mut Manifest); 6] = [
        |manifest| manifest.version = "0.0.1".to_string(),
        |manifest| manifest.facts = serde_json::json!([1, 3]),
        |manifest| manifest.finished = false,
        |manifest| manifest.origin.study = "other".to_string(),
        |manifest| manifest.origin.repro = "cyclescope other".to_string(),
        |manifest| manifest.origin.machine["half"] = serde_json::json!(0.25),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut manifest = honest.clone();
        change(&mut manifest);
        manifest.write(&folder.0).unwrap();
        let error = EvidenceContainer::open(&folder.0).unwrap_err().to_string();
        assert!(error.contains("seal"), "{at}: {error}");
    }
}

#[test]
fn a_size_that_no_file_can_have_is_refused_before_unpacking() {
    let folder = Folder::new("bomb");
    small(&folder.0);
    let honest = Manifest::read(&folder.0).unwrap();
    let packed = fs::read(folder.0.join(PART_FILES[0])).unwrap();
    reseal(&folder.0, &honest, ContainerPart::Programs, &packed, 1 << 40);
    let error = EvidenceContainer::open(&folder.0).unwrap_err().to_string();
    assert!(error.contains("raw_bytes"), "{error}");
}

#[test]
fn data_after_a_checkpoint_are_ignored() {
    let folder = Folder::new("killed");
    let mut writer = ContainerWriter::create(&folder.0, origin()).unwrap();
    assert!(events(&EvidenceContainer::open(&folder.0).unwrap()).unwrap().is_empty());
    fill(&mut writer, 0..3);
    writer.checkpoint().unwrap();
    fill(&mut writer, 3..5);
    // Simulates a killed process: buffered bytes do not reach a file.
    std::mem::forget(writer);
    let container = EvidenceContainer::open(&folder.0).unwrap();
    assert!(matches!(container.require_finished(), Err(ContainerError::Unfinished)));
    assert_eq!(events(&container).unwrap().len(), 3);
    assert_eq!(container.records().unwrap().filter_map(Result::ok).count(), 3);
}

#[test]
fn unfinished_evidence_with_a_complete_result_line_is_kept() {
    let folder = Folder::new("unfinished");
    for lines in [0, 1] {
        let mut writer = ContainerWriter::create(&folder.0, origin()).unwrap();
        (0..lines).for_each(|_| writer.add_result_line("{}").unwrap());
        writer.checkpoint().unwrap();
        drop(writer);
        remove_unfinished(&folder.0);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count() > 0, lines > 0);
    }
}

#[test]
fn forged_manifests_are_errors() {
    let folder = Folder::new("forged");
    small(&folder.0);
    let honest = Manifest::read(&folder.0).unwrap();
    let with = |change: &dyn Fn(&mut PartFacts)| {
        let mut manifest = honest.clone();
        manifest.files.values_mut().for_each(change);
        manifest.write(&folder.0).unwrap();
        let container = EvidenceContainer::open(&folder.0)?;
        events(&container)
    };
    assert!(with(&|_| ()).is_ok());
    for number in [1, u64::MAX] {
        let errors = [
            with(&|facts| facts.bytes = facts.bytes.wrapping_add(number)),
            with(&|facts| facts.raw_bytes = facts.raw_bytes.wrapping_add(number)),
            with(&|facts| facts.items = facts.items.saturating_add(number)),
        ];
        for (at, error) in errors.into_iter().enumerate() {
            let damaged = matches!(error, Err(ContainerError::Damaged { .. }));
            assert!(damaged, "{at} {number}: {error:?}");
        }
    }
    let mut manifest = honest.clone();
    manifest.schema = "cyclescope-evidence/1".to_string();
    manifest.write(&folder.0).unwrap();
    let text = EvidenceContainer::open(&folder.0).unwrap_err().to_string();
    assert!(text.contains("another version"), "{text}");
    let mut manifest = honest;
    manifest.files.clear();
    manifest.write(&folder.0).unwrap();
    assert!(EvidenceContainer::open(&folder.0).unwrap_err().to_string().contains("files"));
}

#[test]
fn an_oversized_event_fails_without_allocating() {
    let number = |number: u64| {
        let mut bytes = Vec::new();
        columns::write_varint(number, &mut bytes);
        bytes
    };
    for bytes in [number(u64::MAX), number(1 << 24), vec![0xff; 11], vec![0x80; 10], Vec::new()] {
        let taken = columns::read_samples(&mut &bytes[..], 1 << 40);
        assert!(!matches!(taken, Ok(Some(_))), "{bytes:?}");
    }
    assert!(matches!(columns::read_samples(&mut &number(9)[..], 8), Ok(None)));
}

proptest! {
    #[test]
    fn readings_round_trip(pairs in prop::collection::vec(any::<(u64, u64)>(), 0..200)) {
        let samples: Vec<Sample> = pairs.into_iter().map(|(start, end)| Sample { start, end }).collect();
        let mut bytes = Vec::new();
        columns::write_samples(&samples, &mut bytes);
        let mut rest = &bytes[..];
        prop_assert_eq!(columns::read_samples(&mut rest, 200).unwrap().unwrap(), samples);
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = columns::read_samples(&mut &bytes[..], 1000);
    }

    #[test]
    fn containers_round_trip(
        pieces in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<(u64, u64)>(), 0..40)), 0..20),
        half in prop::num::f64::NORMAL,
    ) {
        let folder = Folder::new("any");
        let mut writer = ContainerWriter::create(&folder.0, origin()).unwrap();
        let mut expected = Vec::new();
        for (ns, pairs) in pieces {
            let samples: Vec<Sample> = pairs.into_iter().map(|(start, end)| Sample { start, end }).collect();
            writer.add_event(&StudyEvent::Time { ns }, &samples).unwrap();
            expected.push((StudyEvent::Time { ns }, samples));
        }
        writer.set_facts(&half).unwrap();
        writer.finish().unwrap();
        let container = EvidenceContainer::open(&folder.0).unwrap();
        prop_assert_eq!(container.facts::<f64>().unwrap(), half);
        prop_assert_eq!(events(&container).unwrap(), expected);
    }
}
