//! Where the sections of an object file lie in memory: code first, then constants, then variables,
//! each part in pages of its own.
//!
//! The format: Microsoft, "PE Format", sections "COFF File Header (Object and Image)" to "COFF
//! Symbol Table". What only a linker or a debugger reads has no place, and neither have the tables by
//! which exceptions unwind the stack.

use super::symbols::{CoffSymbol, SymbolPlace, read_symbols};
use object::LittleEndian;
use object::pe::{
    AnonObjectHeaderBigobj, IMAGE_FILE_MACHINE_AMD64, IMAGE_SCN_CNT_CODE, IMAGE_SCN_LNK_INFO, IMAGE_SCN_LNK_REMOVE,
    IMAGE_SCN_MEM_DISCARDABLE, IMAGE_SCN_MEM_EXECUTE, IMAGE_SCN_MEM_WRITE, ImageFileHeader, ImageRelocation,
    ImageSectionHeader,
};
use object::read::coff::{CoffFile, CoffHeader};

/// Largest part of an image.
const PART_BYTES_MOST: u64 = 32 << 20;
/// Multiple of the length of a part: the largest alignment of a section, two pages.
const PART_STEP: u64 = 8192;
/// Alignment of a variable that has no section.
const COMMON_ALIGNMENT: u64 = 32;
/// Starts of the names of sections by which exceptions unwind the stack.
const UNWIND_SECTIONS: [&str; 2] = [".pdata", ".xdata"];
/// Starts of the names of sections that list functions to run before others.
const START_SECTIONS: [&str; 4] = [".CRT$XC", ".CRT$XI", ".ctors", ".init_array"];

/// A part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImagePart {
    Code,
    Constants,
    Variables,
}

/// The lengths in bytes of the parts of an image, which follow each other in this order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageParts {
    /// Code, which is not written.
    pub code: usize,
    /// Constants.
    pub constants: usize,
    /// Variables.
    pub variables: usize,
}

impl ImageParts {
    /// Bytes of the image.
    pub fn bytes(&self) -> usize {
        self.code + self.constants + self.variables
    }

    fn start_of(&self, part: ImagePart) -> u64 {
        let before = match part {
            ImagePart::Code => 0,
            ImagePart::Constants => self.code,
            ImagePart::Variables => self.code + self.constants,
        };
        before as u64
    }
}

/// A section that has a place in memory.
#[derive(Debug)]
pub(super) struct PlacedSection<'data> {
    part: ImagePart,
    /// Its offset in the part.
    at: u64,
    /// Its bytes in memory.
    pub(super) bytes: u64,
    /// Its contents in the file. The rest is zero.
    pub(super) contents: &'data [u8],
    /// The address that the places of its relocations count from.
    pub(super) origin: u32,
    /// Its relocations.
    pub(super) relocations: &'data [ImageRelocation],
}

/// A function of an object file.
#[derive(Debug, Clone, Copy)]
pub struct CoffFunction<'data> {
    /// Its name.
    pub name: &'data str,
    /// Where it is in the image.
    pub offset: u64,
    /// Whether other files see it.
    pub is_external: bool,
}

/// An object file of x86-64 machine code.
#[derive(Debug)]
pub struct CoffObject<'data> {
    /// All sections in the order of the file. Those without a place are `None`.
    pub(super) sections: Vec<Option<PlacedSection<'data>>>,
    /// All symbols by their number in the file. Numbers of auxiliary entries have none.
    pub(super) symbols: Vec<Option<CoffSymbol<'data>>>,
    /// A section that lists functions to run before others, if there is one.
    pub(super) start_section: Option<String>,
    parts: ImageParts,
}

impl<'data> CoffObject<'data> {
    /// Reads an object file. `None` if it is none of x86-64 machine code.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the file.
    pub fn parse(file: &'data [u8]) -> Option<Result<CoffObject<'data>, String>> {
        if let Ok(parsed) = CoffFile::<&[u8], ImageFileHeader>::parse(file) {
            return lay_out_native(&parsed, file);
        }
        // The form for more than 65 279 sections.
        let parsed = CoffFile::<&[u8], AnonObjectHeaderBigobj>::parse(file).ok()?;
        lay_out_native(&parsed, file)
    }

    /// The parts of its image.
    pub fn parts(&self) -> ImageParts {
        self.parts
    }

    /// Its functions.
    pub fn list_functions(&self) -> Vec<CoffFunction<'data>> {
        let listed = self.symbols.iter().flatten().filter_map(|symbol| {
            let SymbolPlace::Section { offset, .. } = symbol.place else { return None };
            let section = self.section_of(symbol.place).filter(|section| u64::from(offset) < section.bytes)?;
            // Assemblers give types to few symbols.
            let is_function = symbol.is_function || symbol.is_external && section.part == ImagePart::Code;
            let offset = self.offset_of(symbol.place).filter(|_| is_function)?;
            Some(CoffFunction { name: symbol.name, offset, is_external: symbol.is_external })
        });
        listed.collect()
    }

