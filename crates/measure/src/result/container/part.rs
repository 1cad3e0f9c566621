//! One compressed file of a container, written and read as a stream.

use super::checksum::Checksum;
use super::manifest::PartFacts;
use super::{ContainerError, Part};
use cyclescope_core::input::{self, Kind};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::Path;

/// The level of DEFLATE, see the figures in [`super`].
const LEVEL: Compression = Compression::new(3);

/// A file being written.
pub(crate) struct PartWriter {
    part: Part,
    encoder: GzEncoder<Summed>,
    raw_bytes: u64,
    items: u64,
}

/// A file whose bytes are counted and summed.
struct Summed {
    file: File,
    bytes: u64,
    checksum: Checksum,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What can't be read again is not written.
        let most = Kind::Evidence.most();
        if self.bytes + bytes.len() as u64 > most {
            let text = format!("a file of evidence has at most {} MiB", most >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        let written = self.file.write(bytes)?;
        self.checksum.add(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl PartWriter {
    /// A new file.
    pub(crate) fn create(directory: &Path, part: Part) -> io::Result<PartWriter> {
        let file = File::create_new(directory.join(part.file()))?;
        let encoder = GzEncoder::new(Summed { file, bytes: 0, checksum: Checksum::default() }, LEVEL);
        Ok(PartWriter { part, encoder, raw_bytes: 0, items: 0 })
    }

    /// Adds an item. Returns its number.
    pub(crate) fn add(&mut self, item: &[u8]) -> io::Result<u64> {
        self.encoder.write_all(item).map_err(|error| self.named(error))?;
        self.raw_bytes += item.len() as u64;
        self.items += 1;
        Ok(self.items - 1)
    }

    /// How many items there are.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// Makes all items readable as the file is now, and says what it holds.
    pub(crate) fn flush(&mut self) -> io::Result<PartFacts> {
        self.encoder.flush().map_err(|error| self.named(error))?;
        Ok(self.facts(self.encoder.get_ref()))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> io::Result<PartFacts> {
        let (raw_bytes, items, file) = (self.raw_bytes, self.items, self.part.file());
        let summed = self.encoder.finish().map_err(|error| in_file(file, error))?;
        Ok(PartFacts { bytes: summed.bytes, raw_bytes, items, checksum: summed.checksum.text() })
    }

    fn facts(&self, summed: &Summed) -> PartFacts {
        let PartWriter { raw_bytes, items, .. } = *self;
        PartFacts { bytes: summed.bytes, raw_bytes, items, checksum: summed.checksum.text() }
    }

    fn named(&self, error: io::Error) -> io::Error {
        in_file(self.part.file(), error)
    }
}

fn in_file(file: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{file}: {error}"))
}

/// What a file holds, decompressed.
pub(crate) type PartReader = BufReader<io::Take<GzDecoder<io::Take<File>>>>;

/// Opens a file whose length and checksum match the manifest.
pub(crate) fn open(
    directory: &Path,
    part: Part,
    facts: &PartFacts,
    finished: bool,
) -> Result<PartReader, ContainerError> {
    let path = directory.join(part.file());
    let failed = |error| ContainerError::failed(&path, error);
    let mut file = input::open(&path, Kind::Evidence)?;
    let length = file.metadata().map_err(failed)?.len();
    if length < facts.bytes || (finished && length > facts.bytes) {
        let how = format!("the file has {length} bytes, the manifest says {}", facts.bytes);
        return Err(ContainerError::damaged(part.file(), "length", how));
    }
    let mut checksum = Checksum::default();
    let mut summed = (&file).take(facts.bytes);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match summed.read(&mut buffer).map_err(failed)? {
            0 => break,
            count => checksum.add(&buffer[..count]),
        }
    }
    if checksum.text() != facts.checksum {
        return Err(ContainerError::damaged(part.file(), "checksum", "the manifest has another"));
    }
    // The same file again: by its name another one might be there now.
    file.rewind().map_err(failed)?;
    let decoder = GzDecoder::new(file.take(facts.bytes));
    Ok(BufReader::with_capacity(1 << 16, decoder.take(facts.raw_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_becomes_longer_than_one_that_is_read() {
        let path = std::env::temp_dir().join(format!("cyclescope-part-{}", std::process::id()));
        let file = File::create_new(&path).expect("a new file");
        std::fs::remove_file(&path).expect("it was made");
        let mut summed = Summed { file, bytes: Kind::Evidence.most() - 1, checksum: Checksum::default() };
        assert_eq!(summed.write(b"x").expect("room"), 1);
        assert_eq!(summed.write(b"x").expect_err("it is full").kind(), io::ErrorKind::FileTooLarge);
    }
}
