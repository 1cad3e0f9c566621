//! `all`: what it does, leaves out, resumes and packs.

use super::support::{Running, answer, cyclescope, folder, gone, within_patience};
use serde_json::{Value, json};
use std::ffi::CString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Makes a directory in which these steps are left out.
fn begin(directory: &Path, left_out: &[&str]) {
    std::fs::create_dir(directory).expect("a new folder");
    let step =
        |name: &&str| json!({"name": name, "state": "left_out", "exit": 3, "why": "it is not wanted", "seconds": 0.0});
    let steps: Vec<Value> = left_out.iter().map(step).collect();
    let ledger = json!({"schema": "cyclescope/1", "kind": "all.ledger", "quick": true, "cpu": null, "steps": steps});
    std::fs::write(directory.join("all.json"), ledger.to_string()).expect("a file");
}

#[test]
fn completed_steps_stay_and_are_packed() {
    let folder = folder();
    let directory = folder.path().join("results");
    let pack = folder.path().join("results.tar.gz");
    begin(&directory, &["evaluate", "marker", "uarch", "instr"]);
    let words = ["all", directory.to_str().expect("text"), "--quick", "--pack", pack.to_str().expect("text")];
    let first = answer(&mut cyclescope(&words));
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.contains("doctor.jsonl") && first.stdout.contains("left out: it is not wanted"), "{first:?}");
    let written = std::fs::read(directory.join("doctor.jsonl")).expect("a file");
    assert!(String::from_utf8_lossy(&written).contains("\"kind\":\"doctor\""));
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    assert_eq!(names, ["all.json", "doctor.jsonl", "report.html"]);
    // Nothing is left to do.
    let again = answer(&mut cyclescope(&[&words[..], &["--json"]].concat()));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(again.stdout.lines().count(), 5, "{again:?}");
    assert_eq!(std::fs::read(directory.join("doctor.jsonl")).expect("a file"), written);
    let archive = std::fs::File::open(&pack).expect("a file");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut packed = Vec::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a name").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("bytes");
        packed.push((name, bytes));
    }
    assert_eq!(packed[0].0, "results/all.json");
    assert_eq!(packed[1], ("results/doctor.jsonl".to_string(), written));
    assert_eq!(packed[2].0, "results/report.html");
    assert!(packed[2].1.starts_with(b"<!doctype html>"), "{}", String::from_utf8_lossy(&packed[2].1[..99]));
    assert_eq!(packed.len(), 3);
}

#[test]
fn an_interrupt_ends_the_step_and_keeps_its_results() {
    let folder = folder();
    let directory = folder.path().join("results");
    begin(&directory, &["doctor", "evaluate", "marker", "instr"]);
    let mut running = Running::start(&["all", directory.to_str().expect("text"), "--quick"]);
    let file = directory.join("uarch.jsonl");
    running.until(file.to_str().expect("text"), 2);
    let child = within_patience(|| {
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.id())).ok()?;
        children.split_whitespace().next()?.parse::<i32>().ok()
    });
    let second = answer(&mut cyclescope(&["all", directory.to_str().expect("text"), "--quick"]));
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(second.stderr.contains("another cyclescope is writing to") && second.stderr.contains("help: wait"));
    let (status, errors) = running.signal(libc::SIGINT);
    assert_eq!(status.code(), Some(130), "{status:?}");
    assert!(errors.contains("repeat the same command to continue"), "{errors}");
    gone(child);
    let kept = std::fs::read_to_string(&file).expect("a file");
    assert!(kept.ends_with('\n') && kept.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let ledger = std::fs::read_to_string(directory.join("all.json")).expect("a file");
    assert!(!ledger.contains("\"uarch\""), "{ledger}");
}

#[test]
fn a_full_disk_ends_it_with_a_remedy() {
    let folder = folder();
    let place = CString::new(folder.path().to_str().expect("text")).expect("no NUL");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    command.arg("all").arg(folder.path().join("results")).arg("--quick");
    // Room for the ledger, and not for the report of doctor.
    let small = move || {
        let (kind, size, nothing) = (c"tmpfs".as_ptr(), c"size=16k".as_ptr(), std::ptr::null());
        let private = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: the strings outlive the calls, which change only the new process.
        let mounted = unsafe {
            libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), private, nothing) == 0
                && libc::mount(c"none".as_ptr(), place.as_ptr(), kind, 0, size.cast()) == 0
        };
        if mounted { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: makes three system calls and allocates nothing.
    unsafe { command.pre_exec(small) };
    let Ok(output) = command.output() else {
        cyclescope_skipped::report_skipped(format_args!("only root can make a small disk"));
        return;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("doctor failed, and the disk of ") && errors.contains("repeat the same command"),
        "{errors}"
    );
    assert!(!errors.contains("the other commands go on"), "{errors}");
}

#[test]
fn wrong_uses_are_refused() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    begin(folder.path().join("results").as_path(), &["doctor", "evaluate", "marker", "uarch", "instr"]);
    std::fs::create_dir(folder.path().join("other")).expect("a folder");
    std::fs::write(folder.path().join("other/file"), "theirs").expect("a file");
    std::fs::create_dir(folder.path().join("broken")).expect("a folder");
    std::fs::write(folder.path().join("broken/all.json"), "{}").expect("a file");
    let inside = place("results/x.tar.gz");
    for (words, text) in [
        (vec![place("results")], "results of other options"),
        (vec![place("other"), "--quick".to_string()], "none of them is all.json"),
        (vec![place("broken"), "--quick".to_string()], "not a file of `all`"),
        (vec![place("missing/results")], "does not exist"),
        (vec![place("results"), "--quick".to_string(), "--pack".to_string(), inside], "among the results"),
        (
            vec![place("results"), "--quick".to_string(), "--clock".to_string(), "rdtsc".to_string()],
            "does not take --clock",
        ),
    ] {
        let answer = answer(cyclescope(&["all"]).args(&words));
        assert_eq!(answer.code, Some(2), "{words:?}: {answer:?}");
        assert!(answer.stderr.contains(text) && answer.stderr.contains("help: "), "{words:?}: {answer:?}");
    }
}
