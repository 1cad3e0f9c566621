//! Measures the cost of a snippet.

use crate::failure::exception;
use cyclescope::Scope;
use cyclescope::caveat::CaveatKind;
use cyclescope::error::Error as Failure;
use cyclescope::executor::DEFAULT_OFFER;
use cyclescope::machine::Machine;
use cyclescope::run::RunRequest;
use cyclescope::snippet::Snippet;
use pyo3::prelude::*;
use serde_json::Value;

/// A reason to read a cost with care.
#[pyclass(frozen, get_all)]
#[derive(Debug, Clone)]
pub(crate) struct Caveat {
    /// Its kind, as listed in `docs/reference.md`.
    code: String,
    /// Explanation with figures.
    text: String,
}

/// Cost of a snippet in core cycles: `value`, and `low` and `high` of its 95 % interval. If the
/// number is refused, all three are `None` and `caveats` say why.
#[pyclass(frozen, get_all)]
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    snippet: String,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    caveats: Vec<Caveat>,
}

#[pymethods]
impl Caveat {
    fn __repr__(&self) -> String {
        format!("{}: {}", self.code, self.text)
    }
}

#[pymethods]
impl Cost {
    fn __repr__(&self) -> String {
        let cost = match (self.value, self.low, self.high) {
            (Some(value), Some(low), Some(high)) => format!("{value:.3} core cycles ({low:.3} to {high:.3})"),
            _ => "its number is refused".to_string(),
        };
        let caveats = self.caveats.iter().map(|caveat| format!("\n  {}", caveat.__repr__()));
        format!("{}: {cost}{}", self.snippet, caveats.collect::<String>())
    }
}

/// Measures a snippet of Intel-syntax assembly, like the command `cyclescope run`, in a separate
/// process. `quick` takes fewer layouts. Raises BadSnippet, RunError or Unavailable, each an Error
/// with a `remedy`.
#[pyfunction]
#[pyo3(signature = (snippet, *, quick=false))]
pub(crate) fn run(py: Python<'_>, snippet: &str, quick: bool) -> PyResult<Cost> {
    py.detach(|| measure(snippet, quick)).map_err(|failure| exception(py, &failure))
}

fn measure(text: &str, quick: bool) -> Result<Cost, Failure> {
    let snippet = Snippet::parse(text)?;
    let request = RunRequest { quick, ..RunRequest::default() };
    let measured = Scope::with(DEFAULT_OFFER, &Machine::detect(), &request)?.measure(&snippet)?;
    let cost = measured.cost();
    let caveats = measured.caveats.into_iter().map(|caveat| Caveat { code: name(caveat.code), text: caveat.text });
    Ok(Cost {
        snippet: text.to_string(),
        value: cost.map(|cost| cost.value),
        low: cost.map(|cost| cost.low),
        high: cost.map(|cost| cost.high),
        caveats: caveats.collect(),
    })
}

/// The name of a kind of caveat in records.
fn name(code: CaveatKind) -> String {
    match serde_json::to_value(code) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}
