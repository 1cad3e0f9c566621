//! The symbols of libraries, in ELF and in PE format.

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
    let Some(file) = parse_elf(image) else { return list_dll_functions(image) };
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
