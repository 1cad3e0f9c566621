//! Turns a region of C or C++ code, marked by `CYCLESCOPE_BODY`, into a snippet, so that no call is
//! measured.
//!
//! The macro makes the region the body of a loop that may run again at any time. At the end of an
//! iteration, the compiler therefore leaves every value where the next iteration expects it. The
//! body consists of the bytes between the loop's labels and the code on the jump back, and its
//! copies can follow each other. Code of the function before the loop becomes the init code. Both
//! are copied out of the library, so they can neither call nor jump out. Constants and static
//! variables are copied to the stack, above the function's frame. An operand `[rip+x]` becomes
//! `[rbp+x]`, which has the same length. In 32-bit code `[x]` becomes `[ebp+x]`, and the function's
//! arguments lie between its frame and the copies.

use crate::input::elf_file::parse_elf;
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::input::{self, InputKind};
use cyclescope::snippet::Snippet;
use iced_x86::{
    Code, ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
    Register,
};
use object::{File, Object, ObjectSection, ObjectSymbol, Section, SectionKind, Symbol};
use std::ops::Range;
use std::path::Path;

/// The macros, included before the file.
pub const REGION_HEADER: [&str; 2] = [include_str!("region.h"), cyclescope::clock::source::C_GUARDS];
/// Flags for a file with a region: straight code, and a frame whose register reaches the constants.
const REGION_FLAGS: [&str; 6] = [
    "-fno-omit-frame-pointer",
    "-mno-omit-leaf-frame-pointer",
    "-fno-stack-protector",
    "-fno-jump-tables",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
];
/// More flags for GCC, which clang rejects: a loop that fills or copies memory must not become a
/// call.
const GCC_FLAGS: [&str; 2] = ["-fno-reorder-blocks", "-fno-tree-loop-distribute-patterns"];
const CLANG_FLAGS: [&str; 1] = ["-fno-builtin"];

/// Maximum bytes of copied constants and variables.
const DATA_BYTES_MOST: u64 = 16 << 10;
/// Alignment of copied sections.
const SECTION_ALIGNMENT: u64 = 64;
/// Distance from the frame's register to the copies: the saved register and the return address.
const ABOVE_FRAME: u64 = 16;
/// The same in 32-bit code, with arguments of [`NARROW_ARGUMENTS`] words.
const ABOVE_NARROW_FRAME: u64 = 24;
/// Arguments of a function of 32-bit code: each is the pointer to memory in EDI.
const NARROW_ARGUMENTS: usize = 4;
/// Flag for 32-bit code: data at its address instead of one relative to a register.
const NARROW_FLAGS: [&str; 1] = ["-fno-pic"];

/// The flags for a file with a region.
pub fn compiler_flags(is_clang: bool, mode: CodeMode) -> Vec<&'static str> {
    let own: &[&str] = if is_clang { &CLANG_FLAGS } else { &GCC_FLAGS };
    let narrow: &[&str] = if mode == CodeMode::Bits32 { &NARROW_FLAGS } else { &[] };
    [&REGION_FLAGS, own, narrow].concat()
}

/// A compiled library as a file.
struct LibraryImage<'a> {
    file: File<'a>,
    mode: CodeMode,
}

/// Whether a library has a region.
pub fn contains_region(library: &Path) -> Result<bool, Failure> {
    has_region(&read_compiled(library)?)
}

fn has_region(bytes: &[u8]) -> Result<bool, Failure> {
    Ok(LibraryImage::parse(bytes)?.find_label("cyclescope_begin").is_some())
}

/// Reads the region in the function of this name as a snippet.
pub fn read_region(library: &Path, source: &Path, name: &str) -> Result<Snippet, Failure> {
    extract_region(&read_compiled(library)?, source, name)
}

