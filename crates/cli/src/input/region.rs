//! A region of C or C++ code, marked by `CYCLESCOPE_BODY`: its machine code becomes a snippet, and no call is measured.
//!
//! The macro makes the region the body of a loop that may run again at any time, so that the compiler leaves every value
//! at the end of an iteration where the next one looks for it. The bytes between the loop's labels, and what the jump back
//! passes, can therefore be put one after another. What the function does before the loop becomes the init code. Both
//! are copied away from their library, so they can neither call nor jump out. Constants and static variables are copied
//! to the stack, above the function's frame: code has `[rip+x]`, the copy `[rbp+x]`, which is as long.

use crate::output::Failure;
use cyclescope::input::{self, Kind};
use cyclescope::snippet::Snippet;
use iced_x86::{
    Code, ConstantOffsets, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    OpAccess, Register,
};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::ops::Range;
use std::path::Path;

/// The macros, to be included before the file.
pub const HEADER: [&str; 2] = [include_str!("region.h"), cyclescope::clock::source::GUARDS];
/// Flags for a file with a region: a frame, whose register reaches the constants, and straight code.
const FLAGS: [&str; 6] = [
    "-fno-omit-frame-pointer",
    "-mno-omit-leaf-frame-pointer",
    "-fno-stack-protector",
    "-fno-jump-tables",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
];
/// More of them for GCC, and for clang, which refuses those: a loop that fills or copies memory is no call.
const GCC: [&str; 2] = ["-fno-reorder-blocks", "-fno-tree-loop-distribute-patterns"];
const CLANG: [&str; 1] = ["-fno-builtin"];

/// Bytes of constants and variables that are copied at most.
const MOST_DATA: u64 = 16 << 10;
/// Alignment of copied sections.
const LINE: u64 = 64;
/// Distance from the frame's register to the copies: the saved register and the return address.
const ABOVE_FRAME: u64 = 16;

/// The flags for a file with a region.
pub fn flags(is_clang: bool) -> Vec<&'static str> {
    let own: &[&str] = if is_clang { &CLANG } else { &GCC };
    [&FLAGS, own].concat()
}

/// A compiled library as a file.
struct Image<'a> {
    file: ElfFile64<'a>,
}

/// Whether a library has a region.
pub fn is_in(library: &Path) -> Result<bool, Failure> {
    has_region(&read(library)?)
}

fn has_region(bytes: &[u8]) -> Result<bool, Failure> {
    let image = Image { file: ElfFile64::parse(bytes).map_err(unreadable)? };
    Ok(image.label("cyclescope_begin").is_some())
}

/// The region in the function of this name, as a snippet.
pub fn find(library: &Path, source: &Path, name: &str) -> Result<Snippet, Failure> {
    region(&read(library)?, source, name)
}

fn region(bytes: &[u8], source: &Path, name: &str) -> Result<Snippet, Failure> {
    let image = Image { file: ElfFile64::parse(bytes).map_err(unreadable)? };
    let label =
        |label: &str| image.label(label).ok_or_else(|| refused("its end is lost", "compile it with gcc"));
    let (begin, end) = (label("cyclescope_begin")?, label("cyclescope_end")?);
    let function = image.file.symbols().find(|symbol| symbol.name() == Ok(name));
    let within = |symbol: &object::read::elf::ElfSymbol64<'_, '_>| {
        (symbol.address()..=symbol.address().saturating_add(symbol.size())).contains(&end)
            && symbol.address() <= begin
    };
    let Some(function) = function.filter(within) else {
        let text = format!("CYCLESCOPE_BODY is not in the function `{name}` of {}", source.display());
        return Err(Failure::usage(
            text,
            Some("name its function with --call; in C++ declare it extern \"C\""),
        ));
    };
    let mut copied = Copied::default();
    let mut init = image.part(function.address()..begin, Part::Init, &mut copied)?;
    let mut body = image.part(begin..end, Part::Region, &mut copied)?;
    body.extend(image.way_back(begin, end, &mut copied)?);
    if body.is_empty() {
        let remedy = "CYCLESCOPE_HIDE(x) what it works on, and CYCLESCOPE_KEEP(x) its result";
        return Err(refused("the compiler left no instruction of it", remedy));
    }
    if copied.used && copied.frame.lost {
        return Err(refused(
            "it needs constants, and its function has no frame at its entry to reach them by",
            "leave out alloca and arrays of variable length, whose function may align its stack; or use gcc",
        ));
    }
    let mut code = copied.onto_stack();
    code.append(&mut init);
    Ok(Snippet::new(body, code, format!("CYCLESCOPE_BODY in {name} of {}", source.display())))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Init,
    Region,
}

/// Sections that code refers to, copied.
#[derive(Default)]
struct Copied {
    /// Where each is in the library, and among the copies.
    sections: Vec<(Range<u64>, u64)>,
    bytes: Vec<u8>,
    used: bool,
    frame: Frame,
}

