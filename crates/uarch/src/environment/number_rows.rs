//! Numbers of other tests, next to the reports of CPUID and the kernel.

use super::row::{EnvironmentRow, format_percent};
use crate::earlier_result::EarlierResult;
use crate::reported_machine::ReportedMachine;
use crate::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;

/// The definition of a number that CPUID contradicts.
pub(super) const DEFINITION: &str = "what was measured, beside what CPUID says";
/// Share by which a number may differ from CPUID's and still count as equal.
const SAME_SHARE: f64 = 0.02;
/// The least part of a translation's cost that huge pages save if they are really obtained.
const SAVED_LEAST: f64 = 0.5;

/// A number that contradicts CPUID, or that CPUID reports and no test found.
pub(super) fn contradiction_row(result: &EarlierResult) -> Option<EnvironmentRow> {
    let reported = result.cpuid?;
    let verdict = match result.found_size() {
        Some(size) => {
            let figure = reported as f64;
            let same = (size.low..=size.high).contains(&figure) || (size.value - figure).abs() <= SAME_SHARE * figure;
            let why = format!("{} of what CPUID says", format_percent(size.value / figure));
            (!same).then(|| TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, why) })?
        }
        None => {
            TestVerdict::new(VerdictKind::Unclear, format!("CPUID says a number and none was found: {}", result.why))
        }
    };
    Some(EnvironmentRow {
        name: result.what.clone(),
        definition: DEFINITION,
        verdict,
        unit: result.value.unit,
        note: None,
        cpuid: Some(reported),
    })
}

/// The number of a test, or the reason that it has none.
fn find_number<'a>(earlier: &'a [EarlierResult], what: &str) -> Result<(&'a EarlierResult, Interval), TestVerdict> {
    let Some(result) = earlier.iter().find(|result| result.what == what) else {
        return Err(TestVerdict::new(VerdictKind::Unclear, format!("{what} was not measured")));
    };
    result
        .found_size()
        .map(|number| (result, number))
        .ok_or_else(|| TestVerdict::new(result.verdict, result.why.clone()))
}

/// The cost of a load beyond all translations that the core holds.
const PAGE_WALK: &str = "data_tlb.beyond.cost";

/// Bytes of the lines that the test of huge pages loads.
const HUGE_LINES: f64 = (512 << 10) as f64;

/// The same cost, if counts reached beyond all levels of translations. With little free memory they
/// do not.
fn page_walk_cost(earlier: &[EarlierResult]) -> Result<Interval, TestVerdict> {
    let (_, cost) = find_number(earlier, PAGE_WALK)?;
    find_number(earlier, "data_tlb.2.size").map(|_| cost).map_err(|_| {
        TestVerdict::new(VerdictKind::Unclear, "no end of a second level of translations was found: none may be passed")
    })
}

pub(super) fn page_walk_row(surroundings: &ReportedMachine, earlier: &[EarlierResult]) -> EnvironmentRow {
    let (note, why) = match &surroundings.hypervisor {
        Some(name) => (
            format!("CPUID: a guest of {name}"),
            "with nested paging a walk goes through the tables of the guest and those of the hypervisor",
        ),
        None => ("CPUID: no hypervisor".to_string(), "a walk goes through one set of tables"),
    };
    let verdict = match page_walk_cost(earlier) {
        Ok(size) => TestVerdict { size: Some(size), ..TestVerdict::new(VerdictKind::Found, why) },
        Err(verdict) => verdict,
    };
    EnvironmentRow {
        name: "page_walk".to_string(),
        definition: "core cycles by which a load takes longer that has no translation at hand",
        verdict,
        unit: Unit::CoreCycles,
        note: Some(note),
        cpuid: None,
    }
}

pub(super) fn huge_pages_row(surroundings: &ReportedMachine, earlier: &[EarlierResult]) -> EnvironmentRow {
    // If the lines do not fit the second cache, part of the difference comes from their place in
    // memory.
    let room = find_number(earlier, "data_caches.2.size").is_ok_and(|(_, size)| size.low >= 2.0 * HUGE_LINES);
    let family = page_walk_cost(earlier).ok().map(|size| size.value).filter(|family| room && *family > 0.0);
    let verdict = match (find_number(earlier, "huge_pages"), family) {
        (Ok((_, saved)), Some(family)) => {
            let why = format!("they save {} of a page walk", format_percent(saved.value / family));
            let why = match saved.value >= SAVED_LEAST * family {
                true => why,
                false => format!("{why}: whoever maps this memory may split them"),
            };
            TestVerdict { size: Some(saved), ..TestVerdict::new(VerdictKind::Found, why) }
        }
        (Ok((_, saved)), None) => {
            TestVerdict { size: Some(saved), ..TestVerdict::new(VerdictKind::Found, "they save so much") }
        }
        (Err(verdict), _) => verdict,
    };
    let setting = surroundings.huge_pages.known().map_or("unknown", String::as_str);
    EnvironmentRow {
        name: "huge_pages".to_string(),
        definition: "core cycles that a load waits less in pages of 2 MiB, one line in each 4 KiB of 32 MiB",
        verdict,
        unit: Unit::CoreCycles,
        note: Some(format!("kernel: transparent huge pages: {setting}")),
        cpuid: None,
    }
}
