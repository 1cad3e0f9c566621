//! Lists that people write as CSV files: column names in the first line, one subject in each
//! further line.

pub mod csv_lines;

use csv::StringRecord;
use csv_lines::CsvLines;
use cyclescope_code::asm::nearest_words;
use std::fmt;

/// A file that can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadList {
    /// The line, from 1; `None` if the problem concerns the whole file.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// Remedy.
    pub remedy: String,
}

impl fmt::Display for BadList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => write!(f, "{}", self.message),
        }
    }
}

impl std::error::Error for BadList {}

/// Problem of a line, and its remedy.
pub(crate) type LineProblem = (String, String);

/// Calls a function with the fields of each line, in the order of these columns. Missing fields are
/// empty. The first line must name at least one of `subjects`.
pub fn for_each_row<const COLUMNS: usize>(
    content: &[u8],
    columns: &[&str; COLUMNS],
    subjects: &[&str],
    mut take: impl FnMut([&str; COLUMNS], u64) -> Result<(), LineProblem>,
) -> Result<(), BadList> {
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(content);
    let mut lines = CsvLines::new(content);
    let headers = reader.headers().map_err(|error| csv_error(&error, &mut lines))?.clone();
    let first = headers.position().map_or(1, |position| lines.line_at(position));
    let at = |line: u64| move |(message, remedy)| BadList { line: Some(line), message, remedy };
    let places = find_columns(&headers, columns, subjects).map_err(at(first))?;
    for record in reader.records() {
        let record = record.map_err(|error| csv_error(&error, &mut lines))?;
        let line = record.position().map_or(0, |position| lines.line_at(position));
        let field = |column: usize| places[column].and_then(|place| record.get(place)).unwrap_or_default();
        take(std::array::from_fn(field), line).map_err(at(line))?;
    }
    Ok(())
}

/// Finds the positions of the columns.
fn find_columns<const COLUMNS: usize>(
    headers: &StringRecord,
    columns: &[&str; COLUMNS],
    subjects: &[&str],
) -> Result<[Option<usize>; COLUMNS], LineProblem> {
    let names: Vec<String> = headers.iter().map(str::to_lowercase).collect();
    let usage = || format!("name the columns in the first line: {}", columns.join(", "));
    for (index, name) in names.iter().enumerate() {
        if !columns.contains(&name.as_str()) {
            let near = nearest_words(name, columns.iter().copied());
            let remedy = near.first().map_or_else(usage, |near| format!("did you mean `{near}`?"));
            return Err((format!("there is no column `{name}` in a list"), remedy));
        }
        if names[..index].contains(name) {
            return Err((format!("there are two columns `{name}`"), "leave one of them".to_string()));
        }
    }
    if !subjects.iter().any(|subject| names.iter().any(|name| name == subject)) {
        return Err((format!("there is no column `{}`", subjects.join("` or `")), usage()));
    }
    Ok(columns.map(|column| names.iter().position(|name| name == column)))
}

/// Explains why a file is not valid CSV.
pub fn csv_error(error: &csv::Error, lines: &mut CsvLines<'_>) -> BadList {
    let line = error.position().map(|position| lines.line_at(position));
    let (message, remedy) = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => (
            format!("it has {len} fields, the first line {expected_len}"),
            "put what holds a comma, such as operands, in double quotes",
        ),
        csv::ErrorKind::Utf8 { .. } => ("it is not UTF-8".to_string(), "save the file as UTF-8"),
        _ => (error.to_string(), "give a CSV file with names of columns in its first line"),
    };
    BadList { line, message, remedy: remedy.to_string() }
}