/// Whether RBP is where [`Copied::onto_stack`] expects it, by the instructions so far.
#[derive(Default)]
struct Frame {
    /// Instructions `push rbp`.
    pushes: u32,
    /// Whether another instruction has written RSP. A function that aligns its stack does so before it makes its frame.
    moved: bool,
    /// Whether RBP was written other than by `push rbp; mov rbp, rsp` at the stack that the function was entered with.
    lost: bool,
}

impl Frame {
    fn pass(&mut self, instruction: &Instruction) {
        let makes = matches!(instruction.code(), Code::Mov_rm64_r64 | Code::Mov_r64_rm64)
            && instruction.op0_register() == Register::RBP
            && instruction.op1_register() == Register::RSP;
        let pushes = instruction.code() == Code::Push_r64 && instruction.op0_register() == Register::RBP;
        if makes {
            self.lost |= self.moved || self.pushes != 1;
        } else if pushes {
            self.pushes += 1;
        } else {
            self.lost |= writes(instruction, Register::RBP);
            self.moved |= writes(instruction, Register::RSP);
        }
    }
}

impl Copied {
    /// ```text
    /// and  rsp, -64
    /// mov  rax, constant      ; each 8 bytes, the last first
    /// push rax
    /// push rax                ; for the return address
    /// lea  rbp, [rsp-8]       ; as it will be when the function has made its frame
    /// ```
    fn onto_stack(&self) -> Vec<u8> {
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

impl Image<'_> {
    fn label(&self, name: &str) -> Option<u64> {
        self.file.symbols().find(|symbol| symbol.name() == Ok(name)).map(|symbol| symbol.address())
    }

    /// Bytes of code between two addresses.
    fn code(&self, range: &Range<u64>) -> Result<&[u8], Failure> {
        let text = self.file.section_by_name(".text");
        // Labels that assembly sets may be in any order.
        let length = range.end.checked_sub(range.start);
        let found =
            text.zip(length).and_then(|(text, length)| text.data_range(range.start, length).ok().flatten());
        found.ok_or_else(|| refused("its code is not in one section", "compile it with gcc"))
    }

    /// The instruction at an address.
    fn instruction(&self, at: u64) -> Result<Instruction, Failure> {
        const LONGEST: u64 = 15;
        let text = self.file.section_by_name(".text");
        let end = text.map_or(at, |text| text.address().saturating_add(text.size()));
        let bytes = self.code(&(at..end.min(at.saturating_add(LONGEST))))?;
        Ok(Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode())
    }

    /// A stretch of code that stays inside itself, with its references to data changed.
    fn part(&self, range: Range<u64>, part: Part, copied: &mut Copied) -> Result<Vec<u8>, Failure> {
        let bytes = self.code(&range)?;
        let mut changed = bytes.to_vec();
        let mut decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
        while decoder.can_decode() {
            let instruction = decoder.decode();
            stays(&instruction, &range, part)?;
            copied.frame.pass(&instruction);
            if instruction.is_ip_rel_memory_operand() {
                let offsets = decoder.get_constant_offsets(&instruction);
                let at = (instruction.ip() - range.start) as usize;
                self.redirect(&instruction, &offsets, &mut changed[at..], copied)?;
            }
        }
        Ok(changed)
    }

    /// What the jump back to the begin passes on its way.
    fn way_back(&self, begin: u64, end: u64, copied: &mut Copied) -> Result<Vec<u8>, Failure> {
        const MOST: u64 = 256;
        let lost = || refused("its end does not lead back to its begin", "compile it with -O2");
        let back = self.instruction(end)?;
        if back.flow_control() != FlowControl::UnconditionalBranch {
            return Err(lost());
        }
        let from = back.near_branch_target();
        let mut at = from;
        while at != begin {
            if at.abs_diff(from) > MOST {
                return Err(lost());
            }
            let next = self.instruction(at)?;
            match next.flow_control() {
                FlowControl::Next => at = next.next_ip(),
                FlowControl::UnconditionalBranch if next.near_branch_target() == begin => break,
                _ => return Err(lost()),
            }
        }
        self.part(from..at, Part::Region, copied)
    }

    /// Makes an operand `[rip+x]` one of `[rbp+x]`: the same bytes but for the mode of the address and the distance.
    fn redirect(
        &self,
        instruction: &Instruction,
        offsets: &ConstantOffsets,
        bytes: &mut [u8],
        copied: &mut Copied,
    ) -> Result<(), Failure> {
        let target = instruction.ip_rel_memory_address();
        let place = ABOVE_FRAME + self.place(target, copied)?;
        let at = offsets.displacement_offset();
        // The ModRM byte is in front of the displacement, as such an address has no SIB byte: mode 0, base 5 is RIP,
        // mode 2 is RBP.
        bytes[at - 1] |= 0x80;
        bytes[at..at + 4].copy_from_slice(&(place as u32).to_le_bytes());
        copied.used = true;
        Ok(())
    }

    /// Where a datum of the library is among the copies.
    fn place(&self, target: u64, copied: &mut Copied) -> Result<u64, Failure> {
        if let Some((range, place)) = copied.sections.iter().find(|(range, _)| range.contains(&target)) {
            return Ok(place + target - range.start);
        }
        let remedy = "give it its memory as the function's argument, a pointer into 1 MiB";
        let range = |section: &object::read::elf::ElfSection64<'_, '_>| {
            section.address()..section.address().saturating_add(section.size())
        };
        let section = self.file.sections().find(|section| range(section).contains(&target));
        let kind = section.as_ref().map(|section| section.kind());
        let (
            Some(section),
            Some(SectionKind::ReadOnlyData | SectionKind::Data | SectionKind::UninitializedData),
        ) = (section, kind)
        else {
            return Err(refused("it refers to a function, or to something outside its file", remedy));
        };
        let range = range(&section);
        let mut relocations = self.file.dynamic_relocations().into_iter().flatten();
        if relocations.any(|(address, _)| range.contains(&address)) {
            return Err(refused("it refers to pointers to something in its file, or outside", remedy));
        }
        if (range.end - range.start).saturating_add(copied.bytes.len() as u64) > MOST_DATA {
            return Err(refused(&format!("its variables have more than {MOST_DATA} bytes"), remedy));
        }
        let place = copied.bytes.len() as u64;
        let data = section.data().map_err(unreadable)?;
        copied.bytes.extend(data);
        // Variables without initial values are not in the file.
        copied.bytes.resize((place + (range.end - range.start)).next_multiple_of(LINE) as usize, 0);
        copied.sections.push((range.clone(), place));
        Ok(place + target - range.start)
    }
}

/// Fails where an instruction leaves its stretch of code.
fn stays(instruction: &Instruction, range: &Range<u64>, part: Part) -> Result<(), Failure> {
    let what = match part {
        Part::Init => "the code before it",
        Part::Region => "it",
    };
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Exception => Ok(()),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::XbeginXabortXend => {
            let target = instruction.near_branch_target();
            if (range.start..=range.end).contains(&target) {
                return Ok(());
            }
            let text = format!(
                "{what} jumps out, to {:+#x} from its begin",
                target.wrapping_sub(range.start) as i64
            );
            Err(refused(&text, "leave out return, break and goto, or write unlikely cases as likely ones"))
        }
        FlowControl::Call | FlowControl::IndirectCall => {
            let remedy = "make it static inline, or measure it as a function without CYCLESCOPE_BODY";
            Err(refused(&format!("{what} calls a function"), remedy))
        }
        _ => Err(refused(&format!("{what} returns or jumps through a register"), "leave that out")),
    }
}

