//! Snippets whose first copy uses up some state have no number, and what the remedy says helps.

use crate::functions::Source;
use crate::support::{ATTEMPTS, answer, cyclescope, first_with_cost, has, json, measured, value};
use serde_json::Value;

/// The words of a remedy's options, such as `--setup 'mov ecx, 3'`.
fn options(remedy: &str) -> Vec<String> {
    let start = remedy.find("--").expect("an option");
    shlex::split(&remedy[start..]).expect("words of a shell")
}

/// Runs a snippet that is not steady, and returns its caveat.
fn unsteady(arguments: &[&str]) -> String {
    let line = json(&[&["run", "--quick"], arguments].concat(), &[5]);
    assert!(line["cost"]["value"].is_null(), "{line}");
    let caveats = line["caveats"].as_array().expect("a list");
    let codes: Vec<&Value> = caveats.iter().map(|caveat| &caveat["code"]).collect();
    assert_eq!(codes, ["not_steady"], "{line}");
    caveats[0]["text"].as_str().expect("text").to_string()
}

fn assert_steady(line: &Value) {
    assert!(line["caveats"].as_array().expect("a list").iter().all(|one| one["code"] != "not_steady"), "{line}");
}

#[test]
fn a_used_up_count_has_no_number_and_the_remedy_restores_it() {
    let text = unsteady(&["rep movsb", "--init", "mov ecx, 4096"]);
    assert!(text.contains("RCX") && text.contains("4096 times in the first copy"), "{text}");
    let remedy = options(&text);
    let remedy: Vec<&str> = remedy.iter().map(String::as_str).collect();
    let arguments = [&["--quick", "rep movsb", "--init", "mov ecx, 4096"], &remedy[..]].concat();
    let Some(line) = first_with_cost(|| measured(&arguments)) else { return };
    let cost = value(&line["cost"])[0];
    let setup = value(&line["setup_cost"])[0];
    // No core copies 4096 bytes, or needs a cycle for each of three moves, in less time.
    assert!(cost > 16.0 && setup < 3.5, "{line}");
    assert_eq!((&line["setup"], &line["bytes"]), (&remedy[1].into(), &"f3 a4".into()));
}

#[test]
fn a_loop_that_does_not_end_again_is_a_hang_with_its_register() {
    let line = json(&["run", "--quick", "1: loop 1b"], &[4]);
    assert_eq!(line["code"], "hang", "{line}");
    let [text, remedy] = ["text", "remedy"].map(|field| line[field].as_str().expect("text"));
    assert!(text.contains("RCX stays as the previous copy leaves it"), "{line}");
    let words = options(remedy);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    json(&[&["run", "--quick", "1: loop 1b"], &words[..]].concat(), &[0, 5]);
}

#[test]
fn text_and_tables_name_the_state_and_the_remedy() {
    let said = answer(cyclescope(&["run", "--quick", "fld1"]).env("NO_COLOR", "1"));
    let words = said.stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words.contains("no number: see below") && words.contains("add 'fstp st0' to the snippet"), "{said:?}");
    let swept = answer(&mut cyclescope(&["run", "--quick", "--sweep", "N=1,2", "add eax, {N}; fld1"]));
    assert!(swept.stdout.contains("not_steady: each copy leaves one value"), "{swept:?}");
    let set = answer(cyclescope(&["run", "--quick", "imul rax, rax", "--setup", "mov eax, 3"]).env("NO_COLOR", "1"));
    assert!(set.stdout.contains("the cost of the setup, `mov eax, 3`, was subtracted: "), "{set:?}");
}

