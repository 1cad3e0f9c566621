//! Prints the cost of markers, 80 columns wide, one table per context.

use crate::output::event_table::{CountedSubject, print_event_table};
use crate::output::footnotes::Footnotes;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::{format_count, format_quantity};
use crate::output::{Failure, Output, WIDTH, print_warning};
use comfy_table::{CellAlignment, Table};
use cyclescope::caveat::{Caveat, CaveatKind};
use cyclescope::record::Quantity;
use cyclescope::study::marker::marker_findings::SkippedRecord;
use cyclescope::study::marker::record::{CallProof, MarkerRecord};
use cyclescope::study::marker::source::context;
use cyclescope::study::marker::working_set::WorkingSet;

/// Maximum number of footnotes shown.
const NOTES_MOST: usize = 12;
/// The design without a marker.
pub const CONTROL_DESIGN: &str = "none";

/// The state of designs that only store.
pub const STORES_STATE: &str = "control";

/// Prints the machine, and how much was measured.
pub fn print_head(page: &mut TextPage, records: &[MarkerRecord]) -> Result<(), Failure> {
    let Some(first) = records.first() else { return Ok(()) };
    page.begin_section("Markers")?;
    page.print_row("processor", &first.cpu_model)?;
    let text = format!("{}, executor {}, clock {}, seed {}", first.cpu, first.executor, first.clock, first.seed);
    page.print_row("CPU", &text)?;
    if !first.bits.is_default() {
        page.print_row("markers", &format!("in {}-bit code, with arguments on the stack", first.bits.bits()))?;
    }
    if first.caveats.iter().any(|caveat| caveat.code == CaveatKind::Emulated) {
        page.print_painted_row("caveat", &Caveat::emulated_machine().text, Output::yellow)?;
    }
    let visits: usize = records.iter().map(|record| record.visits).sum();
    let each = || records.iter().flat_map(|record| &record.placements).map(|placement| placement.visits);
    let (least, most) = (each().min().unwrap_or(0), each().max().unwrap_or(0));
    let text = format!("{} in a cache line; {least} to {most} visits to each, {visits} in all", first.placements.len());
    page.print_row("placements", &text)?;
    let mut compilers: Vec<&str> = records.iter().map(|record| record.compiler.as_str()).collect();
    compilers.sort_unstable();
    compilers.dedup();
    compilers.iter().try_for_each(|compiler| page.print_row("compiler", compiler))
}

/// Prints a table for each context.
pub fn print_contexts(page: &mut TextPage, records: &[MarkerRecord]) -> Result<(), Failure> {
    let mut notes = Footnotes::default();
    for name in context_names(records) {
        let about = context::ALL.iter().find(|context| context.name == name).map(|context| context.about);
        page.begin_section(&format!("Context {name}, in core cycles per loop"))?;
        about.map_or(Ok(()), |about| print_note(page, about))?;
        let of: Vec<&MarkerRecord> = records.iter().filter(|record| record.context == name).collect();
        let set = of.first().and_then(|record| record.working_set);
        set.map_or(Ok(()), |set| print_note(page, &describe_working_set(set)))?;
        print_table(page, &fit_to_page(&of, &mut notes))?;
    }
    print_legend(page, records)?;
    notes.print_first(page, NOTES_MOST, "--json shows all")
}

/// Prints the events that each marker causes in an iteration.
pub fn print_events(page: &mut TextPage, records: &[MarkerRecord]) -> Result<(), Failure> {
    let counted = records.iter().filter(|record| !record.counters.is_empty());
    let subject = |record: &'_ MarkerRecord| format!("{} {}, {}", record.design, record.state, record.context);
    let subjects: Vec<CountedSubject> = counted
        .map(|record| CountedSubject {
            name: subject(record),
            counters: &record.counters,
            passes: record.counter_passes,
            more: Vec::new(),
        })
        .collect();
    print_event_table(page, ("Events per loop, of the marker", "marker"), &subjects)
}

fn describe_working_set(set: WorkingSet) -> String {
    let kib = |bytes: u64| bytes >> 10;
    match set.cache {
        Some(cache) => format!("working set: {} KiB; the cache has {} KiB", kib(set.bytes), kib(cache)),
        None => {
            format!("working set: {} KiB, assumed because the machine reports no cache of this level", kib(set.bytes))
        }
    }
}

/// The contexts, in their order.
pub fn context_names(records: &[MarkerRecord]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for record in records {
        if !names.contains(&record.context.as_str()) {
            names.push(&record.context);
        }
    }
    names
}

