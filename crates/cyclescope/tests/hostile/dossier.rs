//! Evidence as one JSON value, so that tests can change it and write it with valid digests.

use cyclescope::executor::Sample;
use cyclescope::result::container::{
    ContainerPart, ContainerWriter, EvidenceContainer, EvidenceOrigin, Manifest, StudyEvent,
};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A result file.
pub const RESULTS: &str = include_str!("results.jsonl");

/// A result file of `ports`.
pub const PORTS: &str = include_str!("ports.jsonl");

/// The session in the first line of a result file.
pub fn session() -> Value {
    let line = RESULTS.lines().next().expect("a line");
    serde_json::from_str(line).expect("JSON")
}

/// Reads a container as one value.
pub fn from_container(container: &EvidenceContainer) -> Value {
    let Manifest { origin, facts, .. } = &container.manifest;
    let mut events = container.events().expect("events");
    let mut all = Vec::new();
    while let Some((event, samples)) = events.take_event(usize::MAX).expect("an event") {
        let samples: Vec<[u64; 2]> = samples.iter().map(|sample| [sample.start, sample.end]).collect();
        all.push(json!([event, samples]));
    }
    let records: Vec<Value> = container.records().expect("records").map(|line| line.expect("a record")).collect();
    json!({ "study": origin.study, "repro": origin.repro, "facts": facts, "events": all, "records": records })
}

/// A temporary directory, in memory if possible, removed when dropped.
pub struct Directory(pub PathBuf);

impl Directory {
    /// A path that does not exist yet.
    pub fn new() -> Directory {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let below = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Directory(below.join(format!("cyclescope-hostile-{}-{number}", std::process::id())))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads an event, if the value is one.
pub fn event(event: &Value) -> Option<(StudyEvent, Vec<Sample>)> {
    let (event, samples): (StudyEvent, Vec<[u64; 2]>) = Deserialize::deserialize(event).ok()?;
    Some((event, samples.into_iter().map(|[start, end]| Sample { start, end }).collect()))
}

/// Writes a value as evidence; invalid parts become empty.
fn write(dossier: &Value, directory: &Path) -> io::Result<()> {
    let events: Vec<_> = dossier["events"].as_array().into_iter().flatten().map(event).collect();
    write_events(dossier, &events.iter().collect::<Vec<_>>(), directory)
}

/// Writes a value as evidence, with these events.
fn write_events(dossier: &Value, events: &[&Option<(StudyEvent, Vec<Sample>)>], directory: &Path) -> io::Result<()> {
    let text = |name: &str| dossier[name].as_str().unwrap_or_default().to_string();
    let origin = EvidenceOrigin { study: text("study"), repro: text("repro"), machine: json!({ "cpu": {} }) };
    let mut writer = ContainerWriter::create(directory, origin)?;
    writer.set_facts(&dossier["facts"])?;
    for (event, samples) in events.iter().copied().flatten() {
        writer.add_event(event, samples)?;
    }
    for record in dossier["records"].as_array().into_iter().flatten() {
        writer.add_result_line(&record.to_string())?;
    }
    writer.finish()
}

/// Reads evidence and recomputes its result.
fn replay(directory: &Path) {
    if let Ok(container) = EvidenceContainer::open(directory) {
        let _ = cyclescope::study::replay_evidence(&container);
        let _ = container.records().map(|lines| lines.count());
    }
}

/// Replays arbitrary evidence with valid digests.
pub fn replayed(bytes: &[u8]) {
    let Ok(dossier) = serde_json::from_slice::<Value>(bytes) else { return };
    let directory = Directory::new();
    write(&dossier, &directory.0).expect("there is room");
    replay(&directory.0);
}

/// Replays evidence with these events and valid digests.
pub fn replayed_events(dossier: &Value, events: &[&Option<(StudyEvent, Vec<Sample>)>]) {
    let directory = Directory::new();
    write_events(dossier, events, &directory.0).expect("there is room");
    replay(&directory.0);
}

thread_local! {
    /// Valid evidence, in which tests replace one file.
    static GOOD: RefCell<Option<(Directory, Manifest)>> = const { RefCell::new(None) };
}

/// Sets the evidence in which [`manifest`] and [`readings`] replace a file.
pub fn set_good(dossier: &Value) {
    let directory = Directory::new();
    write(dossier, &directory.0).expect("there is room");
    let manifest = EvidenceContainer::open(&directory.0).expect("good evidence").manifest;
    GOOD.set(Some((directory, manifest)));
}

/// The bytes of a file of the valid evidence, decompressed.
pub fn good(name: &str) -> Vec<u8> {
    GOOD.with_borrow(|good| content(&good.as_ref().expect("it was set").0.0, name))
}

/// The bytes of a file of evidence, decompressed.
pub fn content(directory: &Path, name: &str) -> Vec<u8> {
    let bytes = std::fs::read(directory.join(name)).expect("a file");
    if name.ends_with(".gz") { unpacked(&bytes) } else { bytes }
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).expect("whole");
    content
}

/// Reads evidence with these bytes in place of the manifest.
pub fn manifest(bytes: &[u8]) {
    GOOD.with_borrow(|good| {
        let Some((directory, manifest)) = good else { return };
        std::fs::write(directory.0.join("manifest.json"), bytes).expect("there is room");
        replay(&directory.0);
        // With a valid digest.
        if let Ok(forged) = serde_json::from_slice::<Manifest>(bytes) {
            forged.write(&directory.0).expect("there is room");
            replay(&directory.0);
        }
        manifest.write(&directory.0).expect("there is room");
    });
}

/// Reads evidence with these bytes in place of the readings, and with valid digests.
pub fn readings(bytes: &[u8]) {
    let directory = Directory::new();
    GOOD.with_borrow(|good| {
        let Some((good, manifest)) = good else { return };
        let mut writer = ContainerWriter::create(&directory.0, manifest.origin.clone()).expect("there is room");
        writer.set_facts(&manifest.facts).expect("plain data");
        let container = EvidenceContainer::open(&good.0).expect("good evidence");
        writer.copy_batches(&container).expect("there is room");
        // The number of items is that of the good readings.
        let more = manifest.files["readings.gz"].items.saturating_sub(1);
        let pieces = std::iter::once(bytes).chain((0..more).map(|_| &b""[..]));
        for piece in pieces {
            writer.add_item(ContainerPart::Readings, piece).expect("there is room");
        }
        writer.finish().expect("there is room");
        replay(&directory.0);
    });
}
