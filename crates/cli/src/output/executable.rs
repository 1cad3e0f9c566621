//! Writes a timed program as an executable file, for debuggers, disassemblers and profilers.
//!
//! The file needs no library: its start code fills the memory areas, calls the program a number of
//! times, and exits with 0. It prints nothing. Symbols name the parts of the program and each copy
//! of the snippet. Its memory is that of one layout, at fixed addresses.
//!
//! Limits: standard memory, whose areas repeat a word, and no calls of other code.

use cyclescope::context::{MXCSR_DEFAULT, ProgramContext, fresh_context};
use cyclescope::program::Program;
use cyclescope::program::memory::ProgramMemory;
use object::elf;
use object::{LittleEndian as LE, U16, U32, U64};
use std::mem::{offset_of, size_of};

/// Addresses of the code, and of the first memory area. All are below 2 GiB, so that the start code
/// is short.
const CODE_ADDRESS: u64 = 0x40_0000;
const AREA_ADDRESS: u64 = 0x1000_0000;
/// Room between areas, which are not mapped.
const AREA_GAP: u64 = 1 << 20;
/// Bytes of a page, and of the room for the start code.
const PAGE: u64 = 4096;
const START_BYTES: u64 = 512;

/// A timed program as a file.
pub struct ExecutableProgram<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its memory.
    pub memory: &'a ProgramMemory,
    /// Iterations of its loop.
    pub loop_count: u64,
    /// Calls of the program.
    pub calls: u64,
}

/// A name for an address.
struct NamedPlace {
    name: String,
    address: u64,
    bytes: u64,
    is_code: bool,
}

impl ExecutableProgram<'_> {
    /// The bytes of the file.
    pub fn to_elf(&self) -> Vec<u8> {
        let program_at = CODE_ADDRESS + START_BYTES;
        let code_bytes = START_BYTES + self.program.len() as u64;
        let context_at = (CODE_ADDRESS + code_bytes).next_multiple_of(PAGE);
        let calls_at = context_at + size_of::<ProgramContext>() as u64;
        let areas = self.place_areas();
        let mut code = self.build_start(program_at, calls_at, &areas);
        code.resize(code_bytes as usize, 0xcc);
        self.program.relocate_into(program_at, context_at, &mut code[START_BYTES as usize..]);
        let mut data = self.build_context(&areas);
        data.extend(self.calls.to_le_bytes());
        let places = self.name_places(program_at, context_at, calls_at);
        let segments: Vec<(u64, u64)> =
            areas.iter().zip(&self.memory.areas).map(|(at, area)| (*at, area.mapped_bytes())).collect();
        join_file(&code, (context_at, &data), &segments, &places)
    }

    fn place_areas(&self) -> Vec<u64> {
        let mut next = AREA_ADDRESS;
        let mut place = |bytes: u64| {
            let at = next;
            next = (next + bytes + AREA_GAP).next_multiple_of(AREA_GAP);
            at
        };
        self.memory.areas.iter().map(|area| place(area.mapped_bytes())).collect()
    }

    /// ```text
    /// mov  edi, area            ; each area
    /// mov  ecx, words
    /// mov  rax, word
    /// rep  stosq
    /// mov  rbx, [calls]
    /// again:
    /// call program
    /// dec  rbx
    /// jnz  again
    /// mov  eax, 231             ; exit_group
    /// xor  edi, edi
    /// syscall
    /// ```
    fn build_start(&self, program: u64, calls: u64, areas: &[u64]) -> Vec<u8> {
        let mut code = Vec::new();
        for (at, area) in areas.iter().zip(&self.memory.areas) {
            let Some(word) = area.uniform_word() else { continue };
            code.push(0xbf);
            code.extend((*at as u32).to_le_bytes());
            code.push(0xb9);
            code.extend(((area.mapped_bytes() / 8) as u32).to_le_bytes());
            code.extend([0x48, 0xb8]);
            code.extend(word.to_le_bytes());
            code.extend([0xf3, 0x48, 0xab]);
        }
        code.extend([0x48, 0x8b, 0x1c, 0x25]);
        code.extend((calls as u32).to_le_bytes());
        let here = CODE_ADDRESS + code.len() as u64 + 5;
        code.push(0xe8);
        code.extend((program.wrapping_sub(here) as u32).to_le_bytes());
        // Back over `jnz` (2), `dec` (3) and `call` (5).
        code.extend([0x48, 0xff, 0xcb, 0x75, 0xf6]);
        code.extend([0xb8, 231, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05]);
        assert!(code.len() as u64 <= START_BYTES, "the standard memory has five areas");
        code
    }

    /// The context of the program, as bytes.
    fn build_context(&self, areas: &[u64]) -> Vec<u8> {
        let mut context = fresh_context(self.memory.vectors);
        for (register, value) in self.memory.pointer_registers(areas, &vec![0; areas.len()]) {
            context.gpr[register] = value;
        }
        let mut bytes = vec![0; size_of::<ProgramContext>()];
        let mut put = |at: usize, words: &[u64]| {
            for (place, word) in bytes[at..].chunks_exact_mut(8).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        };
        put(offset_of!(ProgramContext, loop_count), &[self.loop_count]);
        put(offset_of!(ProgramContext, mxcsr), &[MXCSR_DEFAULT.into()]);
        put(offset_of!(ProgramContext, gpr), &context.gpr);
        put(offset_of!(ProgramContext, mask), &context.mask);
        put(offset_of!(ProgramContext, vector), context.vector.as_flattened());
        bytes
    }

    fn name_places(&self, program: u64, context: u64, calls: u64) -> Vec<NamedPlace> {
        let code = |name: &str, address: u64, end: u64| NamedPlace {
            name: name.to_string(),
            address,
            bytes: end - address,
            is_code: true,
        };
        let data = |name: &str, address: u64, bytes: u64| NamedPlace {
            name: name.to_string(),
            address,
            bytes,
            is_code: false,
        };
        let body = self.program.body_range();
        let (body_at, body_end) = (program + body.start as u64, program + body.end as u64);
        let mut places = vec![code("_start", CODE_ADDRESS, program), code("program", program, body_at)];
        if self.program.is_looped() {
            places.push(code("loop", body_at, body_end));
        }
        let mut end = body_at;
        for (number, offset) in self.program.copy_offsets().enumerate() {
            let at = program + offset as u64;
            end = at + self.program.snippet().len() as u64;
            places.push(code(&format!("copy_{number}"), at, end));
        }
        if end < body_end {
            places.push(code("loop_end", end, body_end));
        }
        places.push(code("clock_end", body_end, program + self.program.len() as u64));
        places.push(data("context", context, size_of::<ProgramContext>() as u64));
        places.push(data("clock_readings", context, 16));
        places.push(data("loop_count", context + offset_of!(ProgramContext, loop_count) as u64, 8));
        places.push(data("calls", calls, 8));
        places
    }
}

