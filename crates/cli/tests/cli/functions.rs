//! Functions of C code and of libraries.

use crate::support::{answer, cyclescope, folder, has, has_for_part, json, number, value, value_if_any};
use serde_json::Value;
use std::path::PathBuf;

/// Ends the program if a condition is false.
pub const CHECK: &str = "#define CHECK(x) do { if (!(x)) __builtin_trap(); } while (0)\n";

/// A C file in its own folder.
pub struct Source {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Source {
    pub fn new(text: &str) -> Source {
        let folder = folder();
        let file = folder.path().join("code.c");
        std::fs::write(&file, text).expect("a file");
        Source { folder, file }
    }

    pub fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let file = self.file.to_str().expect("text");
        [&["run", "--quick", "--c", file], more].concat()
    }

    pub fn run(&self, more: &[&str], codes: &[i32]) -> Value {
        json(&self.arguments(more), codes)
    }
}

/// Compiles code whose run fails with this exit code, and returns the error's text and remedy.
fn run_error(text: &str, code: i32) -> String {
    let line = Source::new(text).run(&[], &[code]);
    assert_eq!(line["kind"], "error", "{line}");
    let [text, remedy] = ["text", "remedy"].map(|field| line[field].as_str().unwrap_or_default());
    format!("{text}\n{remedy}")
}

#[test]
fn function_is_measured_without_its_call() {
    if !has("cc") {
        return;
    }
    let source = Source::new("void f(void *p) {}\nvoid g(void *p) { f(p); }\n");
    let line = source.run(&[], &[0, 5]);
    assert_eq!(line["snippet"], format!("f of {}", source.file.display()));
    // Within the cycle that is requested, and never negative.
    if let Some(line) = number(&source.arguments(&[])[1..]) {
        let ([cost, half], [call, _]) = (value(&line["cost"]), value(&line["empty_call"]));
        assert!(cost >= 0.0 && cost <= 0.2 * call + 3.0 * half, "{cost} ± {half}, an empty call {call}");
        assert!(line["cost"]["low"].as_f64() >= Some(0.0) && line["time"]["value"].as_f64() >= Some(0.0), "{line}");
    }
    assert!(source.run(&["--call", "g"], &[0, 5])["snippet"].as_str().expect("text").starts_with("g of"));
}

#[test]
fn invalid_code_and_missing_files_are_usage_errors() {
    if !has("cc") {
        return;
    }
    assert!(run_error("void f(void *p) { return", 2).contains("error: expected"));
    assert!(run_error("void g(void *p) {}", 2).contains("code.c has no function `f`"));
    assert!(run_error("void h(void); void f(void *p) { h(); }", 2).contains("undefined symbol: h"));
    let source = Source::new("void f(void *p) {}");
    source.run(&["--call", ""], &[2]);
    source.run(&["--cflags", "'"], &[2]);
    source.run(&["--cflags", "-O2 @flags"], &[2]);
    json(&["run", "--c", "/nowhere.c"], &[2]);
    json(&["run", "--c", "/"], &[2]);
    json(&["run", "--lib", "/etc/passwd", "--call", "f"], &[2]);
    json(&["run", "--lib", "/nowhere.so"], &[2]);
}

#[test]
fn missing_compiler_exits_with_3() {
    let source = Source::new("void f(void *p) {}");
    let answer = answer(cyclescope(&source.arguments(&[])).env("CC", "/nowhere/cc"));
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.stderr.contains("$CC"), "{answer:?}");
}

#[test]
fn compiler_variable_may_contain_flags() {
    if !has("cc") {
        return;
    }
    let source = Source::new("void f(void *p) {}\n#ifndef FLAG\n#error no flag\n#endif\n");
    let answer = answer(cyclescope(&source.arguments(&[])).env("CC", "cc -DFLAG"));
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
}

#[test]
fn constructors_can_neither_end_nor_hide_the_run() {
    if !has("cc") {
        return;
    }
    let constructor = |body: &str| {
        format!(
            "#include <stdio.h>\n#include <stdlib.h>\n\
             __attribute__((constructor)) static void begin(void) {{ {body} }}\n\
             void f(void *p) {{}}\n"
        )
    };
    assert!(run_error(&constructor("exit(0);"), 4).contains("exit status 0"));
    assert!(run_error(&constructor("_Exit(7);"), 4).contains("exit status 7"));
    assert!(run_error(&constructor("abort();"), 4).contains("SIGABRT"));
    // A constructor that prints to stdout, which is for results: the output is still one JSON line.
    Source::new(&constructor("printf(\"hello\\n\");")).run(&[], &[0, 5]);
    let source = Source::new(&constructor("printf(\"hello\");"));
    let answer = answer(&mut cyclescope(&source.arguments(&[])));
    assert!(!answer.stdout.contains("hello") && answer.stderr.contains("hello"), "{answer:?}");
    assert!(answer.stdout.contains("core cycles"), "{answer:?}");
}

