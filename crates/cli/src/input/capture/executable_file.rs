//! The executable that has the region: its symbols, and the instructions at its addresses.

use crate::input::elf;
use crate::output::Failure;
use iced_x86::{Decoder, DecoderOptions};
use object::elf::{DF_1_PIE, DT_FLAGS_1, EM_X86_64, ET_DYN, ET_EXEC, PT_DYNAMIC, PT_INTERP, STT_FUNC};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind};
use std::path::{Path, PathBuf};

type NativeElf<'a> = ElfFile64<'a, Endianness>;

/// An executable. Its addresses are those of the file, as disassemblers print them.
pub struct ExecutableFile {
    path: PathBuf,
    image: Vec<u8>,
}

impl ExecutableFile {
    /// Reads an executable.
    pub fn read(path: &Path) -> Result<ExecutableFile, Failure> {
        let file = ExecutableFile { path: path.to_path_buf(), image: elf::read_machine_code(path)? };
        let is_executable = file.parse().is_some_and(|parsed| {
            let (header, endian) = (parsed.elf_header(), parsed.endian());
            let starts = match header.e_type(endian) {
                ET_EXEC => true,
                ET_DYN => is_position_independent(&parsed, &file.image),
                _ => false,
            };
            header.e_machine(endian) == EM_X86_64 && starts
        });
        match is_executable {
            true => Ok(file),
            false => {
                let text = format!("{} is not an x86-64 executable, so no run of it has the region", path.display());
                Err(Failure::usage(text, Some("name an executable in ELF format, or measure a function with --call")))
            }
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address at which the program starts.
    pub fn entry(&self) -> u64 {
        self.parse().map_or(0, |parsed| parsed.entry())
    }

    fn parse(&self) -> Option<NativeElf<'_>> {
        NativeElf::parse(&*self.image).ok()
    }

    /// Whether an address is in a loaded part of the file.
    pub fn contains(&self, address: u64) -> bool {
        let parsed = self.parse();
        parsed
            .is_some_and(|parsed| parsed.segments().any(|segment| contains(segment.address(), segment.size(), address)))
    }

    /// The address that the value of an option names: a hexadecimal number, a symbol, or a symbol
    /// and an offset. It is the start of an instruction.
    pub fn find_address(&self, option: &str, text: &str) -> Result<u64, Failure> {
        let address = self.read_address(option, text)?;
        self.require_instruction(option, address)?;
        Ok(address)
    }

    fn read_address(&self, option: &str, text: &str) -> Result<u64, Failure> {
        let wrong = || {
            let remedy = "write an address as objdump -d prints it, such as 0x1139, or a symbol and an offset, such as \
                          main+0x1a";
            Failure::usage(format!("{option}: `{text}` is no address"), Some(remedy))
        };
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            return parse_hexadecimal(text).ok_or_else(wrong);
        }
        let (symbol, offset) = match text.rsplit_once('+') {
            Some((symbol, offset)) => (symbol, parse_offset(offset).ok_or_else(wrong)?),
            None => (text, 0),
        };
        Ok(self.find_symbol(option, symbol)?.wrapping_add(offset))
    }

    fn find_symbol(&self, option: &str, name: &str) -> Result<u64, Failure> {
        let mut found: Vec<u64> =
            self.functions().filter(|(_, symbol, _)| symbol == name).map(|found| found.0).collect();
        found.sort_unstable();
        found.dedup();
        let path = self.path.display();
        match found.as_slice() {
            [one] => Ok(*one),
            [] => {
                let remedy = "write an address as objdump -d prints it, such as 0x1139; a stripped file has no names";
                Err(Failure::usage(format!("{option}: {path} has no function `{name}`"), Some(remedy)))
            }
            several => {
                let text = format!("{option}: {path} has {} functions named `{name}`", several.len());
                let places: Vec<String> = several.iter().map(|address| format!("{address:#x}")).collect();
                let remedy = format!("give the address instead of the name: {}", places.join(" or "));
                Err(Failure::usage(text, Some(&remedy)))
            }
        }
    }

