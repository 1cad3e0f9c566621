//! Reads the code and the data of an object file that an assembler made of a snippet.
//!
//! Code may refer to the file's own data. A linker is not needed: the references become those of
//! [`SnippetData`].

use crate::output::Failure;
use cyclescope::asm::{ALIGNMENT_MOST, CodeMode, DATA_BASE, DATA_BYTES_MOST, SnippetData};
use object::elf::{R_386_32, R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32};
use object::{
    File, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationTarget, Section, SectionIndex,
    SectionKind,
};
use std::collections::HashMap;

/// Sections with the code of the snippet, of --init and of --setup.
pub const SECTIONS: [&str; 3] = [".text", "cyclescope_init", "cyclescope_setup"];

/// Machine code from an assembler.
pub struct AssembledCode {
    /// The code of each of [`SECTIONS`], with addresses of data from [`DATA_BASE`].
    pub codes: [Vec<u8>; SECTIONS.len()],
    /// The data that the code may use.
    pub data: Option<SnippetData>,
}

/// Reads an object file of a mode, which must not need a linker. `name` is that of the assembler.
pub fn read_object(name: &str, object: &[u8], mode: CodeMode) -> Result<AssembledCode, Failure> {
    let unreadable = |error: object::Error| Failure::internal(format!("{name}'s output is unreadable: {error}"));
    let file = File::parse(object).map_err(unreadable)?;
    let mut found = ObjectData { data: SnippetData { mode, ..SnippetData::default() }, starts: HashMap::new() };
    let data_sections = || file.sections().filter(is_data);
    for section in data_sections() {
        found.add_section(&section, section.data().map_err(unreadable)?)?;
    }
    for section in data_sections() {
        found.add_pointers(&file, &section)?;
    }
    let mut codes = <[Vec<u8>; SECTIONS.len()]>::default();
    for (code, section) in codes.iter_mut().zip(SECTIONS) {
        let Some(section) = file.section_by_name(section) else { continue };
        *code = section.data().map_err(unreadable)?.to_vec();
        found.relocate_code(&file, &section, code)?;
    }
    let data = Some(found.data).filter(|data| !data.bytes.is_empty());
    Ok(AssembledCode { codes, data })
}

fn is_data(section: &Section) -> bool {
    use SectionKind::{Data, ReadOnlyData, ReadOnlyString, UninitializedData};
    matches!(section.kind(), Data | ReadOnlyData | ReadOnlyString | UninitializedData)
        && section.name().is_ok_and(|name| name != ".eh_frame")
}

/// Data of an object file.
struct ObjectData {
    data: SnippetData,
    /// Where each section begins in the data.
    starts: HashMap<SectionIndex, u64>,
}

impl ObjectData {
    fn add_section(&mut self, section: &Section, bytes: &[u8]) -> Result<(), Failure> {
        let alignment = section.align().max(1);
        if !alignment.is_power_of_two() || alignment > ALIGNMENT_MOST {
            let remedy = format!("align it to at most {ALIGNMENT_MOST} bytes");
            let text = format!("a section of data is aligned to {alignment} bytes");
            return Err(Failure::usage(text, Some(&remedy)));
        }
        let start = (self.data.bytes.len() as u64).next_multiple_of(alignment);
        let end = start.saturating_add(section.size());
        if end > DATA_BYTES_MOST as u64 {
            let remedy = "use the memory that R14 points into, 1 MiB";
            return Err(Failure::usage(
                format!("the snippet has more than {DATA_BYTES_MOST} bytes of data"),
                Some(remedy),
            ));
        }
        self.data.bytes.resize(start as usize, 0);
        self.data.bytes.extend(bytes);
        // Variables without initial values aren't in the file.
        self.data.bytes.resize(end as usize, 0);
        self.data.alignment = self.data.alignment.max(alignment);
        self.starts.insert(section.index(), start);
        Ok(())
    }

    /// Notes the places of a section that hold addresses of data.
    fn add_pointers(&mut self, file: &File, section: &Section) -> Result<(), Failure> {
        let start = self.starts[&section.index()];
        for (place, relocation) in section.relocations() {
            let at = start.saturating_add(place) as usize;
            let (whole, bytes) = match self.data.mode {
                CodeMode::Bits64 => (R_X86_64_64, 8),
                CodeMode::Bits32 => (R_386_32, 4),
            };
            let target = self.find_target(file, &relocation, &self.data.bytes, at)?;
            if relocation.flags() != (RelocationFlags::Elf { r_type: whole }) || i32::try_from(target).is_err() {
                let text = format!("data has an address of data in other than {bytes} bytes");
                return Err(refuse_address(&text, &format!("use {bytes} bytes")));
            }
            self.data.pointers.push((at, target));
        }
        Ok(())
    }

    /// Writes the addresses of data into code.
    fn relocate_code(&self, file: &File, section: &Section, code: &mut [u8]) -> Result<(), Failure> {
        let mut count = 0;
        for (place, relocation) in section.relocations() {
            let target = self.find_target(file, &relocation, code, place as usize)?;
            let RelocationFlags::Elf { r_type } = relocation.flags() else { return Err(refuse_operand()) };
            let address = match (self.data.mode, r_type) {
                (CodeMode::Bits64, R_X86_64_PC32) => (DATA_BASE as i64).wrapping_add(target).wrapping_sub(place as i64),
                (CodeMode::Bits64, R_X86_64_32 | R_X86_64_32S) | (CodeMode::Bits32, R_386_32) => {
                    (DATA_BASE as i64).wrapping_add(target)
                }
                _ => return Err(refuse_operand()),
            };
            let field = usize::try_from(place).ok().and_then(|place| code.get_mut(place..place.checked_add(4)?));
            let (Some(field), Ok(address)) = (field, i32::try_from(address)) else { return Err(refuse_operand()) };
            field.copy_from_slice(&address.to_le_bytes());
            count += 1;
        }
        if count != self.data.count_uses(code) { Err(refuse_operand()) } else { Ok(()) }
    }

    /// The offset in the data that a relocation means, of the place at this offset of these bytes.
    fn find_target(&self, file: &File, relocation: &Relocation, bytes: &[u8], place: usize) -> Result<i64, Failure> {
        let RelocationTarget::Symbol(index) = relocation.target() else { return Err(refuse_operand()) };
        let symbol = file.symbol_by_index(index).map_err(|_| refuse_operand())?;
        let section = symbol.section_index().and_then(|section| self.starts.get(&section));
        let Some(start) = section else {
            let remedy = "use only labels inside the snippet and its data";
            return Err(refuse_address("the snippet refers to a symbol outside itself", remedy));
        };
        let field = || bytes.get(place..place.checked_add(4)?)?.try_into().ok().map(i32::from_le_bytes);
        let addend = match relocation.has_implicit_addend() {
            true => field().ok_or_else(refuse_operand)?.into(),
            false => relocation.addend(),
        };
        Ok((start.wrapping_add(symbol.address()) as i64).wrapping_add(addend))
    }
}

fn refuse_operand() -> Failure {
    let remedy = "load the address by lea with a RIP-relative operand; in 32-bit code, into another register than EAX";
    refuse_address("an address of data is an immediate, or has a base register", remedy)
}

fn refuse_address(text: &str, remedy: &str) -> Failure {
    Failure::usage(text, Some(remedy))
}
