//! The batches of a study as evidence keeps them: each program once, and every layout.
//!
//! Recording writes these lines. A replay builds them again from the plan and compares.

use super::content_digest::{ContentDigest, to_hex};
use super::{BatchFacts, BatchParameters, ContainerPart};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::Program;
use cyclescope_exec::Batch;
use serde::Serialize;
use std::collections::HashMap;
use std::io;

/// Numbers the programs and layouts of batches.
#[derive(Default)]
pub(in crate::result) struct BatchLog {
    /// Numbers of the programs so far, by digest.
    programs: HashMap<[u8; 32], u64>,
    /// Number of layouts so far.
    layouts: u64,
}

/// A program as its line contains it.
#[derive(Serialize)]
struct ProgramLine<'a> {
    #[serde(skip_serializing_if = "CodeMode::is_default")]
    bits: CodeMode,
    code: String,
    body: [usize; 2],
    relocations: &'a [u32],
}

/// Takes the lines of a part.
pub(in crate::result) type LineSink<'a> = &'a mut dyn FnMut(ContainerPart, &[u8]) -> io::Result<()>;

impl BatchLog {
    /// Describes a batch. Passes a line for each new program and for each layout to `sink`.
    ///
    /// # Errors
    ///
    /// Those of `sink`.
    pub(in crate::result) fn add_batch(&mut self, batch: &Batch, sink: LineSink) -> io::Result<BatchFacts> {
        let mut digest = ContentDigest::default();
        let mut programs = Vec::with_capacity(batch.programs.len());
        for program in &batch.programs {
            let own = digest_program(program);
            digest.add_bytes(&own);
            programs.push(self.add_program(program, own, sink)?);
        }
        let first_layout = self.layouts;
        for layout in &batch.layouts {
            let line = to_line(layout)?;
            digest.add_bytes(&line);
            sink(ContainerPart::Layouts, &line)?;
            self.layouts += 1;
        }
        let how = BatchParameters::from_batch(batch);
        digest.add_bytes(&serde_json::to_vec(&how)?);
        Ok(BatchFacts { programs, first_layout, layouts: batch.layouts.len(), how, digest: digest.to_hex() })
    }

    /// Adds a program unless it was added before. Returns its number.
    fn add_program(&mut self, program: &Program, digest: [u8; 32], sink: LineSink) -> io::Result<u64> {
        if let Some(number) = self.programs.get(&digest) {
            return Ok(*number);
        }
        let (code, body) = (to_hex(program.code()), program.body_range());
        let line = ProgramLine {
            bits: program.mode(),
            code,
            body: [body.start, body.end],
            relocations: program.relocations(),
        };
        sink(ContainerPart::Programs, &to_line(&line)?)?;
        let number = self.programs.len() as u64;
        self.programs.insert(digest, number);
        Ok(number)
    }
}

/// Identifies a program by all that a batch takes from it.
fn digest_program(program: &Program) -> [u8; 32] {
    let mut digest = ContentDigest::default();
    let body = program.body_range();
    for number in [program.code().len(), body.start, body.end] {
        digest.add_bytes(&(number as u64).to_le_bytes());
    }
    digest.add_bytes(program.code());
    program.relocations().iter().for_each(|place| digest.add_bytes(&place.to_le_bytes()));
    if !program.mode().is_default() {
        digest.add_bytes(&program.mode().bits().to_le_bytes());
    }
    digest.to_bytes()
}

/// The JSON of an item, as a line.
fn to_line<T: Serialize>(item: &T) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(item)?;
    line.push(b'\n');
    Ok(line)
}
