//! Reads a function's signature from debug information (DWARF).
//!
//! The function is found by its address, which distinguishes functions of the same name. Types
//! become the few kinds that the calling convention knows, and text for messages. The debug
//! information of a unit or of the whole file may be in another file.
//!
//! Limits: parts that several files share (`dwz`) are not read. Rust has a calling
//! convention of its own. It agrees with that of C for numbers, addresses and fat pointers; other
//! types of Rust are unsupported.

mod class_copying;
mod debug_entries;
mod debug_files;
mod type_reader;
mod type_text;

use crate::input::calling_convention::INTEGER_REGISTERS;
use crate::input::elf_file::parse_elf;
use crate::input::signature::{FunctionTypes, Parameter, Signature, ValueType};
use cyclescope::input::MOST_FILE_BYTES;
use debug_entries::{DebugEntries, Entry, EntryPlace, Slice};
use debug_files::SplitUnit;
use flate2::read::ZlibDecoder;
use gimli::{AttributeValue, Dwarf, DwarfPackageSections, DwarfSections, LittleEndian, SectionId};
use object::{CompressionFormat, File, Object, ObjectSection};
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use type_reader::TypeReader;

/// Reads the types of the function at this address of a library; messages call it `name`. Other
/// files are looked for beside `source`.
pub fn read_types(image: &[u8], source: &Path, address: u64, name: &str) -> FunctionTypes {
    let Some(file) = parse_elf(image) else { return FunctionTypes::NotRead };
    if file.section_by_name(SectionId::DebugInfo.name()).is_some() {
        return read_file(&file, source, address, name);
    }
    let Some((path, content)) = debug_files::find_debug_file(&file, source) else { return FunctionTypes::Unknown };
    match parse_elf(content.as_slice()) {
        Some(file) => read_file(&file, &path, address, name),
        None => FunctionTypes::Unknown,
    }
}

fn read_file(file: &File, path: &Path, address: u64, name: &str) -> FunctionTypes {
    let Some(sections) = load_sections(file, |id| Some(id.name())) else { return FunctionTypes::Unknown };
    let entries = DebugEntries::new(borrow_sections(&sections), None);
    if let Some(signature) = read_function_at(&entries, address, name) {
        return FunctionTypes::Known(Box::new(signature));
    }
    let mut missing = FunctionTypes::Unknown;
    for skeleton in entries.find_skeletons(address).unwrap_or_default() {
        let Some(split) = SplitUnit::new(&entries.dwarf, skeleton) else { continue };
        let packaged = split.find_package(path).and_then(|content| read_package(&split, &content, address, name));
        let read = |content: Vec<u8>| read_split_unit(&split, &content, address, name);
        match packaged.or_else(|| split.find_files(path).find_map(read)) {
            Some(signature) => return FunctionTypes::Known(Box::new(signature)),
            None => missing = FunctionTypes::Missing(split.named_file()),
        }
    }
    missing
}

/// Reads a function from the file of its unit's debug information.
fn read_split_unit(split: &SplitUnit, content: &[u8], address: u64, name: &str) -> Option<Signature> {
    let file = parse_elf(content)?;
    let sections = load_sections(&file, SectionId::dwo_name)?;
    let mut dwarf = borrow_sections(&sections);
    dwarf.make_dwo(split.parent);
    let entries = DebugEntries::new(dwarf, Some(split.skeleton.clone()));
    let function = entries.find_function(address).ok()??;
    // Otherwise it is of another build.
    if function.unit.dwo_id != split.skeleton.dwo_id {
        return None;
    }
    read_function(&entries, &function, name)
}

/// The same for a package of such files.
fn read_package(split: &SplitUnit, content: &[u8], address: u64, name: &str) -> Option<Signature> {
    let file = parse_elf(content)?;
    let load = |id: SectionId| {
        let content = id.dwo_name().and_then(|name| read_section(&file, name));
        Ok::<_, gimli::Error>(content.unwrap_or_default())
    };
    let sections = DwarfPackageSections::load(load).ok()?;
    let package = sections.borrow(|section| Slice::new(section, LittleEndian), Slice::new(&[], LittleEndian)).ok()?;
    let dwarf = package.find_cu(split.skeleton.dwo_id?, split.parent).ok()??;
    let entries = DebugEntries::new(dwarf, Some(split.skeleton.clone()));
    read_function_at(&entries, address, name)
}

/// Contents of sections.
type SectionContents<'a> = DwarfSections<Cow<'a, [u8]>>;

fn load_sections<'a>(file: &File<'a>, name: impl Fn(SectionId) -> Option<&'static str>) -> Option<SectionContents<'a>> {
    let load = |id| name(id).and_then(|name| read_section(file, name)).unwrap_or_default();
    DwarfSections::load(|id| Ok::<_, gimli::Error>(load(id))).ok()
}

fn borrow_sections<'a>(sections: &'a SectionContents) -> Dwarf<Slice<'a>> {
    sections.borrow(|section| Slice::new(section, LittleEndian))
}

fn read_function_at(entries: &DebugEntries, address: u64, name: &str) -> Option<Signature> {
    let function = entries.find_function(address).ok()??;
    read_function(entries, &function, name).filter(|_| !entries.refers_to_shared.get())
}

/// The content of a section, decompressed if necessary.
fn read_section<'a>(file: &File<'a>, name: &str) -> Option<Cow<'a, [u8]>> {
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
    // Assemblers describe a function without its parameters and its result.
    if entries.language(&place.unit) == Some(gimli::DW_LANG_Mips_Assembler) {
        return None;
    }
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
