//! Reads types of debug information.

use super::class_copying::ClassCopying;
use super::debug_entries::{DebugEntries, Entry, EntryPlace};
use super::type_text::{TypeText, pointer_sign, shorten_name};
use crate::input::signature::{BitReading, NamedNumber, Pointee, RecordMember, RecordType, ValueType};
use gimli::{AttributeValue, DwLang, DwTag};
use std::cell::Cell;

/// Types inside types up to this depth are read. Deeper ones are damaged.
const DEPTH_MOST: usize = 24;
/// Numbers and addresses in a value. Nobody writes values that have more.
const MEMBERS_MOST: u64 = 1024;
/// Types that are read for one function. A damaged file may have types that contain themselves.
const TYPES_MOST: u32 = 1 << 16;

/// Reads the types of one function.
pub struct TypeReader<'r, 'a> {
    entries: &'r DebugEntries<'a>,
    types_left: Cell<u32>,
}

impl<'r, 'a> TypeReader<'r, 'a> {
    /// Starts with these entries.
    pub fn new(entries: &'r DebugEntries<'a>) -> TypeReader<'r, 'a> {
        TypeReader { entries, types_left: Cell::new(TYPES_MOST) }
    }

    /// Reads a type; `None` is `void`.
    pub fn read_type(&self, place: Option<&EntryPlace<'a>>, depth: usize) -> (ValueType, TypeText) {
        let unsupported = |what: &str| (ValueType::Unsupported(what.to_string()), TypeText::new(what));
        let Some(place) = place else { return (ValueType::Void, TypeText::new("void")) };
        let left = self.types_left.get();
        self.types_left.set(left.saturating_sub(1));
        let Some(entry) = self.entries.entry(place).filter(|_| depth < DEPTH_MOST && left > 0) else {
            return unsupported("a type that can't be read");
        };
        let target = self.entries.follow(place, &entry, gimli::DW_AT_type);
        let inner = || self.read_type(target.as_ref(), depth + 1);
        let name = self.entries.text(place, &entry, gimli::DW_AT_name);
        let bytes = entry.attr_value(gimli::DW_AT_byte_size).and_then(|bytes| bytes.udata_value());
        let named = |kind: &str| TypeText::new(self.describe_tagged(place, kind, name.clone()));
        match entry.tag() {
            gimli::DW_TAG_base_type => {
                let name = shorten_name(name.unwrap_or_default());
                (read_base_type(&entry, bytes.unwrap_or_default(), address_bytes(place), &name), TypeText::new(name))
            }
            gimli::DW_TAG_typedef => {
                let (value_type, text) = inner();
                (value_type, name.map_or(text, TypeText::new))
            }
            gimli::DW_TAG_const_type => qualify(inner(), "const"),
            gimli::DW_TAG_volatile_type => qualify(inner(), "volatile"),
            gimli::DW_TAG_atomic_type => qualify(inner(), "_Atomic"),
            gimli::DW_TAG_restrict_type => inner(),
            tag @ (gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type) => {
                let (pointee, text) = self.read_pointee(target.as_ref(), pointer_sign(tag), depth);
                (ValueType::Pointer(pointee, address_bytes(place)), name.map_or(text, TypeText::new))
            }
            gimli::DW_TAG_enumeration_type => {
                let reading = match inner().0 {
                    ValueType::Integer { reading, .. } => reading,
                    _ => BitReading::Unknown,
                };
                let names = self.read_enumerators(place, reading);
                (ValueType::Integer { bytes: bytes.unwrap_or(4), reading, names }, named("enum"))
            }
            gimli::DW_TAG_structure_type => (self.read_record(place, &entry, false, depth), named("struct")),
            gimli::DW_TAG_class_type => (self.read_record(place, &entry, false, depth), named("class")),
            gimli::DW_TAG_union_type => (self.read_record(place, &entry, true, depth), named("union")),
            gimli::DW_TAG_array_type => self.read_array(place, &entry, inner(), bytes),
            gimli::DW_TAG_ptr_to_member_type => unsupported("a pointer to a member"),
            gimli::DW_TAG_unspecified_type => unsupported(&name.unwrap_or_else(|| "an unspecified type".to_string())),
            _ => unsupported("a type of an unknown kind"),
        }
    }

