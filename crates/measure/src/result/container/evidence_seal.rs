//! The seal: the last line of finished records, with the digests of everything else.
//!
//! It ties the files together. If one of them is changed or belongs to other evidence, the seal
//! shows it, even if the manifest has the new digest. It does not protect against somebody who
//! writes all files anew.

use super::content_digest::ContentDigest;
use super::manifest::{Manifest, PartFacts};
use super::{ContainerPart, MANIFEST};
use serde::{Deserialize, Serialize};

/// The digests of finished evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EvidenceSeal {
    /// Of the manifest without what it says of the files.
    manifest: String,
    /// Of the files before the records, in the order of [`ContainerPart::BEFORE_RECORDS`].
    files: [String; 3],
    /// Of the records' lines before the seal.
    records: String,
}

impl EvidenceSeal {
    /// The seal of a manifest, of the files before the records, and of the records' lines.
    pub(super) fn new(
        manifest: &Manifest,
        files: [&PartFacts; 3],
        records: String,
    ) -> serde_json::Result<EvidenceSeal> {
        let Manifest { schema, version, origin, finished, facts, files: _, sha256: _ } = manifest;
        let text = serde_json::to_vec(&(schema, version, origin, finished, facts))?;
        let files = files.map(|facts| facts.sha256.clone());
        Ok(EvidenceSeal { manifest: ContentDigest::hex_of(&text), files, records })
    }

    /// Names the first file whose digest is another one.
    pub(super) fn first_difference(&self, other: &EvidenceSeal) -> Option<&'static str> {
        if self.manifest != other.manifest {
            return Some(MANIFEST);
        }
        let mut files = ContainerPart::BEFORE_RECORDS.into_iter().zip(self.files.iter().zip(&other.files));
        let differing = files.find(|(_, (own, other))| own != other).map(|(part, _)| part);
        let records = (self.records != other.records).then_some(ContainerPart::Records);
        differing.or(records).map(ContainerPart::file_name)
    }
}
