//! Rejected requests: their exit codes and messages.

use crate::support::{answer, cyclescope, folder, has_for_part, json, refused};

/// Runs `run` as text. Stdout must be empty, and stderr must have an error with these words.
fn assert_error(arguments: &[&str], code: i32, words: &str) {
    let answer = answer(cyclescope(&["run"]).args(arguments));
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(code), ""), "{arguments:?}: {answer:?}");
    assert!(answer.stderr.starts_with("error: "), "{arguments:?}: {answer:?}");
    assert!(answer.stderr.contains(words), "{arguments:?}: {answer:?}");
}

#[test]
fn misspelt_option_is_named_and_not_taken_as_a_snippet() {
    let line = json(&["run", "--all", "file", "nop"], &[2]);
    assert_eq!(line["text"], "unknown option --all", "{line}");
    for arguments in [&["run", "--quik", "nop"][..], &["run", "--quik"], &["instr", "--quik", "add"]] {
        let line = json(arguments, &[2]);
        assert_eq!(line["text"], "unknown option --quik", "{line}");
        assert!(line["remedy"].as_str().expect("text").contains("--quick"), "{line}");
    }
}

#[test]
fn misspelt_words_get_the_nearest_suggestion() {
    assert_error(&["imull rax, rax"], 2, "did you mean imul");
    assert_error(&["imul rxa, rax"], 2, "did you mean rax");
    assert_error(&["--clock", "rdtcsp", "nop"], 2, "did you mean rdtscp");
    assert_error(&["--clock", "zzz", "nop"], 2, "cyclescope --clock list");
    assert_error(&["mov rax, %rbx"], 2, "write %rax, or read it with --syntax intel");
    assert_error(&["--syntax", "att", "mov $rax, %rbx"], 2, "column 6: `rax` is a register");
    assert_error(&["call printf"], 2, "--c or --lib");
    assert_error(&["--assembler", "gas", "nop"], 2, "possible values");
    assert_error(&["--executor", "moon", "nop"], 2, "possible values");
}

#[test]
fn invalid_snippets_are_rejected() {
    assert_error(&[], 2, "no snippet");
    assert_error(&[""], 2, "no instructions");
    assert_error(&[" ;; # nothing"], 2, "no instructions");
    assert_error(&["--hex", ""], 2, "no instructions");
    assert_error(&["--hex", "9"], 2, "odd number");
    assert_error(&["--hex", "zz"], 2, "not a hexadecimal digit");
    assert_error(&["--hex", "48 4G"], 2, "column 5: `G` is not a hexadecimal digit");
    assert_error(&[".quad 1"], 2, "--hex '66 90'");
    for bytes in ["db 0x66", ".byte 0x66"] {
        assert_error(&[bytes], 2, "66 at +0x0, is not complete");
    }
    assert_error(&["--hex", "90 48 0f"], 2, "not complete");
    assert_error(&["nop", "--hex", "90"], 2, "cannot be used with");
    assert_error(&["--loop", "3", "cmovz rax, rbx; test rcx, rdx"], 2, "flags");
    assert_error(&["nop\0nop".replace('\0', "\u{1}").as_str()], 2, "no meaning");
}

#[test]
fn unknown_bytes_are_left_to_the_processor() {
    assert_error(&["--quick", "--hex", "90 ff ff"], 4, "SIGILL");
}

#[test]
fn files_without_text_are_rejected() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("bytes"), b"nop\n\xff\xfe").expect("a file");
    std::fs::write(path("long"), "nop\n".repeat(1_100_000)).expect("a file");
    std::fs::write(path("many"), "add rax, rbx\n".repeat(50_000)).expect("a file");
    assert_error(&["--file", &path("bytes")], 2, "help: save it as UTF-8 text");
    assert_error(&["--file", &path("long")], 2, "longer than 4 MiB");
    assert_error(&["--file", &path("many")], 2, "more than 65536");
    assert_error(&["--file", &path("none")], 2, "No such file");
    assert_error(&["--file", folder.path().to_str().expect("text")], 2, "directory");
    assert_error(&["--file", "/dev/null"], 2, "a device");
    // Byte order marks are skipped.
    std::fs::write(path("marked"), "\u{feff}imull rax").expect("a file");
    assert_error(&["--file", &path("marked")], 2, "line 1, column 1: there is no instruction `imull`");
    std::fs::write(path("twice"), "\u{feff}\u{feff}imull rax").expect("a file");
    assert_error(&["--file", &path("twice")], 2, "there is no instruction `imull`");
}

