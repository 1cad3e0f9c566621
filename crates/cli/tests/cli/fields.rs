//! The fields of every kind of JSON line. A field that was ever printed must stay, with the same
//! type.
//!
//! `fields.txt` has a line per field: kind, path and types. `[]` marks the elements of a list, `{}`
//! those of a map whose names are machine-specific, such as `00000007.0`. `?` marks a field that
//! some objects lack. Fields may be added: `cargo test -- --ignored write_the_fields` adds to the
//! file what this machine prints, and removes nothing.

use crate::support::{answer, cyclescope, folder, has_for_part, measure_until, until_not_too_busy};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A field's types, the number of objects that have it, and the number that could.
#[derive(Debug, Default)]
struct Field {
    types: BTreeSet<&'static str>,
    present: usize,
}

/// The fields of one kind by path. An object also counts as a field, so that its parts can be
/// compared with it.
type Fields = BTreeMap<String, Field>;

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

fn collect(value: &Value, path: &str, fields: &mut Fields, objects: &mut BTreeMap<String, usize>) {
    match value {
        Value::Object(parts) => {
            *objects.entry(path.to_string()).or_default() += 1;
            for (name, part) in parts {
                if is_own(name) {
                    element(part, &format!("{path}{{}}"), fields, objects);
                    continue;
                }
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let field = fields.entry(path.clone()).or_default();
                field.types.insert(type_of(part));
                field.present += 1;
                collect(part, &path, fields, objects);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| element(item, &format!("{path}[]"), fields, objects));
        }
        _ => {}
    }
}

fn element(value: &Value, path: &str, fields: &mut Fields, objects: &mut BTreeMap<String, usize>) {
    fields.entry(path.to_string()).or_default().types.insert(type_of(value));
    collect(value, path, fields, objects);
}

/// Whether a name is machine-specific, such as that of a CPUID leaf.
fn is_own(name: &str) -> bool {
    name.contains('.')
}

/// The path of the object that contains a field.
fn parent(path: &str) -> &str {
    path.rfind('.').map_or("", |end| &path[..end])
}

/// The file's entry for each field, without the kind: path, whether it may be missing, and its
/// types.
fn described(lines: &[&Value]) -> BTreeMap<String, (bool, BTreeSet<&'static str>)> {
    let (mut fields, mut objects) = (Fields::new(), BTreeMap::new());
    lines.iter().for_each(|line| collect(line, "", &mut fields, &mut objects));
    let describe = |(path, field): (String, Field)| {
        let element = path.ends_with("[]") || path.ends_with("{}");
        let missing = !element && field.present < objects[parent(&path)];
        (path, (missing, field.types))
    };
    fields.into_iter().map(describe).collect()
}

/// A program with a region that has a loop.
const MAIN: &str = "__attribute__((noinline, noipa)) void end(void) {}\n\
    __attribute__((noinline, noipa)) void hot(int n) { for (int i = 0; i < n; i++) __asm__ volatile(\"nop\"); end(); }\n\
    int main(int n, char **v) { hot(99 + n); return 0; }\n";

/// Snippets that fail: one has invalid text, one faults.
const FAILING: [&str; 2] = ["nopp", "mov rax, [8]"];

/// Writes a result file whose costs are each ten core cycles above those of another file.
fn slower(from: &str, to: &str) {
    let later = |cost: &mut Value| {
        for field in ["value", "low", "high"] {
            let more = cost[field].as_f64().map(|cycles| cycles + 10.0);
            cost[field] = more.into();
        }
    };
    let text = std::fs::read_to_string(from).expect("a file");
    let mut lines = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(throughput) = line.get_mut("throughput").filter(|throughput| throughput.is_object()) {
            later(&mut throughput["cost"]);
            throughput["fraction"] = Value::Null;
        }
        let latencies = line.get_mut("latency").and_then(Value::as_array_mut);
        latencies.into_iter().flatten().for_each(|latency| later(&mut latency["cost"]));
        writeln!(lines, "{line}").expect("text");
    }
    std::fs::write(to, lines).expect("a file");
}

