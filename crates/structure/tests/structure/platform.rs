//! Only files of the seam name an operating system: code above `platform` is the same on all.

use super::{crates, folders};
use std::path::{Path, PathBuf};

/// What names a system.
const NAMES: [&str; 8] = [
    "libc::",
    "rustix::",
    "windows_sys::",
    "perf_event_open_sys",
    "std::os::unix",
    "std::os::fd",
    "std::os::linux",
    "std::os::windows",
];

/// Files and folders that may. The list may only shrink.
const SEAM: &[&str] = &[
    "platform/src/",
    // The worker's executable makes system calls itself.
    "worker/src/windows/",
    // Files with a twin in a folder `windows` beside them, or in that folder.
    "events/src/event_group.rs",
    "events/src/event_page_reading.rs",
    "exec/src/lock_files.rs",
    "exec/src/user/control_group.rs",
    "exec/src/user/filter.rs",
    "exec/src/user/launch.rs",
    "exec/src/user/namespaces.rs",
    // Memory for 32-bit code, which Windows does not run.
    "exec/src/user/narrow_memory.rs",
    "exec/src/user/process.rs",
    "exec/src/user/process_clock.rs",
    "exec/src/user/protections.rs",
    "exec/src/user/regions.rs",
    "exec/src/user/setup.rs",
    "exec/src/user/windows/",
    "exec/src/user/worker_events.rs",
    "cli/src/process/",
    "cli/src/input/c_library.rs",
    "cli/src/input/capture/",
    "cli/src/input/function_fault.rs",
    "cli/src/input/library_loader.rs",
    // Commands that only Linux has.
    "cli/src/studies/ab/",
    "cli/src/studies/all/",
    "cli/src/studies/counters/",
    "marker/src/",
    // For users' programs, for tests, and tools for Linux.
    "bench/src/",
    "clock/src/",
    "fuzz/src/",
    "guest/src/",
];

/// The Rust files below a folder.
fn list_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let files = paths.flat_map(|path| if path.is_dir() { list_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

/// Whether a file is only compiled for tests.
fn is_for_tests(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_in_folder = ["/tests/", "/odd_signatures/"].iter().any(|folder| file.contains(folder));
    is_in_folder || ["tests.rs", "frozen_group.rs"].contains(&name)
}

/// The lines of the code without its tests, which come last, and without comments.
fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"));
    code.filter(|line| !line.trim_start().starts_with("//") && !line.contains(".so"))
}

#[test]
fn only_the_seam_names_an_operating_system() {
    let (mut needed, mut faults) = (vec![false; SEAM.len()], Vec::new());
    for folder in folders() {
        for path in list_files(&crates().join(&folder).join("src")) {
            let file = path.strip_prefix(crates()).expect("it is below").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a file");
            let name = NAMES.iter().find(|name| code_lines(&text).any(|line| line.contains(**name)));
            let Some(name) = name.filter(|_| !is_for_tests(&file)) else { continue };
            match SEAM.iter().position(|place| file.starts_with(place)) {
                Some(place) => needed[place] = true,
                None => faults.push(format!("{file}: {name}")),
            }
        }
    }
    let unused = SEAM.iter().zip(needed).filter(|(_, needed)| !needed).map(|(place, _)| format!("{place}: not needed"));
    faults.extend(unused);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