/// Builds the rows with as many decimals of the extremes and interval ends as the page has room
/// for. A single bad visit can make a worst placement of thousands of cycles.
fn fit_to_page(records: &[&MarkerRecord], notes: &mut Footnotes) -> Table {
    let fits = |table: &Table| table.lines().all(|line| line.trim_end().chars().count() < WIDTH);
    let narrower = MOST_DECIMALS.iter().map(|most| build_table(records, notes, *most));
    let mut last = None;
    for table in narrower {
        if fits(&table) {
            return table;
        }
        last = Some(table);
    }
    last.expect("there is at least one number of decimals")
}

/// Maximum decimals of the best and worst placements' costs, and of the ends of an interval.
type DecimalLimits = (usize, usize);

/// The limits, from the widest table to the narrowest.
const MOST_DECIMALS: [DecimalLimits; 5] = [(2, 2), (1, 2), (0, 2), (0, 1), (0, 0)];

fn build_table(records: &[&MarkerRecord], notes: &mut Footnotes, (extremes_most, ends_most): DecimalLimits) -> Table {
    let mut rows = new_table(&["", "marker", "step", "best..worst", "bytes", "function", ""]);
    rows.column_mut(6).expect("there are seven").set_cell_alignment(CellAlignment::Left);
    let mut last = "";
    for record in records {
        if record.design != last {
            last = record.design;
            let base = record.base.value.map_or("-".to_string(), |base| format!("({base:.3})"));
            rows.add_row([last.to_string(), base]);
        }
        let code = &record.code;
        rows.add_row([
            format!(" {}", record.state),
            format_spread_within(&record.cost, ends_most),
            record.step.over.and(record.step.cost.value).map_or("-".to_string(), format_signed),
            format_extremes(record, extremes_most),
            format!("{}/{}", code.likely_bytes, code.unlikely_bytes),
            format!("{:+}/{:+}", code.function_likely_bytes, code.function_unlikely_bytes),
            notes.add_marks(record.caveats.iter().map(caveat_text)),
        ]);
        if let Some(other) = &record.other_speed {
            let name = if other.certain { "  other speed:" } else { "  other speed?" };
            rows.add_row([name.to_string(), format!("{:.1} to {:.1}", other.without, other.with)]);
        }
    }
    rows
}

/// The cost with its interval. Asymmetric intervals are shown by their ends.
pub fn format_spread(cost: &Quantity) -> String {
    format_spread_within(cost, 2)
}

/// The cost with its interval, whose ends have at most `most` decimals.
fn format_spread_within(cost: &Quantity, most: usize) -> String {
    let Quantity { value: Some(value), low: Some(low), high: Some(high), .. } = *cost else {
        return format_quantity(cost);
    };
    let sides = [value - low, high - value];
    let [less, more] = [sides[0].min(sides[1]), sides[0].max(sides[1])];
    if more <= SKEWED_RATIO * less || more < SKEW_CYCLES_LEAST {
        return format_quantity(cost);
    }
    let ends = |end: f64| format!("{end:.0$}", decimals_for(end).saturating_sub(1).min(most));
    format!("{value:.0$}, {1}..{2}", decimals_for(value), ends(low), ends(high))
}

/// An interval is shown by its ends if one is this many times as far away as the other,
const SKEWED_RATIO: f64 = 2.0;
/// unless both are nearer than this many cycles.
const SKEW_CYCLES_LEAST: f64 = 0.05;

/// Formats a number with its sign, in at most seven characters below a hundred thousand.
fn format_signed(value: f64) -> String {
    let decimals = decimals_for(value);
    format!("{value:+.decimals$}")
}

fn decimals_for(value: f64) -> usize {
    match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    }
}

fn format_extremes(record: &MarkerRecord, most_decimals: usize) -> String {
    let Some((best, worst)) = record.best.zip(record.worst) else { return "-".to_string() };
    let decimals = decimals_for(best.abs().max(worst.abs())).min(most_decimals);
    format!("{best:.decimals$}..{worst:.decimals$}")
}

/// The general text of a caveat, without figures, which the JSON has.
fn caveat_text(caveat: &Caveat) -> &str {
    match caveat.code {
        CaveatKind::IntervalNotReached => {
            "at some placements the interval is wider than requested, because the loop varies from visit to visit"
        }
        CaveatKind::LayoutDependent => {
            "the interval of the median is wider than requested, because the cost depends on where the code lies"
        }
        CaveatKind::OtherSpeed => {
            "the loop has several speeds, and it changes speed with this marker or in the state that its step \
             extends: the difference is not the marker's cost"
        }
        CaveatKind::TwoModes => "at some placements visits form several modes; the most frequent one counts",
        CaveatKind::RulersDisagree => "the rulers disagree, so all costs may be wrong by the same share",
        CaveatKind::SiblingBusy => "a sibling was busy during many visits, which are left out",
        CaveatKind::Emulated => "the machine is emulated and has no core cycles",
        _ => &caveat.text,
    }
}

