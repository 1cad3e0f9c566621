//! Hostile files and libraries are rejected clearly and in time, and leave nothing behind.

use crate::evidence::keep;
use crate::support::{Answer, answer, cyclescope, folder, forged, gone, has, within_patience};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Paths in a folder that aren't regular files, or are too long.
fn no_files(folder: &Path) -> Vec<(String, &'static str)> {
    let path = |name: &str| folder.join(name);
    let made = Command::new("mkfifo").arg(path("pipe")).status().expect("it is installed");
    assert!(made.success());
    fs::create_dir(path("directory")).expect("a new directory");
    std::os::unix::fs::symlink("/dev/zero", path("zero")).expect("a link");
    std::os::unix::fs::symlink(path("loop"), path("loop")).expect("a link");
    File::create(path("long")).and_then(|file| file.set_len(1 << 30)).expect("a hole");
    let expected = [
        ("pipe", "a pipe"),
        ("directory", "a directory"),
        ("zero", "a device"),
        ("loop", "symbolic link"),
        ("long", "longer than"),
        ("none", "No such file"),
    ];
    expected.map(|(name, says)| (path(name).to_str().expect("text").to_string(), says)).into()
}

#[test]
fn every_reader_rejects_unsuitable_files() {
    let folder = folder();
    let code = folder.path().join("code.c").to_str().expect("text").to_string();
    fs::write(&code, "void f(void *p) {}\n").expect("a file");
    let table = folder.path().join("table.csv").to_str().expect("text").to_string();
    fs::write(&table, "mnemonic,operands,rthroughput_cycles\nnop,,0.2\n").expect("a file");
    for (file, says) in no_files(folder.path()) {
        let file = file.as_str();
        let commands: [&[&str]; 11] = [
            &["compare", file, &table],
            &["instr", "--from", file],
            &["instr", "--resume", file],
            &["run", "--from", file],
            &["run", "--resume", file],
            &["run", "--file", file],
            &["run", "--c", file],
            &["run", "--lib", file, "--call", "f"],
            &["run", "--elf", file, "--call", "f"],
            &["marker", "--around", file],
            &["run", "--c", &code, "--contents", file],
        ];
        for command in commands {
            let begun = Instant::now();
            let answer = answer(&mut cyclescope(command));
            assert_eq!(answer.code, Some(2), "{command:?}: {answer:?}");
            assert!(begun.elapsed() < Duration::from_secs(20), "{command:?}");
            // A file to resume is also opened for writing.
            let is_said = answer.stderr.contains(says) || command[1] == "--resume";
            assert!(is_said && answer.stderr.contains("help: "), "{command:?}: {answer:?}");
        }
    }
}

#[test]
fn evidence_with_hostile_links_is_rejected() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    let text = directory.to_str().expect("text");
    keep(text, &["nop"]);
    for name in ["manifest.json", "readings.gz", "records.jsonl.gz"] {
        let (file, aside) = (directory.join(name), folder.path().join("aside"));
        fs::rename(&file, &aside).expect("a file");
        for (what, says) in no_files(folder.path()) {
            let _ = fs::remove_file(&file);
            std::os::unix::fs::symlink(what, &file).expect("a link");
            let answer = answer(&mut cyclescope(&["replay", text]));
            assert!(answer.code == Some(2) && answer.stderr.contains(says), "{name} {says}: {answer:?}");
        }
        fs::remove_file(&file).and_then(|()| fs::rename(&aside, &file)).expect("a file");
        for name in ["pipe", "zero", "loop", "long"] {
            fs::remove_file(folder.path().join(name)).expect("a file");
        }
        fs::remove_dir(folder.path().join("directory")).expect("a directory");
    }
    fs::write(directory.join("manifest.json"), r#"{"schema": "cyclescope-evidence/2"}"#).expect("a file");
    let old = answer(&mut cyclescope(&["replay", text]));
    assert!(old.code == Some(2) && old.stderr.contains("another version"), "{old:?}");
}

/// Text that would clear the screen, set the title and change the writing direction.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}evil\r";

