//! What a call costs: its throughput, its latency to a result, and its setup, which costs nothing.

use crate::functions::{CHECK, Source};
use crate::support::{ATTEMPTS, answer, cyclescope, error_text, folder, has, json, number, value};
use serde_json::Value;

/// A chain of multiplications that begins with the argument. Calls overlap unless the next call is
/// made to depend on the result.
#[test]
fn serialized_call_waits_for_the_previous_one() {
    if !has("cc") {
        return;
    }
    let chain = "x *= 0x9e3779b97f4a7c15; x ^= 5; ".repeat(16);
    let source = Source::new(&format!("unsigned long f(unsigned long x) {{ {chain} return x; }}"));
    let cost = |more: &[&str], serialized: Value| {
        let line = number(&source.arguments(&[&["--arg", "3"], more].concat())[1..])?;
        assert_eq!(line["serialized"], serialized);
        Some(value(&line["cost"])[0])
    };
    let costs = (
        cost(&[], Value::Null),
        cost(&["--serialize", "result"], "result".into()),
        cost(&["--serialize"], "fence".into()),
    );
    let (Some(overlapping), Some(result), Some(fence)) = costs else { return };
    // 16 multiplications of at least 3 cycles, with links of one cycle.
    assert!(result > 1.3 * overlapping, "{overlapping} and {result}");
    assert!(fence > 1.1 * overlapping && result > 40.0, "{overlapping}, {result} and {fence}");
}

/// A chain from the argument to the result costs as much in a function as in a snippet, because the
/// call hides none of it.
#[test]
fn latency_to_a_result_equals_its_chain() {
    if !has("cc") {
        return;
    }
    const LINKS: usize = 32;
    let chain = "__asm__ volatile(\"imul %0, %0\" : \"+r\"(x));".repeat(LINKS);
    let source = Source::new(&format!("long f(long x) {{ {chain} return x; }}"));
    let function = number(&source.arguments(&["--call", "f(3)", "--serialize", "result"])[1..]);
    let (Some(function), Some(link)) = (function, number(&["imul rax, rax"])) else { return };
    let ([cost, half], [link, error]) = (value(&function["cost"]), value(&link["cost"]));
    let chain = LINKS as f64 * link;
    let margin = half + LINKS as f64 * error + 0.02 * chain;
    assert!((cost - chain).abs() < margin, "{cost} ± {half} and {chain}");
}

/// A call waits for the register in which the function's type returns its result. A function that
/// returns nothing has no result.
#[test]
fn calls_wait_for_the_result_register_of_c_code() {
    if !has("cc") {
        return;
    }
    let chain = "x = x * 1.0625; ".repeat(24);
    let text = format!(
        "double f(double *p) {{ double x = *p; {chain} return x; }}\n\
         float g(float x) {{ {chain} return x; }}\n\
         void h(void *p) {{}}\n\
         unsigned long early(volatile long *p) {{ for (int i = 0; i < 20; i++) p[i] = i; return 7; }}\n"
    );
    let source = Source::new(&text);
    let result = ["--serialize", "result"];
    for more in [vec!["--call", "f"], vec!["--call", "g", "--arg", "1.5f"]] {
        let line = source.run(&[&more[..], &result].concat(), &[0, 5]);
        assert_eq!(line["serialized"], "float_result", "{line}");
        if let Some(line) = number(&source.arguments(&[&more[..], &result].concat())[1..]) {
            // 24 dependent multiplications of at least two cycles.
            assert!(value(&line["cost"])[0] > 48.0, "{line}");
        }
    }
    let none = error_text(&source.run(&[&["--call", "h"], &result[..]].concat(), &[2]));
    assert!(none.contains("returns nothing") && none.contains("--serialize fence"), "{none}");
    source.run(&["--call", "h", "--serialize"], &[0, 5]);
    let differ = error_text(&source.run(&[&["--call", "early", "--versus-call", "f"], &result[..]].concat(), &[2]));
    assert!(differ.contains("floating point"), "{differ}");
    // Its result is known at once, which saves the time of a call: much for so few stores. The text says so if the
    // intervals of both costs are apart; noise widens them.
    let arguments = source.arguments(&["--call", "early", "--serialize", "result"]);
    let measured = (0..ATTEMPTS).map(|_| answer(&mut cyclescope(&arguments))).find(|said| {
        assert!(matches!(said.code, Some(0 | 5)), "{said:?}");
        said.code == Some(0) && !["noisy", "no number"].iter().any(|words| said.stdout.contains(words))
    });
    match measured {
        Some(said) => {
            let words: Vec<&str> = said.stdout.split_whitespace().collect();
            assert!(words.join(" ").contains("does not depend on the argument"), "{said:?}");
        }
        None => cyclescope_skipped::report_left_out("a call with an early result: too noisy"),
    }
}

