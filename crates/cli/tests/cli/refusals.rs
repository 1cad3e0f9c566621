//! What is refused, with which exit code, and what it says.

use crate::support::{answer, cyclescope, folder, has_for_part, json, refused};

/// Runs `run` as text; the answer is nothing on stdout, and an error with these words on stderr.
fn says(arguments: &[&str], code: i32, words: &str) {
    let answer = answer(cyclescope(&["run"]).args(arguments));
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(code), ""), "{arguments:?}: {answer:?}");
    assert!(answer.stderr.starts_with("error: "), "{arguments:?}: {answer:?}");
    assert!(answer.stderr.contains(words), "{arguments:?}: {answer:?}");
}

#[test]
fn a_misspelt_option_is_named_and_is_no_snippet() {
    let line = json(&["run", "--all", "file", "nop"], &[2]);
    assert_eq!(line["text"], "unknown option --all", "{line}");
    for arguments in [&["run", "--quik", "nop"][..], &["run", "--quik"], &["instr", "--quik", "add"]] {
        let line = json(arguments, &[2]);
        assert_eq!(line["text"], "unknown option --quik", "{line}");
        assert!(line["remedy"].as_str().expect("text").contains("--quick"), "{line}");
    }
}

#[test]
fn misspelt_words_are_met_with_the_nearest() {
    says(&["imull rax, rax"], 2, "did you mean imul");
    says(&["imul rxa, rax"], 2, "did you mean rax");
    says(&["--clock", "rdtcsp", "nop"], 2, "did you mean rdtscp");
    says(&["--clock", "zzz", "nop"], 2, "cyclescope --clock list");
    says(&["mov rax, %rbx"], 2, "write %rax, or read it with --syntax intel");
    says(&["--syntax", "att", "mov $rax, %rbx"], 2, "column 6: `rax` is a register");
    says(&["call printf"], 2, "--c or --lib");
    says(&["--assembler", "gas", "nop"], 2, "possible values");
    says(&["--executor", "moon", "nop"], 2, "possible values");
}

#[test]
fn what_is_no_snippet_is_refused() {
    says(&[], 2, "no snippet");
    says(&[""], 2, "no instructions");
    says(&[" ;; # nothing"], 2, "no instructions");
    says(&["--hex", ""], 2, "no instructions");
    says(&["--hex", "9"], 2, "odd number");
    says(&["--hex", "zz"], 2, "not a hexadecimal digit");
    says(&["--hex", "48 4G"], 2, "column 5: `G` is not a hexadecimal digit");
    for directive in ["db 0x66", ".byte 0x66", ".quad 1"] {
        says(&[directive], 2, "--hex '66 90'");
    }
    says(&["--hex", "90 48 0f"], 2, "not complete");
    says(&["nop", "--hex", "90"], 2, "cannot be used with");
    says(&["--loop", "3", "inc r15"], 2, "R15");
    says(&["nop\0nop".replace('\0', "\u{1}").as_str()], 2, "no meaning");
}

#[test]
fn bytes_that_nothing_is_known_of_are_the_processors_to_judge() {
    says(&["--quick", "--hex", "90 ff ff"], 4, "SIGILL");
}

#[test]
fn files_that_hold_no_text_are_refused() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("bytes"), b"nop\n\xff\xfe").expect("a file");
    std::fs::write(path("long"), "nop\n".repeat(1_100_000)).expect("a file");
    std::fs::write(path("many"), "add rax, rbx\n".repeat(50_000)).expect("a file");
    says(&["--file", &path("bytes")], 2, "help: save it as UTF-8 text");
    says(&["--file", &path("long")], 2, "longer than 4 MiB");
    says(&["--file", &path("many")], 2, "too many");
    says(&["--file", &path("none")], 2, "No such file");
    says(&["--file", folder.path().to_str().expect("text")], 2, "directory");
    says(&["--file", "/dev/null"], 2, "a device");
    // A byte order mark is no text; a second one is.
    std::fs::write(path("marked"), "\u{feff}imull rax").expect("a file");
    says(&["--file", &path("marked")], 2, "line 1, column 1: there is no instruction `imull`");
    std::fs::write(path("twice"), "\u{feff}\u{feff}nop").expect("a file");
    says(&["--file", &path("twice")], 2, "no meaning");
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    says(&["--call", "f", "nop"], 2, "cannot be used with");
    says(&["--cflags=-O3", "nop"], 2, "cannot be used with");
    says(&["--init", "nop", "--c", "x.c"], 2, "cannot be used with");
    says(&["--assembler", "as", "--c", "x.c"], 2, "cannot be used with");
    says(&["--cold", "code", "--loop", "3", "nop"], 2, "--cold measures only one run");
    says(&["--cold", "code", "--unroll", "3", "nop"], 2, "--cold measures only one run");
}

