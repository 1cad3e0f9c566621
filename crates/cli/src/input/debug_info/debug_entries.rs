//! Entries of debug information and the references between them.

use gimli::{
    AttributeValue, DebugInfoOffset, DebugTypeSignature, DebuggingInformationEntry, DwAt, DwLang, Dwarf, EndianSlice,
    LittleEndian, Unit, UnitHeader, UnitOffset, UnitType,
};
use std::cell::Cell;
use std::rc::Rc;

pub type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// References that lead to each other, up to this number. More are damaged.
const REFERENCES_MOST: usize = 24;

/// The debug information of a file.
pub struct DebugEntries<'a> {
    pub dwarf: Dwarf<Slice<'a>>,
    /// The unit in the file of the code that belongs to a file of debug information alone. It has
    /// what depends on addresses.
    pub skeleton: Option<Rc<Unit<Slice<'a>>>>,
    /// Whether a reference leads to the file that several files share.
    pub refers_to_shared: Cell<bool>,
}

/// An entry and the unit that it belongs to.
#[derive(Clone)]
pub struct EntryPlace<'a> {
    pub unit: Rc<Unit<Slice<'a>>>,
    pub offset: UnitOffset,
}

impl<'a> DebugEntries<'a> {
    /// Entries of this debug information, which may belong to a unit in another file.
    pub fn new(dwarf: Dwarf<Slice<'a>>, skeleton: Option<Rc<Unit<Slice<'a>>>>) -> DebugEntries<'a> {
        DebugEntries { dwarf, skeleton, refers_to_shared: Cell::new(false) }
    }

    fn load_unit(&self, header: UnitHeader<Slice<'a>>) -> gimli::Result<Rc<Unit<Slice<'a>>>> {
        let mut unit = self.dwarf.unit(header)?;
        if let Some(skeleton) = &self.skeleton {
            unit.copy_relocated_attributes(skeleton);
        }
        Ok(Rc::new(unit))
    }

    /// The units whose code includes an address and whose other entries are in another file.
    pub fn find_skeletons(&self, address: u64) -> gimli::Result<Vec<Rc<Unit<Slice<'a>>>>> {
        let (mut headers, mut found) = (self.dwarf.units(), Vec::new());
        while let Some(header) = headers.next()? {
            let unit = self.load_unit(header)?;
            if unit.dwo_name()?.is_some() && self.holds(&unit, address)? == Some(true) {
                found.push(unit);
            }
        }
        Ok(found)
    }

    /// Finds the entry of the function that begins at an address.
    pub fn find_function(&self, address: u64) -> gimli::Result<Option<EntryPlace<'a>>> {
        let mut headers = self.dwarf.units();
        while let Some(header) = headers.next()? {
            let unit = self.load_unit(header)?;
            if self.holds(&unit, address)? == Some(false) {
                continue;
            }
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs()? {
                if entry.tag() == gimli::DW_TAG_subprogram && self.begins_at(&unit, entry, address)? {
                    let offset = entry.offset();
                    return Ok(Some(EntryPlace { unit, offset }));
                }
            }
        }
        Ok(None)
    }

    /// Whether a unit's code includes an address; `None` if the unit doesn't list its code.
    fn holds(&self, unit: &Unit<Slice<'a>>, address: u64) -> gimli::Result<Option<bool>> {
        let mut ranges = self.dwarf.unit_ranges(unit)?;
        let mut holds = None;
        while let Some(range) = ranges.next()? {
            if (range.begin..range.end).contains(&address) {
                return Ok(Some(true));
            }
            holds = Some(false);
        }
        Ok(holds)
    }

    fn begins_at(&self, unit: &Unit<Slice<'a>>, entry: &Entry<'a>, address: u64) -> gimli::Result<bool> {
        let mut ranges = self.dwarf.die_ranges(unit, entry)?;
        Ok(ranges.next()?.is_some_and(|range| range.begin == address))
    }

    pub fn entry(&self, place: &EntryPlace<'a>) -> Option<Entry<'a>> {
        place.unit.entry(place.offset).ok()
    }

    /// The entry that an attribute refers to. A reference that leads nowhere gives a place without
    /// an entry.
    pub fn follow(&self, place: &EntryPlace<'a>, entry: &Entry<'a>, attribute: DwAt) -> Option<EntryPlace<'a>> {
        let nowhere = EntryPlace { unit: place.unit.clone(), offset: UnitOffset(usize::MAX) };
        let found = match entry.attr_value(attribute)? {
            AttributeValue::UnitRef(offset) => Some(EntryPlace { unit: place.unit.clone(), offset }),
            AttributeValue::DebugInfoRef(offset) => self.find_place(offset),
            AttributeValue::DebugTypesRef(signature) => self.find_type_unit(signature),
            AttributeValue::DebugInfoRefSup(_) => {
                self.refers_to_shared.set(true);
                None
            }
            _ => None,
        };
        Some(found.unwrap_or(nowhere))
    }

    /// The entry of a type that has a unit of its own.
    fn find_type_unit(&self, signature: DebugTypeSignature) -> Option<EntryPlace<'a>> {
        let (mut headers, mut old) = (self.dwarf.units(), self.dwarf.type_units());
        while let Some(header) = headers.next().ok()?.or(old.next().ok()?) {
            match header.type_() {
                UnitType::Type { type_signature, type_offset } if type_signature == signature => {
                    return Some(EntryPlace { unit: self.load_unit(header).ok()?, offset: type_offset });
                }
                _ => {}
            }
        }
        None
    }

    /// The entry at an offset in the whole section.
    fn find_place(&self, offset: DebugInfoOffset) -> Option<EntryPlace<'a>> {
        let mut headers = self.dwarf.units();
        while let Some(header) = headers.next().ok()? {
            let own = offset.to_unit_offset(&header);
            if let Some(own) = own.filter(|own| own.is_in_bounds(&header)) {
                return Some(EntryPlace { unit: self.load_unit(header).ok()?, offset: own });
            }
        }
        None
    }

    /// An entry's own text attribute.
    pub fn text(&self, place: &EntryPlace<'a>, entry: &Entry<'a>, attribute: DwAt) -> Option<String> {
        let text = self.dwarf.attr_string(&place.unit, entry.attr_value(attribute)?).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// The entry, and those that it is a copy or the definition of. Attributes that are missing
    /// are theirs.
    pub fn origins(&self, place: &EntryPlace<'a>) -> Vec<(EntryPlace<'a>, Entry<'a>)> {
        let mut found = Vec::new();
        let mut next = Some(place.clone());
        while let Some(place) = next.filter(|_| found.len() < REFERENCES_MOST) {
            let Some(entry) = self.entry(&place) else { break };
            next = self
                .follow(&place, &entry, gimli::DW_AT_abstract_origin)
                .or_else(|| self.follow(&place, &entry, gimli::DW_AT_specification));
            found.push((place, entry));
        }
        found
    }

    pub fn children(&self, place: &EntryPlace<'a>) -> Option<Vec<(EntryPlace<'a>, Entry<'a>)>> {
        let mut tree = place.unit.entries_tree(Some(place.offset)).ok()?;
        let mut children = tree.root().ok()?.children();
        let mut found = Vec::new();
        while let Some(child) = children.next().ok()? {
            let entry = child.entry().clone();
            found.push((EntryPlace { unit: place.unit.clone(), offset: entry.offset() }, entry));
        }
        Some(found)
    }

    pub fn language(&self, unit: &Unit<Slice<'a>>) -> Option<DwLang> {
        let root = unit.entry(unit.header.root_offset()).ok()?;
        match root.attr_value(gimli::DW_AT_language)? {
            AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    /// Whether the unit of an entry describes any types.
    pub fn has_types(&self, place: &EntryPlace<'a>) -> bool {
        let mut entries = place.unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if entry.has_attr(gimli::DW_AT_type) || entry.tag() == gimli::DW_TAG_base_type {
                return true;
            }
        }
        false
    }

    /// The type behind names and qualifiers.
    pub fn strip_names(&self, mut place: EntryPlace<'a>) -> EntryPlace<'a> {
        for _ in 0..REFERENCES_MOST {
            let Some(entry) = self.entry(&place) else { break };
            let is_name = [gimli::DW_TAG_typedef, gimli::DW_TAG_const_type, gimli::DW_TAG_volatile_type];
            let Some(target) =
                self.follow(&place, &entry, gimli::DW_AT_type).filter(|_| is_name.contains(&entry.tag()))
            else {
                break;
            };
            place = target;
        }
        place
    }
}
