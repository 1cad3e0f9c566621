//! Object files made by hand, whose functions run here too: they follow Microsoft's convention by
//! themselves.

use super::*;
use crate::input::function_symbol::{NameMatch, find_function};
use cyclescope_fuzz::{InputShape, fuzz_reader};
use object::pe::{
    IMAGE_REL_AMD64_ADDR32, IMAGE_REL_AMD64_ADDR32NB, IMAGE_REL_AMD64_ADDR64, IMAGE_REL_AMD64_REL32,
    IMAGE_REL_AMD64_REL32_4, IMAGE_REL_AMD64_SECREL, IMAGE_SYM_CLASS_EXTERNAL, IMAGE_SYM_CLASS_STATIC,
    IMAGE_SYM_CLASS_WEAK_EXTERNAL, RelocationType, SymbolClass,
};
use std::process::Command;

/// Flags of sections (Microsoft, "PE Format", "Section Flags"): with an alignment of 16 bytes.
const CODE: u32 = 0x6050_0020;
const CONSTANTS: u32 = 0x4050_0040;
const VARIABLES: u32 = 0xc050_0040;
const ZEROS: u32 = 0xc050_0080;
const DISCARDABLE: u32 = 0x4210_0040;
/// Bytes of the tables of an object file.
const HEADER_BYTES: usize = 20;
const SECTION_BYTES: usize = 40;
const FUNCTION: u16 = 0x20;

/// An object file that is being written.
#[derive(Default, Clone)]
struct ObjectText {
    sections: Vec<SectionText>,
    symbols: Vec<u8>,
}

#[derive(Clone)]
struct SectionText {
    name: &'static str,
    flags: u32,
    contents: Vec<u8>,
    /// Bytes of a section without contents.
    zeros: u32,
    relocations: Vec<(u32, u32, RelocationType)>,
}

impl ObjectText {
    /// Adds a section: its number.
    fn section(&mut self, name: &'static str, flags: u32, contents: &[u8]) -> i16 {
        let zeros = if flags == ZEROS { contents.len() as u32 } else { 0 };
        let contents = if flags == ZEROS { Vec::new() } else { contents.to_vec() };
        self.sections.push(SectionText { name, flags, contents, zeros, relocations: Vec::new() });
        self.sections.len() as i16
    }

    /// Adds a symbol of at most 8 letters: its number.
    fn symbol(&mut self, name: &str, section: i16, value: u32, kind: u16, class: SymbolClass) -> u32 {
        let mut entry = [0; 18];
        entry[..name.len()].copy_from_slice(name.as_bytes());
        entry[8..12].copy_from_slice(&value.to_le_bytes());
        entry[12..14].copy_from_slice(&section.to_le_bytes());
        entry[14..16].copy_from_slice(&kind.to_le_bytes());
        entry[16] = class.0;
        self.symbols.extend(entry);
        (self.symbols.len() / entry.len() - 1) as u32
    }

    /// Adds a weak symbol with a default.
    fn weak(&mut self, name: &str, default: u32) -> u32 {
        let number = self.symbol(name, 0, 0, FUNCTION, IMAGE_SYM_CLASS_WEAK_EXTERNAL);
        let count = self.symbols.len() - 1;
        self.symbols[count] = 1;
        let mut entry = [0; 18];
        entry[..4].copy_from_slice(&default.to_le_bytes());
        self.symbols.extend(entry);
        number
    }

    fn relocate(&mut self, section: i16, at: u32, symbol: u32, kind: RelocationType) {
        self.sections[section as usize - 1].relocations.push((at, symbol, kind));
    }