fn extract_region(bytes: &[u8], source: &Path, name: &str) -> Result<Snippet, Failure> {
    let image = LibraryImage::parse(bytes)?;
    let label =
        |label: &str| image.find_label(label).ok_or_else(|| refuse_region("its end is missing", "compile it with gcc"));
    let (begin, end) = (label("cyclescope_begin")?, label("cyclescope_end")?);
    let function = image.file.symbols().find(|symbol| symbol.name() == Ok(name));
    let within = |symbol: &Symbol| {
        (symbol.address()..=symbol.address().saturating_add(symbol.size())).contains(&end) && symbol.address() <= begin
    };
    let Some(function) = function.filter(within) else {
        let text = format!("CYCLESCOPE_BODY is not in the function `{name}` of {}", source.display());
        return Err(Failure::usage(text, Some("name its function with --call; in C++ declare it extern \"C\"")));
    };
    let mut copied = CopiedSections { mode: image.mode, ..CopiedSections::default() };
    copied.frame.mode = image.mode;
    let mut init = image.copy_code(function.address()..begin, CodePart::Init, &mut copied)?;
    let mut body = image.copy_code(begin..end, CodePart::Region, &mut copied)?;
    body.extend(image.copy_jump_back(begin, end, &mut copied)?);
    if body.is_empty() {
        let remedy = "wrap its inputs in CYCLESCOPE_HIDE(x) and its result in CYCLESCOPE_KEEP(x)";
        return Err(refuse_region("the compiler optimized it away", remedy));
    }
    if copied.used && copied.frame.lost {
        return Err(refuse_region(
            "it needs constants, but its function sets up no frame at its entry",
            "avoid alloca and variable-length arrays, which may align the stack, or use gcc",
        ));
    }
    let mut code = copied.push_to_stack();
    code.append(&mut init);
    let text = format!("CYCLESCOPE_BODY in {name} of {}", source.display());
    Ok(Snippet::new(body, code, text).with_mode(image.mode))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CodePart {
    Init,
    Region,
}

/// Sections that code refers to, copied.
#[derive(Default)]
struct CopiedSections {
    mode: CodeMode,
    /// Where each section is in the library, and its offset among the copies.
    sections: Vec<(Range<u64>, u64)>,
    bytes: Vec<u8>,
    used: bool,
    frame: FrameTracker,
}

/// Tracks whether RBP is where [`CopiedSections::push_to_stack`] expects it.
#[derive(Default)]
struct FrameTracker {
    mode: CodeMode,
    /// Number of `push rbp` instructions.
    pushes: u32,
    /// Whether another instruction wrote RSP. A function that aligns its stack does so before it
    /// sets up its frame.
    moved: bool,
    /// Whether RBP was written other than by `push rbp; mov rbp, rsp` at the stack of the
    /// function's entry.
    lost: bool,
}

impl FrameTracker {
    fn track_instruction(&mut self, instruction: &Instruction) {
        let (move_codes, push, [frame, stack]) = match self.mode {
            CodeMode::Bits64 => {
                ([Code::Mov_rm64_r64, Code::Mov_r64_rm64], Code::Push_r64, [Register::RBP, Register::RSP])
            }
            CodeMode::Bits32 => {
                ([Code::Mov_rm32_r32, Code::Mov_r32_rm32], Code::Push_r32, [Register::EBP, Register::ESP])
            }
        };
        let makes = move_codes.contains(&instruction.code())
            && instruction.op0_register() == frame
            && instruction.op1_register() == stack;
        let pushes = instruction.code() == push && instruction.op0_register() == frame;
        if makes {
            self.lost |= self.moved || self.pushes != 1;
        } else if pushes {
            self.pushes += 1;
        } else {
            self.lost |= is_register_written(instruction, Register::RBP);
            self.moved |= is_register_written(instruction, Register::RSP);
        }
    }
}

impl CopiedSections {
    /// ```text
    /// and  rsp, -64
    /// mov  rax, constant      ; every 8 bytes, from last to first
    /// push rax
    /// push rax                ; for the return address
    /// lea  rbp, [rsp-8]       ; where it will be once the function has its frame
    /// ```
    ///
    /// In 32-bit code:
    ///
    /// ```text
    /// and  esp, -64
    /// push constant           ; every 4 bytes, from last to first
    /// push edi                ; for each argument, and for the return address
    /// lea  ebp, [esp-4]
    /// ```
    fn push_to_stack(&self) -> Vec<u8> {
        if self.mode == CodeMode::Bits32 {
            let mut code = vec![0x83, 0xe4, 0xc0];
            for word in self.bytes.chunks(4).rev() {
                code.push(0x68);
                code.extend(word);
            }
            code.extend([0x57; NARROW_ARGUMENTS + 1]);
            code.extend([0x8d, 0x6c, 0x24, 0xfc]);
            return code;
        }
        let mut code = vec![0x48, 0x83, 0xe4, 0xc0];
        for word in self.bytes.chunks(8).rev() {
            code.extend([0x48, 0xb8]);
            code.extend(word);
            code.push(0x50);
        }
        code.extend([0x50, 0x48, 0x8d, 0x6c, 0x24, 0xf8]);
        code
    }
}

impl<'a> LibraryImage<'a> {
    fn parse(bytes: &'a [u8]) -> Result<LibraryImage<'a>, Failure> {
        let unreadable = || Failure::internal("the compiler's output is unreadable");
        let file = parse_elf(bytes).ok_or_else(unreadable)?;
        let mode = if file.is_64() { CodeMode::Bits64 } else { CodeMode::Bits32 };
        Ok(LibraryImage { file, mode })
    }

    fn find_label(&self, name: &str) -> Option<u64> {
        self.file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address())
    }

    /// The bytes of code between two addresses.
    fn code_bytes(&self, range: &Range<u64>) -> Result<&[u8], Failure> {
        let text = self.file.section_by_name(".text");
        // Labels that assembly sets may be in any order.
        let length = range.end.checked_sub(range.start);
        let found = text.zip(length).and_then(|(text, length)| text.data_range(range.start, length).ok().flatten());
        found.ok_or_else(|| refuse_region("its code is not in one section", "compile it with gcc"))
    }

    /// Decodes the instruction at an address.
    fn decode_at(&self, at: u64) -> Result<Instruction, Failure> {
        const LONGEST: u64 = 15;
        let text = self.file.section_by_name(".text");
        let end = text.map_or(at, |text| text.address().saturating_add(text.size()));
        let bytes = self.code_bytes(&(at..end.min(at.saturating_add(LONGEST))))?;
        Ok(Decoder::with_ip(self.mode.bits(), bytes, at, DecoderOptions::NONE).decode())
    }

    /// Copies code that stays inside its range, and redirects its references to data.
    fn copy_code(&self, range: Range<u64>, part: CodePart, copied: &mut CopiedSections) -> Result<Vec<u8>, Failure> {
        let bytes = self.code_bytes(&range)?;
        let mut changed = bytes.to_vec();
        let mut decoder = Decoder::with_ip(self.mode.bits(), bytes, range.start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            require_inside(&instruction, &range, part)?;
            copied.frame.track_instruction(&instruction);
            let offsets = decoder.get_constant_offsets(&instruction);
            if instruction.is_ip_rel_memory_operand() || self.uses_address(&instruction, &offsets)? {
                let at = (instruction.ip() - range.start) as usize;
                self.redirect_operand(&instruction, &offsets, &mut changed[at..], copied)?;
            }
        }
        Ok(changed)
    }

    /// Copies the code on the jump back to the begin.
    fn copy_jump_back(&self, begin: u64, end: u64, copied: &mut CopiedSections) -> Result<Vec<u8>, Failure> {
        const MOST: u64 = 256;
        let lost = || refuse_region("its end does not jump back to its begin", "compile it with -O2");
        let back = self.decode_at(end)?;
        if back.flow_control() != FlowControl::UnconditionalBranch {
            return Err(lost());
        }
        let from = back.near_branch_target();
        let mut at = from;
        while at != begin {
            if at.abs_diff(from) > MOST {
                return Err(lost());
            }
            let next = self.decode_at(at)?;
            match next.flow_control() {
                FlowControl::Next => at = next.next_ip(),
                FlowControl::UnconditionalBranch if next.near_branch_target() == begin => break,
                _ => return Err(lost()),
            }
        }
        self.copy_code(from..at, CodePart::Region, copied)
    }

    /// Whether the linker fills an address into the memory operand of an instruction of 32-bit code.
    fn uses_address(&self, instruction: &Instruction, offsets: &ConstantOffsets) -> Result<bool, Failure> {
        if self.mode == CodeMode::Bits64 {
            return Ok(false);
        }
        let range = instruction.ip()..instruction.next_ip();
        let mut filled = self.file.dynamic_relocations().into_iter().flatten().map(|(place, _)| place);
        let Some(place) = filled.find(|place| range.contains(place)) else { return Ok(false) };
        // An address mode follows the opcode, and no base register is in it.
        let is_operand = offsets.displacement_size() == 4
            && place - range.start == offsets.displacement_offset() as u64
            && instruction.memory_base() == Register::None
            && offsets.displacement_offset() >= 2;
        match is_operand {
            true => Ok(true),
            false => Err(refuse_region(
                "it has an address of data that is no operand in memory, or has a register for its base",
                "use the memory that the function's argument points to, 1 MiB",
            )),
        }
    }

    /// Turns an operand `[rip+x]` into `[rbp+x]`: only the address mode and the displacement
    /// change.
    fn redirect_operand(
        &self,
        instruction: &Instruction,
        offsets: &ConstantOffsets,
        bytes: &mut [u8],
        copied: &mut CopiedSections,
    ) -> Result<(), Failure> {
        let (target, above) = match self.mode {
            CodeMode::Bits64 => (instruction.ip_rel_memory_address(), ABOVE_FRAME),
            CodeMode::Bits32 => (instruction.memory_displacement64(), ABOVE_NARROW_FRAME),
        };
        let place = above + self.place_datum(target, copied)?;
        let at = offsets.displacement_offset();
        // The ModRM byte precedes the displacement, and the SIB byte of an address with an index. Mode
        // 0, base 5 is RIP, or no base; mode 2 is RBP.
        bytes[if instruction.memory_index() == Register::None { at - 1 } else { at - 2 }] |= 0x80;
        bytes[at..at + 4].copy_from_slice(&(place as u32).to_le_bytes());
        copied.used = true;
        Ok(())
    }

    /// The offset of a datum of the library among the copies.
    fn place_datum(&self, target: u64, copied: &mut CopiedSections) -> Result<u64, Failure> {
        if let Some((range, place)) = copied.sections.iter().find(|(range, _)| range.contains(&target)) {
            return Ok(place + target - range.start);
        }
        let remedy = "use the memory that the function's argument points to, 1 MiB";
        let range = |section: &Section| section.address()..section.address().saturating_add(section.size());
        let section = self.file.sections().find(|section| range(section).contains(&target));
        let kind = section.as_ref().map(|section| section.kind());
        let (Some(section), Some(SectionKind::ReadOnlyData | SectionKind::Data | SectionKind::UninitializedData)) =
            (section, kind)
        else {
            return Err(refuse_region("it refers to a function, or to something outside its file", remedy));
        };
        let range = range(&section);
        let mut relocations = self.file.dynamic_relocations().into_iter().flatten();
        if relocations.any(|(address, _)| range.contains(&address)) {
            return Err(refuse_region("it uses pointers into its file, or to something outside", remedy));
        }
        if (range.end - range.start).saturating_add(copied.bytes.len() as u64) > DATA_BYTES_MOST {
            return Err(refuse_region(
                &format!("its constants and variables need more than {DATA_BYTES_MOST} bytes"),
                remedy,
            ));
        }
        let place = copied.bytes.len() as u64;
        let data = section.data().map_err(unreadable_output)?;
        copied.bytes.extend(data);
        // Variables without initial values aren't in the file.
        copied.bytes.resize((place + (range.end - range.start)).next_multiple_of(SECTION_ALIGNMENT) as usize, 0);
        copied.sections.push((range.clone(), place));
        Ok(place + target - range.start)
    }
}

/// Fails if an instruction leaves its range of code.
fn require_inside(instruction: &Instruction, range: &Range<u64>, part: CodePart) -> Result<(), Failure> {
    let what = match part {
        CodePart::Init => "the code before it",
        CodePart::Region => "it",
    };
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Exception => Ok(()),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::XbeginXabortXend => {
            let target = instruction.near_branch_target();
            if (range.start..=range.end).contains(&target) {
                return Ok(());
            }
            let text = format!("{what} jumps out, to {:+#x} from its begin", target.wrapping_sub(range.start) as i64);
            Err(refuse_region(&text, "avoid return, break and goto, or mark unlikely cases as likely"))
        }
        FlowControl::Call | FlowControl::IndirectCall => {
            let remedy = "make it static inline, or measure it as a function without CYCLESCOPE_BODY";
            Err(refuse_region(&format!("{what} calls a function"), remedy))
        }
        _ => Err(refuse_region(
            &format!("{what} returns or jumps through a register"),
            "avoid returns, switches and indirect jumps",
        )),
    }
}