    fn read_enumerators(&self, place: &EntryPlace<'a>, reading: BitReading) -> Vec<NamedNumber> {
        let children = self.entries.children(place).unwrap_or_default();
        let enumerators = children.iter().filter(|(_, entry)| entry.tag() == gimli::DW_TAG_enumerator);
        let read = |(place, entry): &(EntryPlace<'a>, Entry<'a>)| {
            let value = entry.attr_value(gimli::DW_AT_const_value)?;
            let unsigned = value.udata_value().filter(|_| reading != BitReading::Signed).map(i128::from);
            let number = unsigned.or_else(|| value.sdata_value().map(i128::from))?;
            Some(NamedNumber { name: self.entries.text(place, entry, gimli::DW_AT_name)?, number })
        };
        enumerators.filter_map(read).collect()
    }

    /// The text of a structure, a union or an enumeration. In C its kind is a part of it.
    fn describe_tagged(&self, place: &EntryPlace<'a>, kind: &str, name: Option<String>) -> String {
        let language = self.entries.language(&place.unit);
        let is_c = !language.is_some_and(|language| is_plus_plus(language) || language == gimli::DW_LANG_Rust);
        match name {
            Some(name) if is_c => format!("{kind} {name}"),
            Some(name) => name,
            None => format!("{kind} {{...}}"),
        }
    }

    /// What a pointer points to, and the pointer's text.
    fn read_pointee(&self, target: Option<&EntryPlace<'a>>, sign: &str, depth: usize) -> (Pointee, TypeText) {
        let unqualified = target.map(|target| self.entries.strip_names(target.clone()));
        let is_function = unqualified
            .as_ref()
            .and_then(|place| self.entries.entry(place))
            .is_some_and(|entry| entry.tag() == gimli::DW_TAG_subroutine_type);
        if is_function {
            let place = unqualified.expect("it has an entry");
            return (Pointee::Function, self.describe_function_pointer(&place, sign, depth));
        }
        let (value_type, text) = self.read_type_name(target, depth + 1);
        let is_bytes = matches!(value_type, ValueType::Void | ValueType::Integer { bytes: 1, .. });
        (if is_bytes { Pointee::Bytes } else { Pointee::Data }, text.point(sign))
    }

