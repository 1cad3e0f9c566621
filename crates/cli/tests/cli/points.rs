//! `run --sweep` and `run --from`: many points with one command.

use crate::support::{Answer, Running, answer, cyclescope, folder, has, parse_lines, value};
use serde_json::Value;
use std::collections::BTreeSet;

fn run_points(arguments: &[&str]) -> Answer {
    answer(cyclescope(&[&["run"], arguments].concat()).env("NO_COLOR", "1"))
}

/// The point lines of a command with `--json`.
fn measured(arguments: &[&str]) -> Vec<Value> {
    let answer = run_points(&[&["--json"], arguments].concat());
    assert!(matches!(answer.code, Some(0 | 5)), "{arguments:?}: {answer:?}");
    let mut lines = parse_lines(&answer.stdout);
    assert_eq!(lines.remove(0)["kind"], "machine");
    lines.sort_by_key(|line| line["point"]["number"].as_u64());
    lines
}

/// The values of lines.
fn values(lines: &[Value]) -> Vec<u64> {
    lines.iter().map(|line| line["point"]["value"].as_u64().expect("a value")).collect()
}

/// The cost of a line, if it has a number.
fn cost(line: &Value) -> Option<[f64; 2]> {
    line["cost"]["value"].as_f64().map(|_| value(&line["cost"]))
}

#[test]
fn variable_is_replaced_in_every_kind_of_code() {
    let lines = measured(&["--quick", "--sweep", "N=1..4*2", "--init", "mov rbx, {N*8}", "add rax, {N}"]);
    assert_eq!(values(&lines), [1, 2, 4]);
    for (line, n) in lines.iter().zip([1, 2, 4]) {
        assert_eq!((&line["kind"], &line["snippet"]), (&"run".into(), &format!("add rax, {n}").into()));
        assert_eq!(line["point"]["variable"], "N");
        assert!(line["init"].as_str().expect("text").contains(&format!("{:02x}", 8 * n)), "{line}");
    }
    let lines = measured(&["--quick", "--sweep=N=10,20", "--loop", "N", "--unroll={N/10}", "--hex", "48 ff c0"]);
    let plans: Vec<_> = lines.iter().map(|line| (line["loop"].as_u64(), line["unroll"].as_u64())).collect();
    assert_eq!(plans, [(Some(10), Some(1)), (Some(20), Some(2))]);
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("a.s"), "add rax, {N}\n").expect("a file");
    std::fs::write(path("b.s"), "add rax, rax\n").expect("a file");
    let lines = measured(&["--quick", "--sweep", "N=3,5", "--file", &path("a.s"), "--versus", &path("b.s")]);
    let both: Vec<_> = lines.iter().map(|line| [&line["snippet"], &line["versus"]["snippet"]]).collect();
    assert_eq!(both, [["add rax, 3", "add rax, rax"], ["add rax, 5", "add rax, rax"]]);
    let from_stdin =
        answer(cyclescope(&["run", "--quick", "--sweep", "N=7", "--json", "-"]).write_stdin("sub rcx, {N}"));
    assert!(from_stdin.stdout.contains("\"snippet\":\"sub rcx, 7\""), "{from_stdin:?}");
}

#[test]
fn words_are_points_in_their_order() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    let (out, plots) = (path("out"), path("plots"));
    let sweep = ["--quick", "--sweep", "S=nop|imul rax, rax, 3|", "--init", "{S}", "add rax, rax; {S}"];
    let text = run_points(&[&sweep[..], &["--out", &out, "--plots", &plots, "--csv", &path("csv")]].concat());
    assert_eq!(text.code, Some(0), "{text:?}");
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let heading = text.stdout.lines().find(|line| line.contains("core cycles")).expect("a heading");
    assert_eq!(words(heading), ["S", "core", "cycles", "ns", "notes"]);
    assert!(text.stdout.contains("  ''  "), "an empty word is visible: {text:?}");
    let csv = std::fs::read_to_string(path("csv")).expect("a file");
    let rows: Vec<&str> = csv.lines().collect();
    assert!(
        rows[0].starts_with("S,cycles,") && rows[2].starts_with("\"imul rax, rax, 3\",") && rows[3].starts_with(',')
    );
    let svg = std::fs::read_to_string(files.path().join("plots/sweep-S.svg")).expect("a picture");
    assert!(svg.contains("imul rax, rax, 3"), "{svg:.200}");
    // Resuming a complete file measures nothing.
    let resumed = run_points(&["--json", "--resume", &out]);
    let mut lines = parse_lines(&resumed.stdout);
    assert_eq!((resumed.code, lines.len()), (Some(0), 4), "{resumed:?}");
    lines.remove(0);
    lines.sort_by_key(|line| line["point"]["number"].as_u64());
    let points: Vec<_> = lines.iter().map(|line| [&line["point"]["variable"], &line["point"]["word"]]).collect();
    assert_eq!(points, [["S", "nop"], ["S", "imul rax, rax, 3"], ["S", ""]]);
    assert_eq!((&lines[1]["snippet"], &lines[2]["init"]), (&"add rax, rax; imul rax, rax, 3".into(), &"".into()));
    let failed = run_points(&["--quick", "--sweep", "S=nop|nopp", "{S}"]);
    assert!(failed.code == Some(2) && failed.stderr.contains("S = nopp: "), "{failed:?}");
}