/// Writes a result file of `ports` that gives all pairs of classes this standing.
fn judge_pairs(from: &str, to: &str, standing: &str) {
    let text = std::fs::read_to_string(from).expect("a file");
    let mut lines = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        for list in ["shares", "free"] {
            let pairs = line.get_mut(list).and_then(Value::as_array_mut);
            pairs.into_iter().flatten().for_each(|pair| pair["standing"] = standing.into());
        }
        writeln!(lines, "{line}").expect("text");
    }
    std::fs::write(to, lines).expect("a file");
}

/// Everything that the program prints as JSON, measured on this machine in little time.
fn printed() -> Vec<Value> {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("code.c"), "void f(void *p) { *(volatile int *)p = 1; }").expect("a file");
    let mut lines = Vec::new();
    let mut print = |arguments: &[&str]| {
        let measure = || answer(cyclescope(&arguments[..1]).arg("--json").args(&arguments[1..]));
        let answer = if arguments[0] == "ports" && !arguments.contains(&"--out") {
            until_not_too_busy(measure)
        } else if arguments.contains(&path("list").as_str()) {
            // One of its snippets must fail; without a number for the other, all have failed.
            measure_until(measure, |answer| answer.code != Some(4))
        } else {
            measure()
        };
        // Two snippets must fail; a measurement may be too noisy.
        let codes = if FAILING.contains(arguments.last().expect("some")) { [2, 4] } else { [0, 5] };
        assert!(answer.code.is_some_and(|code| codes.contains(&code)), "{arguments:?}: {answer:?}");
        lines.extend(answer.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")));
    };
    print(&["doctor", "--quick"]);
    print(&["run", "--quick", "--evidence", &path("run"), "imul rax, rax"]);
    print(&["run", "--quick", "--clock", "clock-gettime", "--loop", "9", "--counts", "imul rax, rax"]);
    print(&["run", "--quick", "--cold", "code", "imul rax, rax"]);
    print(&["run", "--quick", "--setup", "mov ecx, 2", "rep movsb"]);
    print(&["run", "--quick", "imul rax, rax", "--versus", "add rax, rax"]);
    print(&["run", "--quick", "cmovz rax, rbx; test rcx, rdx"]);
    print(&["run", "--quick", "nop", "--versus", "imul rax, rax", "--versus", "add rax, rax"]);
    print(&["run", "--quick", "{S}", "--versus", "S=imul rax, rax|add rax, rax|nop"]);
    print(&["run", "--quick", "--mix", "mul rcx; popcnt rax, rbx"]);
    print(&["run", "--quick", "--sweep", "S=nop|add rax, rax", "{S}"]);
    print(&["ab", "--quick", "--budget", "0.1", "true", "true"]);
    print(&["ab", "--quick", "--budget", "0.1", "true", "true", "true"]);
    print(&["run", "--quick", "--sweep", "N=0,8", "--evidence", &path("points"), "mov rax, [r14+{N}]"]);
    print(&["replay", &path("points")]);
    std::fs::write(path("list"), "nop\nmov rax, [8]\n").expect("a file");
    print(&["run", "--quick", "--from", &path("list")]);
    // Two regions, of which one is refused.
    print(&["run", "--show", "# LLVM-EXEGESIS-DEFREG RAX 1\nf:\nadd rax, 1\nret\ng:\nret\nadd rax, 1\nret"]);
    print(&["run", "--clock", "list"]);
    print(&["clock", "rdtscp", "--emit", "c"]);
    FAILING.iter().for_each(|snippet| print(&["run", "--quick", snippet]));
    print(&["replay", &path("run")]);
    let methods = ["--clock", "lfence-rdtsc,lfence-rdtsc-lfence", "--ensembles", "12", "--samples", "200"];
    print(&[&["evaluate", "--quick", "--series", "--evidence", &path("evaluate")], &methods[..]].concat());
    print(&["replay", &path("evaluate")]);
    let forms = ["add r64, r64", "mov r64, m64", "vmovntdq m128, xmm", "hlt"];
    print(&[&["instr", "--quick", "--out", &path("a.jsonl")], &forms[..]].concat());
    slower(&path("a.jsonl"), &path("b.jsonl"));
    print(&[&["instr", "--list"], &forms[..]].concat());
    print(&["instr", "--quick", "--explain", "imul r64, r64"]);
    print(&["compare", &path("a.jsonl"), &path("b.jsonl")]);
    print(&["ports", "--quick", "--pair", "imul r64, r64", "paddd xmm, xmm"]);
    let forms = ["imul r64, r64", "paddd xmm, xmm", "mov m64, r64", "div r64"];
    print(&[&["ports", "--quick", "--explain"], &forms[..2]].concat());
    print(&[&["ports", "--quick", "--out", &path("ports.jsonl")], &forms[..]].concat());
    let mix = ["run", "--quick", "--ports", &path("ports.jsonl"), "--mix", "imul r64, r64; paddd xmm, xmm"];
    print(&mix);
    std::fs::write(path("names.txt"), "imul r64, r64: 1*p1\npaddd xmm, xmm: 1*p015\n").expect("a file");
    print(&["ports", "--resume", &path("ports.jsonl"), "--names", &path("names.txt")]);
    for standing in ["free", "fits"] {
        judge_pairs(&path("ports.jsonl"), &path(standing), standing);
    }
    print(&["compare", &path("free"), &path("fits")]);
    print(&["marker", "--list"]);
    print(&["marker", "--quick", "flag", "--context", "empty", "--evidence", &path("marker")]);
    print(&["replay", &path("marker")]);
    // One test of each kind.
    print(&[
        "uarch",
        "--quick",
        "stores_in_flight",
        "cache_line",
        "split_access",
        "taylor",
        "forwarding_ends",
        "resource_sharing",
    ]);
    if has_for_part("cc") {
        print(&["run", "--quick", "--c", &path("code.c")]);
        std::fs::write(path("main.c"), MAIN).expect("a file");
        let words = ["-O1", "-falign-functions=32", "-o", &path("main"), &path("main.c")];
        assert!(std::process::Command::new("cc").args(words).status().is_ok_and(|built| built.success()));
        let region = ["run", "--quick", "--elf", &path("main"), "--from", "hot", "--to", "end"];
        // Tracing may not be allowed here.
        if answer(&mut cyclescope(&region)).code != Some(3) {
            print(&region);
        }
    }
    lines
}

