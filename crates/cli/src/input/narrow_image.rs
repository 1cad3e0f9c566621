//! The file of a library of 32-bit code on its way into memory: segments, relocations, rights.
//!
//! A symbol that the file does not define gets a page of addresses of its own that can't be accessed.

use crate::input::narrow_constructors::call_function;
use crate::output::Failure;
use cyclescope::error::Unavailable;
use cyclescope::executor::user::{NARROW_PAGE as PAGE, NarrowMemory, PageRights};
use cyclescope::random::Random;
use object::elf::{
    DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_RELR, DT_RELRSZ, DynamicTag, PT_DYNAMIC, PT_LOAD, PT_TLS, R_386_32,
    R_386_COPY, R_386_GLOB_DAT, R_386_IRELATIVE, R_386_JMP_SLOT, R_386_NONE, R_386_PC32, R_386_RELATIVE,
    R_386_TLS_DTPMOD32, R_386_TLS_DTPOFF32, R_386_TLS_TPOFF, R_386_TLS_TPOFF32, STT_FUNC, STT_GNU_IFUNC, STT_TLS,
};
use object::read::elf::{Dyn, ElfFile32, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget, SymbolIndex};
use std::path::Path;

type NarrowFile<'data> = ElfFile32<'data, Endianness>;

/// Largest library in memory: 16 copies of it leave room for the areas of a program.
const BYTES_MOST: u64 = 64 << 20;
/// Pages in front of a library, at random, so that its distance to other memory varies.
const SHIFT_PAGES_MOST: usize = 256;
/// Most symbols that a file may lack. Each takes a page of addresses.
const MISSING_MOST: usize = 1024;
/// Relocations for variables of a thread.
const THREAD_RELOCATIONS: [object::elf::RelocationType; 4] =
    [R_386_TLS_DTPMOD32, R_386_TLS_DTPOFF32, R_386_TLS_TPOFF, R_386_TLS_TPOFF32];

/// Symbols that a library lacks, each with a page of addresses.
#[derive(Default)]
pub struct MissingSymbols {
    memory: Option<NarrowMemory>,
    names: Vec<String>,
}

impl MissingSymbols {
    /// The name of the symbol with this address.
    pub fn find_name(&self, address: u64) -> Option<&str> {
        let page = address.checked_sub(self.memory.as_ref()?.start())? / PAGE;
        self.names.get(usize::try_from(page).ok()?).map(String::as_str)
    }

    /// The address of a symbol. `None` if there are too many.
    fn address_of(&mut self, name: &str) -> Result<Option<u64>, Failure> {
        let start = match &self.memory {
            Some(memory) => memory.start(),
            None => self.memory.insert(NarrowMemory::reserve(MISSING_MOST as u64 * PAGE)?).start(),
        };
        let number = self.names.iter().position(|known| known == name).unwrap_or(self.names.len());
        if number == self.names.len() {
            self.names.push(name.to_string());
        }
        Ok((number < MISSING_MOST).then_some(start + PAGE * number as u64))
    }
}

/// A library on its way into memory.
pub struct NarrowImage<'a> {
    file: NarrowFile<'a>,
    bytes: &'a [u8],
    source: &'a Path,
    /// The memory that it is in.
    pub memory: NarrowMemory,
    /// Where its own addresses begin in it.
    start: u64,
    /// Bytes of addresses that it takes.
    span: u64,
    /// Symbols that it lacks.
    pub missing: MissingSymbols,
    /// Places of addresses that a function of the library chooses, and that function.
    chosen: Vec<(u64, u32)>,
}

/// A library whose file is damaged.
fn damaged(source: &Path, why: &str) -> Failure {
    Failure::usage(format!("{} can't be loaded: {why}", source.display()), Some("build the file again"))
}

/// A library that this loader can't load.
fn refuse(source: &Path, why: &str, remedy: &str) -> Failure {
    let what = format!("a function in {}", source.display());
    Failure::from(Unavailable { what, why: why.to_string(), remedy: remedy.to_string() })
}