#[test]
fn each_point_reads_its_own_file() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("v1.s"), "imul rax, rbx\n").expect("a file");
    std::fs::write(path("v2.s"), "add rax, {N}\n").expect("a file");
    let sweep = ["--quick", "--json", "--sweep", "N=1,2", "--file", &path("v{N}.s")];
    let measured = run_points(&sweep);
    let snippets: BTreeSet<String> =
        parse_lines(&measured.stdout).iter().filter_map(|line| Some(line["snippet"].as_str()?.to_string())).collect();
    assert_eq!(snippets, ["add rax, 2", "imul rax, rbx"].map(str::to_string).into(), "{measured:?}");
}

#[test]
fn points_rank_their_variants() {
    let sweep = ["--quick", "--sweep", "N=1,2", "{S}", "--versus", "S=imul rax, rax, {N}|add rax, {N}|nop"];
    let lines = measured(&sweep);
    for (line, n) in lines.iter().zip(["1", "2"]) {
        let variants = line["variants"].as_array().expect("a list");
        let names: Vec<_> = variants.iter().map(|variant| variant["name"].as_str().expect("text")).collect();
        assert_eq!(names, [&format!("S = imul rax, rax, {n}"), &format!("S = add rax, {n}"), "S = nop"]);
        if let [Some([imul, _]), Some([add, _])] = [0, 1].map(|index| cost(&variants[index])) {
            assert!(imul > 2.0 * add && variants[0]["rank"].as_u64() >= variants[1]["rank"].as_u64(), "{line}");
        }
    }
    let text = run_points(&sweep);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
    assert_eq!(text.stdout.lines().filter(|line| line.contains(" S = ")).count(), 6, "{text:?}");
    let csv = run_points(&[&sweep[..], &["--csv", "-"]].concat()).stdout;
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows.len() == 7 && rows[0].ends_with(",variant,rank,ratio,ratio_low,ratio_high,verdict"), "{csv}");
    assert!(rows[2].starts_with("1,") && rows[2].contains(",\"S = add rax, 1\","), "{csv}");
}

#[test]
fn repro_of_a_point_measures_the_same() {
    let lines = measured(&["--quick", "--sweep", "N=1,3", "--seed", "7", "imul rax, rax, {N}"]);
    let repro = lines[1]["repro"].as_str().expect("text");
    let words = shlex::split(repro).expect("words of a shell");
    let words: Vec<&str> = words[2..].iter().map(String::as_str).collect();
    let alone = run_points(&[&["--json"], words.as_slice()].concat());
    let alone: Value = serde_json::from_str(&alone.stdout).expect("one line");
    for field in ["snippet", "bytes", "seed", "cpu", "clock", "repro"] {
        assert_eq!(alone[field], lines[1][field], "{field}");
    }
    assert!(alone.get("point").is_none());
}