#[test]
fn text_of_a_file_cannot_control_the_terminal() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    let text = directory.to_str().expect("text");
    keep(text, &["imul rax, rax"]);
    let evil = |value: &mut Value| each_text(value, &|text| text.push_str(EVIL));
    let facts = |facts: &mut Value| {
        for pointer in ["/cpu_model", "/repro", "/subject/instances/0/text"] {
            evil(facts.pointer_mut(pointer).expect("a place"));
        }
    };
    forged(&directory, facts, |_, _| (), |_| ());
    for json in [&[][..], &["--json"]] {
        let answer = answer(&mut cyclescope(&[&["replay", text], json].concat()));
        assert!(answer.stdout.contains("evil") && (json.len() == 1 || answer.stderr.contains("evil")), "{answer:?}");
        for said in [&answer.stdout, &answer.stderr] {
            let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!said.contains(obeyed), "{said:?}");
        }
    }
}

/// Changes every text in a value.
fn each_text(value: &mut Value, change: &dyn Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        _ => {}
    }
}

/// Changes the first line of a result file.
fn with_head(path: &str, change: impl FnOnce(&mut Value)) {
    let whole = fs::read_to_string(path).expect("a file");
    let (head, rest) = whole.split_once('\n').expect("a line");
    let mut head: Value = serde_json::from_str(head).expect("JSON");
    change(&mut head);
    fs::write(path, format!("{head}\n{rest}")).expect("a file");
}

fn run_program(arguments: &[&str]) -> Answer {
    answer(&mut cyclescope(arguments))
}

#[test]
fn file_alone_cannot_run_code_in_ring_0() {
    let folder = folder();
    let path = folder.path().join("out").to_str().expect("text").to_string();
    assert_eq!(run_program(&["instr", "nop", "--quick", "--out", &path]).code, Some(0));
    for name in ["kernel", "moon"] {
        with_head(&path, |head| head["survey"]["executor"] = name.into());
        let answer = run_program(&["instr", "--resume", &path]);
        assert!(answer.code == Some(2) && answer.stderr.contains(name), "{answer:?}");
        assert_eq!(answer.stderr.contains("add --executor kernel"), name == "kernel", "{answer:?}");
    }
    // On request, the file is compared with the options: ring 0 there, the sandbox here.
    let answer = run_program(&["instr", "--resume", &path, "--executor", "user"]);
    assert!(answer.code == Some(2) && answer.stderr.contains("can't be resumed"), "{answer:?}");
}

#[test]
fn file_alone_cannot_run_code_outside_the_sandbox_or_show_another_file() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let (out, proof, secret) = (path("out"), path("proof"), path("secret"));
    fs::write(&secret, "root:hunter2:0\n").expect("a file");
    let evil = format!(
        "#include <stdlib.h>\n__attribute__((constructor)) static void c(void) {{ system(\"touch {proof}\"); }}\n\
         void f(void *p) {{}}\n"
    );
    fs::write(path("evil.c"), evil).expect("a file");
    assert!(matches!(
        run_program(&["run", "--quick", "--sweep", "N=1,2", "add rax, {N}", "--out", &out]).code,
        Some(0 | 5)
    ));
    let commands: [&[&str]; 6] = [
        &["--file", &secret],
        &["--from", &secret],
        &["--c", &path("evil.c")],
        &["--lib", &path("evil.so"), "--call", "f"],
        &["--executor", "kernel", "nop"],
        &["--assembler", "as", "nop"],
    ];
    for words in commands {
        let sweep: &[&str] = if words[0] == "--from" { &[] } else { &["--sweep", "N=1,2"] };
        let command = [&["cyclescope", "run"], sweep, words].concat();
        with_head(&out, |head| head["points"]["command"] = command.clone().into());
        let answer = run_program(&["run", "--resume", &out]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains(words[0]) && answer.stderr.contains("whole command"), "{answer:?}");
        assert!(!answer.stderr.contains("hunter2"), "{answer:?}");
    }
    for command in [&[][..], &["cyclescope"], &["cyclescope", "doctor"], &["", "run", "--resume", &out], &["\u{0}"]] {
        with_head(&out, |head| head["points"]["command"] = command.into());
        let answer = run_program(&["run", "--resume", &out]);
        assert_eq!(answer.code, Some(2), "{command:?}: {answer:?}");
    }
    // A value of a sweep would be such an option. The first value is none.
    for (word, values) in [
        ("--{X}", format!("X=hex=90|c={}", path("evil.c"))),
        ("--{X}", format!("X=hex=90|file={secret}")),
        ("{X}", format!("X=nop|--c={}", path("evil.c"))),
    ] {
        let command = ["cyclescope", "run", word, "--sweep", &values];
        with_head(&out, |head| head["points"]["command"] = command.into());
        let answer = run_program(&["run", "--resume", &out]);
        assert!(answer.code == Some(2) && answer.stderr.contains("changes which of the options"), "{answer:?}");
        assert!(!answer.stderr.contains("hunter2"), "{answer:?}");
    }
    assert!(!Path::new(&proof).exists());
    // A survey's list is read again.
    let survey = path("survey");
    assert_eq!(run_program(&["instr", "nop", "--quick", "--out", &survey]).code, Some(0));
    with_head(&survey, |head| {
        head["survey"]["filters"] = serde_json::json!([]);
        head["survey"]["from"] = secret.as_str().into();
    });
    let answer = run_program(&["instr", "--resume", &survey]);
    assert!(answer.code == Some(2) && answer.stderr.contains("has changed"), "{answer:?}");
    assert!(!answer.stderr.contains("hunter2"), "{answer:?}");
}

