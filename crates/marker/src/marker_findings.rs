//! The results of a survey: records of markers, skipped markers, and the comparison with the
//! document.

use super::copy_region::CopyMisfit;
use super::custom_loop::CUSTOM_LOOP_NAME;
use super::document_figures::{self, FigureComparison};
use super::record::MarkerRecord;
use super::source::design::SiteDesign;
use super::tested_conclusions::{TestedConclusion, test_conclusions};
use super::user::SkippedCase;
use serde::{Deserialize, Serialize};

/// All results of a survey.
#[derive(Debug, Clone)]
pub struct MarkerFindings {
    /// The measured markers.
    pub records: Vec<MarkerRecord>,
    /// The skipped markers.
    pub skipped: Vec<SkippedRecord>,
    /// The comparison with the document.
    pub published: PublishedRecord,
}

/// A marker that was not measured, kind `marker.skipped`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRecord {
    /// Name of the design.
    pub design: String,
    /// Name of the state; null for all states of the design.
    pub state: Option<String>,
    /// Name of the loop; null for all loops of the design.
    pub context: Option<String>,
    /// The reason.
    pub reason: String,
    /// The remedy, if there is one.
    pub remedy: Option<String>,
}

/// The document's figures compared with ours, and its conclusions tested, kind
/// `marker.conclusions`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRecord {
    /// Title of the document.
    pub source: &'static str,
    /// The document's machine.
    pub machine: &'static str,
    /// Its figures that were measured here.
    pub figures: Vec<FigureComparison>,
    /// Its conclusions.
    pub conclusions: Vec<TestedConclusion>,
}

impl SkippedRecord {
    /// Skips all cases of a design.
    pub fn from_design(design: &SiteDesign, reason: String, remedy: Option<String>) -> SkippedRecord {
        SkippedRecord { design: design.name.to_string(), state: None, context: None, reason, remedy }
    }
}

impl From<SkippedCase> for SkippedRecord {
    fn from((case, misfit): SkippedCase) -> SkippedRecord {
        SkippedRecord {
            design: case.design.name.to_string(),
            state: Some(case.state.name.to_string()),
            context: Some(case.context),
            reason: misfit.to_string(),
            remedy: match misfit {
                CopyMisfit::Untraced { why } => Some(why.remedy),
                _ => None,
            },
        }
    }
}

impl MarkerFindings {
    /// Derives the findings from records and from earlier skipped markers.
    pub(crate) fn new(records: Vec<MarkerRecord>, skipped: &[SkippedRecord]) -> MarkerFindings {
        let (removed, records): (Vec<_>, Vec<_>) = records.into_iter().partition(is_removed);
        let removed = removed.into_iter().map(|record| SkippedRecord {
            design: record.design.to_string(),
            state: None,
            context: Some(record.context),
            reason: format!("{}: the compiler has removed the marker because it is unreachable", record.state),
            remedy: None,
        });
        let published = PublishedRecord {
            source: document_figures::SOURCE,
            machine: document_figures::MACHINE,
            figures: document_figures::compare_figures(&records),
            conclusions: test_conclusions(&records),
        };
        MarkerFindings { skipped: skipped.iter().cloned().chain(removed).collect(), published, records }
    }
}

/// Whether the compiler removed the marker from a custom loop.
fn is_removed(record: &MarkerRecord) -> bool {
    let code = &record.code;
    let bytes = [code.function_likely_bytes, code.function_unlikely_bytes];
    record.context == CUSTOM_LOOP_NAME && record.design != "none" && code.likely_bytes == 0 && bytes == [0, 0]
}
