//! Files in ELF format, of both modes.

use object::elf::SymbolType;
use object::{BinaryFormat, File, ObjectSymbol, Symbol, SymbolFlags};

/// Parses a file in ELF format.
pub fn parse_elf(image: &[u8]) -> Option<File<'_>> {
    File::parse(image).ok().filter(|file| file.format() == BinaryFormat::Elf)
}

/// The type of a symbol of an ELF file.
pub fn symbol_type(symbol: &Symbol) -> Option<SymbolType> {
    if let SymbolFlags::Elf { st_info, .. } = symbol.flags() { Some(st_info.st_type()) } else { None }
}
