//! How functions are called: arguments, buffer and stack.

use crate::functions::{CHECK, Source};
use crate::support::{answer, cyclescope, error_text, folder, has, json};

/// Reads one byte per cache line of the buffer's first `n` bytes.
const SUM: &str = "long f(volatile char *p, long n) { long s = 0; for (long i = 0; i < n; i += 64) s += p[i]; \
                   s += p[n - 1]; return s; }";

#[test]
fn whole_buffer_is_accessible() {
    if !has("cc") {
        return;
    }
    let source = Source::new(SUM);
    source.run(&["--arg", "1048576"], &[0, 5]);
    let beyond = error_text(&source.run(&["--arg", "1048577"], &[4]));
    assert!(beyond.contains("SIGSEGV") && beyond.contains("buffer has 1048576 bytes"), "{beyond}");
    for size in ["64", "3M"] {
        source.run(&["--arg", "size", "--buffer", size], &[0, 5]);
    }
    let beyond = error_text(&source.run(&["--arg", "200000", "--buffer", "64K"], &[4]));
    assert!(beyond.contains("buffer has 65536 bytes"), "{beyond}");
}

#[test]
fn stack_has_the_requested_size() {
    if !has("cc") {
        return;
    }
    let source = Source::new(
        "long f(void *p, long n) { volatile char a[n]; for (long i = 0; i < n; i += 64) a[i] = 1; return a[0]; }",
    );
    source.run(&["--arg", "8000000"], &[0, 5]);
    source.run(&["--arg", "8000000", "--stack", "16M"], &[0, 5]);
    let beyond = error_text(&source.run(&["--arg", "8000000", "--stack", "64K"], &[4]));
    assert!(beyond.contains("its stack 65536 bytes"), "{beyond}");
}

#[test]
fn arguments_arrive_in_order() {
    if !has("cc") {
        return;
    }
    let text = format!(
        "{CHECK}void f(char *p, long a, unsigned long b, char *c, long d, long e) {{\n\
         CHECK(a == -1); CHECK(b == 0x8123456789abcdef); CHECK(c == p); CHECK(d == 65536); CHECK(e == 7); }}"
    );
    let given = ["--arg", "-1", "--arg", "0x8123456789abcdef", "--arg", "buffer", "--arg", "size"];
    let source = Source::new(&text);
    source.run(&[&given[..], &["--arg", "7", "--buffer", "64K"]].concat(), &[0, 5]);
    let wrong = error_text(&source.run(&[&given[..], &["--arg", "8", "--buffer", "64K"]].concat(), &[4]));
    assert!(wrong.contains("SIGILL"), "{wrong}");
    source.run(&["--arg", "1"].repeat(6), &[2]);
    let text = format!(
        "{CHECK}double f(char *p, double a, long b, float c, double d) {{\n\
         CHECK(a == 0.5); CHECK(b == 3); CHECK(c == -2.5f); CHECK(d == 1e100); return a; }}"
    );
    let floats = Source::new(&text);
    let given = ["--arg", "0.5", "--arg", "3", "--arg", "-2.5f", "--arg", "1e100"];
    for more in [&["--serialize", "float-result"][..], &["--serialize"], &["--setup", "f"], &[]] {
        floats.run(&[&given, more].concat(), &[0, 5]);
    }
    floats.run(&["--arg", "0.5"].repeat(9), &[2]);
    source.run(&["--arg", "x"], &[2]);
}

#[test]
fn buffer_has_the_requested_contents() {
    if !has("cc") {
        return;
    }
    let source = |check: &str| Source::new(&format!("{CHECK}void f(unsigned char *p, long n) {{ {check} }}"));
    let folder = folder();
    let file = folder.path().join("contents");
    std::fs::write(&file, "abc").expect("a file");
    let file = file.to_str().expect("text");
    let zeros = "for (long i = 0; i < 1 << 20; i++) CHECK(!p[i]);";
    let random =
        "long set = 0; for (long i = 0; i < 1 << 20; i++) set += p[i] & 1; CHECK(set > 500000 && set < 550000);";
    let held = "CHECK(p[0] == 'a' && p[2] == 'c' && !p[3] && !p[(1 << 20) - 1] && n == 3);";
    let pattern = "CHECK(*(double *)p > 1 && *(double *)p < 1.1);";
    for (what, check) in [("zero", zeros), ("random", random), (file, held), ("pattern", pattern)] {
        source(check).run(&["--contents", what, "--arg", "size"], &[0, 5]);
    }
    let trap = error_text(&source(held).run(&["--contents", "zero", "--arg", "size"], &[4]));
    assert!(trap.contains("SIGILL"), "{trap}");
    let source = source("");
    let large = error_text(&source.run(&["--contents", file, "--buffer", "2"], &[2]));
    assert!(large.contains("3 bytes") && large.contains("--buffer"), "{large}");
    source.run(&["--contents", "/nowhere"], &[2]);
    source.run(&["--buffer", "2G"], &[2]);
}

