//! Finds functions of files by the names that people use: as in the file, demangled, or the end of
//! a demangled name such as `Foo::bar`.

use crate::args::ArgValue;
use crate::input::symbol_list::{ListedSymbol, list_symbols};
use crate::output::Failure;
use std::path::Path;

/// A function of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionSymbol {
    /// Its name in the file.
    pub linker_name: String,
    /// Its name in messages: without mangling.
    pub display: String,
    /// Its address relative to the library, if the file has its code.
    pub address: Option<u64>,
    /// Whether the loader finds it by its name.
    pub is_exported: bool,
}

/// A function whose address is an argument.
#[derive(Debug, Clone)]
pub struct CallbackSymbol {
    /// The argument that names it.
    pub value: ArgValue,
    /// The function.
    pub symbol: FunctionSymbol,
}

impl FunctionSymbol {
    /// A function that only the loader may find, such as one of another library.
    pub fn from_loader(name: &str) -> FunctionSymbol {
        FunctionSymbol { linker_name: name.to_string(), display: name.to_string(), address: None, is_exported: true }
    }
}

/// How well a symbol fits a name; less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameMatch {
    /// It is the name in the file.
    Linker,
    /// It is the whole demangled name.
    Demangled,
    /// It is the demangled name without parameters.
    WithoutParameters,
    /// It is the end of that.
    End,
}

/// Candidates that a message lists.
const LISTED_MOST: usize = 10;
/// Endings of functions that the compiler derived from the named one: with other parameters, or
/// with a part of its code.
const DERIVED_ENDINGS: [&str; 4] = [".constprop.", ".isra.", ".part.", ".cold"];

/// Finds a function by a name that fits at least as well as `worst`. `None` if the file has none,
/// or is no library.
///
/// # Errors
///
/// Fails if several functions have this name.
pub fn find_function(image: &[u8], name: &str, worst: NameMatch) -> Result<Option<FunctionSymbol>, Failure> {
    let Some(listed) = list_symbols(image) else { return Ok(None) };
    if let Some(ListedSymbol { address, .. }) = listed.iter().find(|own| own.is_exported && own.name == name) {
        let (linker_name, display) = (name.to_string(), demangle_name(name));
        return Ok(Some(FunctionSymbol { linker_name, display, address: *address, is_exported: true }));
    }
    let mut found: Vec<(NameMatch, FunctionSymbol)> = Vec::new();
    let mut derived = None;
    for ListedSymbol { name: own, address, is_exported, is_function } in listed {
        let Some(fits) = match_name(own, name).filter(|fits| is_function && *fits <= worst) else { continue };
        if DERIVED_ENDINGS.iter().any(|ending| own.contains(ending)) {
            derived.get_or_insert(own.to_string());
            continue;
        }
        let (linker_name, display) = (own.to_string(), demangle_name(own));
        let candidate = (fits, FunctionSymbol { linker_name, display, address, is_exported });
        // The same function may have several names, and entries in both tables.
        match found.iter_mut().find(|(_, other)| address.is_some() && other.address == address) {
            Some(same) if fits < same.0 => *same = candidate,
            Some(_) => {}
            None => found.push(candidate),
        }
    }
    let best = found.iter().map(|(fits, _)| *fits).min();
    found.retain(|(fits, _)| Some(*fits) == best);
    match (found.as_slice(), derived) {
        ([], None) => Ok(None),
        ([], Some(derived)) => {
            let text = format!("the compiler kept no whole `{name}`, only `{derived}`, which takes other arguments");
            Err(Failure::usage(
                text,
                Some("declare the function __attribute__((noipa)), or compile with -fno-ipa-sra -fno-ipa-cp"),
            ))
        }
        ([(_, one)], _) => Ok(Some(one.clone())),
        (several, _) if best == Some(NameMatch::Linker) => {
            let text = format!("the file has {} functions named `{name}`", several.len());
            Err(Failure::usage(text, Some("give the function to measure a unique name")))
        }
        (several, _) => Err(ambiguous_name(name, several.iter().map(|(_, symbol)| symbol.linker_name.as_str()))),
    }
}

/// The failure for a file without a function of this name.
pub fn missing_function(source: &Path, name: &str) -> Failure {
    let remedy = "name another with --call; a stripped file lacks the names of functions that it doesn't export, and \
                  compilers drop functions that nothing calls";
    Failure::usage(format!("{} has no function `{name}`", source.display()), Some(remedy))
}

/// The failure for a name that several functions have.
pub fn ambiguous_name<'a>(name: &str, linker_names: impl Iterator<Item = &'a str>) -> Failure {
    let mut names: Vec<String> = linker_names.map(demangle_fully).collect();
    let count = names.len();
    names.sort();
    names.truncate(LISTED_MOST);
    let more = if count > LISTED_MOST { format!(" and {} more", count - LISTED_MOST) } else { String::new() };
    let text = format!("{count} functions are named `{name}`: {}{more}", names.join("; "));
    Failure::usage(
        text,
        Some("give one of these names to --call, as in --call 'ns::f(int)' or 'ns::f(int)(buffer, 5)'"),
    )
}