#[test]
fn destructors_do_not_run() {
    if !has("cc") {
        return;
    }
    let text = "__attribute__((destructor)) static void end(void) { __builtin_trap(); }\nvoid f(void *p) {}";
    Source::new(text).run(&[], &[0, 5]);
}

#[test]
fn faulting_functions_are_named() {
    if !has("cc") {
        return;
    }
    let system_call = "#include <unistd.h>\nvoid f(void *p) { getppid(); }";
    assert!(run_error(system_call, 4).contains("SIGSYS"));
    assert!(run_error(system_call, 4).contains("getppid"));
    assert!(run_error("void f(void *p) { *(volatile int *)8 = 1; }", 4).contains("f+"));
    for (code, words) in [
        ("__builtin_trap();", ["ud2 at f+", "by definition"]),
        ("__asm__ volatile(\"hlt\");", ["hlt at f+", "--executor kernel"]),
        ("__asm__ volatile(\"movaps 1(%0), %%xmm0\" :: \"r\"(p) : \"xmm0\");", ["movaps", "multiple of 16"]),
    ] {
        let said = run_error(&format!("void f(void *p) {{ {code} }}"), 4);
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    let deep = "int g(volatile int n) { volatile int a[99]; a[0] = n; return g(n + 1) + a[0]; }\n\
                void f(void *p) { g(0); }";
    assert!(run_error(deep, 4).contains("SIGSEGV"));
    assert!(run_error("void f(void *p) { for (;;) ; }", 4).contains("did not end"));
}

#[test]
fn nothing_stays_in_the_temporary_folder() {
    if !has("cc") {
        return;
    }
    let temporary = folder();
    for text in ["void f(void *p) {}", "void f(void *p) { for (;;) ; }", "nonsense"] {
        let source = Source::new(text);
        answer(cyclescope(&source.arguments(&[])).env("TMPDIR", temporary.path()));
        let left = std::fs::read_dir(temporary.path()).expect("a folder").count();
        assert_eq!(left, 0, "{text}");
        drop(source.folder);
    }
}

/// Compiles code with a region, and returns its line.
fn region(text: &str, more: &[&str]) -> Value {
    Source::new(text).run(more, &[0, 5])
}

#[test]
fn region_is_measured_without_a_call() {
    if !has("cc") {
        return;
    }
    let store = region("void f(int *p) { CYCLESCOPE_BODY(*p = 1;) }", &[]);
    assert_eq!((&store["bytes"], store["empty_call"].is_null()), (&Value::from("c7 07 01 00 00 00"), true));
    // A dependent chain: one more multiplication per copy costs more, and unrolling twice gives the
    // same code.
    let chain = |times: &str| {
        let text = format!("void f(long *p) {{ long x = *p; CYCLESCOPE_BODY({times}) *p = x; }}");
        value_if_any(&region(&text, &["--unroll", "64"])["cost"])
    };
    if let [Some(one), Some(three)] = [chain("x *= x;"), chain("x *= x; x *= x; x *= x;")] {
        assert!((2.0..4.0).contains(&(three / one)), "{one} and {three}");
    }
}

/// The same chain of multiplications as a region, compiled by each installed compiler, including
/// C++.
#[test]
fn region_is_measured_with_every_compiler() {
    let text = "static const double half[2] = {0.5, 0.25};\n\
                #ifdef __cplusplus\nextern \"C\"\n#endif\n\
                void f(double *p) { double x = *p; long i = 0; CYCLESCOPE_HIDE(i);\n\
                CYCLESCOPE_BODY(x = x * half[i] + 1.0; i ^= 1; CYCLESCOPE_KEEP(x);) *p = x; }";
    for (variable, name, file) in
        [("CC", "gcc", "code.c"), ("CC", "clang", "code.c"), ("CXX", "g++", "code.cpp"), ("CXX", "clang++", "code.cpp")]
    {
        if !has_for_part(name) {
            continue;
        }
        let folder = folder();
        let path = folder.path().join(file);
        std::fs::write(&path, text).expect("a file");
        let path = path.to_str().expect("text");
        let said = answer(cyclescope(&["run", "--quick", "--json", "--c", path]).env(variable, name));
        assert!([Some(0), Some(5)].contains(&said.code), "{name}: {said:?}");
        let line: Value = serde_json::from_str(said.stdout.lines().last().expect("a line")).expect("JSON");
        assert!(line["empty_call"].is_null() && line["snippet"].as_str().expect("text").contains("CYCLESCOPE_BODY"));
    }
}

#[test]
fn region_keeps_its_values_across_copies() {
    if !has("cc") {
        return;
    }
    // The values change places in each copy. Constants and a static table are reached from every
    // copy, and the branch stays inside. The code reads at an index that would be outside the
    // memory areas if a value got lost.
    let text = "static const double factor[3] = {1.0, 0.5, 2.0};\n\
                static long table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0};\n\
                void f(double *p) {\n\
                  long a = 0, b = 5; double x = 1.5; const double *k = factor; CYCLESCOPE_HIDE(k);\n\
                  CYCLESCOPE_BODY(\n\
                    long old = a; a = b; b = table[old];\n\
                    x = x * k[old & 1] + 2.25; if (x > 100.0) x = 1.0; CYCLESCOPE_KEEP(x);)\n\
                  p[a + b] = x;\n\
                }";
    for flags in ["-O1", "-O2", "-O3"] {
        region(text, &["--cflags", flags]);
    }
}

/// A function that aligns its stack sets up its frame below the entry's, so constants aren't where
/// the entry's frame would have them. A function without alignment, or without constants, is
/// measured.
#[test]
fn region_with_an_aligned_stack_cannot_use_constants() {
    if !has("cc") {
        return;
    }
    // A length that isn't known, and a variable that needs more alignment than the stack has.
    let plain = "__attribute__((aligned(64))) volatile char b[64]; b[0] = 2; x += b[0];";
    let aligns = format!("volatile char a[n]; a[0] = 1; x += a[0]; {plain}");
    let text = |local: &str, constant: &str| {
        format!(
            "void f(double *p) {{ long n = 9 + (((long *)p)[0] & 7); double x = n; {local} \
             CYCLESCOPE_BODY(x = x * {constant} + x; CYCLESCOPE_KEEP(x);) *p = x; }}"
        )
    };
    region(&text(plain, "0.5"), &[]);
    region(&text(&aligns, "x"), &[]);
    // GCC aligns above its frame; other compilers may do so below it.
    let said = Source::new(&text(&aligns, "0.5")).run(&[], &[0, 2, 5]);
    if said["kind"] == "error" {
        let output = format!("{} {}", said["text"], said["remedy"]);
        assert!(output.contains("frame") && output.contains("alloca"), "{said}");
    }
}

/// The guards accept all data types, in registers or not.
#[test]
fn guards_take_every_type() {
    // 32-bit code has no __int128, and without SSE2 no floating point in vector registers.
    for (flags, wide) in [(&["-m64"][..], "__int128"), (&["-m32"], "long long"), (&["-m32", "-msse2"], "long long")] {
        compile_guards(flags, wide);
    }
}

fn compile_guards(flags: &[&str], wide: &str) {
    let types = [
        "char",
        "flag",
        "short",
        "long",
        "void *",
        "float",
        "double",
        "long double",
        wide,
        "cplx",
        "struct two",
        "struct odd",
        "struct five",
        "union either",
        "enum e",
        "vector",
        "small",
    ];
    let uses: String = types
        .iter()
        .enumerate()
        .map(|(at, one)| {
            format!("void t{at}({one} *p);\nvoid t{at}({one} *p) {{ {one} x = *p; CYCLESCOPE_HIDE(x); CYCLESCOPE_KEEP(x); *p = x; }}\n")
        })
        .collect();
    let text = format!(
        "#ifdef __cplusplus\ntypedef bool flag;\n#else\ntypedef _Bool flag;\n#endif\n\
         typedef double _Complex cplx;\nstruct two {{ long a, b; }};\nstruct odd {{ char a[3]; }};\n\
         struct five {{ long a[5]; }};\nunion either {{ int a; double b; }};\nenum e {{ A }};\n\
         typedef float vector __attribute__((vector_size(16)));\n\
         typedef int small __attribute__((vector_size(8)));\n{}\n{uses}\
         void several(long *p);\nvoid several(long *p) {{ long a[3] = {{1, 2, 3}}; CYCLESCOPE_HIDE(a); \
         CYCLESCOPE_KEEP(a); *p = a[2]; }}\n",
        cyclescope::clock::source::C_GUARDS
    );
    for (compiler, file) in [("gcc", "t.c"), ("g++", "t.cpp"), ("clang", "t.c"), ("clang++", "t.cpp")] {
        if !has_for_part(compiler) {
            continue;
        }
        let folder = folder();
        std::fs::write(folder.path().join(file), &text).expect("a file");
        for level in ["-O0", "-O2"] {
            let mut build = std::process::Command::new(compiler);
            build.args([level, "-Wall", "-Werror", "-Wno-psabi", "-c", "-o", "t.o", file]).args(flags);
            build.current_dir(folder.path());
            let built = build.output().expect("a compiler");
            assert!(built.status.success(), "{compiler} {level}: {}", String::from_utf8_lossy(&built.stderr));
        }
    }
}

#[test]
fn region_accepts_snippet_options() {
    if !has("cc") {
        return;
    }
    let evidence = folder();
    let kept = evidence.path().join("kept");
    let kept = kept.to_str().expect("text");
    region("void f(long *p) { CYCLESCOPE_BODY(*p += 3;) }", &["--evidence", kept, "--loop", "3"]);
    json(&["replay", kept], &[0, 5]);
    json(&["replay", "--measure", "--quick", kept], &[0, 5]);
}

#[test]
fn uncopyable_region_is_rejected() {
    if !has("cc") {
        return;
    }
    for (text, why) in [
        ("void f(long *p) { CYCLESCOPE_BODY() }", "optimized it away"),
        ("void g(void); void f(long *p) { CYCLESCOPE_BODY(g();) }", "calls a function"),
        ("void f(long *p) { CYCLESCOPE_BODY(if (*p) return; p++;) }", "jumps out"),
        ("void g(long *p) { CYCLESCOPE_BODY(*p = 1;) } void f(void *p) {}", "not in the function `f`"),
        ("extern long x; void f(long *p) { CYCLESCOPE_BODY(x++;) }", "outside"),
        ("static char x[99999]; void f(long *p) { CYCLESCOPE_BODY(x[*p & 15]++;) }", "more than"),
        ("void f(long *p) { CYCLESCOPE_BODY(*p = 1;) CYCLESCOPE_BODY(*p = 2;) }", "already defined"),
        ("void f(long *p) { CYCLESCOPE_BODY(*p = ;) }", "error: expected"),
    ] {
        let said = run_error(text, 2);
        assert!(said.contains(why), "{text}: {said}");
    }
}

#[test]
fn assembly_with_debug_information_takes_any_arguments() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let [source, object] = ["code.s", "code.o"].map(|name| folder.path().join(name));
    let text = ".globl f\n.type f, @function\nf: lea (%rdi,%rsi), %rax\nret\n.size f, . - f\n\
                .section .note.GNU-stack,\"\",@progbits\n";
    std::fs::write(&source, text).expect("a file");
    let built = std::process::Command::new("cc").args(["-g", "-c", "-o"]).args([&object, &source]).status();
    assert!(built.expect("a compiler").success());
    let object = object.to_str().expect("text");
    let line = json(&["run", "--quick", "--elf", object, "--call", "f(buffer, 3)"], &[0, 5]);
    assert_eq!(line["call"]["signature"], Value::Null, "{line}");
}