#[test]
fn evidence_of_a_call_with_arguments_can_be_replayed() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let kept = folder.path().join("kept");
    let kept = kept.to_str().expect("text");
    let given = ["--arg", "size", "--buffer", "4K", "--contents", "random", "--evidence", kept];
    let line = Source::new(SUM).run(&given, &[0, 5]);
    let again = json(&["replay", kept], &[0, 5]);
    assert_eq!([&again["cost"], &again["latency"]], [&line["cost"], &line["latency"]]);
}

#[test]
fn snippets_and_regions_accept_no_arguments() {
    if !has("cc") {
        return;
    }
    json(&["run", "nop", "--buffer", "4K"], &[2]);
    let cold = error_text(&Source::new("void f(int *p) { *p = 1; }").run(&["--cold", "code"], &[2]));
    assert!(cold.contains("not on functions") && cold.contains("CYCLESCOPE_BODY"), "{cold}");
    let region = Source::new("void f(int *p) { CYCLESCOPE_BODY(*p = 1;) }");
    assert!(error_text(&region.run(&["--stack", "1M"], &[2])).contains("CYCLESCOPE_BODY"));
}

#[test]
fn functions_may_allocate_and_must_free() {
    if !has("cc") {
        return;
    }
    let source = Source::new(
        "#include <stdlib.h>\nvoid f(void **p, long bytes) { volatile char *x = malloc(bytes); x[bytes - 1] = 1; \
         *p = (void *)x; free((void *)x); }\n\
         void leak(void **p) { volatile char *x = malloc(1 << 20); x[5] = 1; *p = (void *)x; }\n\
         void grow(void **p) { char *x = malloc(1 << 20); x = realloc(x, 4 << 20); x[4194303] = 1; *p = x; free(x); }",
    );
    for bytes in ["100", "200000", "1000000", "100000000"] {
        source.run(&["--arg", bytes], &[0, 5]);
    }
    source.run(&["--call", "grow"], &[0, 5]);
    let leaks = error_text(&source.run(&["--call", "leak", "--samples", "2000"], &[4]));
    assert!(leaks.contains("SIGSEGV") && leaks.contains("malloc returns null") && leaks.contains("MiB"), "{leaks}");
    let large = error_text(&source.run(&["--arg", "2000000000"], &[4]));
    assert!(large.contains("malloc returns null") || large.contains("SIGSEGV"), "{large}");
}

/// Mappings that could create code or replace the harness's memory are rejected, like all other
/// system calls.
#[test]
fn only_plain_memory_is_mapped() {
    if !has("cc") {
        return;
    }
    let map = |address: &str, protection: &str, flags: &str| {
        let text = format!(
            "#define _GNU_SOURCE\n#include <sys/mman.h>\nvoid f(char *p) {{ void *x = mmap({address}, 4096, \
             {protection}, {flags}, -1, 0); *(void **)p = x; munmap(x, 4096); }}"
        );
        Source::new(&text)
    };
    let (plain, write) = ("MAP_PRIVATE | MAP_ANONYMOUS", "PROT_READ | PROT_WRITE");
    map("0", write, plain).run(&[], &[0, 5]);
    for (address, protection, flags) in [
        ("0", "PROT_READ | PROT_EXEC", plain),
        ("0", write, "MAP_SHARED | MAP_ANONYMOUS"),
        ("0", write, "MAP_PRIVATE"),
        ("p", write, "MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED"),
        ("p", write, "MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE"),
    ] {
        let refused = error_text(&map(address, protection, flags).run(&[], &[4]));
        assert!(refused.contains("SIGSYS") && refused.contains("mmap"), "{protection} {flags}: {refused}");
    }
    let moved = Source::new(
        "#define _GNU_SOURCE\n#include <sys/mman.h>\nvoid f(char *p) { mremap(p, 4096, 4096, MREMAP_FIXED | \
         MREMAP_MAYMOVE, p); }",
    );
    assert!(error_text(&moved.run(&[], &[4])).contains("SIGSYS"));
}

