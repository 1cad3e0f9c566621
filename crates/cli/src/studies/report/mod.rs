//! `cyclescope report`: one self-contained page of result files.
//!
//! Each section of the page takes the lines of its kinds, a file each: [`core_section`],
//! [`instruction_section`], [`timing_section`], [`marker_section`], [`program_section`]. The page
//! receives data only; its scripts in `assets/report` draw them and put every text in as text.

mod core_section;
mod instruction_section;
mod machine_section;
mod marker_section;
mod page;
mod page_blob;
mod program_section;
mod published_join;
mod report_file;
mod table_summary;
mod timing_section;

use crate::args::{CommonArgs, ReportArgs};
use crate::output::table_file::{require_writable, write_whole_file};
use crate::output::{Failure, Output, print_warning};
use cyclescope::record::exit;
use cyclescope_platform::files;
use page::ReportPage;
use report_file::ReportFile;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What was written, kind `report`.
#[derive(Serialize)]
pub struct ReportRecord {
    /// The page's path.
    page: String,
    bytes: usize,
    files: usize,
    machines: usize,
}

/// Writes a page of the files, and returns the exit code.
pub fn run_report(common: &CommonArgs, args: &ReportArgs, output: &mut Output) -> Result<u8, Failure> {
    refuse_options(common)?;
    refuse_input_as_page(&args.files, &args.output)?;
    require_writable(&args.output)?;
    let record = write_report(&args.title, &args.files, &args.output)?;
    if output.is_json() {
        output.write_record("report", &record)?;
    } else {
        let megabytes = record.bytes as f64 / 1e6;
        output.write_line(format!("{}: {megabytes:.1} MB; open it in a browser", record.page))?;
    }
    Ok(exit::DONE)
}

/// Fails if the page would replace one of the files that it is made of.
fn refuse_input_as_page(files: &[PathBuf], page: &Path) -> Result<(), Failure> {
    let Some(target) = files::read_identity(page) else { return Ok(()) };
    match files.iter().any(|file| files::read_identity(file) == Some(target)) {
        true => {
            let text = format!("the page would replace the results in {}", page.display());
            Err(Failure::usage(text, Some("name another file after -o, such as page.html")))
        }
        false => Ok(()),
    }
}

/// Writes a page of the files, and describes it.
pub fn write_report(title: &str, files: &[PathBuf], path: &Path) -> Result<ReportRecord, Failure> {
    let files: Vec<ReportFile> = files.iter().map(|path| ReportFile::read(path)).collect::<Result<_, _>>()?;
    for file in &files {
        file.warnings.iter().for_each(|text| print_warning(&format!("{}: {text}", file.name)));
    }
    let page = ReportPage::from_files(title, &files);
    let text = page.render();
    write_whole_file(path, text.as_bytes()).map_err(|error| {
        let remedy = "name a new or regular file in a writable directory with room";
        Failure::from_writing(format!("can't write {}", path.display()), &error, remedy)
    })?;
    let (page, machines) = (path.display().to_string(), page.machine_count());
    Ok(ReportRecord { page, bytes: text.len(), files: files.len(), machines })
}

/// Fails for options that measure.
fn refuse_options(common: &CommonArgs) -> Result<(), Failure> {
    let given = [
        ("--clock", !common.clock.is_empty()),
        ("--evidence", common.evidence.is_some()),
        ("--beside", !common.beside.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(Failure::usage(format!("report does not take {option}: it measures nothing"), Some("leave it out")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::simulated_uarch_lines;
    use cyclescope_fuzz::{InputShape, fuzz_reader};
    use serde_json::json;

    const HOSTILE: &str = "</script><script>alert(1)</script>";

    fn simulated_file() -> Vec<u8> {
        let claim = json!({"schema": "cyclescope/1", "kind": "evaluate.claim", "text": HOSTILE, "holds": false});
        let method = json!({"schema": "cyclescope/1", "kind": "evaluate", "clock": HOSTILE, "executor": "user"});
        let cost = json!({"value": 3.0, "low": 2.9, "high": 3.1, "unit": "core_cycles"});
        let run = json!({"schema": "cyclescope/1", "kind": "run", "snippet": HOSTILE, "cost": cost});
        let lines = simulated_uarch_lines().into_iter().chain([claim, method, run]);
        lines.map(|line| line.to_string() + "\n").collect::<String>().into_bytes()
    }

    fn render(bytes: &[u8]) -> String {
        let file = ReportFile::from_bytes(format!("{HOSTILE}.jsonl"), bytes).unwrap();
        ReportPage::from_files(HOSTILE, &[file]).render()
    }

    #[test]
    fn no_text_of_a_file_is_markup() {
        let page = render(&simulated_file());
        assert!(!page.contains("<script>alert"), "a text opened an element");
        let data = page.split("id=\"report-data\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["files"][0]["name"], format!("{HOSTILE}.jsonl"));
        assert_eq!(data["timing"][0]["claims"][0]["text"], HOSTILE);
        let row = &data["programs"][0]["rows"][0];
        assert_eq!((&row[0], &row[1]), (&json!(HOSTILE), &json!("3 (2.9 to 3.1) core cycles")));
        let rob = &data["cores"][0]["sheet"][0]["rows"][0];
        assert_eq!((&rob["name"], &rob["value"]), (&json!("return stack"), &json!("none")));
        assert!(data["cores"][0]["diagram"].as_str().unwrap().starts_with("<svg"));
    }

    #[test]
    fn a_page_replaces_no_file_that_it_is_made_of() {
        let folder = tempfile::tempdir().unwrap();
        let [results, link, page] = ["results.jsonl", "link.jsonl", "page.html"].map(|name| folder.path().join(name));
        std::fs::write(&results, simulated_file()).unwrap();
        std::fs::hard_link(&results, &link).unwrap();
        let refuse = |page: &Path| refuse_input_as_page(std::slice::from_ref(&results), page).is_err();
        assert!(refuse(&results) && refuse(&link) && !refuse(&page));
        std::fs::write(&page, "an old page").unwrap();
        assert!(!refuse(&page));
    }

    #[test]
    fn each_page_has_its_own_nonce() {
        let nonce = |page: &str| page.split("nonce-").nth(1).unwrap()[..32].to_string();
        let [one, other] = [render(&simulated_file()), render(&simulated_file())].map(|page| nonce(&page));
        assert!(one != other && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one} {other}");
    }

    #[test]
    fn a_file_without_results_is_refused() {
        for content in ["", "{}", "{\"schema\":\"cyclescope/1\",\"kind\":\"machine\"}\n", "a,b\n1,2\n"] {
            assert!(ReportFile::from_bytes("x".to_string(), content.as_bytes()).is_err(), "{content}");
        }
    }

    #[test]
    fn any_file_becomes_a_page_or_is_refused() {
        fuzz_reader("report", InputShape::JsonLines, &[simulated_file()], |bytes| {
            if let Ok(file) = ReportFile::from_bytes("x".to_string(), bytes) {
                assert!(!ReportPage::from_files("x", &[file]).render().contains("<script>alert"));
            }
        });
    }
}