#[test]
fn system_library_without_its_folder_is_named_with_it() {
    let line = json(&["run", "--quick", "--lib", "libc.so.6", "--call", "abs(5)"], &[2]);
    let remedy = line["remedy"].as_str().expect("a remedy");
    let Some(path) = remedy.strip_prefix("name its path: ") else {
        assert!(!std::path::Path::new("/lib/x86_64-linux-gnu/libc.so.6").exists(), "{line}");
        return;
    };
    json(&["run", "--quick", "--lib", path, "--call", "abs(5)"], &[0, 5]);
}

#[test]
fn the_c_library_is_the_one_that_the_program_has_and_a_second_one_is_refused() {
    let path = "/lib/x86_64-linux-gnu/libc.so.6";
    if !std::path::Path::new(path).exists() {
        return cyclescope_skipped::report_skipped("the C library is elsewhere");
    }
    let line = json(&["run", "--quick", "--lib", path, "--call", "malloc(100)"], &[0, 5]);
    assert_eq!((&line["kind"], &line["addresses"]), (&"run".into(), &1.into()), "{line}");
    let folder = folder();
    let copy = folder.path().join("libc.so.6");
    std::fs::copy(path, &copy).expect("a copy");
    let line = json(&["run", "--quick", "--lib", copy.to_str().expect("text"), "--call", "malloc(100)"], &[3]);
    assert!(line["text"].as_str().is_some_and(|text| text.contains("second C library")), "{line}");
    let named = line["remedy"].as_str().and_then(|remedy| remedy.rsplit(' ').next()).expect("a path");
    json(&["run", "--quick", "--lib", named, "--call", "abs(5)"], &[0, 5]);
}