/// A call has all its arguments in order, and each parameter has a value.
#[test]
fn calls_are_written_as_in_code() {
    if !has("cc") {
        return;
    }
    let text = format!(
        "{CHECK}#include <string.h>\n\
         long f(long seed, char *to, const char *from, unsigned long n, const char *word, float x) {{\n\
         CHECK(seed == -7); CHECK(to[0] == 0 && to != from); CHECK(*(double *)from > 1); CHECK(n == 512);\n\
         CHECK(!strcmp(word, \"a\\tb\")); CHECK(x == 0.5f); to[n - 1] = from[n - 1]; return 1; }}\n\
         void g(char *p, long n) {{ CHECK(n == 64); }}\n\
         void h(char *p, char *q, long n) {{ CHECK(p == q && n == 64); }}\n"
    );
    let source = Source::new(&text);
    let call = "f(-7, out, buffer:4096, size/8, \"a\\tb\", 0.5)";
    let line = source.run(&["--call", call], &[0, 5]);
    let signature = "long f(long seed, char *to, const char *from, unsigned long n, const char *word, float x)";
    assert_eq!((&line["call"]["text"], &line["call"]["signature"]), (&call.into(), &signature.into()), "{line}");
    assert!(line["snippet"].as_str().expect("text").starts_with("f of "), "{line}");
    // The command repeats the call.
    let repro = shlex::split(line["repro"].as_str().expect("text")).expect("words");
    assert!(repro.iter().any(|word| word == call), "{repro:?}");
    source.run(&["--call", "f(-7, out, buffer, size/8, \"a\\tb\", 0.5)", "--buffer", "4K"], &[0, 5]);
    let wrong = error_text(&source.run(&["--call", "f(-7, out, buffr, 5, \"\", 1)"], &[2]));
    assert!(wrong.contains("buffr can't be `const char *from`: a pointer is `buffer`"), "{wrong}");
    let wrong = error_text(&source.run(&["--call", "f(-7, out, *buffer, 5)"], &[2]));
    assert!(wrong.contains("`f(-7, out, *buffer, 5)`") && wrong.contains("at `*buffer, 5`"), "{wrong}");
    let few = error_text(&source.run(&["--call", "f(1, out)"], &[2]));
    assert!(few.contains("`const char *from` needs a value") && few.contains(signature), "{few}");
    let both = error_text(&source.run(&["--call", "g(buffer, 64)", "--arg", "n=64"], &[2]));
    assert!(both.contains("--arg"), "{both}");
    // Each variant has its own call, or that of the first one.
    let compared = source.run(&["--call", "g(buffer, 64)", "--versus-call", "h(buffer, buffer, 64)"], &[0, 5]);
    assert_eq!(compared["call"]["versus"], "h(buffer, buffer, 64)", "{compared}");
    let other = error_text(&source.run(&["--call", "g(buffer, 64)", "--versus-call", "h"], &[2]));
    assert!(other.contains("void h(char *p, char *q, long n)"), "{other}");
    let said = answer(&mut cyclescope(&source.arguments(&["--call", "h", "--arg", "n=64"])));
    let words: Vec<&str> = said.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("p and q have no --arg and point to the buffer"), "{said:?}");
    let named = error_text(&source.run(&["--call", "g", "--arg", "m=64"], &[2]));
    assert!(named.contains("no parameter `m`") && named.contains("void g(char *p, long n)"), "{named}");
}

/// Only the arguments change from point to point.
#[test]
fn sweep_changes_the_arguments_of_a_call() {
    if !has("cc") {
        return;
    }
    let source = Source::new(SUM);
    let arguments = source.arguments(&["--sweep", "N=64,4096", "--json", "--call", "f(buffer, {N})"]);
    let said = answer(&mut cyclescope(&arguments));
    for call in ["\"f(buffer, 64)\"", "\"f(buffer, 4096)\""] {
        assert!(said.stdout.contains(call), "{said:?}");
    }
}

