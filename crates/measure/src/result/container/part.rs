//! One compressed file of a container, written and read as a stream.

use super::content_digest::ContentDigest;
use super::manifest::PartFacts;
use super::{ContainerError, ContainerPart};
use cyclescope_core::input::{self, InputKind};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::Path;

/// The compression level of DEFLATE; for figures see [`super`].
const COMPRESSION_LEVEL: Compression = Compression::new(3);

/// Most bytes of a part's content. The readings of the largest evaluations are some hundred
/// megabytes.
const CONTENT_MOST: u64 = 8 << 30;
/// DEFLATE compresses no content to less than this share of its bytes (zlib's documents).
const RATIO_MOST: u64 = 1032;
/// Bytes of a gzip header without optional fields (RFC 1952).
const HEADER_BYTES: usize = 10;

/// A file being written.
pub(crate) struct PartWriter {
    part: ContainerPart,
    encoder: GzEncoder<DigestedFile>,
    content: ContentDigest,
    raw_bytes: u64,
    items: u64,
}

/// A file with a count and a digest of its bytes.
struct DigestedFile {
    file: File,
    bytes: u64,
    digest: ContentDigest,
}

impl Write for DigestedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Bytes beyond the limit could not be read again.
        let most = InputKind::Evidence.most_bytes();
        if self.bytes + bytes.len() as u64 > most {
            let text = format!("a file of evidence has at most {} MiB", most >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let written = self.file.write(bytes)?;
        self.digest.add_bytes(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl PartWriter {
    /// Creates a file.
    pub(crate) fn create(directory: &Path, part: ContainerPart) -> io::Result<PartWriter> {
        let file = File::create_new(directory.join(part.file_name()))?;
        let file = DigestedFile { file, bytes: 0, digest: ContentDigest::default() };
        let encoder = GzEncoder::new(file, COMPRESSION_LEVEL);
        Ok(PartWriter { part, encoder, content: ContentDigest::default(), raw_bytes: 0, items: 0 })
    }

    /// Adds an item. Returns its number.
    pub(crate) fn add_item(&mut self, item: &[u8]) -> io::Result<u64> {
        if self.raw_bytes + item.len() as u64 > CONTENT_MOST {
            let text = format!("the content of a file of evidence has at most {} GiB", CONTENT_MOST >> 30);
            return Err(self.with_part_name(io::Error::new(io::ErrorKind::FileTooLarge, text)));
        }
        self.content.add_bytes(item);
        self.encoder.write_all(item).map_err(|error| self.with_part_name(error))?;
        self.raw_bytes += item.len() as u64;
        self.items += 1;
        Ok(self.items - 1)
    }

    /// The digest of all items so far.
    pub(crate) fn content_digest(&self) -> String {
        self.content.to_hex()
    }

    /// Makes all items readable in the file, and returns its facts.
    pub(crate) fn flush(&mut self) -> io::Result<PartFacts> {
        self.encoder.flush().map_err(|error| self.with_part_name(error))?;
        Ok(self.facts(self.encoder.get_ref()))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> io::Result<PartFacts> {
        let (raw_bytes, items, file) = (self.raw_bytes, self.items, self.part.file_name());
        let digested = self.encoder.finish().map_err(|error| with_file_name(file, error))?;
        Ok(PartFacts { bytes: digested.bytes, raw_bytes, items, sha256: digested.digest.to_hex() })
    }

    fn facts(&self, digested: &DigestedFile) -> PartFacts {
        let PartWriter { raw_bytes, items, .. } = *self;
        PartFacts { bytes: digested.bytes, raw_bytes, items, sha256: digested.digest.to_hex() }
    }

    fn with_part_name(&self, error: io::Error) -> io::Error {
        with_file_name(self.part.file_name(), error)
    }
}

fn with_file_name(file: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{file}: {error}"))
}

/// Decompresses a file.
pub(crate) type PartReader = BufReader<io::Take<GzDecoder<BufReader<io::Take<File>>>>>;

/// Opens a file whose length and digest match the manifest.
pub(crate) fn open_part(
    directory: &Path,
    part: ContainerPart,
    facts: &PartFacts,
    finished: bool,
) -> Result<PartReader, ContainerError> {
    let path = directory.join(part.file_name());
    let failed = |error| ContainerError::system_failure(&path, error);
    let damaged = |field: &str, how: String| ContainerError::damaged_field(part.file_name(), field, how);
    let mut file = input::open_input(&path, InputKind::Evidence)?;
    let length = file.metadata().map_err(failed)?.len();
    if length < facts.bytes || (finished && length > facts.bytes) {
        return Err(damaged("length", format!("the file has {length} bytes, the manifest says {}", facts.bytes)));
    }
    if facts.raw_bytes > CONTENT_MOST.min(RATIO_MOST * facts.bytes) {
        return Err(damaged("raw_bytes", format!("{} bytes have no content of {}", facts.bytes, facts.raw_bytes)));
    }
    let mut digest = ContentDigest::default();
    let mut digested = (&file).take(facts.bytes);
    let mut buffer = vec![0; 1 << 16];
    let mut header: Vec<u8> = Vec::new();
    loop {
        let count = digested.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            break;
        }
        digest.add_bytes(&buffer[..count]);
        let missing = HEADER_BYTES.saturating_sub(header.len());
        header.extend(&buffer[..count.min(missing)]);
    }
    if digest.to_hex() != facts.sha256 {
        return Err(damaged("sha256", "the manifest has another".to_string()));
    }
    // An empty file is that of a study which has just begun.
    if !header.is_empty() && header != own_header().map_err(failed)? {
        return Err(damaged("header", "it is not that of evidence".to_string()));
    }
    // Rewinds instead of opening the file again: another file might have its name now.
    file.rewind().map_err(failed)?;
    let decoder = GzDecoder::new(BufReader::new(file.take(facts.bytes)));
    Ok(BufReader::with_capacity(1 << 16, decoder.take(facts.raw_bytes)))
}

/// The gzip header that this program writes. Its fields have no influence on the content, so no
/// other check covers them.
fn own_header() -> io::Result<Vec<u8>> {
    let mut empty = GzEncoder::new(Vec::new(), COMPRESSION_LEVEL).finish()?;
    empty.truncate(HEADER_BYTES);
    Ok(empty)
}

/// Fails unless everything up to the end of the file has been read.
pub(crate) fn check_end(reader: PartReader, part: ContainerPart) -> Result<(), ContainerError> {
    let damaged = |how: String| ContainerError::damaged_field(part.file_name(), "end", how);
    let more = || damaged("there is more than the manifest says".to_string());
    if !reader.buffer().is_empty() {
        return Err(more());
    }
    let content = reader.into_inner();
    if content.limit() > 0 {
        return Err(damaged("there is less than the manifest says".to_string()));
    }
    let mut decoder = content.into_inner();
    // Reading on compares gzip's own checksum too.
    if decoder.read(&mut [0]).map_err(|error| damaged(error.to_string()))? > 0 {
        return Err(more());
    }
    let mut rest = decoder.into_inner();
    match rest.fill_buf().map_err(|error| damaged(error.to_string()))? {
        [] => Ok(()),
        _ => Err(more()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_never_exceeds_the_limit_of_readable_files() {
        let path = std::env::temp_dir().join(format!("cyclescope-part-{}", std::process::id()));
        let file = File::create_new(&path).expect("a new file");
        std::fs::remove_file(&path).expect("it was made");
        let mut digested =
            DigestedFile { file, bytes: InputKind::Evidence.most_bytes() - 1, digest: ContentDigest::default() };
        assert_eq!(digested.write(b"x").expect("room"), 1);
        assert_eq!(digested.write(b"x").expect_err("it is full").kind(), io::ErrorKind::FileTooLarge);
    }
}