/// How well a symbol fits a name; `None` if it doesn't.
pub fn match_name(own: &str, name: &str) -> Option<NameMatch> {
    if own == name {
        return Some(NameMatch::Linker);
    }
    // A mangled name contains the identifier, so that few names have to be demangled.
    let identifier = last_identifier(name);
    if !identifier.is_empty() && !own.contains(identifier) {
        return None;
    }
    let name = compact(name);
    // The compiler's own functions such as `f.constprop.0` have the name of their origin.
    if own.split_once('.').is_some_and(|(base, _)| base == name) {
        return Some(NameMatch::WithoutParameters);
    }
    if demangle_fully(own) == own {
        // Assembly text may have demangled names.
        return own
            .split_once('(')
            .is_some_and(|(base, _)| compact(base) == name)
            .then_some(NameMatch::WithoutParameters);
    }
    if compact(&demangle_fully(own)) == name {
        return Some(NameMatch::Demangled);
    }
    let short = compact(&demangle_name(own));
    let plain = strip_template(&short);
    if [short.as_str(), plain].contains(&name.as_str()) {
        return Some(NameMatch::WithoutParameters);
    }
    let end = format!("::{name}");
    [short.as_str(), plain].iter().any(|text| text.ends_with(&end)).then_some(NameMatch::End)
}

/// A name without blanks and without the tags of the library's versions, such as `[abi:cxx11]`.
fn compact(name: &str) -> String {
    const TAG: &str = "[abi:";
    let mut compacted: String = name.chars().filter(|c| !c.is_whitespace()).collect();
    while let Some((begin, end)) = compacted.find(TAG).and_then(|at| Some((at, at + compacted[at..].find(']')?))) {
        compacted.replace_range(begin..=end, "");
    }
    compacted
}

/// The identifier that a symbol of this name contains; empty if it may contain none.
fn last_identifier(name: &str) -> &str {
    if name.contains("operator") {
        return "";
    }
    let path = name.split(['(', '<']).next().unwrap_or_default();
    let last = path.rsplit("::").next().unwrap_or_default().trim().trim_start_matches('~');
    if last.chars().all(|c| c.is_alphanumeric() || c == '_') { last } else { "" }
}

/// The whole demangled name; the name itself if it isn't mangled.
fn demangle_fully(own: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(own) {
        return format!("{rust:#}");
    }
    let demangled = cpp_demangle::Symbol::new(own).ok().filter(|_| own.starts_with("_Z"));
    demangled.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| own.to_string())
}

/// The demangled name without parameters and result.
fn demangle_name(own: &str) -> String {
    if rustc_demangle::try_demangle(own).is_ok() {
        return demangle_fully(own);
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let demangled = cpp_demangle::Symbol::new(own).ok().filter(|_| own.starts_with("_Z"));
    demangled.and_then(|symbol| symbol.demangle_with_options(&options).ok()).unwrap_or_else(|| own.to_string())
}

/// A name without the template arguments at its end.
fn strip_template(name: &str) -> &str {
    if !name.ends_with('>') || name.contains("operator") {
        return name;
    }
    let mut depth = 0i32;
    let begin = name.char_indices().rev().find(|(_, c)| {
        depth += i32::from(*c == '>') - i32::from(*c == '<');
        depth == 0
    });
    begin.map_or(name, |(at, _)| &name[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_fit_parts_of_their_demangled_names() {
        use NameMatch::*;
        let method = "_ZN3Foo3barEi";
        for (own, name, fits) in [
            ("f", "f", Some(Linker)),
            (method, method, Some(Linker)),
            (method, "Foo::bar(int)", Some(Demangled)),
            (method, "Foo::bar", Some(WithoutParameters)),
            (method, "bar", Some(End)),
            (method, "ar", None),
            (method, "Foo", None),
            ("_Z3addIiET_S0_S0_", "add<int>", Some(WithoutParameters)),
            ("_Z3addIiET_S0_S0_", "add", Some(WithoutParameters)),
            ("_ZN3FooclEi", "Foo::operator()", Some(WithoutParameters)),
            ("_ZN1a1b1f17h0123456789abcdefE", "a::b::f", Some(Demangled)),
            ("_ZN1a1b1f17h0123456789abcdefE", "b::f", Some(End)),
            ("_Z2mkB5cxx11l", "mk(long)", Some(Demangled)),
            ("_Z2mkB5cxx11l", "mk", Some(WithoutParameters)),
            ("f.constprop.0", "f", Some(WithoutParameters)),
            ("ns::f(int)", "ns::f", Some(WithoutParameters)),
            ("g", "f", None),
        ] {
            assert_eq!(match_name(own, name), fits, "{own} {name}");
        }
    }
}