/// Names of the sections, in the order of their headers.
const SECTION_NAMES: [&str; 6] = ["", ".text", ".data", ".symtab", ".strtab", ".shstrtab"];
/// Names before the first one: none.
const EMPTY_NAME: [u8; 1] = [0];

/// Joins the parts of the file: header, segments, code, data, symbols, names and sections.
fn join_file(code: &[u8], (data_at, data): (u64, &[u8]), areas: &[(u64, u64)], places: &[NamedPlace]) -> Vec<u8> {
    let mut names = EMPTY_NAME.to_vec();
    let mut symbols = object::bytes_of(&elf::Sym64::<LE>::default()).to_vec();
    for place in places {
        let kind = if place.is_code { elf::STT_FUNC } else { elf::STT_OBJECT };
        let symbol = elf::Sym64 {
            st_name: U32::new(LE, names.len() as u32),
            st_info: elf::SymbolInfo::new(elf::STB_GLOBAL, kind),
            st_other: elf::SymbolOther(elf::STV_DEFAULT.0),
            st_shndx: U16::new(LE, elf::SymbolSection(if place.is_code { 1 } else { 2 })),
            st_value: U64::new(LE, place.address),
            st_size: U64::new(LE, place.bytes),
        };
        symbols.extend(object::bytes_of(&symbol));
        names.extend(place.name.as_bytes());
        names.push(0);
    }
    let mut section_names = Vec::new();
    let name_offsets = SECTION_NAMES.map(|name| {
        let at = section_names.len() as u32;
        section_names.extend(name.as_bytes());
        section_names.push(0);
        at
    });
    let code_offset = PAGE;
    let data_offset = (code_offset + code.len() as u64).next_multiple_of(PAGE);
    let symbols_offset = (data_offset + data.len() as u64).next_multiple_of(8);
    let names_offset = symbols_offset + symbols.len() as u64;
    let section_names_offset = names_offset + names.len() as u64;
    let headers_offset = (section_names_offset + section_names.len() as u64).next_multiple_of(8);
    let execute = elf::ProgramFlags(elf::PF_R.0 | elf::PF_X.0);
    let write = elf::ProgramFlags(elf::PF_R.0 | elf::PF_W.0);
    let mut segments = vec![
        new_segment(execute, code_offset, CODE_ADDRESS, code.len() as u64, code.len() as u64),
        new_segment(write, data_offset, data_at, data.len() as u64, data.len() as u64),
    ];
    segments.extend(areas.iter().map(|(at, bytes)| new_segment(write, 0, *at, 0, *bytes)));
    let part = |offset: u64, bytes: &[u8]| (offset, bytes.len() as u64);
    let none = (0, 0);
    let no_flags = elf::SectionFlags(0);
    let code_flags = elf::SectionFlags(elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0);
    let data_flags = elf::SectionFlags(elf::SHF_ALLOC.0 | elf::SHF_WRITE.0);
    let sections = [
        new_section(elf::SHT_NULL, no_flags, 0, none, [0, 0, 0]),
        new_section(elf::SHT_PROGBITS, code_flags, CODE_ADDRESS, part(code_offset, code), [0, 0, 0]),
        new_section(elf::SHT_PROGBITS, data_flags, data_at, part(data_offset, data), [0, 0, 0]),
        // Its names are in section 4, and symbol 1 is the first global one.
        new_section(
            elf::SHT_SYMTAB,
            no_flags,
            0,
            part(symbols_offset, &symbols),
            [4, 1, size_of::<elf::Sym64<LE>>() as u64],
        ),
        new_section(elf::SHT_STRTAB, no_flags, 0, part(names_offset, &names), [0, 0, 0]),
        new_section(elf::SHT_STRTAB, no_flags, 0, part(section_names_offset, &section_names), [0, 0, 0]),
    ];
    let header = elf::FileHeader64 {
        e_ident: elf::Ident {
            magic: elf::ELFMAG,
            class: elf::ELFCLASS64,
            data: elf::ELFDATA2LSB,
            version: elf::EV_CURRENT,
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(LE, elf::ET_EXEC),
        e_machine: U16::new(LE, elf::EM_X86_64),
        e_version: U32::new(LE, elf::EV_CURRENT.0.into()),
        e_entry: U64::new(LE, CODE_ADDRESS),
        e_phoff: U64::new(LE, size_of::<elf::FileHeader64<LE>>() as u64),
        e_shoff: U64::new(LE, headers_offset),
        e_flags: U32::new(LE, elf::FileFlags(0)),
        e_ehsize: U16::new(LE, size_of::<elf::FileHeader64<LE>>() as u16),
        e_phentsize: U16::new(LE, size_of::<elf::ProgramHeader64<LE>>() as u16),
        e_phnum: U16::new(LE, segments.len() as u16),
        e_shentsize: U16::new(LE, size_of::<elf::SectionHeader64<LE>>() as u16),
        e_shnum: U16::new(LE, sections.len() as u16),
        e_shstrndx: U16::new(LE, elf::SymbolSection(sections.len() as u16 - 1)),
    };
    let mut file = object::bytes_of(&header).to_vec();
    file.extend(object::bytes_of_slice(&segments));
    for (offset, bytes) in [
        (code_offset, code),
        (data_offset, data),
        (symbols_offset, &symbols),
        (names_offset, &names),
        (section_names_offset, &section_names),
    ] {
        file.resize(offset as usize, 0);
        file.extend(bytes);
    }
    file.resize(headers_offset as usize, 0);
    for (mut section, name) in sections.into_iter().zip(name_offsets) {
        section.sh_name = U32::new(LE, name);
        file.extend(object::bytes_of(&section));
    }
    file
}

fn new_segment(
    flags: elf::ProgramFlags,
    offset: u64,
    address: u64,
    stored: u64,
    bytes: u64,
) -> elf::ProgramHeader64<LE> {
    elf::ProgramHeader64 {
        p_type: U32::new(LE, elf::PT_LOAD),
        p_flags: U32::new(LE, flags),
        p_offset: U64::new(LE, offset),
        p_vaddr: U64::new(LE, address),
        p_paddr: U64::new(LE, address),
        p_filesz: U64::new(LE, stored),
        p_memsz: U64::new(LE, bytes),
        p_align: U64::new(LE, PAGE),
    }
}

/// `links` are the linked section, more information, and the bytes of an entry.
fn new_section(
    kind: elf::SectionType,
    flags: elf::SectionFlags,
    address: u64,
    (offset, bytes): (u64, u64),
    links: [u64; 3],
) -> elf::SectionHeader64<LE> {
    elf::SectionHeader64 {
        sh_name: U32::new(LE, 0),
        sh_type: U32::new(LE, kind),
        sh_flags: U64::new(LE, flags),
        sh_addr: U64::new(LE, address),
        sh_offset: U64::new(LE, offset),
        sh_size: U64::new(LE, bytes),
        sh_link: U32::new(LE, links[0] as u32),
        sh_info: U32::new(LE, links[1] as u32),
        sh_addralign: U64::new(LE, if kind == elf::SHT_NULL { 0 } else { 1 }),
        sh_entsize: U64::new(LE, links[2]),
    }
}
