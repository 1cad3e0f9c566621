//! The page: its data as JSON, its scripts and styles, in one file of HTML.

use super::core_section::{CoreSection, describe_core};
use super::instruction_section::{InstructionSection, ROWS_PER_CHUNK, describe_instructions};
use super::machine_section::{MachineSummary, ReportHighlight, collect_highlights, collect_machines};
use super::marker_section::{MarkerSection, describe_markers};
use super::page_blob::PageBlob;
use super::program_section::{ProgramSection, describe_programs};
use super::published_join::join_published;
use super::report_file::ReportFile;
use super::timing_section::{TimingSection, describe_timing};
use cyclescope_platform::random;
use html_escape::encode_text;
use serde::Serialize;

/// The styles, in their order.
const STYLES: [&str; 3] = [
    include_str!("../../../assets/report/vendor/uPlot.min.css"),
    include_str!("../../../assets/report/vendor/slick.grid.css"),
    include_str!("../../../assets/report/page.css"),
];
/// The scripts, in their order: libraries first.
const SCRIPTS: [&str; 9] = [
    include_str!("../../../assets/report/vendor/uPlot.iife.min.js"),
    include_str!("../../../assets/report/vendor/slick.core.js"),
    include_str!("../../../assets/report/vendor/slick.interactions.js"),
    include_str!("../../../assets/report/vendor/slick.grid.js"),
    include_str!("../../../assets/report/page.js"),
    include_str!("../../../assets/report/chart.js"),
    include_str!("../../../assets/report/instructions.js"),
    include_str!("../../../assets/report/sections.js"),
    include_str!("../../../assets/report/start.js"),
];
const LICENCES: [PageLicence; 2] = [
    PageLicence { name: "SlickGrid", text: include_str!("../../../assets/report/vendor/slickgrid-LICENSE") },
    PageLicence { name: "uPlot", text: include_str!("../../../assets/report/vendor/uPlot-LICENSE") },
];

/// Bytes of the number that lets the page's own scripts run.
const NONCE_BYTES: usize = 16;

/// A page.
pub struct ReportPage {
    title: String,
    data: PageData,
    blobs: Vec<PageBlob>,
}

/// What the scripts read.
#[derive(Serialize)]
struct PageData {
    machines: Vec<MachineSummary>,
    files: Vec<FileSummary>,
    highlights: Vec<ReportHighlight>,
    cores: Vec<CoreSection>,
    timing: Vec<TimingSection>,
    markers: Vec<MarkerSection>,
    programs: Vec<ProgramSection>,
    instructions: Vec<InstructionSection>,
    rows_per_chunk: usize,
}

#[derive(Serialize)]
struct FileSummary {
    name: String,
    machine: Option<usize>,
    contents: String,
    command: String,
}

struct PageLicence {
    name: &'static str,
    text: &'static str,
}

impl PageLicence {
    fn to_element(&self) -> String {
        format!("<h2>{}</h2><pre>{}</pre>", encode_text(self.name), encode_text(self.text))
    }
}

impl ReportPage {
    /// Collects the sections of the files.
    pub fn from_files(title: &str, files: &[ReportFile]) -> ReportPage {
        let (machines, places) = collect_machines(files);
        let highlights = collect_highlights(files, &places);
        let mut data = PageData {
            machines,
            files: Vec::new(),
            highlights,
            cores: Vec::new(),
            timing: Vec::new(),
            markers: Vec::new(),
            programs: Vec::new(),
            instructions: Vec::new(),
            rows_per_chunk: ROWS_PER_CHUNK,
        };
        let mut blobs = Vec::new();
        let mut tables = Vec::new();
        for (number, (file, machine)) in files.iter().zip(places).enumerate() {
            let name = machine
                .and_then(|place| data.machines.get(place))
                .map_or(String::new(), |machine| machine.name.clone());
            data.files.push(FileSummary {
                name: file.name.clone(),
                machine,
                contents: file.describe_contents(),
                command: file.describe_command(),
            });
            data.cores.extend(describe_core(file, machine, &name));
            data.timing.extend(describe_timing(file, machine, &name));
            data.markers.extend(describe_markers(file, machine));
            data.programs.extend(describe_programs(file, machine));
            if let Some((section, parts)) = describe_instructions(file, machine, number) {
                data.instructions.push(section);
                tables.push(file);
                blobs.extend(parts);
            }
        }
        join_tables(&mut data.instructions, &tables, &mut blobs);
        ReportPage { title: title.to_string(), data, blobs }
    }

    /// How many machines the files are of.
    pub fn machine_count(&self) -> usize {
        self.data.machines.len()
    }

    /// The page's HTML.
    pub fn render(&self) -> String {
        let data = serde_json::to_string(&self.data).expect("the data are serialisable");
        format!(
            include_str!("../../../assets/report/page.html"),
            title = encode_text(&self.title),
            version = env!("CARGO_PKG_VERSION"),
            nonce = draw_nonce(),
            styles = STYLES.join("\n"),
            scripts = SCRIPTS.join("\n"),
            data = escape_json(&data),
            blobs = self.blobs.iter().map(PageBlob::to_element).collect::<String>(),
            licences = LICENCES.iter().map(PageLicence::to_element).collect::<String>(),
        )
    }
}

/// Joins each published table with each table of results. `tables` are the files of the sections.
fn join_tables(sections: &mut [InstructionSection], tables: &[&ReportFile], blobs: &mut Vec<PageBlob>) {
    for (number, (section, file)) in sections.iter_mut().zip(tables).enumerate() {
        let Some(published) = &file.published else { continue };
        for (other, file) in tables.iter().enumerate() {
            let Some(results) = &file.instructions else { continue };
            let name = format!("join-{number}-{other}");
            let (join, blob) = join_published(&results.rows, published, other, name);
            section.joins.push(join);
            blobs.push(blob);
        }
    }
}

/// JSON that no text in it can end: `<` opens no element, and line separators end no line.
fn escape_json(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// A number that nobody who wrote a file could know: scripts without it do not run.
fn draw_nonce() -> String {
    let draw = || random::draw_number().expect("the system has random numbers");
    (0..NONCE_BYTES / 8).map(|_| format!("{:016x}", draw())).collect()
}
