//! Pasted text: what is read, what is refused, and how faults are explained.

use crate::support::{answer, cyclescope, folder, has_for_part, json, parse_lines, refused};
use serde_json::Value;

const LISTING: &str = "0000000000000040 <square>:\n  40:\t0f af ff             \timul   %edi,%edi\n  \
                       43:\t89 f8                \tmov    %edi,%eax\n  45:\tc3                   \tret\n\n\
                       0000000000000050 <next>:\n  50:\t48 83 c7 01          \tadd    $0x1,%rdi\n  54:\tc3                   \tret\n";

/// The line of `run --show --json`.
fn shown(arguments: &[&str], stdin: &str) -> Value {
    let answer = answer(cyclescope(&["run", "--show", "--json"]).args(arguments).write_stdin(stdin));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    serde_json::from_str(&answer.stdout).expect("JSON")
}

/// The bytes of each region.
fn bytes(shown: &Value) -> Vec<String> {
    let regions = shown["regions"].as_array().expect("a list");
    let bytes = |region: &Value| {
        let instructions = region["instructions"].as_array().expect("a list");
        let bytes: Vec<&str> = instructions.iter().map(|one| one["bytes"].as_str().expect("text")).collect();
        bytes.join(" ")
    };
    regions.iter().map(bytes).collect()
}

/// The bytes of one region of text for an assembler.
fn assembled(arguments: &[&str]) -> Vec<String> {
    bytes(&shown(arguments, ""))
}

/// Fails unless the command is refused with these words and a remedy with these.
fn assert_refused(arguments: &[&str], code: i32, reason: &str, remedy: &str) {
    let line = refused(&[&["--quick"], arguments].concat(), code);
    let [text, help] = ["text", "remedy"].map(|field| line[field].as_str().unwrap_or_default());
    assert!(text.contains(reason) && help.contains(remedy), "{arguments:?}: {line}");
}

#[test]
fn show_prints_what_was_made_of_a_text() {
    let line = shown(&["-"], LISTING);
    assert_eq!(
        (&line["kind"], &line["source"], &line["dialect"]),
        (&"text".into(), &"objdump".into(), &"machine code".into())
    );
    assert_eq!(bytes(&line), ["0f af ff 89 f8", "48 83 c7 01"]);
    assert_eq!(line["regions"][1]["instructions"][0]["address"], "0x50");
    assert_eq!(line["dropped"][0]["text"], "ret");
    let text = answer(cyclescope(&["run", "--show", "-"]).write_stdin(LISTING)).stdout;
    for part in ["square, line 2\n", "0x43  89 f8", "mov eax, edi\n", "left out\n  line 4: ret ("] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn regions_of_a_text_are_rows() {
    let answer = answer(cyclescope(&["run", "--quick", "--json", "-"]).write_stdin(LISTING));
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
    let lines = parse_lines(&answer.stdout);
    let names: Vec<&Value> =
        lines.iter().filter(|line| line["kind"] == "run").map(|line| &line["point"]["name"]).collect();
    let mut names: Vec<&str> = names.into_iter().map(|name| name.as_str().expect("text")).collect();
    names.sort_unstable();
    assert_eq!(names, ["next", "square"]);
    assert!(answer.stderr.contains("warning: not measured: `ret`, line 4, 8;"), "{answer:?}");
}

#[test]
fn regions_of_a_text_have_names_of_their_own() {
    let marked = "# LLVM-MCA-BEGIN\nadd rax, rax\n# LLVM-MCA-END\n";
    let names = |text: &str| -> Vec<String> {
        let line = shown(&["-"], text);
        let regions = line["regions"].as_array().expect("a list").iter();
        regions.map(|region| region["name"].as_str().expect("text").to_string()).collect()
    };
    let [first, second] = &names(&marked.repeat(2))[..] else { panic!("two regions") };
    assert!(first.ends_with(" 1") && second.ends_with(" 2") && first != second, "{first}, {second}");
    assert_eq!(names(LISTING), ["square", "next"]);
    assert!(!names(marked)[0].ends_with(" 1"));
}

#[test]
fn readings_of_several_regions_are_refused_by_name() {
    let answer = answer(cyclescope(&["run", "--quick", "--counts", "-"]).write_stdin(LISTING));
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.stderr.contains("--counts") && answer.stderr.contains("one of them alone"), "{answer:?}");
}

#[test]
fn one_variant_has_one_region() {
    let folder = folder();
    let file = folder.path().join("listing.txt");
    std::fs::write(&file, LISTING).expect("a file");
    let file = file.to_str().expect("text");
    assert_refused(&["--file", file, "--versus", file], 2, "2 regions", "leave one");
}

#[test]
fn names_of_files_are_not_assembly() {
    let folder = folder();
    let file = folder.path().join("loop.s");
    std::fs::write(&file, "nop\n").expect("a file");
    let file = file.to_str().expect("text");
    assert_refused(&[file], 2, "is a file", &format!("--file {file}"));
    assert_refused(&["missing.s"], 2, "name of a file", "--file missing.s");
}

#[test]
fn other_assemblers_get_the_dialect_of_the_text() {
    for assembler in ["as", "llvm-mc"] {
        if has_for_part(assembler) {
            let code = "48 89 f8 48 0f af c0";
            assert_eq!(assembled(&["--assembler", assembler, "mov %rdi, %rax; imul %rax, %rax"]), [code]);
            assert_eq!(assembled(&["--assembler", assembler, "mov rax, rdi; imul rax, rax"]), [code]);
        }
    }
    if has_for_part("nasm") {
        let folder = folder();
        let file = folder.path().join("x.asm");
        std::fs::write(&file, "add rax, 1 ; imul rax, rax").expect("a file");
        assert_eq!(assembled(&["--assembler", "nasm", "--file", file.to_str().expect("text")]), ["48 83 c0 01"]);
    }
}

#[test]
fn text_for_other_assemblers_stays_64_bit_code_of_any_address() {
    for (text, bits) in
        [(".code32; inc eax", 32), ("use32\ninc eax", 32), ("bits 32\ninc eax", 32), (".code16\nnop", 16)]
    {
        let what = format!("starts {bits}-bit code");
        assert_refused(&["--assembler", "as", text], 2, &what, "--bits 32");
        assert_refused(&[text], 2, &what, "--bits 32");
    }
    assert_refused(&["--assembler", "as", "nop\n.p2align 4\nnop"], 2, "only from the start", "delete the line");
}

#[test]
fn faults_name_their_own_cause() {
    for (snippet, remedy) in [
        ("ret", "no caller"),
        ("bnd ret", "no caller"),
        ("rep ret", "no caller"),
        ("leave", "--setup 'mov rbp, r8'"),
        ("mov ss, eax", "--init 'mov eax, ss'"),
        ("lea rax, [rip]; mov byte ptr [rax+16], 0x90", "code can't be changed"),
    ] {
        assert_refused(&[snippet], 4, "SIG", remedy);
    }
    // The remedies help.
    for arguments in
        [&["leave", "--init", "mov r8, rbp", "--setup", "mov rbp, r8"][..], &["mov ss, eax", "--init", "mov eax, ss"]]
    {
        json(&[&["run", "--quick"], arguments].concat(), &[0, 5]);
    }
}