/// Whether an instruction may change a register or a part of it.
fn writes(instruction: &Instruction, register: Register) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let written = |access| !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead);
    let mut used = factory.info(instruction).used_registers().iter();
    used.any(|used| used.register().full_register() == register && written(used.access()))
}

fn read(library: &Path) -> Result<Vec<u8>, Failure> {
    input::read(library, Kind::Code)
        .map_err(|bad| Failure::internal(format!("reading the compiler's output failed: {}", bad.why)))
}

fn unreadable(error: object::Error) -> Failure {
    Failure::internal(format!("the compiler's output is unreadable: {error}"))
}

fn refused(why: &str, remedy: &str) -> Failure {
    Failure::usage(format!("CYCLESCOPE_BODY can't be measured: {why}"), Some(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{Shape, fuzz};
    use std::process::Command;

    #[test]
    fn any_library_is_answered() {
        let folder = tempfile::tempdir().expect("a folder");
        let [header, source, library] = ["h.h", "f.c", "f.so"].map(|name| folder.path().join(name));
        std::fs::write(&header, HEADER.concat()).expect("a file");
        let text = "static const double A[4] = {1, 2, 3, 4};\n\
                    void f(double *p) { double x = p[1]; CYCLESCOPE_BODY({ x = x * A[1] + p[2]; CYCLESCOPE_KEEP(x); }) }\n";
        std::fs::write(&source, text).expect("a file");
        let mut command = Command::new("cc");
        command.args(["-O2", "-fPIC", "-shared", "-include"]).arg(&header).args(flags(false));
        if !command.arg("-o").arg(&library).arg(&source).status().is_ok_and(|status| status.success()) {
            return cyclescope_skipped::skipped("no compiler makes a library here");
        }
        let image = std::fs::read(&library).expect("a file");
        assert!(has_region(&image).expect("a library") && region(&image, &source, "f").is_ok());
        fuzz("regions", Shape::Bytes, &[image], |bytes| {
            let _ = has_region(bytes);
            let _ = region(bytes, Path::new("f.c"), "f");
            let _ = crate::input::return_type::answer(bytes);
        });
    }

    #[test]
    fn a_frame_is_at_the_entry_or_lost() {
        let lost = |text: &str| {
            let listing = cyclescope::asm::parse(text).expect("code");
            let code = listing.bytes();
            let mut frame = Frame::default();
            let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
            decoder.into_iter().for_each(|instruction| frame.pass(&instruction));
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
