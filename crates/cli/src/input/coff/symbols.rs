//! The symbols of an object file, and where they are.

use object::LittleEndian;
use object::pe::{
    IMAGE_SYM_ABSOLUTE, IMAGE_SYM_CLASS_EXTERNAL, IMAGE_SYM_CLASS_STATIC, IMAGE_SYM_CLASS_WEAK_EXTERNAL,
    IMAGE_SYM_DTYPE_FUNCTION, IMAGE_SYM_UNDEFINED,
};
use object::read::coff::{CoffHeader, Symbol, SymbolTable};
use std::collections::HashMap;

/// Steps from a weak symbol to its definition.
const WEAK_STEPS_MOST: usize = 8;

/// Where a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolPlace {
    /// At an offset in a section, by its index in the file.
    Section { index: usize, offset: u32 },
    /// A variable without a section, at an offset among the variables.
    Common { offset: u64 },
    /// A number, the same wherever the file is.
    Absolute(u32),
    /// In another file.
    Missing,
}

/// A symbol of an object file.
#[derive(Debug)]
pub(super) struct CoffSymbol<'data> {
    pub(super) name: &'data str,
    pub(super) place: SymbolPlace,
    /// Whether other files see it.
    pub(super) is_external: bool,
    /// Whether its type says that it is a function.
    pub(super) is_function: bool,
}

/// Reads all symbols, by their number. `place_common` gives a variable of so many bytes, which has no
/// section, its offset among the variables.
pub(super) fn read_symbols<'data, Coff: CoffHeader>(
    table: &SymbolTable<'data, &'data [u8], Coff>,
    mut place_common: impl FnMut(u64) -> Result<u64, String>,
) -> Result<Vec<Option<CoffSymbol<'data>>>, String> {
    let mut symbols: Vec<Option<CoffSymbol>> = Vec::new();
    symbols.resize_with(table.len(), || None);
    let mut weak = Vec::new();
    for (number, symbol) in table.iter() {
        let (class, section) = (symbol.storage_class(), symbol.section_number());
        let name = symbol.name(table.strings()).map_err(|error| error.to_string())?;
        let place = match section {
            IMAGE_SYM_ABSOLUTE => SymbolPlace::Absolute(symbol.value()),
            IMAGE_SYM_UNDEFINED if class == IMAGE_SYM_CLASS_EXTERNAL && symbol.value() > 0 => {
                SymbolPlace::Common { offset: place_common(symbol.value().into())? }
            }
            _ => match section.index() {
                Some(index @ 1..) => SymbolPlace::Section { index: index as usize - 1, offset: symbol.value() },
                _ => SymbolPlace::Missing,
            },
        };
        if class == IMAGE_SYM_CLASS_WEAK_EXTERNAL && place == SymbolPlace::Missing {
            let default = table.aux_weak_external(number).map_err(|error| error.to_string())?;
            weak.push((number.0, default.weak_default_sym_index.get(LittleEndian) as usize));
        }
        // Others are of files, of lines and of a debugger.
        let is_external = class == IMAGE_SYM_CLASS_EXTERNAL || class == IMAGE_SYM_CLASS_WEAK_EXTERNAL;
        let is_function =
            symbol.derived_type() == IMAGE_SYM_DTYPE_FUNCTION && (is_external || class == IMAGE_SYM_CLASS_STATIC);
        let name = str::from_utf8(name).map_err(|_| format!("the name of symbol {} is no UTF-8", number.0))?;
        symbols[number.0] = Some(CoffSymbol { name, place, is_external, is_function });
    }
    define_missing(&mut symbols);
    define_weak(&mut symbols, &weak);
    Ok(symbols)
}

/// Gives a symbol that is missing the place of one of its name.
fn define_missing(symbols: &mut [Option<CoffSymbol>]) {
    let is_defined = |symbol: &&CoffSymbol| symbol.is_external && symbol.place != SymbolPlace::Missing;
    let defined: HashMap<&str, SymbolPlace> =
        symbols.iter().flatten().filter(is_defined).map(|symbol| (symbol.name, symbol.place)).collect();
    for symbol in symbols.iter_mut().flatten().filter(|symbol| symbol.is_external) {
        if symbol.place == SymbolPlace::Missing {
            symbol.place = defined.get(symbol.name).copied().unwrap_or(SymbolPlace::Missing);
        }
    }
}

/// Gives weak symbols that nothing else defines the places of their defaults.
fn define_weak(symbols: &mut [Option<CoffSymbol>], weak: &[(usize, usize)]) {
    let defaults: HashMap<usize, usize> = weak.iter().copied().collect();
    for (number, _) in weak {
        let mut at = *number;
        for _ in 0..WEAK_STEPS_MOST {
            let place = symbols.get(at).and_then(Option::as_ref).map_or(SymbolPlace::Missing, |symbol| symbol.place);
            match (place, defaults.get(&at)) {
                (SymbolPlace::Missing, Some(next)) => at = *next,
                _ => break,
            }
        }
        let Some(Some(found)) = symbols.get(at) else { continue };
        let (place, is_function) = (found.place, found.is_function);
        let Some(Some(symbol)) = symbols.get_mut(*number) else { continue };
        symbol.place = place;
        symbol.is_function |= is_function;
    }
}