/// A function with data and a function that it calls.
const WHOLE: &str = "static const int table[8] = {1, 2, 3, 5, 8, 13, 21, 34};\n\
    __attribute__((noinline)) static int triple(int x) { return table[x & 7] * 3; }\n\
    int total = 7;\n\
    int sum(int *p, int n) {\n\
      int s = total; for (int i = 0; i < n; i++) s += triple(i) + table[p[i] & 7];\n\
      if (s != EXPECTED) __builtin_trap(); return s; }\n";

#[test]
fn assembly_of_a_whole_function_is_measured_with_its_data_and_callees() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let [source, text] = ["sum.c", "sum.s"].map(|name| folder.path().join(name));
    std::fs::write(&source, WHOLE).expect("a file");
    let compile = |flags: &[&str], expected: u32| {
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-O2", "-S", "-o"]).arg(&text).arg(&source).args(flags).arg(format!("-DEXPECTED={expected}"));
        assert!(compiler.status().expect("a compiler").success());
    };
    let call = |codes: &[i32]| {
        let file = text.to_str().expect("text");
        json(&["run", "--quick", "--c", file, "--call", "sum(buffer, 8)", "--contents", "zero"], codes)
    };
    // All of the table three times, and its first number eight times.
    let expected = 7 + 3 * (1 + 2 + 3 + 5 + 8 + 13 + 21 + 34) + 8;
    for flags in [&["-fPIE"][..], &["-fPIE", "-masm=intel"], &["-fPIC", "-g"]] {
        compile(flags, expected);
        assert_eq!(call(&[0, 5])["call"]["text"], "sum(buffer, 8)");
    }
    compile(&["-fPIE"], expected + 1);
    assert_eq!(call(&[4])["signal"], "SIGILL");
    // A shared library can't have the absolute addresses of tables.
    compile(&["-fno-pic", "-fno-pie"], expected);
    let fixed = call(&[2]);
    assert!(fixed["remedy"].as_str().is_some_and(|remedy| remedy.contains("-fPIE")), "{fixed}");
}

