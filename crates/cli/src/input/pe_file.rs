//! Files in PE format: DLLs of Windows.

use crate::input::function_symbol::ListedSymbol;
use object::read::pe::PeFile64;
use object::{ExportTarget, NameOrOrdinal, Object, ObjectSymbol, SymbolKind};
use std::borrow::Cow;

/// The functions of a DLL, exported ones first; `None` if the file is none. Those that another DLL
/// has for it are not among them.
pub fn list_functions(image: &[u8]) -> Option<Vec<ListedSymbol<'_>>> {
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
