//! `run --bits 32` with functions: C and C++ code, object files, libraries and programs.

use crate::functions::CHECK;
use crate::support::{answer, cyclescope, error_text, folder, has, has_for_part, json, number, value};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files with code in a folder of their own.
struct NarrowFiles {
    folder: tempfile::TempDir,
}

impl NarrowFiles {
    /// An empty folder. `None` if this system lacks what 32-bit functions need, which is reported.
    #[track_caller]
    fn new() -> Option<NarrowFiles> {
        if !has("cc") {
            return None;
        }
        let files = NarrowFiles { folder: folder() };
        let source = files.write("probe.c", "void f(void *p) {}\n");
        let words = ["-m32", "-shared", "-nostdlib"];
        if let Err(why) = files.build("cc", &words, &source, "probe.so") {
            cyclescope_skipped::report_skipped(format_args!("cc -m32 makes no library here: {why}"));
            return None;
        }
        let line = json(&["run", "--bits", "32", "--quick", "nop"], &[0, 3, 5]);
        if line["kind"] == "error" {
            cyclescope_skipped::report_skipped(&line["text"]);
            return None;
        }
        Some(files)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Builds a file from source code. The error is what the compiler says.
    fn build(&self, compiler: &str, words: &[&str], source: &Path, name: &str) -> Result<PathBuf, String> {
        let output = self.path(name);
        let mut command = Command::new(compiler);
        command.arg("-O2").args(words).arg("-o").arg(&output).arg(source);
        let built = command.output().map_err(|error| error.to_string())?;
        if built.status.success() { Ok(output) } else { Err(String::from_utf8_lossy(&built.stderr).into_owned()) }
    }

    /// Measures functions of C code.
    fn run_c(&self, text: &str, more: &[&str], codes: &[i32]) -> Value {
        run("--c", &self.write("code.c", text), more, codes)
    }
}

fn run(option: &str, file: &Path, more: &[&str], codes: &[i32]) -> Value {
    let file = file.to_str().expect("text");
    json(&[&["run", "--bits", "32", "--quick", option, file], more].concat(), codes)
}

/// A chain of dependent multiplications, and one of divisions, of as many links as `n`. Nothing in it
/// adds an immediate: some cores do that when they rename registers, but only in operands of some sizes
/// (Raptor Cove: 11 cycles for 12).
const CHAINS: &str = "unsigned product(unsigned x, unsigned n) { for (unsigned i = 0; i < n; i++) x *= x; return x; }\n\
    unsigned quotient(unsigned x, unsigned n)\n\
    { for (unsigned i = 0; i < n; i++) x = 0x80000000u / (x | 0x40000000); return x; }\n";

#[test]
fn arguments_arrive_in_their_places() {
    let Some(files) = NarrowFiles::new() else { return };
    let source = format!(
        "{CHECK}#include <stddef.h>\n\
         struct mixed {{ char a; double b; short c; }}; struct pair {{ float x, y; }};\n\
         int small(signed char a, unsigned char b, short c, unsigned short d, _Bool e, long f)\n\
         {{ CHECK(a == -1 && b == 255 && c == -2 && d == 65535 && e == 1 && f == -5); return 1; }}\n\
         long long wide(long long a, int b, unsigned long long c, double d)\n\
         {{ CHECK(a == -3000000000LL && b == 7 && c == 0x8123456789abcdefULL && d == 0.1); return a / b; }}\n\
         double floats(float a, double b, long double c)\n\
         {{ CHECK(a == 0.5f && b == -2.25 && c == (long double)1e300); return b; }}\n\
         float single(float a) {{ CHECK(a == 1.5f); return a; }}\n\
         long double extended(long double a) {{ CHECK(a == (long double)0.1); return a; }}\n\
         struct mixed record(struct mixed m, struct pair p, int n)\n\
         {{ CHECK(m.a == 'x' && m.b == 2.5 && m.c == -4 && p.x == 1 && p.y == -1 && n == 9); m.c = n; return m; }}\n\
         void memory(char *p, char *q, const char *t, size_t n)\n\
         {{ CHECK(n == 64 && t[0] == 'a' && t[1] == 'b' && !t[2] && p[63] == p[63]); q[63] = 1; }}\n\
         int less(const int *a, const int *b) {{ return *a < *b; }}\n\
         int call(int (*f)(const int *, const int *), int *p) {{ return f(p, p + 1); }}\n\
         int nothing(void) {{ return 3; }}\n\
         int variable(int n, ...)\n\
         {{ __builtin_va_list l; __builtin_va_start(l, n); CHECK(__builtin_va_arg(l, int) == 6); \
            CHECK(__builtin_va_arg(l, double) == 0.5); __builtin_va_end(l); return n; }}\n"
    );
    let mixed = "record({'x', 2.5, -4}, {1, -1}, 9)";
    let calls: &[(&str, &[&str])] = &[
        ("small(-1, 255, -2, 65535, 1, -5)", &["result"]),
        ("wide(-3000000000, 7, 0x8123456789abcdef, 0.1)", &["result"]),
        ("floats(0.5, -2.25, 1e300)", &["result"]),
        ("single(1.5)", &["float-result"]),
        ("extended(0.1)", &["result"]),
        (mixed, &[]),
        ("memory(buffer, out, \"ab\", size)", &[]),
        ("call(&less, buffer)", &["result"]),
        ("nothing()", &["result"]),
        ("variable(2, 6, 0.5)", &["result"]),
    ];
    for (call, waits) in calls {
        for wait in [&["fence"][..], waits].concat() {
            let line = files.run_c(&source, &["--call", call, "--buffer", "64", "--serialize", wait], &[0, 5]);
            assert_eq!((&line["kind"], &line["bits"]), (&"run".into(), &32.into()), "{call} {wait}: {line}");
        }
        files.run_c(&source, &["--call", call, "--buffer", "64"], &[0, 5]);
    }
    // The traps are reached with other values.
    files.run_c(&source, &["--call", "single(2.5)"], &[4]);
    let refused = error_text(&files.run_c(&source, &["--call", mixed, "--serialize", "result"], &[2]));
    assert!(refused.contains("result in memory"), "{refused}");
}

#[test]
fn chains_take_as_long_as_the_rulers() {
    let Some(files) = NarrowFiles::new() else { return };
    let source = files.write("chains.c", CHAINS);
    let file = source.to_str().expect("text");
    let call = ["--bits", "32", "--c", file, "--call", "product(3, 400)", "--serialize", "result"];
    let Some(line) = number(&call) else { return };
    let ([cost, half], ruler) = (value(&line["cost"]), line["ruler"]["imul_latency"].as_f64());
    let expected = 400.0 * ruler.expect("a ruler");
    assert!((cost - expected).abs() < 0.02 * expected + 3.0 * half, "{cost} ± {half} for {expected}");
}

#[test]
fn the_same_function_costs_the_same_in_both_modes() {
    let Some(files) = NarrowFiles::new() else { return };
    let source = files.write("chains.c", CHAINS);
    let file = source.to_str().expect("text");
    for function in ["product(3, 400)", "quotient(3, 200)"] {
        let call = ["--c", file, "--call", function, "--serialize", "result"];
        let Some(wide) = number(&call) else { return };
        let Some(narrow) = number(&[&["--bits", "32"], &call[..]].concat()) else { return };
        let [[wide, one], [narrow, other]] = [&wide, &narrow].map(|line| value(&line["cost"]));
        assert!((wide - narrow).abs() < one + other, "{function}: {wide} ± {one} and {narrow} ± {other}");
    }
}

#[test]
fn whole_memory_is_accessible_and_no_more() {
    let Some(files) = NarrowFiles::new() else { return };
    let source = "int f(volatile char *p, int n) { int s = 0; for (int i = 0; i < n; i += 64) s += p[i]; return s + p[n - 1]; }\n\
                  int g(void *p, int n) { volatile char a[n]; for (int i = 0; i < n; i += 64) a[i] = 1; return a[0]; }\n\
                  void before(char *p, int n) { p[0] = n; }\n";
    files.run_c(source, &["--call", "f(buffer, size)", "--buffer", "3M", "--setup", "before"], &[0, 5]);
    let beyond = error_text(&files.run_c(source, &["--call", "f(buffer, 200000)", "--buffer", "64K"], &[4]));
    assert!(beyond.contains("SIGSEGV") && beyond.contains("buffer has 65536 bytes"), "{beyond}");
    files.run_c(source, &["--call", "g(buffer, 8000000)"], &[0, 5]);
    let beyond = error_text(&files.run_c(source, &["--call", "g(buffer, 8000000)", "--stack", "64K"], &[4]));
    assert!(beyond.contains("its stack 65536 bytes"), "{beyond}");
}

#[test]
fn variants_share_a_run() {
    let Some(files) = NarrowFiles::new() else { return };
    let line = files.run_c(CHAINS, &["--call", "product(3, 40)", "--versus-call", "quotient(3, 40)"], &[0, 5]);
    assert!(line["versus"].is_object(), "{line}");
}

/// Functions that fault, hang, or end their process.
const HOSTILE: &str = "int null(volatile int *p) { p = 0; return *p; }\n\
    int above(volatile int *p) { p = (int *)0xffff0000; return *p; }\n\
    int endless(void *p) { for (;;) __asm__ volatile(\"\"); }\n\
    int deep(volatile int *p) { volatile char a[4096]; a[0] = 1; return deep(p) + a[0]; }\n\
    int leave(void *p) { int r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(1), \"b\"(0)); return r; }\n\
    int twice(void *p) { int r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(2)); return r; }\n\
    int wide(void *p) { __asm__ volatile(\"ljmp $0x33, $0x1000\"); return 0; }\n\
    int undefined(void *p) { __asm__ volatile(\"ud2\"); return 0; }\n\
    int zero(int a, int b) { return a / b; }\n\
    int halt(void *p) { __asm__ volatile(\"hlt\"); return 0; }\n\
    int segment(void *p) { __asm__ volatile(\"xor %%eax, %%eax; mov %%eax, %%ds\" ::: \"eax\"); return 0; }\n\
    int counter(void *p) { __asm__ volatile(\"mov $1, %%ebp\" :::); return 0; }\n\
    int stack(void *p) { __asm__ volatile(\"mov $8, %%esp; ret\" :::); return 0; }\n\
    int outside(void *p) { extern int absent(void); return absent(); }\n\
    int flags(void *p) { __asm__ volatile(\"pushf; orl $0x100, (%%esp); popf; nop\" ::: \"cc\"); return 0; }\n";

/// Processes with a variable in their environment, as copies of the program have it.
fn processes_with(mark: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    let marked = all.filter(|path| {
        std::fs::read(path.join("environ"))
            .is_ok_and(|text| text.windows(mark.len()).any(|window| window == mark.as_bytes()))
    });
    marked.map(|path| path.display().to_string()).collect()
}

#[test]
fn hostile_functions_are_reported_and_leave_nothing_behind() {
    let Some(files) = NarrowFiles::new() else { return };
    let source = files.write("hostile.c", HOSTILE);
    let scratch = files.path("scratch");
    std::fs::create_dir(&scratch).expect("a folder");
    let mark = format!("CYCLESCOPE_TEST_MARK={}", std::process::id());
    let (name, number) = mark.split_once('=').expect("a mark");
    for (call, codes, text) in [
        ("null", &[4][..], "SIGSEGV at address 0x0"),
        ("above", &[4], "SIGSEGV"),
        ("endless", &[4], "did not end"),
        ("deep", &[4], "SIGSEGV"),
        ("leave", &[4], "int 0x80|SIGSYS|system call"),
        ("twice", &[4], "int 0x80|SIGSYS|system call"),
        ("wide", &[4], "SIGSEGV"),
        ("undefined", &[4], "SIGILL"),
        ("zero(1, 0)", &[4], "SIGFPE"),
        ("halt", &[4], "SIGSEGV"),
        ("segment", &[4], "SIGSEGV"),
        ("counter", &[0, 4, 5], ""),
        ("stack", &[4], "SIGSEGV"),
        ("outside", &[4], "`absent`"),
        ("flags", &[4], "SIGTRAP"),
    ] {
        let file = source.to_str().expect("text");
        let words = ["run", "--json", "--bits", "32", "--quick", "--c", file, "--call", call];
        let said = answer(cyclescope(&words).env("TMPDIR", &scratch).env(name, number));
        assert!(said.code.is_some_and(|code| codes.contains(&code)), "{call}: {said:?}");
        assert!(text.split('|').any(|part| said.stdout.contains(part)), "{call}: {said:?}");
        let left: Vec<_> = std::fs::read_dir(&scratch).expect("a folder").flatten().collect();
        assert!(left.is_empty(), "{call} left {left:?}");
        let running = processes_with(&mark);
        assert!(running.is_empty(), "{running:?} after {call}");
    }
}

#[test]
fn files_of_each_kind_have_functions() {
    let Some(files) = NarrowFiles::new() else { return };
    let code = format!(
        "{CHECK}static int ready; static int table[2] = {{3, 4}}; int shared = 5; int *pointer = &table[1];\n\
         __attribute__((constructor)) static void begin(void) {{ ready = 1; }}\n\
         int shown(volatile char *p, int n) {{ CHECK(n == 64 && ready && *pointer == 4 && shared == 5);\n\
           for (int i = 0; i < n; i++) p[i] = table[i & 1]; return n; }}\n\
         int main(int argc, char **argv) {{ return shown(argv[0], argc); }}\n"
    );
    let source = files.write("files.c", &code);
    let mut objects = Vec::new();
    for (name, words) in [
        ("plain.o", &["-c", "-fno-pic"][..]),
        ("position.o", &["-c", "-fPIC"]),
        ("program.o", &["-c", "-fPIE", "-g"]),
        ("library.so", &["-shared", "-fPIC"]),
        ("program", &["-fPIE", "-pie"]),
        ("bare.so", &["-shared", "-fPIC", "-nostdlib", "-s"]),
        ("packed.so", &["-shared", "-fPIC", "-Wl,-z,pack-relative-relocs"]),
    ] {
        let words = [&["-m32", "-fno-stack-protector"], words].concat();
        match files.build("cc", &words, &source, name) {
            Ok(file) => objects.push(file),
            Err(why) => cyclescope_skipped::report_left_out(format_args!("{words:?}: {why}")),
        }
    }
    let archive = files.path("all.a");
    if let Some(object) = objects.first() {
        let made = Command::new("ar").arg("rcs").arg(&archive).arg(object).output();
        if made.is_ok_and(|made| made.status.success()) {
            objects.push(archive);
        }
    }
    for file in &objects {
        let line = run("--elf", file, &["--call", "shown(buffer, 64)"], &[0, 5]);
        assert_eq!((&line["kind"], &line["bits"]), (&"run".into(), &32.into()), "{}: {line}", file.display());
        // It traps on wrong arguments.
        run("--elf", file, &["--call", "shown(buffer, 63)"], &[4]);
        let none = error_text(&run("--elf", file, &["--call", "nothing"], &[2, 3]));
        assert!(none.contains("nothing"), "{none}");
    }
    let fixed = files.build("cc", &["-m32", "-no-pie"], &source, "fixed");
    if let Ok(file) = fixed {
        let refused = error_text(&run("--elf", &file, &["--call", "shown"], &[3]));
        assert!(refused.contains("fixed addresses") && refused.contains("-pie"), "{refused}");
    }
    let mode_of = |file: &Path, bits: &str| {
        let file = file.to_str().expect("text");
        error_text(&json(&["run", "--bits", bits, "--elf", file, "--call", "shown"], &[2]))
    };
    if let Some(file) = objects.first() {
        assert!(mode_of(file, "64").contains("32-bit machine code; add --bits 32"));
    }
    if let Ok(file) = files.build("cc", &["-c"], &source, "wide.o") {
        assert!(mode_of(&file, "32").contains("64-bit machine code; leave --bits 32 out"));
    }
}

#[test]
fn what_32_bit_functions_lack_is_named() {
    let Some(files) = NarrowFiles::new() else { return };
    let thread = error_text(&files.run_c("__thread int x; int f(int *p) { return x++; }\n", &[], &[3]));
    assert!(thread.contains("thread-local"), "{thread}");
    let library = "#include <stddef.h>\nextern size_t strlen(const char *);\nint f(char *p) { return strlen(p); }\n";
    let missing = error_text(&files.run_c(library, &["--cflags", "-fno-builtin"], &[4]));
    assert!(missing.contains("`strlen`") && missing.contains("no C library"), "{missing}");
    let own = format!("{library}size_t strlen(const char *p) {{ size_t n = 0; while (p[n]) n++; return n; }}\n");
    files.run_c(&own, &["--cflags", "-fno-builtin", "--contents", "zero"], &[0, 5]);
    let stack = "int f(char *p) { volatile char a[64]; a[0] = *p; return a[0]; }\n";
    files.run_c(stack, &[], &[0, 5]);
    let checked = error_text(&files.run_c(stack, &["--cflags", "-fstack-protector-all"], &[2, 4]));
    assert!(checked.contains("-fno-stack-protector"), "{checked}");
}

#[test]
fn without_types_a_number_of_64_bits_is_two_arguments() {
    let Some(files) = NarrowFiles::new() else { return };
    let text = format!("{CHECK}void f(long long n) {{ CHECK(n == 0x100000002); }}\n");
    let object = files.build("cc", &["-m32", "-c"], &files.write("wide.c", &text), "wide.o");
    let object = object.expect("an object file");
    let whole = error_text(&run("--elf", &object, &["--call", "f(0x100000002)"], &[2]));
    assert!(whole.contains("the low and the high half") && whole.contains("-g"), "{whole}");
    run("--elf", &object, &["--call", "f(2, 1)"], &[0, 5]);
}

#[test]
fn a_compiler_without_32_bit_code_is_unavailable() {
    let Some(files) = NarrowFiles::new() else { return };
    let compiler =
        files.write("cc", "#!/bin/sh\necho 'f.c:1: fatal error: gnu/stubs-32.h: No such file' >&2\nexit 1\n");
    let source = files.write("code.c", CHAINS);
    let (compiler, source) = (compiler.to_str().expect("text"), source.to_str().expect("text"));
    let cc = format!("sh {compiler}");
    let words = ["run", "--bits", "32", "--c", source, "--call", "product(3, 4)"];
    let said = answer(cyclescope(&words).env("CC", &cc));
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("gcc-multilib") && said.stderr.contains("-ffreestanding"), "{said:?}");
    assert_eq!(answer(cyclescope(&words[..]).arg("--cc").arg(&cc)).code, Some(3));
}