#[test]
fn functions_are_found_by_parts_of_their_names() {
    if !has("c++") {
        return;
    }
    let folder = folder();
    let file = folder.path().join("code.cpp");
    let text = "struct Foo { long v[4]; long bar(int x); };\nlong Foo::bar(int x) { return v[x & 3]; }\n\
                namespace ns { long over(int a) { return a; } double over(double a) { return a; } }\n\
                __attribute__((noinline, used)) static long hidden(long *p) { return *p; }\n";
    std::fs::write(&file, text).expect("a file");
    let run = |call, codes: &[i32]| {
        let file = file.to_str().expect("text");
        json(&["run", "--quick", "--c", file, "--call", call], codes)
    };
    for (call, shown) in [
        ("Foo::bar(3)", "Foo::bar(buffer, 3)"),
        ("_ZN3Foo3barEi(buffer+8, 3)", "Foo::bar(buffer+8, 3)"),
        ("ns::over(double)(3)", "ns::over(3)"),
        ("hidden", "hidden(buffer)"),
    ] {
        assert_eq!(run(call, &[0, 5])["call"]["text"], shown, "{call}");
    }
    let several = error_text(&run("over(3)", &[2]));
    assert!(several.contains("ns::over(double); ns::over(int)"), "{several}");
}

/// The unwinder works in the sandbox. What ends the program is named.
#[test]
fn exceptions_work_if_they_are_caught() {
    if !has("c++") {
        return;
    }
    let folder = folder();
    let file = folder.path().join("code.cpp");
    let text = "#include <cstdlib>\n#include <stdexcept>\n\
                void caught(long *p) { try { throw std::runtime_error(\"x\"); } catch (std::exception &e) { *p = e.what()[0]; } }\n\
                void thrown(long *p) { throw 5; }\nvoid aborts(long *p) { abort(); }\n";
    std::fs::write(&file, text).expect("a file");
    let run = |call, codes: &[i32]| {
        let file = file.to_str().expect("text");
        json(&["run", "--quick", "--c", file, "--call", call], codes)
    };
    run("caught", &[0, 5]);
    for (call, reason) in [("thrown", "C++ exception that it does not catch"), ("aborts", "called abort")] {
        let refused = error_text(&run(call, &[4]));
        assert!(refused.contains(reason), "{refused}");
    }
}

/// A panic unwinds like an exception, but its message needs system calls.
#[test]
fn panics_are_named() {
    if !has("rustc") {
        return;
    }
    let folder = folder();
    let [source, library] = ["code.rs", "libcode.so"].map(|name| folder.path().join(name));
    let text = "#[unsafe(no_mangle)] pub extern \"C\" fn caught(p: *mut u64) {\n\
                let thrown = std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(4)));\n\
                unsafe { *p = u64::from(thrown.is_err()) } }\n\
                #[unsafe(no_mangle)] pub extern \"C\" fn panics(p: *mut u64) { unsafe { *p = [1, 2][*p as usize] } }\n\
                #[unsafe(no_mangle)] pub fn slice(s: &[u8]) -> u64 { s.iter().map(|x| u64::from(*x)).sum() }\n";
    std::fs::write(&source, text).expect("a file");
    let mut command = std::process::Command::new("rustc");
    command.args(["--edition", "2024", "--crate-type", "cdylib", "-O", "-g", "-o"]).arg(&library).arg(&source);
    let built = command.output().expect("a compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = |call, codes: &[i32]| {
        json(&["run", "--quick", "--lib", library.to_str().expect("text"), "--call", call], codes)
    };
    run("caught", &[0, 5]);
    let refused = error_text(&run("panics", &[4]));
    assert!(refused.contains("panic of Rust") || refused.contains("panics of Rust"), "{refused}");
    assert_eq!(run("slice({buffer, 64})", &[0, 5])["call"]["text"], "slice({buffer, 64})");
}

#[test]
fn files_of_compiler_flags_are_refused() {
    let folder = folder();
    let file = folder.path().join("code.c");
    std::fs::write(&file, "void f(void *p) {}").expect("a file");
    for flags in ["@flags", "-O3 -Wl,@flags"] {
        let refused = error_text(&json(&["run", "--c", file.to_str().expect("text"), "--cflags", flags], &[2]));
        assert!(refused.contains("@flags"), "{refused}");
    }
}

