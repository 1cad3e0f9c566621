//! One compressed file of a container, written and read as a stream.

use super::checksum::Checksum;
use super::manifest::PartFacts;
use super::{ContainerError, ContainerPart};
use cyclescope_core::input::{self, InputKind};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

/// The compression level of DEFLATE; for figures see [`super`].
const COMPRESSION_LEVEL: Compression = Compression::new(3);

/// A file being written.
pub(crate) struct PartWriter {
    part: ContainerPart,
    encoder: GzEncoder<ChecksummedFile>,
    raw_bytes: u64,
    items: u64,
}

/// A file with a count and a checksum of its bytes.
struct ChecksummedFile {
    file: File,
    bytes: u64,
    checksum: Checksum,
}

impl Write for ChecksummedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Bytes beyond the limit could not be read again.
        let most = InputKind::Evidence.most_bytes();
        if self.bytes + bytes.len() as u64 > most {
            let text = format!("a file of evidence has at most {} MiB", most >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let written = self.file.write(bytes)?;
        self.checksum.add_bytes(&bytes[..written]);
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
        let encoder =
            GzEncoder::new(ChecksummedFile { file, bytes: 0, checksum: Checksum::default() }, COMPRESSION_LEVEL);
        Ok(PartWriter { part, encoder, raw_bytes: 0, items: 0 })
    }

    /// Adds an item. Returns its number.
    pub(crate) fn add_item(&mut self, item: &[u8]) -> io::Result<u64> {
        self.encoder.write_all(item).map_err(|error| self.with_part_name(error))?;
        self.raw_bytes += item.len() as u64;
        self.items += 1;
        Ok(self.items - 1)
    }

    /// Number of items so far.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// Makes all items readable in the file, and returns its facts.
    pub(crate) fn flush(&mut self) -> io::Result<PartFacts> {
        self.encoder.flush().map_err(|error| self.with_part_name(error))?;
        Ok(self.facts(self.encoder.get_ref()))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> io::Result<PartFacts> {
        let (raw_bytes, items, file) = (self.raw_bytes, self.items, self.part.file_name());
        let summed = self.encoder.finish().map_err(|error| with_file_name(file, error))?;
        Ok(PartFacts { bytes: summed.bytes, raw_bytes, items, checksum: summed.checksum.to_hex() })
    }

    fn facts(&self, summed: &ChecksummedFile) -> PartFacts {
        let PartWriter { raw_bytes, items, .. } = *self;
        PartFacts { bytes: summed.bytes, raw_bytes, items, checksum: summed.checksum.to_hex() }
    }

    fn with_part_name(&self, error: io::Error) -> io::Error {
        with_file_name(self.part.file_name(), error)
    }
}

fn with_file_name(file: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{file}: {error}"))
}

/// Decompresses a file.
pub(crate) type PartReader = BufReader<io::Take<GzDecoder<io::Take<File>>>>;

/// Opens a file whose length and checksum match the manifest.
pub(crate) fn open_part(
    directory: &Path,
    part: ContainerPart,
    facts: &PartFacts,
    finished: bool,
) -> Result<PartReader, ContainerError> {
    let path = directory.join(part.file_name());
    let failed = |error| ContainerError::system_failure(&path, error);
    let mut file = input::open_input(&path, InputKind::Evidence)?;
    let length = file.metadata().map_err(failed)?.len();
    if length < facts.bytes || (finished && length > facts.bytes) {
        let how = format!("the file has {length} bytes, the manifest says {}", facts.bytes);
        return Err(ContainerError::damaged_field(part.file_name(), "length", how));
    }
    let mut checksum = Checksum::default();
    let mut summed = (&file).take(facts.bytes);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match summed.read(&mut buffer).map_err(failed)? {
            0 => break,
            count => checksum.add_bytes(&buffer[..count]),
        }
    }
    if checksum.to_hex() != facts.checksum {
        return Err(ContainerError::damaged_field(part.file_name(), "checksum", "the manifest has another"));
    }
    // Rewinds instead of opening the file again: another file might have its name now.
    file.rewind().map_err(failed)?;
    let decoder = GzDecoder::new(file.take(facts.bytes));
    Ok(BufReader::with_capacity(1 << 16, decoder.take(facts.raw_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_never_exceeds_the_limit_of_readable_files() {
        let path = std::env::temp_dir().join(format!("cyclescope-part-{}", std::process::id()));
        let file = File::create_new(&path).expect("a new file");
        std::fs::remove_file(&path).expect("it was made");
        let mut summed =
            ChecksummedFile { file, bytes: InputKind::Evidence.most_bytes() - 1, checksum: Checksum::default() };
        assert_eq!(summed.write(b"x").expect("room"), 1);
        assert_eq!(summed.write(b"x").expect_err("it is full").kind(), io::ErrorKind::FileTooLarge);
    }
}