#[test]
fn calls_wait_for_the_result_register_of_cpp_code() {
    if !has("c++") {
        return;
    }
    let folder = folder();
    let file = folder.path().join("code.cpp");
    let text = "extern \"C\" float f(float x, char c) noexcept { return x * c; }\nextern \"C\" void g(char) {}\n";
    std::fs::write(&file, text).expect("a file");
    let run = |call, codes: &[i32]| {
        let file = file.to_str().expect("text");
        json(&["run", "--quick", "--c", file, "--call", call, "--serialize", "result"], codes)
    };
    assert_eq!(run("f(0.5f, 'a')", &[0, 5])["serialized"], "float_result");
    assert!(error_text(&run("g('a')", &[2])).contains("returns nothing"));
}

/// Functions that consume what the setup leaves; the second does twice the work. Without the setup,
/// the second call would find nothing.
#[test]
fn setup_runs_before_both_variants() {
    if !has("cc") {
        return;
    }
    let text = format!(
        "{CHECK}void few(volatile long *p) {{ *p = 400; }}\nvoid many(volatile long *p) {{ *p = 4000; }}\n\
         void f(volatile long *p) {{ CHECK(*p); while (*p) *p -= 1; }}\n\
         void g(volatile long *p) {{ CHECK(*p); *p *= 2; while (*p) *p -= 1; }}\n"
    );
    let source = Source::new(&text);
    let costs = |setup: &'static str| {
        let given = ["--setup", setup, "--versus-call", "g", "--interval", "10%"];
        let line = number(&source.arguments(&given)[1..])?;
        assert_eq!(line["setup"], setup, "{line}");
        let costs = [&line["cost"], &line["versus"]["cost"]].map(|cost| cost["value"].as_f64());
        let [Some(f), Some(g)] = costs else { return None };
        assert_eq!(line["versus"]["verdict"], "slower", "{line}");
        Some([f, g])
    };
    source.run(&["--versus-call", "g"], &[4]);
    let Some([few, _]) = costs("few") else { return };
    let Some([many, twice]) = costs("many") else { return };
    // The shorter one includes a call of `few` and the end of its loop.
    assert!(many > 4.0 * few && (1.5..2.5).contains(&(twice / many)), "{few}, {many} and {twice}");
}

/// The throughput and the latency of a function, and its JSON line.
fn both_costs(text: &str) -> Option<([f64; 2], [f64; 2], Value)> {
    let source = Source::new(text);
    let line = number(&source.arguments(&[])[1..])?;
    assert_eq!((&line["serialized"], &line["latency_by"]), (&Value::Null, &"fence".into()), "{line}");
    assert_eq!(line["throughput"], line["cost"], "{line}");
    let given = ["throughput", "latency"].map(|name| line[name]["value"].is_number());
    if given != [true, true] {
        cyclescope_skipped::report_left_out(format_args!("too noisy: {line}"));
        return None;
    }
    Some((value(&line["throughput"]), value(&line["latency"]), line))
}