#[test]
fn numbers_out_of_range_are_refused() {
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
fn bodies_that_do_not_fit_are_refused_with_the_most_that_does() {
    let line = refused(&["--unroll", "1000000", "nop"], 2);
    let remedy = line["remedy"].as_str().expect("text");
    let most = remedy.split(|c: char| !c.is_ascii_digit()).find(|word| !word.is_empty()).expect("a number");
    let plan = ["--quick", "--layouts", "2", "--samples", "4", "--unroll", most, "nop"];
    crate::support::measured(&plan);
}

/// Whether code can't run in ring 0 here; says so where it can, for then a refusal can't be seen.
#[track_caller]
fn no_module() -> bool {
    let loaded = std::path::Path::new("/dev/cyclescope").exists();
    if loaded {
        cyclescope_skipped::report_left_out("the kernel module is loaded");
    }
    !loaded
}

#[test]
fn what_this_machine_does_not_have_is_code_3() {
    says(&["--cpu", "1023", "nop"], 3, "CPU 1023");
    if no_module() {
        says(&["--executor", "kernel", "nop"], 3, "kernel module is not loaded");
    }
    // No processor has both.
    let found = ["vmmcall", "vmcall"].map(|text| answer(&mut cyclescope(&["run", "--json", "--quick", text])));
    let line = found.iter().find(|answer| answer.code == Some(3)).expect("one of two is missing");
    assert!(line.stdout.contains(r#""line":1,"column":1"#), "{line:?}");
}

#[test]
fn wrong_usage_comes_before_what_is_missing_and_that_before_faults() {
    says(&["--cpu", "1023", "bad"], 2, "no instruction");
    says(&["--executor", "kernel", "bad"], 2, "no instruction");
    says(&["--executor", "kernel", "--clock", "zzz", "nop"], 2, "unknown timing method");
    if no_module() {
        says(&["--executor", "kernel", "ud2"], 3, "executor");
    }
    says(&["--executor", "kernel", "mov cr3, rax"], 2, "refused in ring 0");
    says(&["--executor", "kernel", "--init", "mov ecx, 1", "rdmsr"], 2, "model-specific register");
    says(&["--force", "nop"], 2, "--executor kernel");
    says(&["--cpu", "1023", "ud2"], 3, "CPU 1023");
}

#[test]
fn other_assemblers_count_the_snippets_own_lines() {
    for assembler in ["as", "nasm", "yasm", "llvm-mc"] {
        if has_for_part(assembler) {
            says(&["--assembler", assembler, "nop\nimull rax"], 2, "snippet:2:");
            says(&["--assembler", assembler, "call outside"], 2, "outside");
        }
        let mut command = cyclescope(&["run", "--assembler", assembler, "nop"]);
        let answer = answer(command.env("PATH", "/nowhere"));
        assert_eq!(answer.code, Some(3), "{answer:?}");
        assert!(answer.stderr.contains("install it"), "{answer:?}");
    }
}

#[test]
fn what_helps_is_told_by_the_cause_of_a_fault() {
    for (snippet, helps) in [
        ("hlt", "--executor kernel"),
        ("in al, dx", "--executor kernel"),
        ("cmpxchg16b [r14+8]", "multiple of 16"),
        ("movaps xmm0, [r14+1]", "multiple of 16"),
        ("mov rax, 0x8000000000000000; mov rbx, [rax]", "not canonical"),
        ("pushf; or dword ptr [rsp], 0x40000; popf; mov eax, [r14+1]", "the AC flag"),
        ("mov rax, [0]", "address memory through R14"),
        ("mov byte ptr [rip], 0x90", "address memory through R14"),
        ("xor eax, eax; jmp rax", "where no code is"),
        ("int3", "debugger"),
        ("ud2", "by definition"),
    ] {
        says(&["--quick", snippet], 4, helps);
    }
}

#[test]
fn hostile_snippets_fault_and_the_next_is_measured() {
    for (snippet, word) in [
        ("ud2", "SIGILL"),
        ("hlt", "SIGSEGV"),
        ("int3", "SIGTRAP"),
        // SIGSYS, or SIGSEGV where the kernel runs no 32-bit programs.
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
        says(&["--quick", snippet], 4, word);
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