    /// Like [`read_type`](DebugReader::read_type), but doesn't read the members of a structure,
    /// which may contain a pointer to itself.
    fn read_type_name(&self, place: Option<&EntryPlace<'a>>, depth: usize) -> (ValueType, TypeText) {
        let is_record = |place: &EntryPlace<'a>| {
            let tag = self.entries.entry(place).map(|entry| entry.tag());
            let records = [gimli::DW_TAG_structure_type, gimli::DW_TAG_class_type, gimli::DW_TAG_union_type];
            tag.is_some_and(|tag: DwTag| records.contains(&tag))
        };
        if let Some(place) = place
            && is_record(place)
        {
            let entry = self.entries.entry(place);
            let name = entry.as_ref().and_then(|entry| self.entries.text(place, entry, gimli::DW_AT_name));
            let is_union = entry.is_some_and(|entry| entry.tag() == gimli::DW_TAG_union_type);
            let text = self.describe_tagged(place, if is_union { "union" } else { "struct" }, name);
            return (ValueType::Unsupported(String::new()), TypeText::new(text));
        }
        let Some(place) = place else { return (ValueType::Void, TypeText::new("void")) };
        let entry = self.entries.entry(place).filter(|_| depth < DEPTH_MOST);
        let qualifiers = [
            (gimli::DW_TAG_const_type, "const"),
            (gimli::DW_TAG_volatile_type, "volatile"),
            (gimli::DW_TAG_typedef, ""),
        ];
        let qualifier = entry.as_ref().and_then(|entry| qualifiers.iter().find(|(tag, _)| *tag == entry.tag()));
        match (entry.as_ref(), qualifier) {
            (Some(entry), Some((_, word))) => {
                let inner =
                    self.read_type_name(self.entries.follow(place, entry, gimli::DW_AT_type).as_ref(), depth + 1);
                match self.entries.text(place, entry, gimli::DW_AT_name).filter(|_| word.is_empty()) {
                    Some(name) => (inner.0, TypeText::new(name)),
                    None => qualify(inner, word),
                }
            }
            _ => self.read_type(Some(place), depth),
        }
    }

    fn describe_function_pointer(&self, place: &EntryPlace<'a>, sign: &str, depth: usize) -> TypeText {
        let result = self.entries.entry(place).and_then(|entry| self.entries.follow(place, &entry, gimli::DW_AT_type));
        let (_, result) = self.read_type_name(result.as_ref(), depth + 1);
        let children = self.entries.children(place).unwrap_or_default();
        let parameters = children.iter().filter(|(_, entry)| entry.tag() == gimli::DW_TAG_formal_parameter);
        let parameters: Vec<String> = parameters
            .map(|(place, entry)| {
                let target = self.entries.follow(place, entry, gimli::DW_AT_type);
                self.read_type_name(target.as_ref(), depth + 1).1.declare("")
            })
            .collect();
        TypeText { before: format!("{} ({sign}", result.declare("")), after: format!(")({})", parameters.join(", ")) }
    }

    fn read_record(&self, place: &EntryPlace<'a>, entry: &Entry<'a>, is_union: bool, depth: usize) -> ValueType {
        let unsupported = |what: &str| ValueType::Unsupported(what.to_string());
        if let Some(whole) = self.entries.follow(place, entry, gimli::DW_AT_signature) {
            return self.read_type(Some(&whole), depth + 1).0;
        }
        let Some(bytes) = entry.attr_value(gimli::DW_AT_byte_size).and_then(|bytes| bytes.udata_value()) else {
            return unsupported("an incomplete type");
        };
        let language = self.entries.language(&place.unit);
        if language == Some(gimli::DW_LANG_Rust) {
            let is_fat =
                self.entries.text(place, entry, gimli::DW_AT_name).is_some_and(|name| name.starts_with(['&', '*']));
            if !is_fat {
                return unsupported("a type that Rust passes by its own convention");
            }
        }
        let Some(children) = self.entries.children(place) else { return unsupported("a type that can't be read") };
        match entry.attr_value(gimli::DW_AT_calling_convention) {
            Some(AttributeValue::CallingConvention(gimli::DW_CC_pass_by_reference)) => {
                return ValueType::ByReference { bytes };
            }
            None if language.is_some_and(is_plus_plus) => {
                match ClassCopying::find_copying(self.entries, place, entry, &children) {
                    ClassCopying::OfBytes => {}
                    ClassCopying::ByCode => return ValueType::ByReference { bytes },
                    ClassCopying::Unknown => {
                        return unsupported("a class whose copying the debug information doesn't describe");
                    }
                }
            }
            _ => {}
        }
        let mut members = Vec::new();
        for (place, entry) in &children {
            let is_static = entry.has_attr(gimli::DW_AT_external) || entry.has_attr(gimli::DW_AT_declaration);
            match entry.tag() {
                gimli::DW_TAG_variant_part => return unsupported("a type with variants"),
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance if !is_static => {}
                _ => continue,
            }
            if entry.has_attr(gimli::DW_AT_bit_size) {
                members.push(RecordMember { offset: 0, value_type: unsupported("a type with bit fields") });
                continue;
            }
            let offset = entry.attr_value(gimli::DW_AT_data_member_location);
            let Some(offset) = offset.map_or(Some(0), |offset| offset.udata_value()) else {
                return unsupported("a class with a base at a place of its own");
            };
            let target = self.entries.follow(place, entry, gimli::DW_AT_type);
            let (value_type, _) = self.read_type(target.as_ref(), depth + 1);
            if matches!(value_type, ValueType::ByReference { .. }) {
                return ValueType::ByReference { bytes };
            }
            if value_type.bytes() > bytes || offset > bytes - value_type.bytes() || members.len() as u64 >= MEMBERS_MOST
            {
                return unsupported("a type that can't be read");
            }
            members.push(RecordMember { offset, value_type });
        }
        let alignment = entry.attr_value(gimli::DW_AT_alignment).and_then(|alignment| alignment.udata_value());
        ValueType::Record(RecordType { bytes, alignment: alignment.unwrap_or(1), members, is_union })
    }

    fn read_array(
        &self,
        place: &EntryPlace<'a>,
        entry: &Entry<'a>,
        (element, text): (ValueType, TypeText),
        bytes: Option<u64>,
    ) -> (ValueType, TypeText) {
        let unsupported = |what: &str| ValueType::Unsupported(what.to_string());
        let ranges = self.entries.children(place).unwrap_or_default();
        let counts = ranges.iter().filter(|(_, entry)| entry.tag() == gimli::DW_TAG_subrange_type).map(|(_, entry)| {
            let number =
                |attribute| entry.attr_value(attribute).and_then(|value: AttributeValue<_>| value.udata_value());
            number(gimli::DW_AT_count)
                .or_else(|| number(gimli::DW_AT_upper_bound).map(|last| last.saturating_add(1)))
                .unwrap_or(0)
        });
        let counts: Vec<u64> = counts.collect();
        let count = counts.iter().fold(1u64, |product, count| product.saturating_mul(*count));
        let dimensions: String = counts.iter().map(|count| format!("[{count}]")).collect();
        let text = TypeText { before: text.before, after: format!("{dimensions}{}", text.after) };
        let size = element.bytes().saturating_mul(count);
        if entry.has_attr(gimli::DW_AT_GNU_vector) {
            return (ValueType::Vector { bytes: bytes.unwrap_or(size) }, text);
        }
        let mut scalars = Vec::new();
        element.collect_scalars(0, &mut scalars);
        if count.saturating_mul(scalars.len().max(1) as u64) > MEMBERS_MOST {
            return (unsupported("a long array"), text);
        }
        let stride = element.bytes();
        let member = |index| RecordMember { offset: index * stride, value_type: element.clone() };
        let members = (0..count).map(member).collect();
        (ValueType::Record(RecordType { bytes: size, alignment: 1, members, is_union: false }), text)
    }
}

