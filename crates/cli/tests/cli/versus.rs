//! `run A --versus B`: two variants in the same rounds.

use crate::support::{answer, cyclescope, folder, has, json};

/// The difference of two variants; `None` if the machine is too noisy for a number.
fn difference(line: &serde_json::Value) -> Option<[f64; 3]> {
    let part = |name: &str| line["versus"]["difference"][name].as_f64();
    Some([part("value")?, part("low")?, part("high")?])
}

#[test]
fn longer_chain_is_slower_by_its_additional_links() {
    let line = json(&["run", "imul rax, rax", "--versus", "imul rax, rax; add rax, rax"], &[0, 5]);
    let versus = &line["versus"];
    assert_eq!(
        (&versus["snippet"], &versus["bytes"]),
        (&"imul rax, rax; add rax, rax".into(), &"48 0f af c0 48 01 c0".into())
    );
    let Some([value, low, high]) = difference(&line) else { return };
    // An addition after a chain of multiplications adds a link of one cycle.
    assert!(low < value && value < high && (0.9..1.1).contains(&value), "{line}");
    assert_eq!(versus["verdict"], "slower", "{line}");
    assert!(versus["ratio"]["low"].as_f64() > Some(1.0), "{line}");
}

#[test]
fn identical_snippets_do_not_always_differ() {
    let other = (0..4).filter(|seed| {
        let seed = seed.to_string();
        let line = json(&["run", "--seed", &seed, "add rax, rax", "--versus", "add rax, rax"], &[0, 5]);
        ["slower", "faster"].iter().any(|verdict| line["versus"]["verdict"] == *verdict)
    });
    assert!(other.count() < 4);
}

#[test]
fn text_explains_the_difference() {
    let said = answer(cyclescope(&["run", "--hex", "90", "--versus", "4801c0"]).env("NO_COLOR", "1"));
    assert!(matches!(said.code, Some(0 | 5)) && said.stdout.contains("\nversus\nadd"), "{said:?}");
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{said:?}");
    for (arguments, code) in [
        (["run", "nop", "--versus", "nonsense"], 2),
        (["run", "nop", "--versus", ""], 2),
        (["run", "nop", "--versus", "hlt"], 4),
        (["run", "nop", "--versus-call", "f"], 2),
    ] {
        assert_eq!(answer(&mut cyclescope(&arguments)).code, Some(code), "{arguments:?}");
    }
}

#[test]
fn two_functions_are_compared_with_their_code() {
    if !has("cc") {
        return;
    }
    let files = folder();
    let file = |name: &str, links: usize| {
        let path = files.path().join(name);
        let link = "__asm__ volatile(\"imul %0, %0\" : \"+r\"(x));".repeat(links);
        std::fs::write(&path, format!("void f(void *p) {{ long x = 1; {link} }}\nvoid g(void *p) {{}}\n"))
            .expect("a file");
        path.to_str().expect("text").to_string()
    };
    let (short, long) = (file("short.c", 64), file("long.c", 192));
    let line = json(&["run", "--c", &short, "--versus", &long], &[0, 5]);
    let parts = [&line["cost"]["value"], &line["versus"]["cost"]["value"]].map(|value| value.as_f64());
    let [Some(one), Some(other)] = parts else { return };
    // Calls overlap, so the shorter chain hides more of its cost.
    assert!(other > 1.5 * one, "{line}");
    // The function has only one address if the system runs no code from memory.
    assert!(line["addresses"].as_u64() >= Some(1), "{line}");
    assert!(json(&["run", "--quick", "nop"], &[0, 5])["addresses"].is_null());
    let line = json(&["run", "--c", &short, "--versus-call", "g"], &[0, 5]);
    assert_eq!(line["versus"]["snippet"], format!("g of {short}"), "{line}");
    if let Some([value, ..]) = difference(&line) {
        assert!(value < 0.0 && line["versus"]["verdict"] == "faster", "{line}");
    }
}

#[test]
fn caveat_comes_with_one_suggestion() {
    // No machine can measure a chain of divisions to a hundred-thousandth of a cycle in this
    // budget.
    let arguments = ["run", "--interval", "0.00001", "--budget", "0.001", "div rbx"];
    let said = answer(cyclescope(&arguments).env("NO_COLOR", "1"));
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(said.stdout.contains("interval_not_reached:") && said.stdout.contains("try: give more time"), "{said:?}");
}