#[test]
fn options_without_effect_are_rejected() {
    assert_error(&["--call", "f", "nop"], 2, "cannot be used with");
    assert_error(&["--cflags=-O3", "nop"], 2, "cannot be used with");
    assert_error(&["--init", "nop", "--c", "x.c"], 2, "cannot be used with");
    assert_error(&["--assembler", "as", "--c", "x.c"], 2, "cannot be used with");
    assert_error(&["--cold", "code", "--loop", "3", "nop"], 2, "--cold measures only one run");
    assert_error(&["--cold", "code", "--unroll", "3", "nop"], 2, "--cold measures only one run");
}

#[test]
fn numbers_out_of_range_are_rejected() {
    for (option, values) in [
        ("--unroll", &["0", "-1", "x", "1000001"][..]),
        ("--loop", &["0", "1000001"]),
        ("--samples", &["3", "100001"]),
        ("--layouts", &["1", "1025"]),
        ("--interval", &["0", "-1", "inf", "nan", "1e400", "%"]),
        ("--confidence", &["0", "1", "95", "nan"]),
        ("--budget", &["0", "-1", "1e9", "inf"]),
        ("--seed", &["-1", "x"]),
        ("--cpu", &["-1", "4294967296"]),
    ] {
        for value in values {
            refused(&[&format!("{option}={value}"), "nop"], 2);
            let line = refused(&["nop", option, value], 2);
            assert!(line["text"].as_str().expect("text").contains(option), "{line}");
        }
    }
}

#[test]
fn oversized_bodies_are_rejected_with_the_maximum() {
    let line = refused(&["--unroll", "1000000", "nop"], 2);
    let remedy = line["remedy"].as_str().expect("text");
    let most = remedy.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty()).expect("a number");
    let plan = ["--quick", "--layouts", "2", "--samples", "4", "--unroll", most, "nop"];
    crate::support::measured(&plan);
}

/// Whether code can't run in ring 0 here. If it can, reports that the test is skipped, because
/// nothing is rejected.
#[track_caller]
fn no_module() -> bool {
    let loaded = std::path::Path::new("/dev/cyclescope").exists();
    if loaded {
        cyclescope_skipped::report_left_out("the kernel module is loaded");
    }
    !loaded
}

