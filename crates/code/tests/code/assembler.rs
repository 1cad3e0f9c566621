//! Checks the assembler form by form: against itself and against GNU as.

use cyclescope_code::asm::forms::{self, InstructionForm, OperandChoice};
use cyclescope_code::asm::{ALL_MODES, CodeMode, Listing, parse_for_mode};
use iced_x86::{Encoder, Instruction, InstructionInfoFactory, Mnemonic, OpKind};
use std::collections::BTreeSet;
use std::process::Command;

fn instruction(form: &InstructionForm) -> Instruction {
    form.build_instruction(&OperandChoice::default()).expect("a listed form exists with the default choice")
}

fn listing(instruction: &Instruction) -> Listing {
    let mode = CodeMode::from_instruction(instruction);
    let mut encoder = Encoder::new(mode.bits());
    encoder.encode(instruction, 0).expect("a form encodes");
    Listing::from_code(&encoder.take_buffer(), mode)
}

/// Meaning of an instruction according to the database: names and sizes of operands, and what is
/// read and written, and how. Two Codes for the same operation (`89 /r` and `8b /r`) have the same
/// meaning.
fn meaning(instruction: &Instruction) -> String {
    let mnemonic = match instruction.mnemonic() {
        // The undocumented /6 does the same.
        Mnemonic::Sal => Mnemonic::Shl,
        // The same predicate in other words.
        other => other,
    };
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(instruction);
    let used: BTreeSet<String> =
        info.used_registers().iter().map(|r| format!("{:?} {:?}", r.register().full_register(), r.access())).collect();
    let memory: Vec<String> = info.used_memory().iter().map(|m| format!("{m:?}")).collect();
    let operands: Vec<String> = (0..instruction.op_count())
        .map(|n| match instruction.op_kind(n) {
            OpKind::Register => format!("{:?}", instruction.op_register(n).full_register()),
            OpKind::NearBranch64 | OpKind::NearBranch32 => format!("to {}", instruction.near_branch_target()),
            OpKind::Memory => String::from("memory"),
            kind if kind >= OpKind::Immediate8 && kind <= OpKind::Immediate32to64 => {
                format!("{:x}", instruction.immediate(n))
            }
            kind => format!("{kind:?}"),
        })
        .collect();
    let mask = (instruction.op_mask(), instruction.zeroing_masking(), instruction.is_broadcast());
    let rounding = (instruction.rounding_control(), instruction.suppress_all_exceptions());
    let flags = (instruction.rflags_read(), instruction.rflags_modified(), instruction.stack_pointer_increment());
    format!("{mnemonic:?} {operands:?} {used:?} {memory:?} {mask:?} {rounding:?} {flags:?}")
}

#[test]
fn the_text_of_every_form_assembles_to_it() {
    for (mode, least) in ALL_MODES.into_iter().zip([16_000, 13_000]) {
        check_texts(mode, least);
    }
}

/// Checks that the text of every form of a mode assembles to it.
fn check_texts(mode: CodeMode, least: usize) {
    let (mut forms, mut same, mut equal) = (0, 0, 0);
    let mut wrong: Vec<String> = Vec::new();
    for form in forms::all_forms_of(mode) {
        forms += 1;
        let original = listing(&instruction(&form));
        let text = original.text();
        match parse_for_mode(&text, mode, None) {
            Ok(read) if read.instructions()[0].code() == form.code => same += 1,
            Ok(read) if meaning(&read.instructions()[0]) == meaning(&original.instructions()[0]) => equal += 1,
            Ok(read) => wrong.push(format!("{:?} `{text}` became {:?}", form.code, read.instructions()[0].code())),
            Err(e) => wrong.push(format!("{:?} `{text}`: {e}", form.code)),
        }
    }
    println!("{forms} forms of {mode:?}: {same} give the same Code, {equal} another Code of the same meaning");
    assert!(forms > least, "only {forms} forms");
    assert!(same > least, "only {same} forms come back as the same Code");
    assert!(wrong.is_empty(), "{} forms are lost:\n{}", wrong.len(), wrong.join("\n"));
}