#[test]
fn constructor_cannot_report_success() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    // The messages that say that the library is loaded, and exit code 0, on every descriptor.
    for length in [1, 2, 10, 100] {
        let text = format!(
            "#include <unistd.h>\n\
             __attribute__((constructor)) static void begin(void) {{\n\
               char says[{length}] = \"L\";\n\
               for (int fd = 3; fd < 64; fd++) write(fd, says, {length});\n\
               _exit(0);\n\
             }}\nvoid f(void *p) {{}}\n"
        );
        fs::write(path("forger.c"), text).expect("a file");
        let answer = run_program(&["run", "--quick", "--json", "--c", &path("forger.c")]);
        assert_eq!(answer.code, Some(4), "{length}: {answer:?}");
        assert!(answer.stdout.contains("\"kind\":\"error\""), "{length}: {answer:?}");
    }
}

#[test]
fn files_of_others_are_neither_replaced_nor_waited_for() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let made = Command::new("mkfifo").arg(path("pipe")).status().expect("it is installed");
    assert!(made.success());
    for name in ["theirs", "a.jsonl.journal"] {
        fs::write(path(name), "theirs").expect("a file");
    }
    std::os::unix::fs::symlink(path("theirs"), path("link")).expect("a link");
    fs::create_dir(path("plots")).expect("a folder");
    let sweep = ["run", "--quick", "--sweep", "N=1,2", "add rax, {N}"];
    let refused = |arguments: &[&str], says: &str| {
        let begun = Instant::now();
        let answer = run_program(arguments);
        assert!(answer.code == Some(2) && answer.stderr.contains(says), "{arguments:?}: {answer:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{arguments:?}");
    };
    for (name, says) in [("pipe", "a pipe"), ("link", "a symbolic link")] {
        refused(&[&sweep[..], &["--csv", &path(name)]].concat(), says);
        refused(&["instr", "nop", "--quick", "--markdown", &path(name)], says);
    }
    refused(&["ab", "--quick", "--output", &path("pipe"), "true", "true"], "a pipe");
    refused(&["run", "--c", "/proc/self/status"], "an interface of the kernel");
    refused(&["instr", "nop", "--quick", "--out", &path("a.jsonl")], "a.jsonl.journal is in the way");
    let drawn = run_program(&[&sweep[..], &["--plots", &path("plots")]].concat());
    assert!(matches!(drawn.code, Some(0 | 5)), "{drawn:?}");
    let named: Vec<_> = fs::read_dir(path("plots")).expect("a folder").flatten().map(|file| file.path()).collect();
    assert!(!named.is_empty());
    for file in &named {
        fs::remove_file(file).expect("a picture");
        std::os::unix::fs::symlink(path("theirs"), file).expect("a link");
    }
    let drawn = run_program(&[&sweep[..], &["--plots", &path("plots")]].concat());
    assert!(drawn.code == Some(1) && drawn.stderr.contains("a symbolic link"), "{drawn:?}");
    for name in ["theirs", "a.jsonl.journal"] {
        assert_eq!(fs::read_to_string(path(name)).expect("a file"), "theirs");
    }
}

/// A C file whose constructor starts a process, writes its number to a file, and then runs this
/// code.
fn leaving(folder: &Path, then: &str) -> (String, String) {
    let [source, number] = ["leaving.c", "number"].map(|name| folder.join(name).to_str().expect("text").to_string());
    let text = format!(
        "#include <stdio.h>\n#include <signal.h>\n#include <unistd.h>\n\
         __attribute__((constructor)) static void begin(void) {{\n\
           if (access(\"{number}\", F_OK) == 0) return;\n\
           int child = fork();\n\
           if (!child) {{ signal(SIGTERM, SIG_IGN); signal(SIGINT, SIG_IGN); for (;;) sleep(1000); }}\n\
           FILE *file = fopen(\"{number}.new\", \"w\"); fprintf(file, \"%d\", child); fclose(file);\n\
           rename(\"{number}.new\", \"{number}\");\n\
           {then}\n\
         }}\nvoid f(void *p) {{}}\n"
    );
    fs::write(&source, text).expect("a file");
    (source, number)
}