#[test]
fn cost_grows_with_the_loop_and_not_with_the_copies() {
    let adds = |n: usize| vec!["add rax, rax"; n].join(";");
    let files = folder();
    let path = files.path().join("list.csv");
    let rows = [1, 2, 4].map(|n| format!("chain {n},\"{}\"\n", adds(n)));
    std::fs::write(&path, format!("name,snippet\n{}", rows.concat())).expect("a file");
    let lines = measured(&["--from", path.to_str().expect("text")]);
    let names: Vec<_> = lines.iter().map(|line| line["point"]["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["chain 1", "chain 2", "chain 4"]);
    let costs: Option<Vec<_>> = lines.iter().map(cost).collect();
    let Some(costs) = costs else {
        return cyclescope_skipped::report_left_out("too noisy for three numbers");
    };
    for ([cycles, margin], n) in costs.into_iter().zip([1.0, 2.0, 4.0]) {
        assert!((cycles - n).abs() < 0.1 * n + margin, "{n} additions: {cycles} ± {margin}");
    }
}

#[test]
fn functions_are_compiled_and_called_with_each_value() {
    if !has("cc") {
        return;
    }
    let files = folder();
    let source = files.path().join("f.c");
    let source = source.to_str().expect("text");
    let code = "long f(void *p, long n) { long x = 1; while (n--) __asm__ volatile(\"imul %0, %0\" : \"+r\"(x)); return x; }\n\
                void g(void *p) { long x = 1; for (int i = 0; i < N; i++) __asm__ volatile(\"imul %0, %0\" : \"+r\"(x)); }\n";
    std::fs::write(source, format!("#ifndef N\n#define N 1\n#endif\n{code}")).expect("a file");
    let swept = ["--quick", "--sweep", "N=100,1000", "--c", source];
    let by_argument = measured(&[&swept[..], &["--arg", "N", "--buffer", "{N*8}"]].concat());
    let by_macro = measured(&[&swept[..], &["--cflags=-DN={N}", "--call", "g"]].concat());
    for lines in [by_argument, by_macro] {
        assert!(lines.iter().all(|line| line["kind"] == "run"), "{lines:?}");
        let [Some([one, _]), Some([ten, _])] = [cost(&lines[0]), cost(&lines[1])] else { continue };
        // Calls overlap; shorter ones overlap more.
        assert!(ten > 5.0 * one, "{one} and {ten}");
    }
    // Each point has its own library, loaded sixteen times if the system runs code from memory. Four
    // points would need as many files as there may be, besides the program's own.
    let command = format!(
        "ulimit -n 64; exec {} run --json --quick --sweep N=1..4 --c {source} --cflags=-DN={{N}} --call g",
        env!("CARGO_BIN_EXE_cyclescope")
    );
    let many = answer(assert_cmd::Command::new("sh").args(["-c", &command]));
    assert_eq!((many.code, many.stdout.lines().count()), (Some(0), 5), "{many:?}");
    // The compiler's files are removed.
    let left = std::fs::read_dir(files.path()).expect("a folder").count();
    assert_eq!(left, 1);
}

#[test]
fn failed_point_is_a_row_and_the_others_are_measured() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("list"), "imul rax, rax\n# a comment\nmov rax, [8]\n\nud2\n").expect("a file");
    let evidence = path("evidence");
    let lines = measured(&["--quick", "--from", &path("list"), "--evidence", &evidence]);
    let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["run", "error", "error"]);
    assert_eq!((&lines[1]["exit"], &lines[1]["signal"]), (&4.into(), &"SIGSEGV".into()));
    assert_eq!(lines[2]["point"]["name"], "ud2");
    let again = answer(&mut cyclescope(&["replay", "--json", &evidence]));
    assert_eq!(again.code, Some(0), "{again:?}");
    let mut again = parse_lines(&again.stdout);
    again.remove(0);
    again.sort_by_key(|line| line["point"]["number"].as_u64());
    assert_eq!(again, lines);
    let text = run_points(&["--quick", "--from", &path("list"), "--csv", &path("out.csv")]);
    assert!(text.code == Some(0) && text.stdout.contains("failed"), "{text:?}");
    assert!(text.stdout.contains("address memory through R14"), "{text:?}");
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
    let csv = std::fs::read_to_string(path("out.csv")).expect("a file");
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows[0].starts_with("name,cycles,low,high,status,") && rows[0].ends_with(",snippet"), "{csv}");
    assert!(rows[2].starts_with("\"mov rax, [8]\",,,,failed,"), "{csv}");
    std::fs::write(path("list"), "ud2\nmov rax, [8]\n").expect("a file");
    assert_eq!(run_points(&["--quick", "--from", &path("list")]).code, Some(4));
}

#[test]
fn table_is_printed_as_csv_and_plotted() {
    let files = folder();
    let plots = files.path().join("plots");
    let arguments =
        ["--quick", "--sweep", "N=1K..4K*2", "--csv", "-", "--plots", plots.to_str().expect("text"), "add rax, {N}"];
    let answer = run_points(&arguments);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let values: Vec<_> = answer.stdout.lines().map(|line| line.split(',').next().unwrap_or_default()).collect();
    assert_eq!(values, ["N", "1024", "2048", "4096"]);
    for name in ["sweep-N.svg", "sweep-N-each.svg"] {
        let svg = std::fs::read_to_string(plots.join(name)).expect("a picture");
        assert!(svg.starts_with("<svg") && svg.contains("core cycles"), "{svg:.200}");
    }
}

