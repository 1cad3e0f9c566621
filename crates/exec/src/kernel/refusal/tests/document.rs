//! `docs/kernel-safety.md` shows the lists of the code.

use super::super::lists::{
    ALLOWED_PRIVILEGED, Msr, READABLE_MSRS, REFUSED_INSTRUCTIONS, WAIT_INSTRUCTIONS, WRITABLE_MSRS,
};
use super::*;
use iced_x86::Mnemonic;

const DOCUMENT: &str = include_str!("../../../../../../docs/kernel-safety.md");

fn names(list: &[Mnemonic]) -> String {
    list.iter().map(|mnemonic| format!("`{}`", format!("{mnemonic:?}").to_lowercase())).collect::<Vec<_>>().join(" ")
}

fn table(head: &str, rows: impl Iterator<Item = String>) -> String {
    format!("{head}\n|---|---|\n{}\n", rows.collect::<Vec<_>>().join("\n"))
}

fn registers(head: &str, list: &[Msr]) -> String {
    table(head, list.iter().map(|(number, name)| format!("| `{number:#x}` | {name} |")))
}

/// Line breaks of paragraphs do not matter.
fn squeeze_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_document_shows_the_lists_of_the_code() {
    let refused = REFUSED_INSTRUCTIONS.iter().map(|(reason, list)| format!("| {} | {} |", names(list), reason.text()));
    let lone = RefusalReason::ALL.iter().filter(|(reason, ..)| *reason >= RefusalReason::LoneBackward);
    let lone: String = lone.map(|(_, text, _)| format!("- {text}.\n")).collect();
    let tables = [
        table("| instructions | why |", refused),
        registers("| may be read | name |", READABLE_MSRS),
        registers("| may be written | name |", WRITABLE_MSRS),
        format!("{}.\n", names(ALLOWED_PRIVILEGED)),
        format!("{}.\n", names(WAIT_INSTRUCTIONS)),
        lone,
    ];
    let document = squeeze_blanks(DOCUMENT);
    for expected in tables {
        assert!(document.contains(&squeeze_blanks(&expected)), "docs/kernel-safety.md lacks\n{expected}");
    }
}

#[test]
fn the_document_is_right_about_moves() {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `mov "));
    let mut count = 0;
    for row in rows {
        let mut cells = row.split('|').map(str::trim);
        let text = format!("mov {}", cells.next().unwrap().trim_end_matches('`'));
        let refused = reason(&text).is_some();
        assert_eq!(cells.next().unwrap(), if refused { "refused" } else { "runs" }, "{text}");
        count += 1;
    }
    assert!(count > 8);
}