    fn write(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut at = HEADER_BYTES + SECTION_BYTES * self.sections.len();
        let mut bodies = Vec::new();
        for section in &self.sections {
            let relocations = at + section.contents.len();
            let mut name = [0; 8];
            name[..section.name.len()].copy_from_slice(section.name.as_bytes());
            file.extend(name);
            let bytes = section.contents.len() as u32 + section.zeros;
            for word in [0, 0, bytes, at as u32, relocations as u32, 0] {
                file.extend(word.to_le_bytes());
            }
            file.extend((section.relocations.len() as u32).to_le_bytes());
            file.extend(section.flags.to_le_bytes());
            bodies.extend(&section.contents);
            for (place, symbol, kind) in &section.relocations {
                bodies.extend(place.to_le_bytes());
                bodies.extend(symbol.to_le_bytes());
                bodies.extend(kind.0.to_le_bytes());
            }
            at = HEADER_BYTES + SECTION_BYTES * self.sections.len() + bodies.len();
        }
        let symbols = (self.symbols.len() / 18) as u32;
        let mut header = [0x8664u16.to_le_bytes(), (self.sections.len() as u16).to_le_bytes()].concat();
        for word in [0, at as u32, symbols, 0] {
            header.extend(word.to_le_bytes());
        }
        // No names longer than 8 letters: their table has only its own length.
        [header, file, bodies, self.symbols.clone(), 4u32.to_le_bytes().to_vec()].concat()
    }
}

/// `f` adds numbers that it reaches by relocations of each kind: 20 + 300 + 4000 + 50 001. `lacking`
/// needs a symbol that is missing.
fn sample_object() -> ObjectText {
    let mut object = ObjectText::default();
    #[rustfmt::skip]
    let code = object.section(".text$f", CODE, &[
        0x8b, 0x05, 0, 0, 0, 0, // mov eax, [constants + 4]
        0x48, 0x8b, 0x0d, 0, 0, 0, 0, // mov rcx, [address of the third constant]
        0x03, 0x01, // add eax, [rcx]
        0xc7, 0x05, 0, 0, 0, 0, 0xa0, 0x0f, 0, 0, // mov dword [common], 4000
        0x03, 0x05, 0, 0, 0, 0, // add eax, [common]
        0x03, 0x05, 0, 0, 0, 0, // add eax, [zeros + 12]
        0xe9, 0, 0, 0, 0, // jmp last
    ]);
    let values = object.section(".rdata", CONSTANTS, &[1u32, 20, 300].map(u32::to_le_bytes).concat());
    let pointer = object.section(".data", VARIABLES, &[0; 8]);
    let zeros = object.section(".bss", ZEROS, &[0; 16]);
    #[rustfmt::skip]
    let last = object.section(".text$l", CODE, &[
        0x90, // nop, so that the symbol is not the section's start
        0x05, 0x51, 0xc3, 0, 0, // add eax, 50001
        0xc3,
    ]);
    let lacking = object.section(".text$g", CODE, &[0xe9, 0, 0, 0, 0]);
    let [values_symbol, zeros_symbol] = [(".rdata", values), (".bss", zeros)]
        .map(|(name, section)| object.symbol(name, section, 0, 0, IMAGE_SYM_CLASS_STATIC));
    let pointer_symbol = object.symbol("pointer", pointer, 0, 0, IMAGE_SYM_CLASS_EXTERNAL);
    object.symbol("f", code, 0, FUNCTION, IMAGE_SYM_CLASS_EXTERNAL);
    object.symbol("lacking", lacking, 0, FUNCTION, IMAGE_SYM_CLASS_EXTERNAL);
    let common = object.symbol("common", 0, 4, 0, IMAGE_SYM_CLASS_EXTERNAL);
    let default = object.symbol("last.d", last, 1, FUNCTION, IMAGE_SYM_CLASS_STATIC);
    let weak = object.weak("last", default);
    let absent = object.symbol("absent", 0, 0, FUNCTION, IMAGE_SYM_CLASS_EXTERNAL);
    object.sections[code as usize - 1].contents[2] = 4;
    object.relocate(code, 2, values_symbol, IMAGE_REL_AMD64_REL32);
    object.relocate(code, 9, pointer_symbol, IMAGE_REL_AMD64_REL32);
    object.relocate(code, 17, common, IMAGE_REL_AMD64_REL32_4);
    object.relocate(code, 27, common, IMAGE_REL_AMD64_REL32);
    object.sections[code as usize - 1].contents[33] = 12;
    object.relocate(code, 33, zeros_symbol, IMAGE_REL_AMD64_REL32);
    object.relocate(code, 38, weak, IMAGE_REL_AMD64_REL32);
    object.sections[pointer as usize - 1].contents[0] = 8;
    object.relocate(pointer, 0, values_symbol, IMAGE_REL_AMD64_ADDR64);
    object.relocate(lacking, 1, absent, IMAGE_REL_AMD64_REL32);
    object
}

