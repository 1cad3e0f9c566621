//! How objects of a C++ class are copied, which decides how they are passed.

use super::debug_entries::{DebugEntries, Entry, EntryPlace};

/// How objects of a class are copied.
pub enum ClassCopying {
    /// As bytes.
    OfBytes,
    /// By a function of the class.
    ByCode,
    /// The debug information doesn't tell.
    Unknown,
}

impl ClassCopying {
    /// Finds it by the constructors, the destructor and the virtual functions among the class's
    /// `children`. Only a class whose bytes are copied is passed in registers (Itanium C++ ABI,
    /// 3.1.2.3).
    pub fn find_copying<'a>(
        entries: &DebugEntries<'a>,
        place: &EntryPlace<'a>,
        class: &Entry<'a>,
        children: &[(EntryPlace<'a>, Entry<'a>)],
    ) -> ClassCopying {
        let name = entries.text(place, class, gimli::DW_AT_name).unwrap_or_default();
        let name = name.split('<').next().unwrap_or_default();
        let (mut copies, mut deleted) = (0, 0);
        for (place, entry) in children {
            if entry.has_attr(gimli::DW_AT_virtuality) {
                return ClassCopying::ByCode;
            }
            if entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let own = entries.text(place, entry, gimli::DW_AT_name).unwrap_or_default();
            let is_copy = own == name && takes_own_class(entries, place, class);
            if !is_copy && own.strip_prefix('~') != Some(name) {
                continue;
            }
            let is_deleted = entry.has_attr(gimli::DW_AT_deleted);
            (copies, deleted) = (copies + u32::from(is_copy), deleted + u32::from(is_copy && is_deleted));
            let defaulted = entry.attr_value(gimli::DW_AT_defaulted).and_then(|kind| kind.udata_value());
            let is_defaulted = defaulted == Some(gimli::DW_DEFAULTED_in_class.0.into());
            if is_deleted || is_defaulted || entry.has_attr(gimli::DW_AT_artificial) {
                continue;
            }
            // Before version 5 nothing tells that a function is defaulted.
            return if place.unit.header.version() < 5 { ClassCopying::Unknown } else { ClassCopying::ByCode };
        }
        if copies > 0 && copies == deleted { ClassCopying::ByCode } else { ClassCopying::OfBytes }
    }
}

/// Whether a constructor's first parameter after the object is a reference to its class.
fn takes_own_class<'a>(entries: &DebugEntries<'a>, constructor: &EntryPlace<'a>, class: &Entry<'a>) -> bool {
    let children = entries.children(constructor).unwrap_or_default();
    let mut parameters = children
        .iter()
        .filter(|(_, entry)| entry.tag() == gimli::DW_TAG_formal_parameter && !entry.has_attr(gimli::DW_AT_artificial));
    let Some((place, entry)) = parameters.next() else { return false };
    let referred = entries.follow(place, entry, gimli::DW_AT_type).and_then(|target| {
        let entry = entries.entry(&target)?;
        let is_reference = [gimli::DW_TAG_reference_type, gimli::DW_TAG_rvalue_reference_type];
        is_reference.contains(&entry.tag()).then(|| entries.follow(&target, &entry, gimli::DW_AT_type))?
    });
    referred.is_some_and(|referred| entries.strip_names(referred).offset == class.offset())
}