#[test]
fn advice_keeps_variables_and_the_syntax_of_the_command() {
    let snippet = ["run", "--quick", "rep movsb", "--init", "mov ecx, {D}"];
    let compared = json(&[&snippet[..], &["--versus", "D=64|128"]].concat(), &[5]);
    let text = compared["caveats"][0]["text"].as_str().expect("text");
    assert!(text.contains("--setup 'mov ecx, {D}; "), "{compared}");
    let remedy = options(text);
    let remedy: Vec<&str> = remedy.iter().map(String::as_str).collect();
    assert_steady(&json(&[&snippet[..], &["--versus", "D=64|128"], &remedy].concat(), &[0, 5]));
    let swept = answer(&mut cyclescope(&[&snippet[..], &["--sweep", "D=64,128"]].concat()));
    assert!(swept.stdout.contains("--setup 'mov ecx, {D}; "), "{swept:?}");
    let command = ["rep movsb", "--syntax", "att", "--init", "mov $4096, %ecx"];
    let remedy = options(&unsteady(&command));
    assert_eq!(remedy[..2], ["--setup", "mov $4096, %ecx; mov %rbp, %rsi; mov %r14, %rdi"]);
    let remedy: Vec<&str> = remedy.iter().map(String::as_str).collect();
    assert_steady(&json(&[&["run", "--quick"], &command[..], &remedy].concat(), &[0, 5]));
    // So is what it says about the state.
    let command = ["div %rcx", "--syntax", "att", "--init", "mov $1000000000000, %rax; xor %edx, %edx; mov $7, %ecx"];
    let text = unsteady(&command);
    assert!(text.contains("of `div %rcx` has") && text.contains("%rax and %rdx hold"), "{text}");
    let remedy = options(&text);
    let remedy: Vec<&str> = remedy.iter().map(String::as_str).collect();
    // The remedy has the whole init code.
    assert!(remedy[0] == "--init" && remedy[1].starts_with(command[4]), "{text}");
    assert_steady(&json(&[&["run", "--quick"], &command[..3], &remedy].concat(), &[0, 5]));
}

#[test]
fn a_function_that_leaves_other_contents_is_named_and_others_are_not() {
    if !has("cc") {
        return;
    }
    let source = Source::new(
        "void sort(unsigned char *p) {\n\
           for (int i = 1; i < 2048; i++) {\n\
             unsigned char x = p[i]; int j = i;\n\
             while (j && p[j - 1] > x) { p[j] = p[j - 1]; j--; }\n\
             p[j] = x; } }\n\
         void fill(unsigned char *p) { for (int i = 0; i < 4096; i++) p[i] = i; }\n\
         long sum(unsigned char *p) { long s = 0; for (int i = 0; i < 4096; i++) s += p[i]; return s; }\n",
    );
    let caveat = |function, codes: &[i32]| {
        let line = source.run(&["--call", function, "--contents", "random"], codes);
        let caveats = line["caveats"].as_array().expect("a list").clone();
        caveats.into_iter().find(|caveat| caveat["code"] == "not_steady")
    };
    // `--setup` prepares each call, as the caveat says.
    let sorted = caveat("sort", &[5]).expect("the second call finds a sorted buffer");
    let text = sorted["text"].as_str().expect("text");
    assert!(text.contains("the first call after a fresh start executes"), "{sorted}");
    assert!(text.contains("with --setup NAME, a function of the same file"), "{sorted}");
    assert_steady(&source.run(&["--call", "sort", "--contents", "random", "--setup", "fill"], &[0, 5]));
    assert_eq!(["fill", "sum"].map(|function| caveat(function, &[0, 5])), [None, None]);
}

#[test]
fn a_function_whose_further_calls_only_take_another_time_is_named() {
    if !has("cc") {
        return;
    }
    // The first call loads from lines of many places, and later ones from one.
    let source = Source::new(
        "unsigned table[1 << 21];\n\
         unsigned f(unsigned short *p) {\n\
           unsigned x = 0;\n\
           for (int i = 0; i < 1024; i++) { x = table[p[i] * 32u + (x & 1)]; p[i] = 0; }\n\
           return x; }\n",
    );
    // Beside other load, the times of calls may say nothing.
    let steadiness = || {
        let line = source.run(&["--contents", "random"], &[5]);
        let caveats = line["caveats"].as_array().expect("a list").clone();
        let found = caveats.iter().find(|caveat| caveat["code"] == "not_steady");
        assert!(found.is_some() || caveats.iter().any(|caveat| caveat["code"] == "noisy"), "{line}");
        found.map(|caveat| caveat["text"].to_string())
    };
    let Some(text) = (0..ATTEMPTS).find_map(|_| steadiness()) else {
        return cyclescope_skipped::report_skipped("the machine is too noisy");
    };
    assert!(text.contains("the first call after a fresh start takes"), "{text}");
    assert!(text.contains("The counts of instructions are the same"), "{text}");
}

#[test]
fn code_that_is_not_compared_is_reported() {
    if !has("cc") {
        return;
    }
    let source = Source::new(
        "#define TEN(x) x x x x x x x x x x\n\
         void large(volatile int *p) { TEN(TEN(TEN(TEN(*p += 1;)))) }\n\
         void small(volatile int *p) { TEN(*p += 1;) }\n",
    );
    let reason = |function| source.run(&["--call", function], &[0, 5])["unchecked"].clone();
    assert!(reason("large").as_str().is_some_and(|reason| reason.contains("beyond 8192 instructions")));
    assert!(reason("small").is_null());
    let said = answer(cyclescope(&source.arguments(&["--call", "large"])).env("NO_COLOR", "1"));
    let words = said.stdout.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(words.contains("whether later calls do the work of the first one was not checked: part of"), "{said:?}");
}