/// Whether an instruction may change any part of a register.
fn is_register_written(instruction: &Instruction, register: Register) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let written = |access| !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead);
    let mut used = factory.info(instruction).used_registers().iter();
    used.any(|used| used.register().full_register() == register && written(used.access()))
}

fn read_compiled(library: &Path) -> Result<Vec<u8>, Failure> {
    input::read_input(library, InputKind::Code)
        .map_err(|bad| Failure::from_unreadable("can't read the compiler's output", &bad))
}

fn unreadable_output(error: object::Error) -> Failure {
    Failure::internal(format!("the compiler's output is unreadable: {error}"))
}

fn refuse_region(why: &str, remedy: &str) -> Failure {
    Failure::usage(format!("CYCLESCOPE_BODY can't be measured: {why}"), Some(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};
    use std::process::Command;

    #[test]
    fn any_library_is_read_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let [header, source, library] = ["h.h", "f.c", "f.so"].map(|name| folder.path().join(name));
        std::fs::write(&header, REGION_HEADER.concat()).expect("a file");
        let text = "static const double A[4] = {1, 2, 3, 4};\n\
                    void f(double *p) { double x = p[1]; CYCLESCOPE_BODY({ x = x * A[1] + p[2]; CYCLESCOPE_KEEP(x); }) }\n";
        std::fs::write(&source, text).expect("a file");
        let mut command = Command::new("cc");
        command.args(["-O2", "-fPIC", "-shared", "-include"]).arg(&header);
        command.args(compiler_flags(false, CodeMode::Bits64));
        if !command.arg("-o").arg(&library).arg(&source).status().is_ok_and(|status| status.success()) {
            return cyclescope_skipped::report_skipped("no compiler makes a library here");
        }
        let image = std::fs::read(&library).expect("a file");
        assert!(has_region(&image).expect("a library") && extract_region(&image, &source, "f").is_ok());
        fuzz_reader("regions", InputShape::Bytes, &[image], |bytes| {
            let _ = has_region(bytes);
            let _ = extract_region(bytes, Path::new("f.c"), "f");
        });
    }

    #[test]
    fn frame_counts_only_at_the_function_entry() {
        let lost = |text: &str| {
            let listing = cyclescope::asm::parse_assembly(text).expect("code");
            let code = listing.bytes();
            let mut frame = FrameTracker::default();
            let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
            decoder.into_iter().for_each(|instruction| frame.track_instruction(&instruction));
            frame.lost
        };
        for kept in [
            "push rbp; mov rbp, rsp; and rsp, -32; sub rsp, 64; push rbx",
            "endbr64; xor eax, eax; push rbp; mov rbp, rsp",
            "sub rsp, 8; mov rax, [rbp]",
        ] {
            assert!(!lost(kept), "{kept}");
        }
        for moved in [
            "lea r10, [rsp+8]; and rsp, -32; push [r10-8]; push rbp; mov rbp, rsp",
            "push rbx; push rbp; mov rbp, rsp",
            "push rbp; push rbp; mov rbp, rsp",
            "push rbp; push rbx; mov rbp, rsp",
            "mov rbp, rsp",
            "push rbp; mov rbp, rsp; mov ebp, 1",
            "push rbp; lea rbp, [rsp-128]",
            "push rbp; mov rbp, rsp; push rbp; mov rbp, rsp",
        ] {
            assert!(lost(moved), "{moved}");
        }
    }
}