#[test]
fn short_function_has_a_throughput_and_a_latency() {
    if !has("cc") {
        return;
    }
    // A chain that the next call doesn't depend on.
    let chain = "__asm__ volatile(\"imul %0, %0\" : \"+r\"(x));".repeat(64);
    let overlaps = format!("void f(void *p) {{ long x = 1; {chain} }}");
    // How much such chains overlap on this core, without calls.
    let copy = format!("mov eax, 1; {}", "imul rax, rax; ".repeat(64));
    let cost = |more: &str| number(&[&format!("{copy}{more}")]).map(|line| value(&line["cost"])[0]);
    let share = cost("").zip(cost("lfence")).map(|(overlapped, alone)| overlapped / alone);
    // Another user of the core takes entries of the scheduler, so that calls overlap less.
    let is_right = |([throughput, _], [latency, _], _): &([f64; 2], [f64; 2], Value)| {
        share.is_none_or(|share| *throughput < (0.3 + 0.7 * share) * latency)
    };
    let mut wrong = Vec::new();
    for costs in (0..ATTEMPTS).map_while(|_| both_costs(&overlaps)) {
        if is_right(&costs) {
            wrong.clear();
            break;
        }
        wrong.push(costs);
    }
    assert!(wrong.is_empty(), "{share:?}: {wrong:?}");
    // With fences at both ends, nothing can overlap; their cost is part of both figures.
    let fence = "__asm__ volatile(\"lfence\");";
    let alone = format!("void f(void *p) {{ long x = 1; {fence} {chain} {fence} }}");
    if let Some(([throughput, _], [latency, _], line)) = both_costs(&alone) {
        // Calls of an empty function overlap only in the first case.
        assert!((0.7..1.4).contains(&(latency / throughput)), "{line}");
    }
    let said = answer(cyclescope(&Source::new(&overlaps).arguments(&[])).env("NO_COLOR", "1"));
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{said:?}");
    // Without a number, there is no throughput.
    match said.code {
        Some(0) => {
            let named = ["\n  throughput ", "\n  latency "].map(|name| said.stdout.contains(name));
            assert_eq!(named, [true, true], "{said:?}");
        }
        code => cyclescope_skipped::report_left_out(format_args!("ended with {code:?}: {said:?}")),
    }
}

#[test]
fn long_functions_and_comparisons_have_one_cost() {
    if !has("cc") {
        return;
    }
    let source = Source::new("void f(char *p) { for (volatile long i = 0; i < 20000; i++) ; }");
    let long = source.run(&[], &[0, 5]);
    let short = Source::new("void f(long *p) { *p = 1; } void g(long *p) { *p = 2; }");
    let compared = short.run(&["--versus-call", "g"], &[0, 5]);
    for line in [long, compared] {
        let parts = ["throughput", "latency", "latency_by"].map(|name| line[name].is_null());
        assert_eq!(parts, [false, true, true], "{line}");
    }
    assert!(json(&["run", "--quick", "nop"], &[0, 5])["throughput"].is_null());
}

/// A function that works only if the setup ran before each call. The setup isn't part of its cost.
#[test]
fn setup_runs_before_each_call() {
    if !has("cc") {
        return;
    }
    let text = format!(
        "{CHECK}void prepare(volatile long *p, long n) {{ CHECK(n == 3); for (int i = 0; i < 500; i++) p[1] = i; \
         *p = 7; }}\n\
         void f(long *p, long n) {{ CHECK(*p == 7 && n == 3); *p = 0; }}"
    );
    let source = Source::new(&text);
    let given = ["--arg", "3", "--setup", "prepare"];
    source.run(&given, &[0, 5]);
    // The setup's error is part of the result's error.
    let wide = [&given[..], &["--interval", "30"]].concat();
    if let Some(line) = number(&source.arguments(&wide)[1..]) {
        let [cost, half] = value(&line["cost"]);
        assert!(cost < 150.0 + half, "{cost} ± {half}, and 500 stores before it");
    }
    let said = answer(&mut cyclescope(&source.arguments(&given)));
    let words: Vec<&str> = said.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("the cost of prepare and a call of an empty function"), "{said:?}");
    source.run(&["--arg", "3"], &[4]);
    let other = Source::new("void f(long *p, long n) {} void prepare(double x) {}");
    let differs = error_text(&other.run(&given, &[2]));
    assert!(differs.contains("void prepare(double x)"), "{differs}");
    assert!(error_text(&source.run(&["--arg", "3", "--setup", "nothing"], &[2])).contains("no function `nothing`"));
    assert!(error_text(&source.run(&["--setup", "prepare", "--serialize", "float-result"], &[2])).contains("--setup"));
}
