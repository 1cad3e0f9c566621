//! `run --elf`: functions of objects, archives and executables, exported or not.

use crate::support::{folder, has, has_for_part, json, refused};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A function that isn't exported, and that traps if its arguments or data are wrong. It is reached
/// by its own address, through data, by a library call, and through what a constructor set.
const CODE: &str = "#include <stdlib.h>\n\
    static int ready; static int table[2] = {3, 4};\n\
    int shared = 5;\n\
    __attribute__((constructor)) static void begin(void) { ready = 1; }\n\
    __attribute__((noinline, noclone, used)) static long hidden(volatile char *p, long n) {\n\
      if (n != 64 || !ready || table[1] != 4 || shared != 5 || abs(-2) != 2) __builtin_trap();\n\
      for (long i = 0; i < n; i++) p[i] = table[i & 1]; return n; }\n\
    long shown(char *p, long n) { return hidden(p, n); }\n";
const MAIN: &str = "int main(int argc, char **argv) { return shown(argv[0], argc); }\n";

/// Writes code and builds a file from it; `None` if this compiler can't.
fn build(folder: &Path, code: &str, compiler: &str, words: &[&str], name: &str) -> Option<String> {
    let source = folder.join(if compiler == "cc" { "code.c" } else { "code.cpp" });
    std::fs::write(&source, code).expect("a file");
    let output = folder.join(name);
    let mut command = Command::new(compiler);
    command.arg("-O1").args(words).arg("-o").arg(&output).arg(&source);
    let built = command.output().expect("a compiler");
    if !built.status.success() {
        cyclescope_skipped::report_left_out(format_args!("{words:?}: {}", String::from_utf8_lossy(&built.stderr)));
        return None;
    }
    Some(output.to_str().expect("text").to_string())
}

fn run(file: &str, more: &[&str], codes: &[i32]) -> Value {
    json(&[&["run", "--quick", "--elf", file], more].concat(), codes)
}

#[test]
fn functions_need_not_be_exported() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let program = format!("{CODE}{MAIN}");
    for (name, words) in [
        ("position.o", &["-c", "-fPIC"][..]),
        ("program.o", &["-c", "-fPIE"]),
        ("library.so", &["-shared", "-fPIC"]),
        ("program", &["-fPIE", "-pie"]),
    ] {
        let Some(file) = build(folder.path(), &program, "cc", words, name) else { continue };
        for function in ["hidden", "shown"] {
            let line = run(&file, &["--call", function, "--arg", "64"], &[0, 5]);
            assert_eq!((&line["kind"], &line["snippet"]), (&"run".into(), &format!("{function} of {file}").into()));
            // It traps on wrong arguments.
            run(&file, &["--call", function, "--arg", "63"], &[4]);
        }
        let other = run(&file, &["--call", "hidden", "--versus-call", "shown", "--arg", "64"], &[0, 5]);
        assert!(other["versus"].is_object(), "{other}");
        let none = run(&file, &["--call", "nothing"], &[2]);
        assert!(none["text"].as_str().expect("text").ends_with("has no function `nothing`"), "{none}");
    }
    if let Some(file) = build(folder.path(), &program, "cc", &["-c", "-fPIC"], "member.o") {
        let archive = folder.path().join("all.a");
        let made = Command::new("ar").arg("rcs").arg(&archive).arg(&file).output();
        if made.is_ok_and(|made| made.status.success()) {
            let archive = archive.to_str().expect("text");
            run(archive, &["--call", "shown", "--arg", "64"], &[0, 5]);
        } else {
            cyclescope_skipped::report_left_out(format_args!("no archives"));
        }
    }
}