#[test]
fn text_of_compiler_explorer_is_a_whole_function() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let file = folder.path().join("pasted.s");
    let text = "square(int):\n        mov     eax, edi\n        imul    eax, edi\n        ret\n\
                circle(double, int):\n        sub     rsp, 8\n        call    square(int)\n        cmp     eax, 49\n\
                        jne     .L5\n        mulsd   xmm0, QWORD PTR .LC0[rip]\n        add     rsp, 8\n        ret\n\
                .L5:\n        ud2\n\
                .LC0:\n        .long   1413754136\n        .long   1074340347\n";
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("text");
    let run = |call: &str, codes: &[i32]| json(&["run", "--quick", "--c", file, "--call", call], codes);
    for call in ["circle(0.5, 7)", "circle(double, int)(0.5, 7)"] {
        run(call, &[0, 5]);
    }
    assert_eq!(run("circle(0.5, 8)", &[4])["signal"], "SIGILL");
    let missing = run("area(0.5)", &[2]);
    assert!(missing["text"].as_str().is_some_and(|text| text.contains("no function `area`")), "{missing}");
    let other = folder.path().join("other.s");
    std::fs::write(&other, "global f\nf: mov rax, [rel x]\nret\nx: dq 5\n").expect("a file");
    let refused = json(&["run", "--quick", "--c", other.to_str().expect("text")], &[2]);
    assert!(refused["remedy"].as_str().is_some_and(|remedy| remedy.contains("nasm -f elf64")), "{refused}");
    // The text alone is no snippet, and what helps is the way above.
    let alone = answer(&mut cyclescope(&["run", "--quick", "--file", file]));
    let words = alone.stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words.contains("circle(double, int) failed") && words.contains("--c FILE.s --call NAME"), "{alone:?}");
}