    /// The section of a place in memory.
    pub(super) fn section_of(&self, place: SymbolPlace) -> Option<&PlacedSection<'data>> {
        let SymbolPlace::Section { index, .. } = place else { return None };
        self.sections.get(index)?.as_ref()
    }

    /// Where a section begins in the image.
    pub(super) fn start_of(&self, section: &PlacedSection) -> u64 {
        self.parts.start_of(section.part) + section.at
    }

    /// The offset of a place in the image, if it has one.
    pub(super) fn offset_of(&self, place: SymbolPlace) -> Option<u64> {
        match place {
            SymbolPlace::Section { offset, .. } => Some(self.start_of(self.section_of(place)?) + u64::from(offset)),
            SymbolPlace::Common { offset } => Some(self.parts.start_of(ImagePart::Variables) + offset),
            SymbolPlace::Absolute(_) | SymbolPlace::Missing => None,
        }
    }
}

/// [`lay_out`] for code of this processor.
fn lay_out_native<'data, Coff: CoffHeader>(
    parsed: &CoffFile<'data, &'data [u8], Coff>,
    file: &'data [u8],
) -> Option<Result<CoffObject<'data>, String>> {
    (parsed.coff_header().machine() == IMAGE_FILE_MACHINE_AMD64).then(|| lay_out(parsed, file))
}

/// Gives each section, and each variable without one, its place.
fn lay_out<'data, Coff: CoffHeader>(
    parsed: &CoffFile<'data, &'data [u8], Coff>,
    file: &'data [u8],
) -> Result<CoffObject<'data>, String> {
    let table = parsed.coff_symbol_table();
    let mut lengths = ImageParts::default();
    let (mut sections, mut start_section) = (Vec::new(), None);
    for header in parsed.coff_section_table().iter() {
        let name = header.name(table.strings()).map_err(|error| error.to_string())?;
        let name = String::from_utf8_lossy(name).into_owned();
        sections.push(place_section(header, &name, file, &mut lengths)?);
        let is_start = START_SECTIONS.iter().any(|start| name.starts_with(start));
        start_section = start_section.or((is_start && header.size_of_raw_data.get(LittleEndian) > 0).then_some(name));
    }
    let place_common = |bytes| extend_part(&mut lengths.variables, COMMON_ALIGNMENT, bytes);
    let symbols = read_symbols(table, place_common)?;
    for part in [&mut lengths.code, &mut lengths.constants, &mut lengths.variables] {
        *part = part.next_multiple_of(PART_STEP as usize);
    }
    Ok(CoffObject { sections, symbols, start_section, parts: lengths })
}

/// Gives a section its place, if it needs one.
fn place_section<'data>(
    header: &ImageSectionHeader,
    name: &str,
    file: &'data [u8],
    lengths: &mut ImageParts,
) -> Result<Option<PlacedSection<'data>>, String> {
    let flags = header.characteristics.get(LittleEndian);
    let has_no_place = flags.intersects(IMAGE_SCN_LNK_INFO | IMAGE_SCN_LNK_REMOVE | IMAGE_SCN_MEM_DISCARDABLE);
    if has_no_place || UNWIND_SECTIONS.iter().any(|start| name.starts_with(start)) {
        return Ok(None);
    }
    let (part, length) = if flags.intersects(IMAGE_SCN_CNT_CODE | IMAGE_SCN_MEM_EXECUTE) {
        (ImagePart::Code, &mut lengths.code)
    } else if flags.contains(IMAGE_SCN_MEM_WRITE) {
        (ImagePart::Variables, &mut lengths.variables)
    } else {
        (ImagePart::Constants, &mut lengths.constants)
    };
    let outside = |what: &str| format!("the {what} of section {name} are outside of the file");
    let contents = header.coff_data(file).map_err(|()| outside("contents"))?;
    let relocations = header.coff_relocations(file).map_err(|_| outside("relocations"))?;
    let bytes = u64::from(header.size_of_raw_data.get(LittleEndian));
    let at = extend_part(length, header.coff_alignment(), bytes)?;
    let origin = header.virtual_address.get(LittleEndian);
    Ok(Some(PlacedSection { part, at, bytes, contents, origin, relocations }))
}

/// Lengthens a part by some bytes with an alignment: their offset in it.
fn extend_part(length: &mut usize, alignment: u64, bytes: u64) -> Result<u64, String> {
    let at = (*length as u64).next_multiple_of(alignment);
    let end = at.checked_add(bytes).filter(|end| *end <= PART_BYTES_MOST);
    let end = end.ok_or_else(|| format!("its sections take more than {} MiB of memory", PART_BYTES_MOST >> 20))?;
    *length = end as usize;
    Ok(at)
}
