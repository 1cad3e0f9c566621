//! The manifest: a JSON file that people can read, always replaced as a whole.

use super::content_digest::ContentDigest;
use super::{ContainerError, MANIFEST, PART_FILES};
use cyclescope_core::input::{self, InputKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The schema of a container.
pub const SCHEMA: &str = "cyclescope-evidence/5";

/// File name of a manifest until it is complete.
pub(super) const NEW_MANIFEST: &str = "manifest.json.new";

/// Origin of evidence, known before anything is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidenceOrigin {
    /// The study, by the name of its command.
    pub study: String,
    /// The command that repeats it.
    pub repro: String,
    /// The machine's facts, as `doctor` prints them.
    pub machine: Value,
}

/// Length and digest of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFacts {
    /// Bytes of the file. Any bytes after them were written later than the manifest.
    pub bytes: u64,
    /// Bytes of the decompressed content.
    pub raw_bytes: u64,
    /// Number of items.
    pub items: u64,
    /// SHA-256 of the file's bytes.
    pub sha256: String,
}

/// The manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// The version of the program that wrote it.
    pub version: String,
    /// Study, command and machine.
    #[serde(flatten)]
    pub origin: EvidenceOrigin,
    /// Whether the command that wrote it finished.
    pub finished: bool,
    /// Inputs of the study besides the readings.
    pub facts: Value,
    /// The other files by name.
    pub files: BTreeMap<String, PartFacts>,
    /// SHA-256 of the manifest's text with this field empty.
    pub sha256: String,
}

/// Files that identify evidence in earlier formats.
const EARLIER_MANIFESTS: [&str; 3] = ["plan.json", "evaluate.json", "marker.json"];

impl Manifest {
    pub(super) fn new(
        origin: EvidenceOrigin,
        finished: bool,
        facts: Value,
        files: BTreeMap<String, PartFacts>,
    ) -> Manifest {
        let (schema, version) = (SCHEMA.to_string(), env!("CARGO_PKG_VERSION").to_string());
        Manifest { schema, version, origin, finished, facts, files, sha256: String::new() }
    }

    /// The JSON text, with its digest.
    fn to_text(&self) -> serde_json::Result<String> {
        let mut manifest = Manifest { sha256: String::new(), ..self.clone() };
        let text = serde_json::to_string_pretty(&manifest)?;
        manifest.sha256 = ContentDigest::hex_of(text.as_bytes());
        Ok(serde_json::to_string_pretty(&manifest)? + "\n")
    }

    /// Writes the manifest into a directory, whole or not at all, with a new digest.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{MANIFEST}: {error}"));
        let text = self.to_text().map_err(io::Error::other)?;
        // A longer one could not be read again.
        let most = InputKind::Manifest.most_bytes();
        if text.len() as u64 > most {
            let error = format!("the study's inputs need more than {} MiB", most >> 20);
            return Err(named(io::Error::new(io::ErrorKind::FileTooLarge, error)));
        }
        let new = directory.join(NEW_MANIFEST);
        input::replace_file(&new).and_then(|mut file| file.write_all(text.as_bytes())).map_err(named)?;
        fs::rename(new, directory.join(MANIFEST)).map_err(named)
    }

    /// Reads the manifest from a directory.
    pub fn read(directory: &Path) -> Result<Manifest, ContainerError> {
        let path = directory.join(MANIFEST);
        if !path.exists() && EARLIER_MANIFESTS.iter().any(|name| directory.join(name).exists()) {
            return Err(ContainerError::Foreign);
        }
        let text = input::read_input(&path, InputKind::Manifest)?;
        let damaged = |field: &str, how: String| ContainerError::damaged_field(MANIFEST, field, how);
        let value: Value = serde_json::from_slice(&text).map_err(|error| damaged("text", error.to_string()))?;
        if value["schema"] != SCHEMA {
            return Err(ContainerError::Foreign);
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(|error| damaged("fields", error.to_string()))?;
        // A manifest has exactly one text, so any changed byte is detected.
        if manifest.to_text().is_ok_and(|own| own.as_bytes() != text) {
            return Err(damaged("sha256", "it is not that of the text".to_string()));
        }
        if manifest.files.len() != PART_FILES.len() || !PART_FILES.iter().all(|file| manifest.files.contains_key(*file))
        {
            return Err(damaged("files", "they are not those of evidence".to_string()));
        }
        Ok(manifest)
    }
}