#[test]
fn cpp_code_runs_with_its_constructors() {
    let Some(files) = NarrowFiles::new() else { return };
    if !has("c++") {
        return;
    }
    let text = format!(
        "{CHECK}struct Start {{ int v; Start(int x) : v(x + 1) {{}} }}; static Start start(41);\n\
         struct Scale {{ int k; int by(int x) const; }}; int Scale::by(int x) const {{ CHECK(start.v == 42); return k * x; }}\n\
         struct Big {{ int a[3]; Big with(int x); }}; Big Big::with(int x) {{ Big b = *this; b.a[0] = x; return b; }}\n\
         template <class T> T twice(T x) {{ return x + x; }} template double twice<double>(double);\n"
    );
    let source = files.write("code.cpp", &text);
    for call in ["Scale::by(5)", "Big::with(7)", "twice<double>(0.5)"] {
        run("--c", &source, &["--call", call], &[0, 5]);
    }
}

#[test]
fn guards_take_every_type_of_32_bit_code() {
    let Some(files) = NarrowFiles::new() else { return };
    let types =
        ["char", "short", "long", "long long", "void *", "float", "double", "long double", "struct two", "vector"];
    let uses = types.iter().enumerate().map(|(at, one)| {
        format!("void t{at}({one} *p) {{ {one} x = *p; CYCLESCOPE_HIDE(x); CYCLESCOPE_KEEP(x); *p = x; }}\n")
    });
    let text = format!(
        "struct two {{ long a, b; }};\ntypedef float vector __attribute__((vector_size(16)));\n{}\n{}",
        cyclescope::clock::source::C_GUARDS,
        uses.collect::<String>()
    );
    for (compiler, file) in [("gcc", "t.c"), ("g++", "t.cpp"), ("clang", "t.c"), ("clang++", "t.cpp")] {
        if !has_for_part(compiler) {
            continue;
        }
        let source = files.write(file, &text);
        for words in
            [&["-m32", "-c", "-w"][..], &["-m32", "-c", "-w", "-O0"], &["-m32", "-c", "-msse2", "-mfpmath=sse"]]
        {
            let built = files.build(compiler, words, &source, "t.o");
            assert!(built.is_ok(), "{compiler} {words:?}: {built:?}");
        }
    }
}