#[test]
fn misuse_is_rejected_with_a_remedy() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("bad"), "nop\n\nnopp\n").expect("a file");
    std::fs::write(path("csv"), "snippet,nam\n").expect("a file");
    let (bad, csv, none) = (path("bad"), path("csv"), path("none"));
    let cases: [(&[&str], &str); 25] = [
        (&["--sweep", "F=-O2", "{F}"], "words with bars"),
        (&["--sweep", "F='a|b", "{F}"], "not closed"),
        (&["--sweep", "F=a|b", "nop"], "does not use F"),
        (&["--sweep", "F=1|2", "add rax, {F*2}"], "are words"),
        (&["--sweep", "F=1|2", "add rax, {G}; add rax, {F}", "--versus", "H=a|b"], "unknown variable in {G}"),
        (&["--sweep", "N=5..1", "add rax, {N}"], "empty"),
        (&["--sweep", "N=1..5*1", "add rax, {N}"], "above 1"),
        (&["--sweep", "N=1..5+0", "add rax, {N}"], "step is 0"),
        (&["--sweep", "N=1..1M", "add rax, {N}"], "more than 10000"),
        (&["--sweep", "5..6", "add rax, {N}"], "a name and its values"),
        (&["--sweep", "N=1,2", "nop"], "does not use N"),
        (&["--sweep", "N=1,2", "add rax, {M}"], "unknown variable in {M}"),
        (&["--sweep", "N=1,2", "add rax, {N/2}"], "not a whole number"),
        (&["--sweep", "N=1,2", "addd rax, {N}"], "N = 1: "),
        (&["--sweep", "N=8,9000000000", "--buffer", "{N}", "--c", "x.c"], "N = 9000000000: "),
        (&["--sweep", "N=1,2", "--counts", "add rax, {N}"], "--counts"),
        (&["add rax, {N}"], "with --sweep"),
        (&["--loop", "{N*2}", "nop"], "with --sweep"),
        (&["--csv", "-", "nop"], "need --sweep"),
        (&["--from", &bad], "line 3: "),
        (&["--from", &csv], "did you mean `name`"),
        (&["--from", &none], "can't be read"),
        (&["--from", &bad, "nop"], "--from"),
        (&["--resume", &none], "can't be opened"),
        (&["--resume", &bad], "was not written by"),
    ];
    for (arguments, says) in cases {
        let answer = run_points(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(says) && answer.stdout.is_empty(), "{arguments:?}: {answer:?}");
    }
    // Without a sweep, braces belong to assembly and other languages.
    assert_eq!(run_points(&["--quick", "vaddps zmm0{{k1}}, zmm0, zmm0"]).code, Some(2));
    let json = run_points(&["--json", "--sweep", "N=5..1", "nop"]);
    assert_eq!(parse_lines(&json.stdout)[0]["kind"], "error");
}

/// A sweep of some seconds.
const LONG: &[&str] = &["run", "--sweep", "N=1..40", "imul rax, rax; add rax, {N}"];

/// The values in a result file, each of which must occur once.
fn kept(path: &str) -> BTreeSet<u64> {
    let text = std::fs::read_to_string(path).expect("a file");
    let lines = parse_lines(&text);
    let values: BTreeSet<u64> = values(&lines[1..]).into_iter().collect();
    assert_eq!(values.len(), lines.len() - 1);
    values
}

#[test]
fn killed_sweep_resumes_where_it_stopped() {
    let files = folder();
    let path = files.path().join("a file.jsonl").display().to_string();
    let mut running = Running::start(&[LONG, &["--out", &path]].concat());
    running.until(&path, 3);
    running.signal(libc::SIGKILL);
    let before = std::fs::read_to_string(&path).expect("a file");
    let whole = &before[..before.rfind('\n').expect("a line") + 1];
    let mut running = Running::start(&["run", "--resume", &path]);
    running.until(&path, whole.lines().count() + 2);
    let (status, said) = running.signal(libc::SIGINT);
    assert_eq!(status.code(), Some(130));
    assert!(said.contains(&format!("cyclescope run --resume '{path}'")), "{said}");
    // The first points aren't in the order of their values.
    let first = kept(&path);
    assert!(first != (1..=first.len() as u64).collect(), "{first:?}");
    for (more, says) in [
        (&["--resume", &path, "--quick"][..], "reads the command"),
        (&["--resume", &path, "--sweep", "N=1..41", LONG[3]], "the command was"),
    ] {
        let answer = self::run_points(more);
        assert!(answer.code == Some(2) && answer.stderr.contains(says), "{answer:?}");
    }
    let answer = self::run_points(&[&LONG[1..], &["--resume", &path]].concat());
    assert!(answer.code == Some(0) && answer.stdout.contains("40 of 40 points"), "{answer:?}");
    assert_eq!(kept(&path), (1..=40).collect());
    assert!(std::fs::read_to_string(&path).expect("a file").starts_with(whole));
    // A complete file is printed again.
    let again = self::run_points(&["--resume", &path]);
    assert_eq!((again.code, again.stdout), (answer.code, answer.stdout));
}