#[test]
fn evidence_of_a_checked_function_reproduces_its_record() {
    if !has("cc") {
        return;
    }
    let source = Source::new(
        "#include <string.h>\n\
         void used(unsigned char *p) { for (int i = 0; i < 64; i++) if (p[i]) { p[i] = 0; p[i + 64] *= 3; } }\n\
         void same(unsigned char *p) { memmove(p + 1, p, 100); }\n",
    );
    let folder = crate::support::folder();
    for (function, is_steady) in [("used", false), ("same", true)] {
        let directory = folder.path().join(function);
        let directory = directory.to_str().expect("text");
        let command = ["--call", function, "--contents", "random", "--layouts", "3", "--evidence", directory];
        let kept = source.run(&command, &[0, 5]);
        let is_kept = kept["caveats"].as_array().expect("a list").iter().all(|one| one["code"] != "not_steady");
        assert_eq!(is_kept, is_steady, "{kept}");
        assert_eq!(kept, json(&["replay", directory], &[0, 5]));
    }
}

#[test]
fn code_that_could_reach_a_transaction_is_counted() {
    if !has("cc") {
        return;
    }
    // As in a library whose stack check ends in code that locks.
    let source = Source::new(
        "long done, never;\n\
         void lock(void) { __asm__ volatile(\"xbegin 1f\\n1: xend\" ::: \"eax\"); }\n\
         void f(long *p) { if (never) lock(); if (!done) for (; done < 64; done++) p[done] = done; }\n",
    );
    let line = source.run(&[], &[5]);
    let caveats = line["caveats"].as_array().expect("a list");
    let found = caveats.iter().find(|caveat| caveat["code"] == "not_steady").expect("a caveat");
    assert!(found["text"].as_str().expect("text").contains("the first call after a fresh start executes"), "{line}");
}

#[test]
fn a_setup_is_assembly_and_excludes_a_cold_start() {
    let refused = |arguments: &[&str]| json(&[&["run", "--quick", "nop"], arguments].concat(), &[2]);
    assert_eq!(refused(&["--setup", "mov eax, foo"])["code"], "bad_snippet");
    assert!(refused(&["--setup", "nop", "--cold", "code"])["text"].as_str().expect("text").contains("--cold"));
}

#[test]
fn a_function_whose_calls_grow_has_no_number_and_setup_ends_the_growth() {
    if !has("cc") {
        return;
    }
    let source = Source::new(
        "#include <stdlib.h>\n#include <string.h>\n\
         struct node { struct node *next; int value; };\n\
         static struct node *head;\n\
         int list(void *p) {\n\
           struct node *new = malloc(sizeof *new); new->next = head; new->value = 1; head = new;\n\
           int s = 0; for (struct node *at = head; at; at = at->next) s += at->value; return s; }\n\
         static char *text; static size_t length;\n\
         int text_of(void *p) { length += 4096; text = realloc(text, length); memset(text, 1, length); return *text; }\n\
         void reset(void *p) { head = NULL; free(text); text = NULL; length = 0; }\n",
    );
    for function in ["list", "text_of"] {
        let line = source.run(&["--call", function], &[5]);
        let caveats = line["caveats"].as_array().expect("a list");
        assert!(line["cost"]["value"].is_null() && caveats.len() == 1, "{line}");
        let text = caveats[0]["text"].as_str().expect("text");
        assert!(text.contains("calls execute more and more instructions"), "{line}");
        // Hundreds of calls are counted, and few are timed. All that the budget has room for took
        // a minute.
        assert!(line["layouts"].as_u64() <= Some(2), "{line}");
        let compared = source.run(&["--call", "reset", "--versus-call", function], &[5]);
        let texts = compared["caveats"].to_string();
        assert!(compared["cost"]["value"].is_null() && texts.contains("measure it alone"), "{compared}");
        assert!(!texts.contains("noisy"), "{compared}");
        first_with_cost(|| {
            let restored = source.run(&["--call", function, "--setup", "reset"], &[0, 5]);
            assert!(!restored["caveats"].to_string().contains("more and more instructions"), "{restored}");
            restored
        });
    }
}