#[test]
fn calls_of_one_function_are_named_with_their_arguments() {
    if !has("cc") {
        return;
    }
    let source =
        Source::new("long f(long *p, long n) { long s = 0; for (long i = 0; i < n; i++) s += p[i]; return s; }\n");
    let others = ["--call", "f(buffer, 8)", "--versus-call", "f(buffer, 64)", "--versus-call", "f(buffer, 32)"];
    let line = source.run(&others, &[0, 5]);
    let mut rows: Vec<&str> =
        line["variants"].as_array().expect("a list").iter().filter_map(|row| row["snippet"].as_str()).collect();
    rows.sort();
    let calls: Vec<&str> = rows.iter().filter_map(|row| Some(row.split_once(" of ")?.0)).collect();
    assert_eq!(calls, ["f(buffer, 32)", "f(buffer, 64)", "f(buffer, 8)"], "{line}");
}

#[test]
fn words_of_variants_reach_arguments_and_buffers() {
    if !has("cc") {
        return;
    }
    let source = Source::new(SUM);
    // The larger buffer holds both, and each has its own size.
    let line = source.run(&["--arg", "size", "--buffer", "N", "--versus", "N=4K|64K"], &[0, 5]);
    let variants = line["variants"].as_array().expect("a list");
    let [first, second] = [0, 1].map(|at| variants[at]["snippet"].as_str().expect("text"));
    // `size` is text until it is bound.
    assert!(first.starts_with("f of ") && second.starts_with("f of "), "{line}");
    if let [Some(first), Some(second)] = [0, 1].map(|at| variants[at]["cost"]["value"].as_f64()) {
        assert!(second > 2.0 * first, "{line}");
    }
    assert!(line["repro"].as_str().expect("text").contains("--buffer '{N}'"), "{line}");
    let line = source.run(&["--arg", "{N}", "--versus", "N=64|4K"], &[0, 5]);
    assert!(line["variants"][1]["snippet"].as_str().expect("text").starts_with("f(buffer, 4096)"), "{line}");
    for (arguments, says) in [
        (&["--arg", "64", "--contents", "{C}", "--versus", "C=zero|random"][..], "share one buffer"),
        (&["--arg", "64", "--loop", "{C}", "--versus", "C=4|8"], "--loop does not accept `{C}`"),
        (&["--arg", "{N}"], "--arg does not accept `{N}`"),
    ] {
        let refused = error_text(&source.run(arguments, &[2]));
        assert!(refused.contains(says) && refused.contains("--sweep"), "{refused}");
    }
}

#[test]
fn functions_of_the_file_and_of_its_libraries_are_arguments() {
    if !has("cc") {
        return;
    }
    let source = Source::new(&format!(
        "{CHECK}#include <stdlib.h>\n\
         typedef int compare_type(const void *, const void *);\n\
         static int last; int calls;\n\
         int ascending(const void *a, const void *b) {{ return *(const int *)a - *(const int *)b; }}\n\
         static int descending(const void *a, const void *b) {{ return *(const int *)b - *(const int *)a; }}\n\
         compare_type *keep(void) {{ return descending; }}\n\
         void sort(int *p, int n, compare_type *compare) {{\n\
           for (int i = 0; i < n; i++) p[i] = i * 7919 % 64;\n\
           qsort(p, n, sizeof *p, compare);\n\
           for (int i = 1; i < n; i++) CHECK(compare(p + i - 1, p + i) <= 0 && p[i] >= p[0] == (compare == ascending)); }}\n\
         double twice(double (*f)(double), double x) {{ return f(f(x)); }}\n"
    ));
    for call in ["sort(buffer, 64, &ascending)", "sort(buffer, 64, descending)", "qsort(buffer, 64, 4, &ascending)"] {
        let line = source.run(&["--call", call], &[0, 5]);
        assert_eq!(line["call"]["text"], call, "{line}");
    }
    source.run(&["--call", "sort", "--arg", "compare=&ascending", "--arg", "n=64"], &[0, 5]);
    source.run(&["--call", "twice(&sin, 0.5)", "--cflags", "-Wl,--no-as-needed -lm"], &[0, 5]);
    for (call, why) in [
        ("sort(buffer, 64, &other)", "no function `other`"),
        ("sort(buffer, 64, other)", "no function of this name"),
        ("sort(buffer, 64, buffer)", "is the name of one, such as &compare"),
        ("sort(&ascending, 64, &ascending)", "no pointer to a function"),
    ] {
        let refused = error_text(&source.run(&["--call", call], &[2]));
        assert!(refused.contains(why), "{call}: {refused}");
    }
    let missing = error_text(&source.run(&["--call", "sort", "--arg", "n=64"], &[2]));
    assert!(missing.contains("add --arg compare='&NAME'"), "{missing}");
}
