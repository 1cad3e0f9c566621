//! Evidence with one changed part, whose digest in the manifest is computed anew: no reader may
//! accept it.

use super::dossier::{self, Directory};
use super::seeds;
use cyclescope::result::container::{ContentDigest, EvidenceContainer, Manifest};
use cyclescope_fuzz::{InputShape, fuzz_reader};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::Path;

/// The parts of evidence.
const PARTS: [&str; 4] = ["programs.jsonl.gz", "layouts.jsonl.gz", "readings.gz", "records.jsonl.gz"];
/// Bytes of the header of a compressed file.
const HEADER_BYTES: usize = 10;

/// Fails unless evidence is whole, and its study comes to a result from all its answers.
fn accept(directory: &Path) -> Result<(), String> {
    let container = EvidenceContainer::open(directory).map_err(|error| error.to_string())?;
    cyclescope::study::replay_evidence(&container).map(drop).map_err(|error| format!("{error:?}"))
}

/// Writes this content as a part, in the same compression, with its digest in the manifest.
fn reseal(directory: &Path, part: &str, content: &[u8]) {
    let path = directory.join(part);
    let good = std::fs::read(&path).expect("a file");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory");
    let mut packed = encoder.finish().expect("memory");
    packed[..HEADER_BYTES].copy_from_slice(&good[..HEADER_BYTES]);
    let mut manifest = Manifest::read(directory).expect("good evidence");
    let facts = manifest.files.get_mut(part).expect("a part");
    let mut digest = ContentDigest::default();
    digest.add_bytes(&packed);
    (facts.bytes, facts.raw_bytes, facts.sha256) = (packed.len() as u64, content.len() as u64, digest.to_hex());
    std::fs::write(path, packed).expect("there is room");
    manifest.write(directory).expect("there is room");
}

/// Copies evidence to a new directory.
fn copy(from: &Path) -> Directory {
    let directory = Directory::new();
    std::fs::create_dir(&directory.0).expect("a new directory");
    for part in PARTS.iter().chain(&["manifest.json"]) {
        std::fs::copy(from.join(part), directory.0.join(part)).expect("a file");
    }
    directory
}

#[test]
fn any_resealed_evidence_is_refused() {
    for study in ["evaluate", "instr", "marker", "points", "run", "uarch"] {
        let Some(good) = seeds::record_evidence(study) else { continue };
        assert_eq!(accept(&good.0), Ok(()), "{study}");
        // The control: a manifest that is written anew is accepted.
        let same = copy(&good.0);
        Manifest::read(&same.0).expect("good evidence").write(&same.0).expect("there is room");
        assert_eq!(accept(&same.0), Ok(()), "{study}");
        // An input is a part's number and its content.
        let contents = PARTS.map(|part| dossier::content(&good.0, part));
        let inputs = (b'0'..).zip(&contents).map(|(number, content)| [&[number][..], content].concat());
        fuzz_reader(&format!("resealed_{study}"), InputShape::Bytes, &inputs.collect::<Vec<_>>(), |bytes| {
            let Some((number, content)) = bytes.split_first() else { return };
            let number = usize::from(number.wrapping_sub(b'0'));
            let Some(part) = PARTS.get(number).filter(|_| contents[number] != content) else { return };
            let changed = copy(&good.0);
            reseal(&changed.0, part, content);
            assert!(accept(&changed.0).is_err(), "{study}: {part}");
        });
    }
}