#[test]
fn a_region_of_c_code_is_measured() {
    let Some(files) = NarrowFiles::new() else { return };
    let region = |name: &str, text: &str, words: &[&str]| {
        let source = files.write(name, text);
        let file = source.to_str().expect("text");
        number(&[&["--bits", "32", "--c", file], words].concat())
    };
    let whole = "unsigned f(unsigned *p) { unsigned x = *p;\n\
                 CYCLESCOPE_BODY(CYCLESCOPE_HIDE(x); x *= x; CYCLESCOPE_KEEP(x);) return x; }\n";
    if let Some(line) = region("whole.c", whole, &[]) {
        let ([cost, half], ruler) = (value(&line["cost"]), line["ruler"]["imul_latency"].as_f64().expect("a ruler"));
        assert!((cost - ruler).abs() < 0.05 * ruler + 3.0 * half, "{cost} ± {half} for {ruler}: {line}");
        assert_eq!(line["bits"], 32, "{line}");
    }
    let table = "static const double A[4] = {1, 2, 3, 4}; static int used[3];\n\
                 double f(double *p) { double x = p[0]; int n = (int)(long)p & 1;\n\
                 CYCLESCOPE_BODY(CYCLESCOPE_HIDE(x); CYCLESCOPE_HIDE(n); x = x * A[n] + 0.3; used[1]++; \
                 CYCLESCOPE_KEEP(x);) return x; }\n";
    for flags in ["", "-msse2 -mfpmath=sse"] {
        region("table.c", table, &["--cflags", flags]);
    }
}