#[test]
fn missing_library_of_an_object_is_named() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let code = "void other(void); void f(void *p) { other(); }\n";
    if let Some(file) = build(folder.path(), code, "cc", &["-c", "-fPIC"], "needs.o") {
        let line = run(&file, &["--call", "f"], &[2]);
        let shown = format!("{} {}", line["text"], line["remedy"]);
        assert!(shown.contains("undefined symbol: other") && shown.contains("--cflags"), "{line}");
        let words = "-Wl,--defsym=other=f";
        run(&file, &["--call", "f", "--cflags", words], &[0, 4, 5]);
    }
    if has_for_part("c++") {
        let code = "extern \"C\" long f(long *p) { long *x = new long(3); long y = *x; delete x; return y; }\n";
        if let Some(file) = build(folder.path(), code, "c++", &["-c", "-fPIC"], "plus.o") {
            run(&file, &["--call", "f"], &[0, 5]);
        }
    }
}

#[test]
fn unloadable_files_are_rejected_with_a_remedy() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let fails = |file: &str, name: &str, code: i32| {
        let line = refused(&["--elf", file, "--call", name], code);
        format!("{}; {}", line["text"].as_str().expect("text"), line["remedy"].as_str().unwrap_or_default())
    };
    let program = format!("{CODE}{MAIN}");
    if let Some(file) = build(folder.path(), &program, "cc", &["-fno-pie", "-no-pie"], "fixed") {
        let shown = fails(&file, "shown", 3);
        assert!(shown.contains("fixed addresses") && shown.contains("-pie"), "{shown}");
    }
    let local = format!("__thread int own; int *reach(void) {{ return &own; }}\n{program}");
    if let Some(file) = build(folder.path(), &local, "cc", &["-fPIE", "-pie"], "local") {
        let shown = fails(&file, "shown", 3);
        assert!(shown.contains("thread-local") && shown.contains("object file"), "{shown}");
    }
    if let Some(file) = build(folder.path(), &program, "cc", &["-fPIE", "-pie", "-s"], "stripped") {
        let shown = fails(&file, "hidden", 2);
        assert!(shown.contains("no function `hidden`") && shown.contains("stripped"), "{shown}");
    }
    // Two files may have functions with the same name.
    let [first, second] = ["a", "b"].map(|name| {
        let code =
            format!("static __attribute__((used, noinline)) void twice(void) {{}} void {name}(void) {{ twice(); }}\n");
        build(folder.path(), &code, "cc", &["-c", "-fPIC"], &format!("{name}.o"))
    });
    if let (Some(first), Some(second)) = (first, second) {
        let line = run(&first, &["--call", "twice", "--cflags", &second], &[2]);
        assert!(line["text"].as_str().expect("text").contains("2 functions"), "{line}");
        run(&first, &["--call", "twice"], &[0, 5]);
    }
    let source = folder.path().join("code.c");
    assert!(fails(source.to_str().expect("text"), "f", 2).contains("ELF"));
    assert!(fails("/nowhere.o", "f", 2).contains("/nowhere.o"));
    json(&["run", "--elf", "/nowhere.o"], &[2]);
}

/// An archive of many members may be long. It may hold a function that its members don't export.
#[test]
fn long_archives_are_linked() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let padding = "const char padding[17 << 20] = {1};\n";
    let code = "__attribute__((noinline, used)) static long hidden(long *p) { return *p; }\n\
                long shown(long *p) { return hidden(p); }\n";
    let members = [("padding.o", padding), ("code.o", code)]
        .map(|(name, code)| build(folder.path(), code, "cc", &["-c", "-fPIC", "-g"], name));
    let [Some(padding), Some(code)] = members else { return };
    let archive = folder.path().join("all.a");
    let made = Command::new("ar").arg("rcs").arg(&archive).args([&padding, &code]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return cyclescope_skipped::report_left_out(format_args!("no archives"));
    }
    let archive = archive.to_str().expect("text");
    for name in ["hidden", "shown"] {
        let line = run(archive, &["--call", name], &[0, 5]);
        assert_eq!(line["call"]["signature"], format!("long {name}(long *p)"), "{line}");
    }
}