fn print_legend(page: &mut TextPage, records: &[MarkerRecord]) -> Result<(), Failure> {
    page.output.write_line("")?;
    print_note(
        page,
        "marker: the loop with the marker minus the loop without it, whose cost is in brackets; the median over \
         placements with its interval. step: added cost over the simpler state that this one extends, per placement. \
         best..worst: the extremes over placements. bytes: the marker's own bytes on the likely and the unlikely path. \
         function: the difference of the whole functions in bytes.",
    )?;
    if records.iter().any(|record| record.design == CONTROL_DESIGN) {
        print_note(
            page,
            "none/base is the control: a loop compared with a copy of itself. Its distance from 0 is the measurement \
             error.",
        )?;
    }
    if records.iter().any(|record| record.state == STORES_STATE) {
        print_note(
            page,
            "The designs stores-* are not markers: they show whether stores in a marker's place change the loop's \
             speed.",
        )?;
    }
    if records.iter().any(|record| record.other_speed.is_some()) {
        print_note(
            page,
            "other speed: the loop has several speeds; it runs at the first without the marker and at the second with \
             it. The difference is not the marker's cost. A question mark means that it may be: the loop alone runs at \
             the second speed at other placements.",
        )?;
    }
    Ok(())
}

/// Prints what was not measured.
pub fn print_skipped(page: &mut TextPage, skipped: &[SkippedRecord]) -> Result<(), Failure> {
    let mut groups: Vec<(&SkippedRecord, Vec<&str>)> = Vec::new();
    for one in skipped {
        let alike = |other: &SkippedRecord| {
            (&other.design, &other.context, &other.reason) == (&one.design, &one.context, &one.reason)
        };
        match groups.iter_mut().find(|(first, _)| alike(first)) {
            Some((_, states)) => states.extend(one.state.as_deref()),
            None => groups.push((one, one.state.as_deref().into_iter().collect())),
        }
    }
    if !groups.is_empty() {
        page.begin_section("Not measured")?;
    }
    for (one, states) in groups {
        let of = one.context.as_ref().map(|context| format!("{} in {context}: ", states.join(", ")));
        let remedy = one.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        let text = format!("{}{}{}", of.unwrap_or_default(), one.reason, remedy.unwrap_or_default());
        page.print_row(&one.design, &text)?;
    }
    Ok(())
}

/// Prints whether dormant markers called nothing, and enabled ones called their probe each time.
pub fn print_calls(page: &mut TextPage, records: &[MarkerRecord]) -> Result<(), Failure> {
    if records.iter().all(|record| record.calls.is_none()) {
        return Ok(());
    }
    page.begin_section("Calls, counted in a separate run")?;
    print_call_proof(page, records)
}

/// Prints the proof, or each violation; nothing if no calls were counted.
pub fn print_call_proof(page: &mut TextPage, records: &[MarkerRecord]) -> Result<(), Failure> {
    let proved = || records.iter().filter_map(|record| Some((record, record.calls?)));
    let Some((_, first)) = proved().next() else { return Ok(()) };
    let false_ones: Vec<String> = proved()
        .filter(|(_, calls)| !calls.holds())
        .map(|(record, calls)| {
            format!(
                "{}/{} in {} called its probe {} times in {} loops, not {}",
                record.design,
                record.state,
                record.context,
                calls.counted,
                calls.loops,
                calls.expected.unwrap_or_default()
            )
        })
        .collect();
    for text in &false_ones {
        page.print_painted_row("VIOLATED", text, Output::yellow)?;
        print_warning(text);
    }
    if !false_ones.is_empty() {
        return Ok(());
    }
    let silent = proved().filter(|(_, calls)| calls.expected == Some(0)).count() as u64;
    let calls_each_time = |calls: &CallProof| calls.expected.is_some_and(|expected| expected > 0);
    let calling = proved().filter(|(_, calls)| calls_each_time(calls)).count() as u64;
    let loops = first.loops;
    let off = format!("{} called nothing in {loops} loops", format_count(silent, "dormant marker"));
    let on = format!("{} called their probe each time", format_count(calling, "enabled one"));
    let always = proved()
        .any(|(record, calls)| calls.expected.is_some_and(|expected| expected > 0) && record.state == "dormant");
    let note = if always { " (including a dormant indirect call, which calls an empty function)" } else { "" };
    let text = match (silent, calling) {
        (_, 0) => off,
        (0, _) => {
            format!("{} called their probe in each of {loops} loops{note}", format_count(calling, "marker"))
        }
        _ => format!("{off}, {on}{note}"),
    };
    page.print_row("proved", &text)
}