    /// Address, name and size of each function.
    fn functions(&self) -> impl Iterator<Item = (u64, String, u64)> {
        let parsed = self.parse();
        let read = |symbol: object::read::elf::ElfSymbol64<'_, '_>| {
            let is_function = symbol.is_definition() && symbol.elf_symbol().st_type() == STT_FUNC;
            is_function.then(|| Some((symbol.address(), symbol.name().ok()?.to_string(), symbol.size())))?
        };
        let of_file = |parsed: NativeElf<'_>| -> Vec<(u64, String, u64)> {
            parsed.symbols().chain(parsed.dynamic_symbols()).filter_map(read).collect()
        };
        parsed.map(of_file).unwrap_or_default().into_iter()
    }

    /// Fails if no instruction starts at the address.
    fn require_instruction(&self, option: &str, address: u64) -> Result<(), Failure> {
        let code = self.parse().and_then(|parsed| {
            let text = parsed.sections().filter(|section| section.kind() == SectionKind::Text);
            let mut around = text.filter(|section| contains(section.address(), section.size(), address));
            around.next().and_then(|section| Some((section.address(), section.data().ok()?.to_vec())))
        });
        let Some((start, code)) = code else {
            let text = format!("{option}: {address:#x} is outside the code of {}", self.path.display());
            let remedy = "write an address as objdump -d prints it, and not one of a running program";
            return Err(Failure::usage(text, Some(remedy)));
        };
        let before = self.functions().map(|(function, ..)| function);
        let from = before.filter(|function| (start..=address).contains(function)).max().unwrap_or(start);
        let mut decoder = Decoder::with_ip(64, &code[(from - start) as usize..], from, DecoderOptions::NONE);
        let mut last = None;
        while decoder.can_decode() && decoder.ip() < address {
            last = Some(decoder.decode());
        }
        match last {
            // Data between the functions may have led the decoder astray.
            Some(last) if last.next_ip() > address && !last.is_invalid() => {
                let text = format!(
                    "{option}: {} is inside the instruction at {}, `{}`",
                    self.name_address(address),
                    self.name_address(last.ip()),
                    cyclescope::asm::format_instruction(&last)
                );
                let remedy = format!("use the start of an instruction: {:#x} or {:#x}", last.ip(), last.next_ip());
                Err(Failure::usage(text, Some(&remedy)))
            }
            _ => Ok(()),
        }
    }

    /// The address as symbol and offset, or as a number.
    pub fn name_address(&self, address: u64) -> String {
        let around = self.functions().filter(|(start, _, size)| contains(*start, (*size).max(1), address));
        match around.max_by_key(|(start, ..)| *start) {
            Some((start, name, _)) if start == address => name,
            Some((start, name, _)) => format!("{name}+{:#x}", address - start),
            None => format!("{address:#x}"),
        }
    }
}

fn contains(start: u64, bytes: u64, address: u64) -> bool {
    address >= start && address - start < bytes
}

/// Whether a file that runs at any address is a program.
fn is_position_independent(parsed: &NativeElf<'_>, image: &[u8]) -> bool {
    let endian = parsed.endian();
    parsed.elf_program_headers().iter().any(|segment| match segment.p_type(endian) {
        PT_INTERP => true,
        PT_DYNAMIC => {
            let entries = segment.dynamic(endian, image).ok().flatten().unwrap_or_default();
            entries.iter().any(|entry| entry.d_tag(endian) == DT_FLAGS_1 && entry.d_val(endian) & DF_1_PIE.0 != 0)
        }
        _ => false,
    })
}

fn parse_hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// An offset: hexadecimal with `0x`, as in objdump, else decimal, as in gdb.
fn parse_offset(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(_) => parse_hexadecimal(text),
        None => text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok())?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};

    /// This test's program.
    fn own_file() -> ExecutableFile {
        ExecutableFile::read(&std::env::current_exe().expect("a path")).expect("an executable")
    }

    #[test]
    fn addresses_are_numbers_or_symbols_with_offsets() {
        let file = own_file();
        let entry = file.entry();
        let start = file.read_address("--from", "_start").expect("the program's start");
        assert_eq!(start, entry);
        for (text, offset) in [("_start+0x10", 16), ("_start+10", 10)] {
            assert_eq!(file.read_address("--from", text).expect("an address"), start + offset);
        }
        for text in [format!("{entry:#x}"), format!("0{entry:x}"), format!("0x00{entry:x}")] {
            assert_eq!(file.find_address("--from", &text).expect("an address"), entry);
        }
        for wrong in ["", "0x", "0x+1", "1g", "_start+", "_start+1a", "_start+-1", "_start+0x", "99999999999999999"] {
            assert!(file.read_address("--from", wrong).is_err(), "{wrong}");
        }
        assert_eq!((file.name_address(entry), file.name_address(entry + 3)), ("_start".into(), "_start+0x3".into()));
        assert!(file.contains(entry) && !file.contains(u64::MAX));
    }

    #[test]
    fn any_executable_is_read_or_refused() {
        let whole = own_file().image;
        // The headers, with tables that lie outside.
        let seed = whole[..whole.len().min(4096)].to_vec();
        fuzz_reader("executable_file", InputShape::Bytes, &[seed], |bytes| {
            let file = ExecutableFile { path: PathBuf::new(), image: bytes.to_vec() };
            let _ = file.find_address("--from", "main+1");
            let _ = file.find_address("--from", "0x1000");
            let _ = (file.contains(0x1000), file.entry(), file.name_address(0x1000));
            let _ = file.parse().is_some_and(|parsed| is_position_independent(&parsed, bytes));
        });
    }
}