/// Bytes of each statement from GNU as; `None` for a rejected one. `None` overall without GNU as.
fn gnu_as(texts: &[String], mode: CodeMode) -> Option<Vec<Option<Vec<u8>>>> {
    let folder = std::env::temp_dir().join(format!("cyclescope-as{}-{}", mode.bits(), std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let [source, object, flat] = ["s", "o", "bin"].map(|name| folder.join(format!("forms.{name}")));
    let mut refused: BTreeSet<usize> = BTreeSet::new();
    // `as` writes no object while any line is wrong, and some errors only show once the others are
    // gone.
    for _ in 0..6 {
        let mut text = String::from(".intel_syntax noprefix\n");
        for (number, statement) in texts.iter().enumerate() {
            // Each statement fills its own slot, so that its bytes can be found.
            let statement = if refused.contains(&number) { "nop" } else { statement };
            text.push_str(&format!("{statement}; .balign 16, 0x90\n"));
        }
        std::fs::write(&source, text).expect("the temporary folder is writable");
        let run =
            Command::new("as").arg(format!("--{}", mode.bits())).arg("-o").args([&object, &source]).output().ok()?;
        if run.status.success() {
            let mut copy = Command::new("objcopy");
            copy.args(["-O", "binary", "-j", ".text"]).args([&object, &flat]);
            assert!(copy.status().ok()?.success(), "objcopy failed");
            let code = std::fs::read(&flat).expect("objcopy wrote it");
            std::fs::remove_dir_all(&folder).expect("own folder");
            let slots = code.chunks(16).take(texts.len());
            return Some(slots.enumerate().map(|(n, s)| (!refused.contains(&n)).then(|| s.to_vec())).collect());
        }
        let errors = String::from_utf8_lossy(&run.stderr).into_owned();
        let before = refused.len();
        for line in errors.lines().filter(|l| l.contains("Error:")) {
            let number: usize = line.split(':').nth(1).and_then(|n| n.parse().ok()).expect("file:line: Error:");
            refused.insert(number - 2);
        }
        assert!(refused.len() > before, "as fails for an unknown reason:\n{errors}");
    }
    panic!("as does not settle");
}

/// Version of GNU as. The list of rejected texts is from 2.40; older versions know fewer
/// instructions.
fn as_version() -> (u32, u32) {
    let output = Command::new("as").arg("--version").output().expect("it ran before");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = text.lines().next().and_then(|l| l.split_whitespace().next_back()).unwrap_or("").to_string();
    let mut numbers = word.split('.').map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[test]
fn gnu_as_agrees_on_every_form() {
    compare_with_gnu_as(CodeMode::Bits64, 16_000);
}

#[test]
fn gnu_as_agrees_on_every_form_of_32_bit_code() {
    compare_with_gnu_as(CodeMode::Bits32, 13_000);
}

/// Compares the encodings of a mode's forms; at least this number must be alike.
fn compare_with_gnu_as(mode: CodeMode, least: usize) {
    let mut texts = Vec::new();
    let mut codes = Vec::new();
    for form in forms::all_forms_of(mode) {
        let text = listing(&instruction(&form)).text();
        // A number as branch target makes `as` emit a relocation.
        texts.push(text.strip_suffix(" 0x0").or(text.strip_suffix(" 0")).map_or(text.clone(), |t| format!("{t} .")));
        codes.push(form.code);
    }
    let Some(theirs) = gnu_as(&texts, mode) else {
        cyclescope_skipped::report_skipped("GNU as and objcopy are not on PATH");
        return;
    };
    let (mut agree, mut identical, mut refused, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for ((text, code), theirs) in texts.iter().zip(codes).zip(&theirs) {
        let Some(theirs) = theirs else {
            refused.push(format!("{code:?} `{text}`"));
            continue;
        };
        let ours = parse_for_mode(text, mode, None).unwrap_or_else(|e| panic!("`{text}`: {e}"));
        let theirs = Listing::from_code(theirs, mode);
        if meaning(&theirs.instructions()[0]) == meaning(&ours.instructions()[0]) {
            agree += 1;
            identical += usize::from(theirs.bytes().starts_with(ours.bytes()));
        } else {
            wrong.push(format!(
                "{code:?} `{text}`: as gives {:02x?}, which is {:?}; we give {:02x?}",
                &theirs.bytes()[..theirs.instructions()[0].len()],
                theirs.instructions()[0].code(),
                ours.bytes()
            ));
        }
    }
    println!("{agree} texts mean the same to GNU as, {identical} to the byte; it refuses {}", refused.len());
    let known: BTreeSet<&str> = include_str!("../data/gas-refuses.txt").lines().collect();
    refused.retain(|line| !known.contains(line.split(' ').next().unwrap_or("")));
    if as_version() >= (2, 40) {
        assert!(refused.is_empty(), "GNU as refuses unexpectedly:\n{}", refused.join("\n"));
    }
    assert!(agree > least, "only {agree} texts were compared");
    assert!(identical > least, "only {identical} texts give the same bytes");
    assert!(wrong.is_empty(), "{} texts differ:\n{}", wrong.len(), wrong.join("\n"));
}
