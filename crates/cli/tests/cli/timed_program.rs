//! `run --write-elf`: the timed program as a file.

use super::support::{answer, cyclescope, folder, has, json, measured};
use object::{Object, ObjectSection, ObjectSymbol};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Runs a written program. It must end by itself and print nothing.
fn run_program(path: &Path) {
    let mut command = Command::new(path);
    let limit = || {
        let limit = libc::rlimit { rlim_cur: 60, rlim_max: 60 };
        // SAFETY: the structure outlives the call, which may be made between fork and exec.
        unsafe { libc::setrlimit(libc::RLIMIT_CPU, &limit) };
        Ok(())
    };
    // SAFETY: the closure only makes that call.
    unsafe { command.pre_exec(limit) };
    let output = command.output().expect("the program starts");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn program_runs_by_itself_and_names_each_copy() {
    let folder = folder();
    let path = folder.path().join("program");
    let file = path.to_str().expect("text");
    for (options, code) in [
        (&["add rax, [r14]; imul rbx, rax"][..], "49 03 06 48 0f af d8"),
        (&["--unroll", "4", "--loop", "100", "cmovz rax, rbx"], "48 0f 44 c3"),
        (&["--unroll", "8", "vaddps ymm1, ymm1, ymm2"], "c5 f4 58 ca"),
        (&["section .data\nx: dd 1.0, 1.0, 1.0, 1.0\nsection .text\naddps xmm0, [x]\n"], "0f 58 85 00 00 00 00"),
    ] {
        let line = measured(&[&["--quick", "--write-elf", file][..], options].concat());
        let bytes = std::fs::read(&path).expect("a file");
        let elf = object::File::parse(&bytes[..]).expect("an executable");
        let text = elf.section_by_name(".text").expect("code");
        let at = |name: &str| elf.symbols().find(|symbol| symbol.name() == Ok(name));
        let copies = line["unroll"].as_u64().expect("a number");
        for copy in 0..copies {
            let symbol = at(&format!("copy_{copy}")).expect("a copy");
            let found = text.data_range(symbol.address(), symbol.size()).expect("code").expect("code");
            assert_eq!(cyclescope::asm::to_hex(found), code, "{options:?}");
        }
        assert!(at(&format!("copy_{copies}")).is_none());
        assert_eq!(at("loop").is_some(), line["loop"].is_u64(), "{options:?}");
        for name in ["_start", "program", "clock_end", "context", "calls"] {
            assert!(at(name).is_some_and(|symbol| symbol.size() > 0), "{name}");
        }
        run_program(&path);
    }
    if has("objdump") {
        let output = Command::new("objdump").args(["-d", "--no-show-raw-insn", file]).output().expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success() && text.contains("<copy_1>:") && text.contains("<_start>:"), "{text}");
    }
}

#[test]
fn programs_that_cannot_be_written_are_refused_at_once() {
    let folder = folder();
    let path = folder.path().join("program");
    let file = path.to_str().expect("text");
    for (options, code, words) in [
        (&["--versus", "nop", "nop"][..], 2, "cannot be used with"),
        (&["--sweep", "N=1..2", "mov eax, {N}"], 2, "cannot be used with"),
        (&["f:\n nop\n ret\ng:\n nop\n ret\n"], 2, "needs one snippet"),
        (&["--clock", "clock-gettime", "nop"], 3, "need the C library"),
        (&["--executor", "kernel", "nop"], 2, "user mode"),
    ] {
        let answer = answer(cyclescope(&["run", "--write-elf", file]).args(options));
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert!(answer.stderr.contains(words), "{answer:?}");
    }
    let line = json(&["run", "--write-elf", "/nowhere/program", "nop"], &[2]);
    assert!(line["remedy"].as_str().is_some_and(|remedy| remedy.contains("writable")), "{line}");
    assert!(!path.exists());
}