/// Lines by their kind; by kind and part if a kind has several parts.
fn by_kind(lines: &[Value]) -> BTreeMap<String, Vec<&Value>> {
    let mut kinds: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for line in lines {
        let mut kind = line["kind"].as_str().expect("a kind").to_string();
        if let Some(part) = line["part"].as_str() {
            kind = format!("{kind} {part}");
        }
        kinds.entry(kind).or_default().push(line);
    }
    kinds
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fields.txt")
}

#[test]
fn no_json_field_is_removed() {
    let lines = printed();
    let kinds = by_kind(&lines);
    // Classes of ports have a time, and a busy machine may leave fewer than two. The last are those of the
    // compared file.
    let classes = lines.iter().rfind(|line| line["kind"] == "ports.classes").expect("classes are printed");
    let has_pairs = ["shares", "free"].iter().any(|list| classes[list].as_array().is_some_and(|all| !all.is_empty()));
    if !has_pairs {
        cyclescope_skipped::report_left_out("the machine is too busy for two classes of ports");
    }
    let text = std::fs::read_to_string(file()).expect("the file is there");
    let mut lost = String::new();
    for line in text.lines() {
        let mut columns = line.split('\t');
        let mut column = || columns.next().unwrap_or_else(|| panic!("{line} has too few columns"));
        let (kind, path, types) = (column(), column(), column());
        let Some(lines) = kinds.get(kind) else {
            if !has_pairs && kind == "compare pair" {
                continue;
            }
            writeln!(lost, "{kind}: no such line").expect("text grows");
            continue;
        };
        let (path, optional) = path.strip_suffix('?').map_or((path, false), |path| (path, true));
        let types: Vec<&str> = types.split('|').collect();
        for line in lines {
            check(line, path, (optional, &types), &format!("{kind} {path}"), &mut lost);
        }
    }
    assert!(lost.is_empty(), "{lost}");
}