/// Adds a word to the text of a type.
fn qualify((value_type, text): (ValueType, TypeText), word: &str) -> (ValueType, TypeText) {
    (value_type, text.qualify(word))
}

fn is_plus_plus(language: DwLang) -> bool {
    let names = [
        gimli::DW_LANG_C_plus_plus,
        gimli::DW_LANG_C_plus_plus_03,
        gimli::DW_LANG_C_plus_plus_11,
        gimli::DW_LANG_C_plus_plus_14,
        gimli::DW_LANG_C_plus_plus_17,
        gimli::DW_LANG_C_plus_plus_20,
    ];
    names.contains(&language)
}

/// Bytes of an address in the code of a unit.
fn address_bytes(place: &EntryPlace) -> u64 {
    place.unit.encoding().address_size.into()
}

fn read_base_type(entry: &Entry<'_>, bytes: u64, address_bytes: u64, name: &str) -> ValueType {
    let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) else {
        return ValueType::Unsupported(name.to_string());
    };
    let float = |bytes: u64| match bytes {
        4 | 8 => Some(ValueType::Float { bytes }),
        12 | 16 if !name.contains("128") => Some(ValueType::LongDouble { bytes }),
        _ => None,
    };
    let found = match encoding {
        gimli::DW_ATE_boolean => Some(ValueType::integer(bytes, BitReading::Truth)),
        gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF => {
            Some(ValueType::integer(bytes, BitReading::Unsigned))
        }
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Some(ValueType::integer(bytes, BitReading::Signed)),
        gimli::DW_ATE_float => float(bytes),
        // Those of `long double` have a class of their own, and in 32-bit code all have.
        gimli::DW_ATE_complex_float if bytes <= 16 && address_bytes == 8 => float(bytes / 2).map(|part| {
            let member = |offset| RecordMember { offset, value_type: part.clone() };
            let members = vec![member(0), member(bytes / 2)];
            ValueType::Record(RecordType { bytes, alignment: 1, members, is_union: false })
        }),
        _ => None,
    };
    match found {
        // `()` of Rust.
        Some(ValueType::Integer { bytes: 0, .. }) => ValueType::Void,
        Some(ValueType::Integer { bytes, .. }) if !matches!(bytes, 1 | 2 | 4 | 8 | 16) => {
            ValueType::Unsupported(name.to_string())
        }
        found => found.unwrap_or_else(|| ValueType::Unsupported(name.to_string())),
    }
}