fn parse(file: &[u8]) -> Result<CoffObject<'_>, String> {
    CoffObject::parse(file).expect("it is an object file")
}

fn offset_of(file: &[u8], name: &str) -> u64 {
    let found = find_function(file, name, NameMatch::Linker).expect("one function has the name");
    found.and_then(|symbol| symbol.address).unwrap_or_else(|| panic!("{name} has an offset"))
}

/// The image for a call of a function, at an address.
fn make_image(file: &[u8], name: &str, start: u64) -> Result<Vec<u8>, ImageRefusal> {
    let object = parse(file).expect("it is intact");
    object.make_image(start, &[offset_of(file, name)])
}

#[test]
fn a_function_reaches_all_that_its_file_defines() {
    let file = sample_object().write();
    let object = parse(&file).expect("it is intact");
    let parts = object.parts();
    assert!([parts.code, parts.constants, parts.variables].iter().all(|bytes| *bytes > 0 && bytes % 4096 == 0));
    // SAFETY: a new mapping, which stays.
    let pages = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), parts.bytes(), rights, flags, -1, 0)
    };
    assert_ne!(pages, libc::MAP_FAILED);
    let offset = offset_of(&file, "f");
    let image = make_image(&file, "f", pages as u64).expect("it needs no linker");
    // SAFETY: the mapping is as long as the image, whose function takes nothing and changes only
    // registers that Microsoft's convention lets it change, and its own variables.
    let sum = unsafe {
        std::ptr::copy_nonoverlapping(image.as_ptr(), pages.cast(), image.len());
        assert_eq!(libc::mprotect(pages, parts.code, libc::PROT_READ | libc::PROT_EXEC), 0);
        let function: extern "win64" fn() -> u32 = std::mem::transmute(pages as usize + offset as usize);
        function()
    };
    assert_eq!(sum, 54_321);
}

#[test]
fn what_is_missing_is_named_where_it_is_needed() {
    let file = sample_object().write();
    let refusal = make_image(&file, "lacking", 0x10_0000).expect_err("a symbol is missing");
    assert_eq!(refusal, ImageRefusal::NeedsLinker("needs `absent`, which it does not define".to_string()));
    let names: Vec<&str> =
        parse(&file).expect("it is intact").list_functions().iter().map(|found| found.name).collect();
    assert_eq!(names, ["f", "lacking", "last.d", "last"]);
}

/// Two of them would be one symbol.
#[test]
fn names_that_are_no_text_are_refused() {
    let mut file = sample_object().write();
    let name = b"absent";
    let at = file.windows(name.len()).position(|bytes| bytes == name).expect("the file has the name");
    file[at] = 0xff;
    let refused = parse(&file).expect_err("a name is no text");
    assert!(refused.contains("no UTF-8"), "{refused}");
}

#[test]
fn offsets_are_those_of_the_image_and_of_a_section() {
    let mut object = sample_object();
    let constants = object.section(".rdata$x", CONSTANTS, &[0; 8]);
    let code = object.section(".text$h", CODE, &[0xc3]);
    let own = object.symbol("own", constants, 4, 0, IMAGE_SYM_CLASS_STATIC);
    object.symbol("h", code, 0, FUNCTION, IMAGE_SYM_CLASS_EXTERNAL);
    object.relocate(code, 0, own, IMAGE_REL_AMD64_SECREL);
    object.sections[code as usize - 1].contents = vec![0xc3, 0, 0, 0, 0, 0, 0, 0];
    object.sections[code as usize - 1].relocations[0].0 = 4;
    object.relocate(constants, 0, own, IMAGE_REL_AMD64_ADDR32NB);
    let file = object.write();
    let parsed = parse(&file).expect("it is intact");
    let image = make_image(&file, "h", 0x7000_0000_0000).expect("it needs no linker");
    let word = |at: u64| u32::from_le_bytes(image[at as usize..at as usize + 4].try_into().expect("4 bytes"));
    assert_eq!(word(offset_of(&file, "h") + 4), 4);
    // The constants of `f` are 12 bytes, and these begin at the next multiple of 16.
    assert_eq!(u64::from(word(parsed.parts().code as u64 + 16)), parsed.parts().code as u64 + 20);
}

