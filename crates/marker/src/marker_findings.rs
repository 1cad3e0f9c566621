//! What a survey comes to: records of markers, those that were not measured, and the document's figures and conclusions
//! beside them.

use super::copy_region::CopyMisfit;
use super::custom_loop::CUSTOM_LOOP_NAME;
use super::document_figures::{self, FigureComparison};
use super::record::MarkerRecord;
use super::source::design::SiteDesign;
use super::tested_conclusions::{TestedConclusion, test_conclusions};
use super::user::SkippedCase;
use serde::{Deserialize, Serialize};

/// All that there is to say.
#[derive(Debug, Clone)]
pub struct MarkerFindings {
    /// The markers that were measured.
    pub records: Vec<MarkerRecord>,
    /// Those that were not.
    pub skipped: Vec<SkippedRecord>,
    /// What the document says beside it.
    pub published: PublishedRecord,
}

/// A marker that was not measured, kind `marker.skipped`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedRecord {
    /// The design's name.
    pub design: String,
    /// The state's name; null where all states of the design are meant.
    pub state: Option<String>,
    /// The loop's name; null where all of the design's are meant.
    pub context: Option<String>,
    /// Why it was not.
    pub reason: String,
    /// What helps, where anything does.
    pub remedy: Option<String>,
}

/// The document's figures beside ours, and its conclusions tested, kind `marker.conclusions`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRecord {
    /// The document.
    pub source: &'static str,
    /// Its machine.
    pub machine: &'static str,
    /// Its figures that were measured here.
    pub figures: Vec<FigureComparison>,
    /// Its conclusions.
    pub conclusions: Vec<TestedConclusion>,
}

impl SkippedRecord {
    /// All of a design.
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
    /// What records say, beside markers that were skipped before.
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

/// Whether nothing is left of a marker in a loop of the user's.
fn is_removed(record: &MarkerRecord) -> bool {
    let code = &record.code;
    let bytes = [code.function_likely_bytes, code.function_unlikely_bytes];
    record.context == CUSTOM_LOOP_NAME && record.design != "none" && code.likely_bytes == 0 && bytes == [0, 0]
}
