//! The bytes of an object file at an address: contents of its sections, with the addresses that they
//! refer to.

use super::layout::{CoffObject, PlacedSection};
use super::symbols::SymbolPlace;
use object::LittleEndian;
use object::pe::{
    IMAGE_REL_AMD64_ABSOLUTE, IMAGE_REL_AMD64_ADDR32NB, IMAGE_REL_AMD64_ADDR64, IMAGE_REL_AMD64_REL32,
    IMAGE_REL_AMD64_REL32_5, IMAGE_REL_AMD64_SECREL, IMAGE_REL_AMD64_SECTION, ImageRelocation,
};
use std::collections::BTreeSet;

/// Names that a message lists.
const LISTED_MOST: usize = 10;

/// Why a file's functions can't run without a linker.
#[derive(Debug, PartialEq, Eq)]
pub enum ImageRefusal {
    /// It is damaged, and why.
    Damaged(String),
    /// What it needs, as the end of a sentence that begins with the file's name.
    NeedsLinker(String),
}

impl CoffObject<'_> {
    /// The image at an address, for calls of functions at these offsets in it. What other functions
    /// lack does not matter.
    ///
    /// # Errors
    ///
    /// Fails if the functions need what this file does not have.
    pub fn make_image(&self, start: u64, functions: &[u64]) -> Result<Vec<u8>, ImageRefusal> {
        if let Some(section) = &self.start_section {
            let needs = format!("has functions that run before others, in section {section}");
            return Err(ImageRefusal::NeedsLinker(needs));
        }
        let needed = self.find_needed(functions);
        let mut image = vec![0; self.parts().bytes()];
        let mut missing = BTreeSet::new();
        for (section, is_needed) in self.sections.iter().zip(needed) {
            let Some(section) = section else { continue };
            let at = self.start_of(section) as usize;
            image[at..at + section.contents.len()].copy_from_slice(section.contents);
            for relocation in section.relocations.iter().filter(|_| is_needed) {
                match self.relocate(section, relocation, start, &mut image)? {
                    Relocated::Done => {}
                    Relocated::Missing(name) => {
                        missing.insert(name);
                    }
                }
            }
        }
        if missing.is_empty() { Ok(image) } else { Err(ImageRefusal::NeedsLinker(describe_missing(&missing))) }
    }

    /// Which sections these functions use, directly or not.
    fn find_needed(&self, functions: &[u64]) -> Vec<bool> {
        let contains = |section: &Option<PlacedSection>, offset: u64| {
            let Some(section) = section else { return false };
            let start = self.start_of(section);
            (start..start + section.bytes).contains(&offset)
        };
        let mut needed = vec![false; self.sections.len()];
        let is_first = |index: &usize| functions.iter().any(|offset| contains(&self.sections[*index], *offset));
        let mut queue: Vec<usize> = (0..self.sections.len()).filter(is_first).collect();
        queue.iter().for_each(|index| needed[*index] = true);
        while let Some(index) = queue.pop() {
            for relocation in self.sections[index].iter().flat_map(|section| section.relocations) {
                let Some(SymbolPlace::Section { index, .. }) = self.target_of(relocation).map(|(_, place)| place)
                else {
                    continue;
                };
                if needed.get(index) == Some(&false) {
                    needed[index] = true;
                    queue.push(index);
                }
            }
        }
        needed
    }

    /// The name and the place of the symbol that a relocation refers to.
    fn target_of(&self, relocation: &ImageRelocation) -> Option<(&str, SymbolPlace)> {
        let number = relocation.symbol_table_index.get(LittleEndian) as usize;
        self.symbols.get(number)?.as_ref().map(|symbol| (symbol.name, symbol.place))
    }

    /// Writes an address into an image that begins at `start`.
    fn relocate(
        &self,
        section: &PlacedSection,
        relocation: &ImageRelocation,
        start: u64,
        image: &mut [u8],
    ) -> Result<Relocated<'_>, ImageRefusal> {
        let kind = relocation.typ.get(LittleEndian);
        // A section's number has a meaning in debug information alone.
        if [IMAGE_REL_AMD64_ABSOLUTE, IMAGE_REL_AMD64_SECTION].contains(&kind) {
            return Ok(Relocated::Done);
        }
        let (name, place) = self.target_of(relocation).ok_or_else(|| damaged("a relocation has no symbol"))?;
        let offset = self.offset_of(place);
        let target = match (offset, place) {
            (Some(offset), _) => start.wrapping_add(offset),
            (None, SymbolPlace::Absolute(value)) => value.into(),
            (None, _) => return Ok(Relocated::Missing(name)),
        };
        let at = relocation.virtual_address.get(LittleEndian).wrapping_sub(section.origin);
        let field = |bytes: u64| {
            let at = u64::from(at);
            let inside = at + bytes <= section.bytes;
            let at = (self.start_of(section) + at) as usize;
            inside.then_some(at..at + bytes as usize).ok_or_else(|| damaged("a relocation is outside of its section"))
        };
        if kind == IMAGE_REL_AMD64_ADDR64 {
            let place = &mut image[field(8)?];
            let addend = u64::from_le_bytes((&*place).try_into().expect("it has 8 bytes"));
            place.copy_from_slice(&target.wrapping_add(addend).to_le_bytes());
            return Ok(Relocated::Done);
        }
        let field = field(4)?;
        let from = match kind {
            IMAGE_REL_AMD64_ADDR32NB => start,
            IMAGE_REL_AMD64_SECREL => match self.section_of(place) {
                Some(target) => start + self.start_of(target),
                None => return Err(damaged("an offset in a section has no section")),
            },
            // The number at the end of the name says how many bytes lie between the field and the next
            // instruction.
            kind if (IMAGE_REL_AMD64_REL32.0..=IMAGE_REL_AMD64_REL32_5.0).contains(&kind.0) => {
                let between = kind.0 - IMAGE_REL_AMD64_REL32.0;
                start.wrapping_add(field.end as u64).wrapping_add(between.into())
            }
            kind => return Err(ImageRefusal::NeedsLinker(format!("has relocations of the type {:#x}", kind.0))),
        };
        let place = &mut image[field];
        let addend = i32::from_le_bytes((&*place).try_into().expect("it has 4 bytes"));
        let value = (target.wrapping_sub(from) as i64).wrapping_add(addend.into());
        let value = i32::try_from(value).map_err(|_| damaged(&format!("`{name}` is out of a relocation's reach")))?;
        place.copy_from_slice(&value.to_le_bytes());
        Ok(Relocated::Done)
    }
}

/// What became of a relocation.
enum Relocated<'a> {
    Done,
    /// This symbol is in another file.
    Missing(&'a str),
}

fn damaged(why: &str) -> ImageRefusal {
    ImageRefusal::Damaged(why.to_string())
}

fn describe_missing(names: &BTreeSet<&str>) -> String {
    let listed: Vec<String> = names.iter().take(LISTED_MOST).map(|name| format!("`{name}`")).collect();
    let more = names.len().saturating_sub(LISTED_MOST);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("needs {}{more}, which it does not define", listed.join(", "))
}
