//! The code of a library in memory: whose function an address is in.

use std::ops::Range;

/// The code of a loaded library.
pub struct LoadedCode {
    /// The name of its file.
    pub name: String,
    /// Its addresses.
    pub range: Range<u64>,
    /// Addresses and names of its functions, sorted.
    pub functions: Vec<(u64, String)>,
}

impl LoadedCode {
    /// The place of an address, such as `f+0x12 of code.o`; `None` if the library is elsewhere.
    pub fn describe_place(&self, address: u64) -> Option<String> {
        self.range.contains(&address).then_some(())?;
        let after = self.functions.partition_point(|(start, _)| *start <= address);
        Some(match after.checked_sub(1).map(|index| &self.functions[index]) {
            Some((start, name)) => format!("{name}+{:#x} of {}", address - start, self.name),
            None => format!("+{:#x} of {}", address - self.range.start, self.name),
        })
    }
}