/// The process whose number is in a file.
fn written_process(number: &str) -> i32 {
    fs::read_to_string(number).expect("a file").trim().parse().expect("a number")
}

#[test]
fn processes_of_a_constructor_end_with_the_run() {
    if !has("cc") {
        return;
    }
    let ends = |then: &str, codes: &[i32]| {
        let folder = folder();
        let (source, number) = leaving(folder.path(), then);
        let answer = run_program(&["run", "--quick", "--c", &source]);
        assert!(answer.code.is_some_and(|code| codes.contains(&code)), "{then}: {answer:?}");
        gone(written_process(&number));
    };
    // At once: most of their time is patience with a constructor that doesn't end.
    std::thread::scope(|scope| {
        for then in ["_exit(3);", "for (;;) sleep(1);", "for (;;) ;"] {
            scope.spawn(move || ends(then, &[4]));
        }
        ends("", &[0, 5]);
    });
}

#[test]
fn processes_of_a_constructor_end_with_an_interrupt() {
    if !has("cc") {
        return;
    }
    use std::os::unix::process::ExitStatusExt;
    for (signal, then) in [(libc::SIGINT, "for (;;) sleep(1);"), (libc::SIGTERM, "")] {
        let folder = folder();
        let (source, number) = leaving(folder.path(), then);
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.args(["run", "--samples", "4", "--layouts", "1000", "--warm-up", "100000", "--c", &source]);
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        within_patience(|| Path::new(&number).exists().then_some(()));
        // SAFETY: takes no pointers; the process is a child that hasn't been reaped.
        assert_eq!(unsafe { libc::kill(running.id() as i32, signal) }, 0);
        let status = within_patience(|| running.try_wait().expect("a child"));
        let expected = if signal == libc::SIGINT { (Some(130), None) } else { (None, Some(signal)) };
        assert_eq!((status.code(), status.signal()), expected);
        gone(written_process(&number));
    }
}

#[test]
fn constructors_have_limits_and_no_input() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let text = "#include <stdlib.h>\n#include <unistd.h>\n#include <sys/resource.h>\n\
         __attribute__((constructor)) static void begin(void) {\n\
           struct rlimit cpu, data, file; char byte;\n\
           getrlimit(RLIMIT_CPU, &cpu); getrlimit(RLIMIT_DATA, &data); getrlimit(RLIMIT_FSIZE, &file);\n\
           if (cpu.rlim_cur > 60 || data.rlim_cur > 8ull << 30 || file.rlim_cur > 256 << 20) _exit(40);\n\
           if (read(0, &byte, 1) != 0) _exit(41);\n\
           if (getsid(0) != getpid()) _exit(42);\n\
         }\nvoid f(void *p) {}\n";
    fs::write(path("limits.c"), text).expect("a file");
    let answer = answer(cyclescope(&["run", "--quick", "--c", &path("limits.c")]).write_stdin("input"));
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
}

#[test]
fn misbehaving_compiler_is_killed() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    fs::write(path("code.c"), "void f(void *p) {}\n").expect("a file");
    let flood = answer(cyclescope(&["run", "--c", &path("code.c")]).env("CC", "sh -c 'exec yes' --"));
    assert!(flood.code == Some(2) && flood.stderr.contains("printed more than"), "{flood:?}");
    let script = format!("sleep 1000 & echo $! > {}; exit 1", path("number"));
    let left = answer(cyclescope(&["run", "--c", &path("code.c")]).env("CC", format!("sh -c '{script}' --")));
    assert!(left.code == Some(2) && left.stderr.contains("sh failed"), "{left:?}");
    let number = fs::read_to_string(path("number")).expect("a number");
    fs::write(path("number"), number.trim()).expect("a file");
    gone(written_process(&path("number")));
}

#[test]
fn full_disk_is_reported() {
    let answer = run_program(&["instr", "nop", "--quick", "--out", "/dev/full"]);
    assert!(answer.code == Some(1) && answer.stderr.contains("No space left"), "{answer:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let output = command.args(["run", "--quick", "nop"]).stdout(full).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("No space left"), "{said}");
}