#[test]
fn only_the_same_points_resume() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("list"), "nop\nadd rax, rax\n").expect("a file");
    assert_eq!(run_points(&["--quick", "--from", &path("list"), "--out", &path("out")]).code, Some(0));
    assert_eq!(run_points(&["--quick", "--from", &path("list"), "--out", &path("out")]).code, Some(2));
    let resume = || run_points(&["--quick", "--from", &path("list"), "--resume", &path("out")]);
    assert_eq!(resume().code, Some(0));
    std::fs::write(path("list"), "nop\nadd rax, rcx\n").expect("a file");
    let answer = resume();
    assert!(answer.code == Some(2) && answer.stderr.contains("has changed"), "{answer:?}");
    let with_evidence = run_points(&["--resume", &path("out"), "--evidence", &path("evidence")]);
    assert_eq!(with_evidence.code, Some(2), "{with_evidence:?}");
}

#[test]
fn points_of_another_method_are_not_resumed() {
    let files = folder();
    let out = files.path().join("out").to_str().expect("text").to_string();
    assert_eq!(run_points(&["--quick", "--sweep", "N=1,2", "add rax, {N}", "--out", &out]).code, Some(0));
    assert_eq!(run_points(&["--resume", &out]).code, Some(0));
    let text = std::fs::read_to_string(&out).expect("a file");
    assert!(text.contains(",\"method\":1}"), "{text:.2000}");
    std::fs::write(&out, text.replacen(",\"method\":1}", "}", 1)).expect("a file");
    let answer = run_points(&["--resume", &out]);
    assert!(answer.code == Some(2) && answer.stderr.contains("method of another version"), "{answer:?}");
}

#[test]
fn changed_header_prevents_resume_and_changed_comment_does_not() {
    if !has("cc") {
        return;
    }
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    let (source, header, out) = (path("f.c"), path("h.h"), path("out"));
    let write = |path: &str, text: &str| std::fs::write(path, text).expect("a file");
    write(&header, "#define MORE 3\n");
    let code = "#include \"h.h\"\nlong f(long *p, long n) { return *p * (n + MORE); }\n";
    write(&source, code);
    let sweep = ["--quick", "--seed", "3", "--sweep", "N=1,2", "--c", &source, "--arg", "{N}", "--cflags=-g"];
    assert!(matches!(run_points(&[&sweep[..], &["--out", &out]].concat()).code, Some(0 | 5)));
    let resume = || run_points(&[&sweep[..], &["--resume", &out]].concat());
    // Debug information has line numbers and the name of the compilation folder.
    write(&source, &format!("/* a comment */\n{code}"));
    let commented = resume();
    assert!(matches!(commented.code, Some(0 | 5)), "{commented:?}");
    write(&header, "#define MORE 5\n");
    let answer = resume();
    assert!(answer.code == Some(2) && answer.stderr.contains("has changed"), "{answer:?}");
}

#[test]
fn short_function_has_two_costs_in_the_table() {
    if !has("cc") {
        return;
    }
    let files = folder();
    let source = files.path().join("f.c");
    let source = source.to_str().expect("text");
    std::fs::write(source, "long f(long *p, long n) { for (long i = 0; i < n; i++) *p *= 3; return *p; }\n")
        .expect("a file");
    let sweep = ["--quick", "--sweep", "N=1,20", "--c", source, "--arg", "{N}"];
    let table = run_points(&sweep);
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let heading = table.stdout.lines().find(|line| line.contains("throughput")).expect("a heading");
    assert_eq!(words(heading)[..3], ["N", "throughput", "latency"], "{table:?}");
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 80), "{table:?}");
    let csv = run_points(&[&sweep[..], &["--csv", "-"]].concat()).stdout;
    let latency = csv.lines().next().expect("a heading").split(',').position(|name| name == "latency");
    assert!(latency.is_some(), "{csv}");
    // Snippets have only one cost.
    assert!(!run_points(&["--quick", "--sweep", "N=1,2", "add rax, {N}"]).stdout.contains("latency"));
}