#[cfg(test)]
mod tests {
    use super::super::simulated_records::simulated_record;
    use super::*;
    use cyclescope::statistics::Interval;
    use cyclescope::study::marker::record::CodeRecord;
    use cyclescope::study::marker::speeds::OtherSpeed;
    use cyclescope::unit::Unit;

    fn lines(records: &[MarkerRecord]) -> Vec<String> {
        let mut notes = Footnotes::default();
        let table = fit_to_page(&records.iter().collect::<Vec<_>>(), &mut notes);
        table.lines().map(|line| format!(" {}", line.trim_end())).collect()
    }

    #[test]
    fn extremes_lose_decimals_on_a_full_page() {
        let skewed = Interval { value: -125.22, low: -311.25, high: -91.04 };
        let wide = MarkerRecord {
            cost: Quantity::new(skewed, Unit::CoreCycles),
            best: Some(-91.81),
            worst: Some(-10.04),
            ..simulated_record("flag", "guarded-varargs", -25.22, Some("dormant"))
        };
        let code = CodeRecord { function_likely_bytes: 123, function_unlikely_bytes: -77, ..wide.code.clone() };
        let second = Caveat { code: CaveatKind::TwoModes, text: String::new() };
        let caveats = wide.caveats.iter().cloned().chain([second]).collect();
        let wide = MarkerRecord { code, caveats, ..wide };
        let widest = |table: &Table| table.lines().map(|line| line.trim_end().chars().count() + 1).max();
        let mut notes = Footnotes::default();
        assert!(widest(&build_table(&[&wide], &mut notes, MOST_DECIMALS[0])) > Some(WIDTH));
        let narrowed = fit_to_page(&[&wide], &mut notes);
        assert!(widest(&narrowed) <= Some(WIDTH), "{narrowed}");
        assert!(lines(&[simulated_record("flag", "empty", 1.0, None)])[2].contains("-0.10..0.10"));
    }

    #[test]
    fn rows_are_grouped_by_design_and_keep_their_signs() {
        let lines = lines(&[
            simulated_record("flag", "dormant", -0.0021, None),
            simulated_record("flag", "empty", 4.25, Some("dormant")),
            simulated_record("usdt", "dormant", 0.5, None),
        ]);
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(1), ["flag", "(1.000)"]);
        assert_eq!(words(2), ["dormant", "-0.002", "±", "0.010", "-", "-0.10..0.10", "6/51", "+9/-2", "[1]"]);
        assert_eq!(words(3)[..5], ["empty", "4.250", "±", "0.010", "+4.250"]);
        assert_eq!(words(4)[0], "usdt");
    }

    #[test]
    fn other_speed_is_below_its_row() {
        let other = |certain| {
            let controls = vec!["stores-8"];
            Some(OtherSpeed { placements: 16, without: 150.52, with: 138.58, certain, controls })
        };
        let mut rows = [
            simulated_record("flag", "guarded-varargs", -11.94, None),
            simulated_record("flag", "format", 11.94, None),
            simulated_record("flag", "empty", 0.1, None),
        ];
        (rows[0].other_speed, rows[1].other_speed) = (other(true), other(false));
        let lines = lines(&rows);
        assert_eq!(lines.len(), 7, "{lines:?}");
        let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(3), ["other", "speed:", "150.5", "to", "138.6"]);
        assert_eq!(words(5), ["other", "speed?", "150.5", "to", "138.6"]);
    }

    #[test]
    fn widest_row_fits() {
        let mut wide = simulated_record("usdt-semaphore", "guarded-varargs", -1234.567, Some("empty"));
        (wide.best, wide.worst) = (Some(-1240.0), Some(-1230.0));
        (wide.code.likely_bytes, wide.code.unlikely_bytes) = (123, 456);
        (wide.code.function_likely_bytes, wide.code.function_unlikely_bytes) = (-123, 456);
        wide.caveats.push(Caveat::emulated_machine());
        let mut tracing = simulated_record("tracing", "dormant-filtered", -12.345, Some("dormant"));
        (tracing.best, tracing.worst) = (Some(-12.5), Some(-12.25));
        for line in lines(&[wide, tracing]) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
