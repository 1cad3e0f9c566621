//! `run A --versus B`: two variants in the same rounds.

use crate::support::{answer, cyclescope, folder, has, json, measure_until};

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
fn several_variants_are_ranked() {
    let imul = ["imul rax, rax", "imul rax, rax; imul rax, rax"];
    let arguments = ["run", imul[1], "--versus", "add rax, rax", "--versus", imul[0]];
    let line = json(&arguments, &[0, 5]);
    assert!(line.get("versus").is_none(), "{line}");
    let variants = line["variants"].as_array().expect("a list");
    let snippets: Vec<&serde_json::Value> = variants.iter().map(|variant| &variant["snippet"]).collect();
    assert_eq!(snippets, [imul[1], "add rax, rax", imul[0]]);
    // Disturbed variants may share a rank, but the order is never another one.
    let ranks: Vec<Option<u64>> = variants.iter().map(|variant| variant["rank"].as_u64()).collect();
    if let [Some(two), Some(add), Some(one)] = ranks[..] {
        assert!(add == 1 && add <= one && one <= two, "{line}");
    }
    let verdicts: Vec<_> = variants.iter().map(|variant| &variant["verdict"]).collect();
    assert!(
        verdicts[0].is_null()
            && verdicts[1..].iter().all(|verdict| ["faster", "unclear"].contains(&verdict.as_str().expect("a word"))),
        "{line}"
    );
    let said = answer(cyclescope(&arguments).env("NO_COLOR", "1"));
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{said:?}");
    let heading = said.stdout.lines().position(|line| line.trim_start().starts_with("rank ")).expect("a heading");
    let rows: Vec<&str> = said.stdout.lines().skip(heading + 1).take(3).collect();
    assert!(rows.iter().any(|row| row.contains("first") && row.ends_with(imul[1])), "{said:?}");
}

#[test]
fn words_make_variants() {
    let folder = folder();
    let evidence = folder.path().join("evidence").display().to_string();
    let words = ["--versus", "I=|mov rcx, -1", "--init", "mov ecx, 1; {I}"];
    let line = json(&[&["run", "--quick", "--evidence", &evidence, "add rax, rcx"], &words[..]].concat(), &[0, 5]);
    let names: Vec<_> = line["variants"].as_array().expect("a list").iter().map(|variant| &variant["name"]).collect();
    assert_eq!(names, ["I = ''", "I = mov rcx, -1"]);
    let inits: Vec<_> = line["variants"].as_array().expect("a list").iter().map(|variant| &variant["init"]).collect();
    assert_eq!(inits, ["b9 01 00 00 00", "b9 01 00 00 00 48 c7 c1 ff ff ff ff"]);
    assert!(line["versus"]["verdict"].is_string(), "two variants also have a comparison: {line}");
    // The command repeats itself with all its words.
    let repro = shlex::split(line["repro"].as_str().expect("a command")).expect("words");
    assert!(repro.contains(&words[1].to_string()) && repro.contains(&words[3].to_string()), "{repro:?}");
    let replayed = json(&["replay", &evidence], &[0, 5]);
    assert_eq!(replayed["variants"], line["variants"]);
    let line = json(&["run", "{S}", "--versus", "S=add rax, rax|add rax, rax; imul rax, rax"], &[0, 5]);
    assert!(line["variants"][0]["rank"].as_u64() <= Some(1) && line["versus"]["verdict"] != "faster", "{line}");
    for arguments in [
        &["run", "nop", "--versus", "S=a|b"][..],
        &["run", "{S}", "--versus", "S=nop|nopp"],
        &["run", "{S}", "--versus", "S=nop|imul rax, rax", "--versus", "nop"],
        &["run", "{T}", "--versus", "S=nop|imul rax, rax"],
    ] {
        assert_eq!(answer(&mut cyclescope(arguments)).code, Some(2), "{arguments:?}");
    }
}

#[test]
fn flags_and_compilers_make_variants() {
    if !has("cc") {
        return;
    }
    let files = folder();
    let path = files.path().join("f.c");
    std::fs::write(&path, "#ifndef N\n#define N 1\n#endif\nlong f(volatile long *p) { for (int i = 0; i < N; i++) *p *= 3; return *p; }\n")
        .expect("a file");
    let path = path.to_str().expect("text");
    let flags = ["--cflags", "{F}", "--versus", "F=-DN=2|-DN=200 -O3|-DN=20"];
    let line = json(&[&["run", "--quick", "--c", path], &flags[..]].concat(), &[0, 5]);
    let costs: Vec<Option<f64>> = (0..3).map(|index| line["variants"][index]["cost"]["value"].as_f64()).collect();
    if let [Some(two), Some(many), Some(twenty)] = costs[..] {
        assert!(many > 2.0 * twenty && many > 2.0 * two, "{line}");
    }
    let compilers = ["--cc", "{C}", "--versus", "C=cc|cc -DN=100"];
    let line = json(&[&["run", "--quick", "--c", path], &compilers[..]].concat(), &[0, 5]);
    assert_eq!(line["variants"][1]["name"], "C = cc -DN=100");
    assert_ne!(line["versus"]["verdict"], "faster", "{line}");
    let missing = answer(&mut cyclescope(&["run", "--c", path, "--cc", "no-such-compiler"]));
    assert!(missing.code == Some(3) && missing.stderr.contains("install no-such-compiler"), "{missing:?}");
    assert_eq!(answer(&mut cyclescope(&["run", "--c", path, "--cc", "'"])).code, Some(2));
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
    let arguments = ["run", "--interval", "0.00001", "--budget", "0.02", "div rbx"];
    let measure = || answer(cyclescope(&arguments).env("NO_COLOR", "1"));
    let said = measure_until(measure, |said| said.stdout.contains("interval_not_reached:"));
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(said.stdout.contains("interval_not_reached:") && said.stdout.contains("try: give more time"), "{said:?}");
}

#[test]
fn words_name_the_file_of_a_variant() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("v1.s"), "imul rax, rbx\n").expect("a file");
    std::fs::write(path("v2.s"), "add rax, rbx\n").expect("a file");
    let line = json(&["run", "--quick", "--versus", "F=v1|v2", "--file", &path("{F}.s")], &[0, 5]);
    let mut snippets: Vec<&str> =
        line["variants"].as_array().expect("a list").iter().filter_map(|row| row["snippet"].as_str()).collect();
    snippets.sort();
    assert_eq!(snippets, ["add rax, rbx", "imul rax, rbx"], "{line}");
}