/// The elements of a list, or of a map with machine-specific names.
fn elements(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(parts) => parts.iter().filter(|(name, _)| is_own(name)).map(|(_, part)| part).collect(),
        _ => Vec::new(),
    }
}

/// Records if an object that can have this field lacks it, or has another type.
fn check(value: &Value, path: &str, (optional, types): (bool, &[&str]), named: &str, lost: &mut String) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let name = first.trim_end_matches(['[', ']', '{', '}']);
    let Some(part) = value.get(name) else {
        // Whether the enclosing object must exist is a field of its own.
        if rest.is_none() && !optional && value.is_object() && first == name {
            writeln!(lost, "{named}: missing in {value:.200}").expect("text grows");
        }
        return;
    };
    let mut parts = vec![part];
    for _ in 0..(first.len() - name.len()) / 2 {
        parts = parts.into_iter().flat_map(elements).collect();
    }
    for part in parts {
        match rest {
            Some(rest) => check(part, rest, (optional, types), named, lost),
            None if types.contains(&type_of(part)) || (part.is_null() && types != ["null"]) => {}
            // A field that is null here may have a value on another machine.
            None if types == ["null"] => {}
            None => {
                writeln!(lost, "{named}: {} for {types:?}", type_of(part)).expect("text grows");
            }
        }
    }
}

#[test]
fn check_detects_removed_fields() {
    let lost = |value: &str, path: &str, optional: bool, types: &[&str]| {
        let mut lost = String::new();
        let value: Value = serde_json::from_str(value).expect("JSON");
        check(&value, path, (optional, types), "field", &mut lost);
        !lost.is_empty()
    };
    assert!(!lost(r#"{"a":{"b":1}}"#, "a.b", false, &["number"]));
    assert!(lost(r#"{"a":{"c":1}}"#, "a.b", false, &["number"]));
    assert!(!lost(r#"{"a":{"c":1}}"#, "a.b", true, &["number"]));
    assert!(lost(r#"{"a":{"b":"1"}}"#, "a.b", true, &["number"]));
    assert!(!lost(r#"{"a":null}"#, "a.b", false, &["number"]));
    assert!(lost(r#"{"a":[{"b":1},{"c":1}]}"#, "a[].b", false, &["number"]));
    assert!(lost(r#"{"a":[1,"2"]}"#, "a[]", false, &["number"]));
    assert!(lost(r#"{"b":1}"#, "a", false, &["number"]));
}

#[test]
#[ignore = "writes the file that the other test reads"]
fn write_the_fields() {
    let known = std::fs::read_to_string(file()).expect("the file is there");
    let mut fields: BTreeMap<(String, String), (bool, BTreeSet<String>)> = BTreeMap::new();
    for line in known.lines() {
        let [kind, path, types] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line} has no three columns")
        };
        let (path, missing) = path.strip_suffix('?').map_or((path, false), |path| (path, true));
        fields.insert((kind.to_string(), path.to_string()), (missing, types.split('|').map(str::to_string).collect()));
    }
    let lines = printed();
    for (kind, lines) in by_kind(&lines) {
        for (path, (missing, types)) in described(&lines) {
            let (may_miss, known) = fields.entry((kind.clone(), path)).or_default();
            *may_miss |= missing;
            known.extend(types.into_iter().map(str::to_string));
        }
    }
    let mut text = String::new();
    for ((kind, path), (missing, types)) in &fields {
        let optional = if *missing { "?" } else { "" };
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        writeln!(text, "{kind}\t{path}{optional}\t{}", types.join("|")).expect("text grows");
    }
    std::fs::write(file(), text).expect("the file can be written");
}