#[test]
fn missing_machine_features_exit_with_3() {
    assert_error(&["--cpu", "1023", "nop"], 3, "CPU 1023");
    if no_module() {
        assert_error(&["--executor", "kernel", "nop"], 3, "kernel module is not loaded");
    }
    // No processor has both.
    let found = ["vmmcall", "vmcall"].map(|text| answer(&mut cyclescope(&["run", "--json", "--quick", text])));
    let line = found.iter().find(|answer| answer.code == Some(3)).expect("one of two is missing");
    assert!(line.stdout.contains(r#""line":1,"column":1"#), "{line:?}");
}

#[test]
fn usage_errors_precede_missing_features_and_faults() {
    assert_error(&["--cpu", "1023", "bad"], 2, "no instruction");
    assert_error(&["--executor", "kernel", "bad"], 2, "no instruction");
    assert_error(&["--executor", "kernel", "--clock", "zzz", "nop"], 2, "unknown timing method");
    if no_module() {
        assert_error(&["--executor", "kernel", "ud2"], 3, "executor");
    }
    assert_error(&["--executor", "kernel", "mov cr3, rax"], 2, "refused in ring 0");
    assert_error(&["--executor", "kernel", "--init", "mov ecx, 1", "rdmsr"], 2, "model-specific register");
    assert_error(&["--force", "nop"], 2, "--executor kernel");
    assert_error(&["--cpu", "1023", "ud2"], 3, "CPU 1023");
}

#[test]
fn external_assemblers_report_the_snippets_line_numbers() {
    for assembler in ["as", "nasm", "yasm", "llvm-mc"] {
        if has_for_part(assembler) {
            assert_error(&["--assembler", assembler, "nop\nimull rax"], 2, "snippet:2:");
            assert_error(&["--assembler", assembler, "call outside"], 2, "outside");
        }
        let mut command = cyclescope(&["run", "--assembler", assembler, "nop"]);
        let answer = answer(command.env("PATH", "/nowhere"));
        assert_eq!(answer.code, Some(3), "{answer:?}");
        assert!(answer.stderr.contains("install it"), "{answer:?}");
    }
}

#[test]
fn remedy_depends_on_the_cause_of_a_fault() {
    for (snippet, helps) in [
        ("hlt", "--executor kernel"),
        ("in al, dx", "--executor kernel"),
        ("cmpxchg16b [r14+8]", "multiple of 16"),
        ("movaps xmm0, [r14+1]", "multiple of 16"),
        ("mov rax, 0x8000000000000000; mov rbx, [rax]", "not canonical"),
        ("pushf; or dword ptr [rsp], 0x40000; popf; mov eax, [r14+1]", "the AC flag"),
        ("mov rax, [0]", "address memory through R14"),
        ("mov byte ptr [rip], 0x90", "code can't be changed"),
        ("ret", "no caller"),
        ("leave", "--setup 'mov rbp, r8'"),
        ("xor eax, eax; jmp rax", "where no code is"),
        ("int3", "debugger"),
        ("ud2", "by definition"),
    ] {
        assert_error(&["--quick", snippet], 4, helps);
    }
}

#[test]
fn hostile_snippet_does_not_affect_the_next_one() {
    for (snippet, word) in [
        ("ud2", "SIGILL"),
        ("hlt", "SIGSEGV"),
        ("int3", "SIGTRAP"),
        // SIGSYS, or SIGSEGV if the kernel runs no 32-bit programs.
        ("int 0x80", "SIG"),
        ("syscall", "SIGSYS"),
        ("xor ecx, ecx; div ecx", "SIGFPE"),
        ("mov rsp, 8; push rax", "SIGSEGV"),
        ("mov byte ptr [rip], 0x90", "SIGSEGV"),
        ("mov rdi, r14; mov ecx, 0x7fffffff; rep stosb", "SIGSEGV"),
        ("mov rdi, r14; mov ecx, 0x7fffffff; std; rep stosb", "SIGSEGV"),
        ("pushf; or dword ptr [rsp], 0x100; popf", "SIGTRAP"),
        ("ret", "SIG"),
        ("jmp $", "did not end"),
    ] {
        assert_error(&["--quick", snippet], 4, word);
        let report = answer(&mut cyclescope(&["run", "--quick", snippet]));
        assert!(report.stderr.contains("\nhelp: "), "{report:?}");
    }
    for harmless in ["std", "pushf; or dword ptr [rsp], 0x40000; popf", "mov rsp, rax", "nop"] {
        crate::support::measured(&["--quick", harmless]);
    }
    if std::is_x86_feature_detected!("avx") {
        crate::support::measured(&["--quick", "vzeroall"]);
    } else {
        cyclescope_skipped::report_left_out("no AVX to run VZEROALL");
    }
}

#[test]
fn data_that_no_register_reaches_is_refused() {
    let data = "section .data\nx: dd 1\nsection .text\n";
    let every = "mov eax, [x]\nadd rbp, rbx\nadd rsi, rdi\nadd rdx, rcx\n";
    assert_error(&[&format!("{data}{every}")], 2, "each register that could hold the address");
    assert_error(&[&format!("{data}mov eax, [rbx + rcx*4 + x]\n")], 2, "address");
    assert_error(
        &["--init", "section .data\ny: dd 1\nsection .text\nmov eax, [y]\n", "nop"],
        2,
        "no data of their own",
    );
    if has_for_part("nasm") {
        assert_error(&["--assembler", "nasm", &format!("{data}mov rax, x\n")], 2, "address of data");
    }
}

#[test]
fn options_of_assemblers_need_an_assembler_that_is_installed() {
    assert_error(&["-D", "N=1", "nop"], 2, "--assembler");
    assert_error(&["--assembler", "nasm", "-D", "1=1", "nop"], 2, "NAME=VALUE");
    let empty = tempfile::tempdir().expect("a folder");
    for assembler in ["uasm", "jwasm"] {
        let mut command = cyclescope(&["run", "--assembler", assembler, "nop"]);
        let answer = answer(command.env("PATH", empty.path()));
        assert_eq!(answer.code, Some(3));
        assert!(answer.stderr.contains(&format!("assembler {assembler} is not available")), "{answer:?}");
    }
}