fn refuse_thread_variables(source: &Path) -> Failure {
    let why = "it has thread-local variables, which 32-bit code finds through a segment that this process lacks";
    refuse(source, why, "build it without thread_local, __thread and errno, and without the C library")
}

/// Bytes of addresses that the segments take, which begin near 0.
fn measure_span(file: &NarrowFile, source: &Path) -> Result<u64, Failure> {
    let endian = file.endian();
    let mut end = 0;
    for segment in file.elf_program_headers() {
        match segment.p_type(endian) {
            PT_TLS => return Err(refuse_thread_variables(source)),
            PT_LOAD => end = end.max(u64::from(segment.p_vaddr(endian)) + u64::from(segment.p_memsz(endian))),
            _ => {}
        }
    }
    match end.next_multiple_of(PAGE) {
        0 => Err(damaged(source, "it has no code")),
        span if span > BYTES_MOST => {
            let text = format!("{} takes {} MiB of memory", source.display(), span >> 20);
            Err(Failure::usage(text, Some(&format!("use a file of at most {} MiB", BYTES_MOST >> 20))))
        }
        span => Ok(span),
    }
}

impl<'a> NarrowImage<'a> {
    /// Reserves addresses for a library and copies its segments there. Copies with other numbers get
    /// other places.
    pub fn copy(bytes: &'a [u8], source: &'a Path, number: u64) -> Result<NarrowImage<'a>, Failure> {
        let file = NarrowFile::parse(bytes).map_err(|error| damaged(source, &error.to_string()))?;
        let span = measure_span(&file, source)?;
        let shift = PAGE * Random::new(number).below(SHIFT_PAGES_MOST) as u64;
        let memory = NarrowMemory::reserve(shift + span)?;
        let (start, missing) = (memory.start() + shift, MissingSymbols::default());
        let image = NarrowImage { file, bytes, source, memory, start, span, missing, chosen: Vec::new() };
        image.copy_segments()?;
        Ok(image)
    }

    /// Where its addresses begin and end in memory.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.start..self.start + self.span
    }

    /// The addresses and names of its functions, sorted.
    pub fn list_functions(&self) -> Vec<(u64, String)> {
        let symbols = self.file.symbols().chain(self.file.dynamic_symbols());
        let functions = symbols.filter(|symbol| symbol.is_definition() && symbol.elf_symbol().st_type() == STT_FUNC);
        let named =
            functions.filter_map(|symbol| Some((self.start + symbol.address(), symbol.name().ok()?.to_string())));
        let mut all: Vec<(u64, String)> = named.collect();
        all.sort();
        all.dedup_by_key(|(address, _)| *address);
        all
    }

    fn damaged(&self, why: &str) -> Failure {
        damaged(self.source, why)
    }

    fn segments(&self) -> impl Iterator<Item = &object::elf::ProgramHeader32<Endianness>> {
        let endian = self.file.endian();
        self.file.elf_program_headers().iter().filter(move |segment| segment.p_type(endian) == PT_LOAD)
    }

    /// Makes all of its memory writable and copies the contents of the file.
    fn copy_segments(&self) -> Result<(), Failure> {
        self.memory.set_rights(self.start, self.span, PageRights::WRITE)?;
        let endian = self.file.endian();
        for segment in self.segments() {
            let (offset, length) = (segment.p_offset(endian) as usize, segment.p_filesz(endian) as usize);
            let content = offset.checked_add(length).and_then(|end| self.bytes.get(offset..end));
            let content = content.filter(|_| length as u64 <= u64::from(segment.p_memsz(endian)));
            let content = content.ok_or_else(|| self.damaged("a segment is longer than its file"))?;
            // SAFETY: the span contains all segments, and the file's part is no longer than its segment.
            unsafe { self.memory.write(self.start + u64::from(segment.p_vaddr(endian)), content) };
        }
        Ok(())
    }

    fn word_at(&self, address: u64) -> Result<*mut u32, Failure> {
        match address.checked_add(4) {
            Some(end) if end <= self.span => Ok((self.start + address) as *mut u32),
            _ => Err(self.damaged("an address is outside of its segments")),
        }
    }

    fn read_word(&self, address: u64) -> Result<u32, Failure> {
        let word = self.word_at(address)?;
        // SAFETY: the word is inside of the mapped span, which only this process changes.
        Ok(unsafe { word.read_unaligned() })
    }

    fn write_word(&self, address: u64, value: u32) -> Result<(), Failure> {
        let word = self.word_at(address)?;
        // SAFETY: as for reading; the span is writable until its segments are protected.
        unsafe { word.write_unaligned(value) };
        Ok(())
    }

    /// Writes the addresses that depend on the library's place, and those of other symbols.
    pub fn apply_relocations(&mut self) -> Result<(), Failure> {
        for place in self.list_packed_places()? {
            let value = self.read_word(place)?;
            self.write_word(place, (self.start as u32).wrapping_add(value))?;
        }
        let relocations: Vec<_> = self.file.dynamic_relocations().into_iter().flatten().collect();
        for (place, relocation) in relocations {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let addend = self.read_word(place)?;
            let target = relocation.target();
            let start = self.start as u32;
            let value = match r_type {
                R_386_NONE => continue,
                R_386_RELATIVE => start.wrapping_add(addend),
                R_386_32 => self.find_target(target)?.wrapping_add(addend),
                R_386_PC32 => {
                    let from = start.wrapping_add(place as u32);
                    self.find_target(target)?.wrapping_add(addend).wrapping_sub(from)
                }
                R_386_GLOB_DAT | R_386_JMP_SLOT => self.find_target(target)?,
                R_386_IRELATIVE => {
                    self.chosen.push((place, start.wrapping_add(addend)));
                    continue;
                }
                R_386_COPY => {
                    let why = "the program copies a variable of another library";
                    return Err(refuse(self.source, why, "name the function's object file"));
                }
                kind if THREAD_RELOCATIONS.contains(&kind) => return Err(refuse_thread_variables(self.source)),
                other => {
                    let why = format!("it has relocations of the kind {other:?}, which this loader does not know");
                    return Err(refuse(self.source, &why, "compile it with -fPIC"));
                }
            };
            self.write_word(place, value)?;
        }
        Ok(())
    }

    /// The places of packed relative relocations (System V ABI, gABI proposal "Relative relocation
    /// table"): an address, or the next 31 words of which bits tell those that are places.
    fn list_packed_places(&self) -> Result<Vec<u64>, Failure> {
        const WORDS_OF_BITS: u64 = 31;
        let table = self.dynamic_value(DT_RELR).zip(self.dynamic_value(DT_RELRSZ));
        let Some((table, bytes)) = table else { return Ok(Vec::new()) };
        let (mut places, mut next) = (Vec::new(), 0);
        for at in (table..table.saturating_add(bytes.min(self.span))).step_by(4) {
            let entry = self.read_word(at)?;
            if entry & 1 == 0 {
                places.push(entry.into());
                next = u64::from(entry) + 4;
            } else {
                let is_place = |word: &u64| entry >> (word + 1) & 1 != 0;
                places.extend((0..WORDS_OF_BITS).filter(is_place).map(|word| next + 4 * word));
                next += 4 * WORDS_OF_BITS;
            }
        }
        Ok(places)
    }

    fn find_target(&mut self, target: RelocationTarget) -> Result<u32, Failure> {
        if let RelocationTarget::Symbol(index) = target { self.find_symbol(index) } else { Ok(0) }
    }

    /// The address of a symbol: its own, or a place of those that are missing.
    fn find_symbol(&mut self, index: SymbolIndex) -> Result<u32, Failure> {
        let table = self.file.dynamic_symbol_table();
        let symbol = table.and_then(|table| table.symbol_by_index(index).ok());
        let symbol = symbol.ok_or_else(|| self.damaged("a relocation has no symbol"))?;
        let kind = symbol.elf_symbol().st_type();
        let name = symbol.name().unwrap_or_default().to_string();
        if kind == STT_TLS {
            return Err(refuse_thread_variables(self.source));
        }
        if kind == STT_GNU_IFUNC && !symbol.is_undefined() {
            let why = format!("`{name}` chooses its code when it is loaded");
            return Err(refuse(self.source, &why, "name the function that it chooses, or its object file"));
        }
        if !symbol.is_undefined() {
            let base = if symbol.section() == object::SymbolSection::Absolute { 0 } else { self.start };
            return Ok(base.wrapping_add(symbol.address()) as u32);
        }
        if symbol.is_weak() || name.is_empty() {
            return Ok(0);
        }
        match self.missing.address_of(&name)? {
            Some(address) => Ok(address as u32),
            None => Err(self.damaged(&format!("it lacks more than {MISSING_MOST} symbols"))),
        }
    }

    /// The value of an entry of its dynamic section.
    fn dynamic_value(&self, tag: DynamicTag) -> Option<u64> {
        let endian = self.file.endian();
        let mut headers = self.file.elf_program_headers().iter();
        let dynamic = headers.find(|segment| segment.p_type(endian) == PT_DYNAMIC)?;
        let entries = dynamic.dynamic(endian, self.bytes).ok()??;
        entries.iter().find(|entry| entry.tag(endian) == tag).map(|entry| entry.d_val(endian).into())
    }

    /// Gives each page the rights of its segments.
    pub fn protect_segments(&self) -> Result<(), Failure> {
        let endian = self.file.endian();
        for page in (0..self.span).step_by(PAGE as usize) {
            let of_page = self.segments().filter(|segment| {
                let at = u64::from(segment.p_vaddr(endian));
                at < page + PAGE && at + u64::from(segment.p_memsz(endian)) > page
            });
            let flags = of_page.fold(0, |flags, segment| flags | segment.p_flags(endian).0);
            self.memory.set_rights(self.start + page, PAGE, PageRights::from_segment_flags(flags))?;
        }
        Ok(())
    }

    /// Writes the addresses that functions of the library choose, and then runs its constructors.
    pub fn run_constructors(&self) -> Result<(), Failure> {
        for (place, function) in &self.chosen {
            let address = call_function(*function)?;
            self.write_word(*place, address)?;
        }
        let start = self.start as u32;
        if let Some(function) = self.dynamic_value(DT_INIT).filter(|function| *function != 0) {
            call_function(start.wrapping_add(function as u32))?;
        }
        let array = self.dynamic_value(DT_INIT_ARRAY).zip(self.dynamic_value(DT_INIT_ARRAYSZ));
        let Some((array, bytes)) = array else { return Ok(()) };
        for place in (array..array.saturating_add(bytes.min(self.span))).step_by(4) {
            // Relocations have made it an address.
            match self.read_word(place)? {
                0 | u32::MAX => {}
                function => drop(call_function(function)?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};
    use std::process::Command;

    #[test]
    fn any_library_is_copied_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let [source, library] = ["f.c", "f.so"].map(|name| folder.path().join(name));
        let text = "extern int absent(int); extern int other; int table[3] = {1, 2, 3}; int *place = &table[1];\n\
                    int f(int *p) { return *p + *place + absent(table[2]) + other; }\n";
        std::fs::write(&source, text).expect("a file");
        let mut command = Command::new("cc");
        command.args(["-m32", "-O1", "-fPIC", "-shared", "-nostdlib", "-g", "-o"]).arg(&library).arg(&source);
        if !command.output().is_ok_and(|built| built.status.success()) {
            return cyclescope_skipped::report_skipped("no compiler makes a library of 32-bit code here");
        }
        let bytes = std::fs::read(&library).expect("a file");
        let load = |bytes: &[u8], number| {
            let mut image = NarrowImage::copy(bytes, Path::new("f.so"), number)?;
            image.apply_relocations()?;
            image.protect_segments()?;
            Ok::<_, Failure>((image.list_functions(), image.missing.names.len(), image.range()))
        };
        let (functions, missing, range) = load(&bytes, 1).expect("it is loaded");
        assert!(functions.iter().any(|(address, name)| name == "f" && range.contains(address)), "{functions:?}");
        assert_eq!(missing, 2);
        fuzz_reader("narrow_library", InputShape::Bytes, &[bytes], |bytes| {
            let _ = load(bytes, bytes.len() as u64);
        });
    }
}