#[test]
fn types_come_from_files_of_debug_information() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let call = |file: &str, arguments: &str, code: &[i32]| run(file, &["--call", &format!("f({arguments})")], code);
    let signature = |line: &Value| line["call"]["signature"].as_str().map(str::to_string);
    let text = |line: &Value| format!("{} {}", line["text"], line["remedy"]);
    let made = |tool: &str, words: &[&str]| {
        let ended = Command::new(tool).args(words).output().map(|ended| ended.status.success());
        if !matches!(ended, Ok(true)) {
            cyclescope_skipped::report_left_out(format_args!("{tool} {words:?}: {ended:?}"));
        }
        matches!(ended, Ok(true))
    };
    // The call is wrong without the type of `k`.
    let code = |value: &str| {
        format!(
            "struct s {{ long a; float b; }};\nfloat f(float *p, float k, struct s s) \
                 {{ if (k != 2.5f || s.a != {value}) __builtin_trap(); return *p * k * s.b; }}\n"
        )
    };
    let declared = Some("float f(float *p, float k, struct s s)".to_string());
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let words = ["-c", "-fPIC", "-g", "-gsplit-dwarf", version];
        let Some(object) = build(folder.path(), &code("3"), "cc", &words, "split.o") else { continue };
        assert_eq!(signature(&call(&object, "buffer, 2.5, {3, 1}", &[0, 5])), declared, "{version}");
        let library = path("split.so");
        assert!(made("cc", &["-shared", "-o", &library, &object]), "no library");
        assert_eq!(signature(&call(&library, "buffer, 2.5, {3, 1}", &[0, 5])), declared, "{version}");
        // The compiler named the file in its own folder; beside the object it is found too.
        std::fs::create_dir_all(path("moved")).expect("a folder");
        for name in ["split.o", "split.dwo"] {
            std::fs::copy(path(name), path(&format!("moved/{name}"))).expect("a file");
        }
        // Alone with its package, a library needs no other file.
        std::fs::create_dir_all(path("packed")).expect("a folder");
        std::fs::copy(&library, path("packed/split.so")).expect("a file");
        let package = ["-e", &library, "-o", &path("packed/split.so.dwp")];
        let is_packed = made("llvm-dwp", &package) || made("dwp", &package);
        std::fs::remove_file(path("split.dwo")).expect("a file");
        for name in ["moved/split.o", "packed/split.so"] {
            if is_packed || !name.starts_with("packed") {
                let line = call(&path(name), "buffer, 2.5, {3, 1}", &[0, 5]);
                assert_eq!(signature(&line), declared, "{version}, {name}");
            }
        }
        let missing = text(&call(&object, "buffer, k=2.5, 3", &[2]));
        assert!(missing.contains("split.dwo, which is missing"), "{missing}");
        // That of another build has other types.
        let other = code("3").replace("float k", "double k");
        if let Some(other) = build(folder.path(), &other, "cc", &words, "other.o") {
            std::fs::rename(path("other.dwo"), path("split.dwo")).expect("a file");
            let stale = text(&call(&object, "buffer, k=2.5, 3", &[2]));
            assert!(stale.contains("of another build"), "{other}: {stale}");
        }
        ["moved", "packed"].iter().for_each(|name| std::fs::remove_dir_all(path(name)).expect("a folder"));
    }
    let words = ["-shared", "-fPIC", "-g"];
    let Some(library) = build(folder.path(), &code("4"), "cc", &words, "whole.so") else { return };
    let debug = path("whole.debug");
    if made("objcopy", &["--only-keep-debug", &library, &debug])
        && made("objcopy", &["--strip-debug", &format!("--add-gnu-debuglink={debug}"), &library])
    {
        assert_eq!(signature(&call(&library, "buffer, 2.5, {4, 1}", &[0, 5])), declared);
        std::fs::create_dir(path(".debug")).expect("a folder");
        std::fs::rename(&debug, path(".debug/whole.debug")).expect("a file");
        assert_eq!(signature(&call(&library, "buffer, 2.5, {4, 1}", &[0, 5])), declared);
        // A file with another checksum is not the library's.
        std::fs::copy(&library, path(".debug/whole.debug")).expect("a file");
        let missing = text(&call(&library, "buffer, k=2.5, 3", &[2]));
        assert!(missing.contains("no debug information"), "{missing}");
    }
}