#[test]
fn what_only_a_linker_does_is_refused() {
    let mut object = sample_object();
    object.section(".ctors", VARIABLES, &[0; 8]);
    let refusal = make_image(&object.write(), "f", 0x10_0000).expect_err("it has a constructor");
    assert!(matches!(&refusal, ImageRefusal::NeedsLinker(needs) if needs.contains(".ctors")), "{refusal:?}");

    let mut object = sample_object();
    object.relocate(1, 2, 0, IMAGE_REL_AMD64_ADDR32);
    let refusal = make_image(&object.write(), "f", 0x10_0000).expect_err("an address has 4 bytes");
    assert!(matches!(&refusal, ImageRefusal::NeedsLinker(needs) if needs.contains("type 0x2")), "{refusal:?}");
}

#[test]
fn damage_is_refused() {
    type Damage = fn(&mut ObjectText);
    let damages: [(&str, Damage); 5] = [
        ("outside of its section", |object| object.relocate(1, 40, 0, IMAGE_REL_AMD64_REL32)),
        ("outside of its section", |object| object.relocate(1, u32::MAX, 0, IMAGE_REL_AMD64_ADDR64)),
        ("no symbol", |object| object.relocate(1, 2, 1000, IMAGE_REL_AMD64_REL32)),
        ("out of a relocation's reach", |object| {
            let far = object.symbol("far", -1, 0, 0, IMAGE_SYM_CLASS_STATIC);
            object.relocate(1, 2, far, IMAGE_REL_AMD64_REL32);
        }),
        ("no section", |object| object.relocate(1, 2, 5, IMAGE_REL_AMD64_SECREL)),
    ];
    for (why, damage) in damages {
        let mut object = sample_object();
        damage(&mut object);
        let refusal = make_image(&object.write(), "f", 0x7000_0000_0000).expect_err(why);
        assert!(matches!(&refusal, ImageRefusal::Damaged(text) if text.contains(why)), "{why}: {refusal:?}");
    }
    let mut object = sample_object();
    object.section(".huge", ZEROS, &[]);
    object.sections.last_mut().expect("it has sections").zeros = u32::MAX;
    assert!(parse(&object.write()).expect_err("it is too large").contains("more than 32 MiB"));
    let mut object = sample_object();
    object.section(".debug", DISCARDABLE, &[]);
    object.sections.last_mut().expect("it has sections").zeros = u32::MAX;
    parse(&object.write()).expect("what has no place needs no memory");
    // Each beginning of a file is refused, or lacks only its end.
    let file = sample_object().write();
    for end in 0..file.len() {
        if let Some(Ok(object)) = CoffObject::parse(&file[..end]) {
            let _ = object.make_image(0x10_0000, &[0]);
        }
    }
}

#[test]
fn any_object_file_of_windows_is_laid_out_or_refused() {
    let mut seeds = vec![sample_object().write()];
    seeds.extend(compile_object());
    fuzz_reader("coff", InputShape::Bytes, &seeds, |bytes| {
        let Some(Ok(object)) = CoffObject::parse(bytes) else { return };
        let functions: Vec<u64> = object.list_functions().iter().map(|function| function.offset).collect();
        assert!(functions.iter().all(|offset| *offset < object.parts().bytes() as u64));
        let _ = object.make_image(0x7000_0000_0000, &functions);
    });
}

/// An object file of a compiler for Windows, if there is one.
fn compile_object() -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    let [source, output] = ["f.c", "f.obj"].map(|name| folder.path().join(name));
    let text = "static int table[3] = {1, 2, 3}; int *place = &table[1]; int zeros[9]; extern int other;\n\
                __attribute__((weak)) int g(int x) { return x + other; }\n\
                int f(int *p) { return *p + *place + zeros[2] + g(table[2]); }\n";
    std::fs::write(&source, text).expect("a file");
    let words = ["-c", "-g", "-O1", "-ffunction-sections", "-o"];
    let built = Command::new("x86_64-w64-mingw32-gcc-posix").args(words).arg(&output).arg(&source).output();
    if !built.is_ok_and(|built| built.status.success()) {
        cyclescope_skipped::report_left_out("x86_64-w64-mingw32-gcc-posix makes no object file here");
        return None;
    }
    Some(std::fs::read(output).expect("a file"))
}
