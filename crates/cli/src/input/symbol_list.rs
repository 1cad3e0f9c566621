//! The symbols of libraries, in ELF and in PE format, and of object files of Windows.

use crate::input::coff::CoffObject;
use crate::input::elf_file::{parse_elf, symbol_type};
use object::elf::{STT_FUNC, STT_GNU_IFUNC};
use object::read::pe::PeFile64;
use object::{ExportTarget, NameOrOrdinal, Object, ObjectSymbol, SymbolKind};
use std::borrow::Cow;

/// A defined symbol of a file.
pub struct ListedSymbol<'a> {
    /// Its name.
    pub name: &'a str,
    /// The address of its code relative to the library.
    pub address: Option<u64>,
    /// Whether the loader finds it by its name.
    pub is_exported: bool,
    /// Whether it is a function.
    pub is_function: bool,
}

/// The symbols of a file, exported ones first; `None` if it is no library.
pub fn list_symbols(image: &[u8]) -> Option<Vec<ListedSymbol<'_>>> {
    let Some(file) = parse_elf(image) else {
        return list_dll_functions(image).or_else(|| list_object_functions(image));
    };
    let exported = file.dynamic_symbols().map(|symbol| (symbol, true));
    let all = exported.chain(file.symbols().map(|symbol| (symbol, false)));
    let listed = all.filter(|(symbol, _)| symbol.is_definition()).filter_map(|(symbol, is_exported)| {
        let kind = symbol_type(&symbol);
        // The address of an indirect function is that of the code that chooses one.
        let address = (kind == Some(STT_FUNC)).then(|| symbol.address());
        let is_function = matches!(kind, Some(STT_FUNC | STT_GNU_IFUNC));
        Some(ListedSymbol { name: symbol.name().ok()?, address, is_exported, is_function })
    });
    Some(listed.collect())
}

/// The functions of an object file of Windows; `None` if the file is none.
fn list_object_functions(image: &[u8]) -> Option<Vec<ListedSymbol<'_>>> {
    let functions = CoffObject::parse(image)?.ok()?.list_functions().into_iter();
    let listed = functions.map(|own| ListedSymbol {
        name: own.name,
        address: Some(own.offset),
        is_exported: own.is_external,
        is_function: true,
    });
    Some(listed.collect())
}

/// The functions of a DLL, exported ones first; `None` if the file is none. Those that another DLL
/// has for it are not among them.
fn list_dll_functions(image: &[u8]) -> Option<Vec<ListedSymbol<'_>>> {
    let file = PeFile64::parse(image).ok()?;
    let base = file.relative_address_base();
    let place = |address: u64| address.checked_sub(base).filter(|address| *address > 0);
    let exported = file.exports().ok()?.filter_map(|export| {
        let export = export.ok()?;
        let ExportTarget::Address { address } = export.target() else { return None };
        let NameOrOrdinal::Name(Cow::Borrowed(name)) = export.into_name() else { return None };
        let name = str::from_utf8(name).ok()?;
        Some(ListedSymbol { name, address: place(address), is_exported: true, is_function: true })
    });
    let others = file.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text);
    let others = others.filter_map(|symbol| {
        let (name, address) = (symbol.name().ok()?, place(symbol.address()));
        Some(ListedSymbol { name, address, is_exported: false, is_function: true })
    });
    Some(exported.chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};

    /// Sizes and offsets of the parts of a DLL (Microsoft, "PE Format").
    const DOS_HEADER: usize = 64;
    const FILE_HEADER: usize = 20;
    const OPTIONAL_HEADER: usize = 240;
    const DIRECTORIES: usize = 112;
    const CONTENTS_AT: usize = 0x200;
    /// The address of its only section, relative to the DLL.
    const SECTION: u32 = 0x1000;
    const IMAGE_BASE: u64 = 0x1_8000_0000;

    /// A DLL with an exported function `f` and a hidden one `g`.
    fn write_dll() -> Vec<u8> {
        let mut file = vec![0; CONTENTS_AT];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(60, &(DOS_HEADER as u32).to_le_bytes());
        put(DOS_HEADER, b"PE\0\0");
        let (header, symbols) = (DOS_HEADER + 4, CONTENTS_AT as u32 + 0x80);
        let optional = header + FILE_HEADER;
        put(header, &[0x64, 0x86, 1, 0]);
        put(header + 8, &[symbols, 1].map(u32::to_le_bytes).concat());
        // The optional header's length, and the flags of a DLL.
        put(header + 16, &[OPTIONAL_HEADER as u16, 0x2022].map(u16::to_le_bytes).concat());
        put(optional, &0x20bu16.to_le_bytes());
        put(optional + 24, &IMAGE_BASE.to_le_bytes());
        put(optional + 32, &[0x1000, 0x200].map(u32::to_le_bytes).concat());
        put(optional + 56, &[0x2000, CONTENTS_AT as u32].map(u32::to_le_bytes).concat());
        put(optional + 108, &16u32.to_le_bytes());
        // The directory of exports.
        put(optional + DIRECTORIES, &[SECTION + 0x10, 0x60].map(u32::to_le_bytes).concat());
        put(optional + OPTIONAL_HEADER, b".text");
        let places = [0x200, SECTION, 0x200, CONTENTS_AT as u32].map(u32::to_le_bytes).concat();
        put(optional + OPTIONAL_HEADER + 8, &places);
        put(optional + OPTIONAL_HEADER + 36, &0x6000_0020u32.to_le_bytes());

        let mut contents = vec![0; 0x200];
        let mut put = |at: usize, bytes: &[u8]| contents[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &[0xc3, 0xc3]);
        let place = |offset: u32| SECTION + offset;
        // The library's name, the first ordinal, the numbers of functions and names, and their tables.
        let exports = [place(0x40), 1, 1, 1, place(0x50), place(0x54), place(0x58)].map(u32::to_le_bytes).concat();
        put(0x10 + 12, &exports);
        put(0x40, b"f.dll\0f\0");
        put(0x50, &[place(0), place(0x46)].map(u32::to_le_bytes).concat());
        // A symbol of the type function, in section 1, at 1; then the length of no names.
        put(0x80, b"g");
        put(0x88, &[1, 0, 0, 0, 1, 0, 0x20, 0, 3, 0]);
        put(0x92, &4u32.to_le_bytes());
        file.extend(contents);
        file
    }

    #[test]
    fn functions_of_a_dll_are_listed_with_their_places() {
        let file = write_dll();
        let listed = list_symbols(&file).expect("it is a DLL");
        let listed: Vec<_> = listed.iter().map(|own| (own.name, own.address, own.is_exported)).collect();
        assert_eq!(listed, [("f", Some(0x1000), true), ("g", Some(0x1001), false)]);
    }

    #[test]
    fn any_dll_is_listed_or_refused() {
        fuzz_reader("dll", InputShape::Bytes, &[write_dll()], |bytes| {
            let _ = list_symbols(bytes);
        });
    }
}
