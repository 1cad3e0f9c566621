//! Reads a function's signature from debug information (DWARF).
//!
//! The function is found by its address, which distinguishes functions of the same name. Types
//! become the few kinds that the calling convention knows, and text for messages.
//!
//! Limits: debug information in other files is not read. Rust has a calling
//! convention of its own. It agrees with that of C for numbers, addresses and fat pointers; other
//! types of Rust are unsupported.

mod class_copying;
mod debug_entries;
mod type_reader;
mod type_text;

use crate::input::calling_convention::INTEGER_REGISTERS;
use crate::input::signature::{Parameter, Signature, ValueType};
use cyclescope::input::MOST_FILE_BYTES;
use debug_entries::{DebugEntries, Entry, EntryPlace, Slice};
use flate2::read::ZlibDecoder;
use gimli::{AttributeValue, DwarfSections, LittleEndian};
use object::read::elf::ElfFile64;
use object::{CompressionFormat, Endianness, Object, ObjectSection};
use std::borrow::Cow;
use std::io::Read;
use type_reader::TypeReader;

/// Reads the signature of the function at this address of a library; messages call it `name`.
/// `None` without debug information.
pub fn read_signature(image: &[u8], address: u64, name: &str) -> Option<Signature> {
    let file = ElfFile64::<Endianness>::parse(image).ok()?;
    let sections =
        DwarfSections::load(|id| Ok::<_, gimli::Error>(read_section(&file, id.name()).unwrap_or_default())).ok()?;
    let dwarf = sections.borrow(|section| Slice::new(section, LittleEndian));
    let entries = DebugEntries { dwarf };
    let function = entries.find_function(address).ok()??;
    read_function(&entries, &function, name)
}

/// The content of a section, decompressed if necessary.
fn read_section<'a>(file: &ElfFile64<'a, Endianness>, name: &str) -> Option<Cow<'a, [u8]>> {
    let section = file.section_by_name(name)?.compressed_data().ok()?;
    match section.format {
        CompressionFormat::None => Some(Cow::Borrowed(section.data)),
        CompressionFormat::Zlib if section.uncompressed_size <= MOST_FILE_BYTES => {
            let mut content = Vec::new();
            ZlibDecoder::new(section.data).take(section.uncompressed_size).read_to_end(&mut content).ok()?;
            Some(Cow::Owned(content))
        }
        _ => None,
    }
}

fn read_function<'a>(entries: &DebugEntries<'a>, place: &EntryPlace<'a>, name: &str) -> Option<Signature> {
    let types = TypeReader::new(entries);
    let origins = entries.origins(place);
    let result = origins.iter().find_map(|(place, entry)| entries.follow(place, entry, gimli::DW_AT_type));
    let (result, result_text) = types.read_type(result.as_ref(), 0);
    let is_formal = |(_, entry): &(EntryPlace<'a>, Entry<'a>)| entry.tag() == gimli::DW_TAG_formal_parameter;
    // A copy of a function that needs no entries of its own has those of its origin.
    let mut lists = origins.iter().filter_map(|(place, _)| entries.children(place));
    let children = lists.find(|children| children.iter().any(is_formal)).unwrap_or_default();
    let mut parameters: Vec<Parameter> = children
        .iter()
        .filter(|child| is_formal(child))
        .map(|(place, _)| read_parameter(entries, &types, place))
        .collect();
    // Line tables alone have functions too.
    if parameters.is_empty() && result == ValueType::Void && !entries.has_types(place) {
        return None;
    }
    if entries.language(&place.unit) == Some(gimli::DW_LANG_Rust) {
        refuse_split_values(&mut parameters);
    }
    let is_ellipsis = |entry: &Entry<'a>| entry.tag() == gimli::DW_TAG_unspecified_parameters;
    let all = origins.iter().filter_map(|(place, _)| entries.children(place)).flatten();
    let is_variadic = all.into_iter().any(|(_, entry)| is_ellipsis(&entry));
    let mut list: Vec<&str> = parameters.iter().map(|parameter| parameter.text.as_str()).collect();
    if is_variadic {
        list.push("...");
    }
    let text = result_text.declare(&format!("{name}({})", list.join(", ")));
    let convention = origins.first().and_then(|(_, entry)| entry.attr_value(gimli::DW_AT_calling_convention));
    let is_altered = convention == Some(AttributeValue::CallingConvention(gimli::DW_CC_nocall));
    Some(Signature { text, parameters, result, is_variadic, is_altered })
}

fn read_parameter<'a>(entries: &DebugEntries<'a>, types: &TypeReader<'_, 'a>, place: &EntryPlace<'a>) -> Parameter {
    let origins = entries.origins(place);
    let name = origins.iter().find_map(|(place, entry)| entries.text(place, entry, gimli::DW_AT_name));
    let value_type = origins.iter().find_map(|(place, entry)| entries.follow(place, entry, gimli::DW_AT_type));
    let (value_type, text) = types.read_type(value_type.as_ref(), 0);
    let text = text.declare(name.as_deref().unwrap_or_default());
    Parameter { name, text, value_type }
}

/// If registers run out, Rust splits a value of two words between the last one and the stack.
fn refuse_split_values(parameters: &mut [Parameter]) {
    let words: u64 = parameters.iter().map(|parameter| parameter.value_type.bytes().div_ceil(8)).sum();
    if words > INTEGER_REGISTERS as u64 {
        for parameter in parameters.iter_mut().filter(|parameter| parameter.value_type.bytes() > 8) {
            parameter.value_type = ValueType::Unsupported("a value that Rust may split".to_string());
        }
    }
}
