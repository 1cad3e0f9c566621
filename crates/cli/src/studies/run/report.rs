//! Prints a result as text, in lines of at most 80 characters.

use super::cost_text::{format_cycles, format_interval, shorten_snippet};
use super::mix_report::{describe_mix, print_orders};
use super::ranking::print_ranking;
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, WIDTH, wrap_text};
use cyclescope::asm::CodeMode;
use cyclescope::executor::ExecutorOffer;
use cyclescope::measure::{RawReading, RawReadings, ReadingKind};
use cyclescope::record::{CallRecord, Quantity, RegionLoop, RegionRecord, RunRecord, SerializedBy, TrainingRecord};
use cyclescope::result::counter_record::CounterRecord;
use cyclescope::result::variant_comparison::{CostRatio, VariantComparison, VariantVerdict};

/// Prints a result. `prints_orders` asks for the cost of each order of a mix.
pub fn print_report(record: &RunRecord, prints_orders: bool, output: &mut Output) -> Result<(), Failure> {
    for line in wrap_text(&shorten_snippet(&escape_controls(&record.snippet)), WIDTH) {
        output.write_line(line)?;
    }
    output.write_line("")?;
    output.write_line(format!("  {}", format_headline(record, output)))?;
    for mode in &record.modes {
        let share = format!("{:.0} % of the layouts", 100.0 * mode.share);
        output.write_line(format!("    {:<28} {share}", format_cycles(&mode.cost)))?;
    }
    if let Some(region) = &record.region {
        print_region_loops(region, output)?;
    }
    if let Some(mix) = record.mix.as_ref().filter(|_| prints_orders) {
        print_orders(mix, output)?;
    }
    print_call_costs(record, output)?;
    print_loop_costs(record, output)?;
    print_counters(record, output)?;
    match &record.versus {
        _ if !record.variants.is_empty() => print_ranking(&record.variants, output)?,
        Some(versus) => print_versus(record, versus, output)?,
        None => {}
    }
    output.write_line("")?;
    for text in detail_lines(record) {
        for line in wrap_text(&text, WIDTH - 2) {
            output.write_line(format!("  {}", output.faint(&line)))?;
        }
    }
    for caveat in &record.caveats {
        let code = serde_json::to_value(caveat.code).expect("codes are strings");
        let code = format!("{}:", code.as_str().unwrap_or_default());
        for (index, line) in wrap_text(&format!("{code} {}", caveat.text), WIDTH - 4).iter().enumerate() {
            let indent = if index == 0 { "  " } else { "    " };
            output.write_line(format!("{indent}{}", line.replacen(&code, &output.yellow(&code), 1)))?;
        }
        if let Some(advice) = caveat.code.advice() {
            for line in wrap_text(&format!("try: {advice}"), WIDTH - 4) {
                output.write_line(format!("    {}", output.faint(&line)))?;
            }
        }
    }
    record.counts.as_ref().map_or(Ok(()), |counts| print_readings(counts, output))
}

/// Prints the cost of an iteration of each loop of a region.
fn print_region_loops(region: &RegionRecord, output: &mut Output) -> Result<(), Failure> {
    for RegionLoop { place, iterations, cost } in &region.loops {
        let Some(cost) = cost.filter(|cost| cost.value.is_some()) else { continue };
        let cost = format_cycles(&cost);
        let place = escape_controls(place);
        for line in wrap_text(&format!("{cost} per iteration, of {iterations} of the loop at {place}"), WIDTH - 2) {
            output.write_line(format!("  {line}"))?;
        }
    }
    Ok(())
}

/// What was taken from the run of a region's program.
fn describe_region(region: &RegionRecord) -> String {
    let RegionRecord { from, hit, pages, instructions, restored_bytes, .. } = region;
    let restored = match restored_bytes {
        0 => String::new(),
        bytes => format!("; {bytes} bytes, which it reads and then overwrites, are restored before each execution"),
    };
    format!(
        "all registers and {pages} pages, at their addresses, were taken at arrival {hit} at {}; an execution has \
         {instructions} instructions and begins after the last has ended{restored}",
        escape_controls(from)
    )
}

/// Prints the counts of events.
fn print_counters(record: &RunRecord, output: &mut Output) -> Result<(), Failure> {
    let Some(passes) = record.counter_passes else { return Ok(()) };
    let versus = record.versus.iter().map(|versus| (None, versus.snippet.as_str(), &versus.counters));
    let further = record.variants.iter().skip(1);
    let further = further.map(|variant| (variant.name.as_deref(), variant.snippet.as_str(), &variant.counters));
    let others: Vec<_> = if record.variants.is_empty() { versus.collect() } else { further.collect() };
    print_counts(&record.counters, passes, output)?;
    for (name, snippet, counters) in others {
        output.write_line("")?;
        for line in wrap_text(&shorten_snippet(&escape_controls(name.unwrap_or(snippet))), WIDTH - 2) {
            output.write_line(format!("  {line}"))?;
        }
        print_counts(counters, passes, output)?;
    }
    Ok(())
}

/// Prints the counts of one variant.
fn print_counts(counters: &[CounterRecord], passes: usize, output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    let widest = counters.iter().map(|counter| counter.name.chars().count()).max().unwrap_or(0);
    for counter in counters {
        let value = format_interval(&counter.quantity).unwrap_or_else(|| "no number".to_string());
        let pass = if passes > 1 { format!("pass {}", counter.pass) } else { String::new() };
        let note = counter.lost.clone().unwrap_or(pass);
        let line = format!("  {:widest$}  {value:<24} {}", escape_controls(&counter.name), output.faint(&note));
        output.write_line(line.trim_end())?;
    }
    Ok(())
}

/// Prints the costs of overlapping and of serialized calls of a function, if both were measured.
fn print_call_costs(record: &RunRecord, output: &mut Output) -> Result<(), Failure> {
    let (Some(throughput), Some(latency)) = (&record.throughput, &record.latency) else { return Ok(()) };
    let wait = describe_wait(record.latency_by.unwrap_or(SerializedBy::Fence), record.bits);
    print_named_costs([("throughput", throughput, "calls overlap"), ("latency", latency, wait)], output)
}

/// Prints the costs in a loop and without one, if they differ.
fn print_loop_costs(record: &RunRecord, output: &mut Output) -> Result<(), Failure> {
    let (Some(looped), Some(unrolled)) = (&record.looped, &record.unrolled) else { return Ok(()) };
    if is_same_in_loop(looped, unrolled) {
        return Ok(());
    }
    let costs = [("looped", looped, "in a hot loop"), ("unrolled", unrolled, "as copies that run once")];
    print_named_costs(costs, output)
}

/// Share of a cost below which the costs in a loop and without one count as the same.
const SAME_IN_LOOP_SHARE: f64 = 0.01;

fn is_same_in_loop(looped: &Quantity, unrolled: &Quantity) -> bool {
    let Some((looped, unrolled)) = looped.value.zip(unrolled.value) else { return false };
    (looped - unrolled).abs() <= SAME_IN_LOOP_SHARE * looped.abs()
}

fn print_named_costs(costs: [(&str, &Quantity, &str); 2], output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    costs.into_iter().try_for_each(|(name, cost, meaning)| {
        let cost = match cost.value {
            Some(_) => format_cycles(cost),
            None => "no number".to_string(),
        };
        output.write_line(format!("  {name:<11}{cost:<30} {}", output.faint(meaning)))
    })
}

/// Whether the latency by result is certainly below the throughput. If so, the result is available
/// before the call's work is done.
fn is_result_early(record: &RunRecord) -> bool {
    let by_result = record.latency_by.is_some_and(|by| by != SerializedBy::Fence);
    let ends = record.latency.and_then(|latency| latency.high).zip(record.throughput.and_then(|cost| cost.low));
    by_result && ends.is_some_and(|(latency, throughput)| latency < throughput)
}

/// What each call waits for when latency is measured.
fn describe_wait(serialized: SerializedBy, mode: CodeMode) -> &'static str {
    match (serialized, mode) {
        (SerializedBy::Result, CodeMode::Bits64) => "each waits for the previous RAX",
        (SerializedBy::Result, CodeMode::Bits32) => "each waits for the previous EAX",
        (SerializedBy::FloatResult, CodeMode::Bits64) => "each waits for the previous XMM0",
        (SerializedBy::FloatResult, CodeMode::Bits32) => "each waits for the previous ST0",
        (SerializedBy::Fence, _) => "each starts after the previous ends",
    }
}

/// Prints the other variant, the difference, and the verdict.
fn print_versus(record: &RunRecord, versus: &VariantComparison, output: &mut Output) -> Result<(), Failure> {
    output.write_line("")?;
    output.write_line("versus")?;
    for line in wrap_text(&shorten_snippet(&escape_controls(&versus.snippet)), WIDTH) {
        output.write_line(line)?;
    }
    output.write_line("")?;
    let cost = match versus.cost.value {
        Some(_) => output.bold(&format_cycles(&versus.cost)),
        None => output.bold("no number: see below"),
    };
    output.write_line(format!("  {cost}"))?;
    let Some(difference) = versus.difference.value else { return Ok(()) };
    let sign = if difference < 0.0 { "" } else { "+" };
    let mut text = format!("difference {sign}{}", format_cycles(&versus.difference));
    if let CostRatio { value: Some(value), low: Some(low), high: Some(high) } = versus.ratio {
        text.push_str(&format!(", ratio {value:.4} ({low:.4} to {high:.4})"));
    }
    for line in wrap_text(&text, WIDTH - 2) {
        output.write_line(format!("  {line}"))?;
    }
    let share = record.cost.value.map_or(f64::NAN, |cost| 100.0 * (difference / cost).abs());
    let verdict = match versus.verdict {
        VariantVerdict::Slower => format!("the other is slower, by {share:.2} %"),
        VariantVerdict::Faster => format!("the other is faster, by {share:.2} %"),
        VariantVerdict::Same => "the two cost the same, within 2 %".to_string(),
        VariantVerdict::Unclear => {
            "unclear: the interval contains 0 and is wide; allow more time with --budget".to_string()
        }
    };
    output.write_line(format!("  {}", output.bold(&verdict)))
}

/// Prints the readings of a layout in measured order, one line per round.
fn print_readings(counts: &RawReadings, output: &mut Output) -> Result<(), Failure> {
    const COLUMN: usize = 8;
    let unit = serde_json::to_value(counts.unit).expect("units are strings");
    let unit = unit.as_str().unwrap_or_default().replace('_', " ").replace("tsc", "TSC");
    output.write_line("")?;
    let looped = counts.loop_count.map_or(String::new(), |count| format!("; a loop runs the copies {count} times"));
    let title = format!("Readings in {unit} in measured order, overhead included{looped}");
    for line in wrap_text(&title, WIDTH - 2) {
        output.write_line(format!("  {line}"))?;
    }
    let round = |number: usize| counts.readings.iter().filter(move |reading| reading.round == number);
    let heading = |reading: &RawReading| match (reading.what, reading.copies) {
        (_, Some(copies)) => ["copies".to_string(), copies.to_string()],
        (ReadingKind::ImulShort, _) => ["imul", "short"].map(str::to_string),
        (ReadingKind::ImulLong, _) => ["imul", "long"].map(str::to_string),
        (ReadingKind::AddShort, _) => ["add", "short"].map(str::to_string),
        (ReadingKind::AddLong, _) => ["add", "long"].map(str::to_string),
        _ => ["add", "width"].map(str::to_string),
    };
    let row = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        cells.fold(format!("  {name:<6}"), |line, cell| format!("{line} {cell:>COLUMN$}"))
    };
    let mut headings: Vec<[String; 2]> = Vec::new();
    for number in 1..=counts.readings.last().map_or(0, |reading| reading.round) {
        let own: Vec<[String; 2]> = round(number).map(heading).collect();
        // Placements have their own order.
        for (line, name) in ["round", ""].into_iter().enumerate().filter(|_| headings != own) {
            let mut cells = own.iter().map(|heading| heading[line].clone());
            output.write_line(output.faint(row(name, &mut cells).trim_end()))?;
        }
        headings = own;
        let first = round(number).all(|reading| reading.first);
        let name = if first { format!("{number}*") } else { number.to_string() };
        let value = |reading: &RawReading| reading.value.map_or("-".to_string(), |value| value.to_string());
        output.write_line(row(&name, &mut round(number).map(value)))?;
    }
    output.write_line(output.faint("  * first run of each program at its address"))
}

/// Formats the headline, such as `3.000 ± 0.002 core cycles   2.300 TSC ticks   1.000 ns`.
fn format_headline(record: &RunRecord, output: &Output) -> String {
    let mut text = match record.cost.value {
        Some(_) => output.bold(&format_cycles(&record.cost)),
        None => output.bold("no number: see below"),
    };
    for (quantity, unit) in [(&record.ticks, "TSC ticks"), (&record.time, "ns")] {
        if let Some(value) = quantity.value {
            text.push_str(&format!("   {value:.3} {unit}"));
        }
    }
    text
}

/// Explains which cost of a function is shown if there is only one.
fn describe_meaning(record: &RunRecord) -> Option<String> {
    match (record.serialized, record.throughput.as_ref().and(record.latency.as_ref())) {
        (_, Some(_)) => None,
        (None, None) => Some("throughput: calls may overlap; --serialize measures the latency".to_string()),
        (Some(serialized), None) => Some(format!("latency: {}", describe_wait(serialized, record.bits))),
    }
}

fn detail_lines(record: &RunRecord) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(record.region.as_ref().map(describe_region));
    lines.extend(record.mix.iter().flat_map(|mix| describe_mix(mix, &record.cost)));
    if let (Some(call), Some(_)) = (&record.empty_call, &record.region) {
        let call = format_cycles(call);
        lines.push(format!("the cost of setting registers and memory, {call}, is excluded"));
    } else if let Some(call) = &record.empty_call {
        let call = format_cycles(call);
        lines.extend(describe_meaning(record));
        lines.push(match (&record.setup, record.cost.low == Some(0.0)) {
            (None, false) => format!("the cost of calling an empty function, {call}, is excluded"),
            (None, true) => format!(
                "the cost of calling an empty function, {call}, is excluded; the function itself may cost nothing \
                 beyond it"
            ),
            (Some(setup), small) => {
                let setup = escape_controls(setup);
                let same = if small { "; the function itself may cost nothing beyond it" } else { "" };
                format!("the cost of {setup} and a call of an empty function, {call}, is excluded{same}")
            }
        });
    }
    if let (Some(setup), Some(cost)) = (&record.setup, &record.setup_cost) {
        let (setup, cost) = (escape_controls(setup), format_cycles(cost));
        lines.push(format!("the cost of the setup, `{setup}`, was subtracted: {cost}"));
    }
    if let Some(CallRecord { text, versus, signature, implied, .. }) = &record.call {
        let types = signature.as_ref().map_or("its types are unknown".to_string(), |known| escape_controls(known));
        lines.push(format!("called as {}; {types}", escape_controls(text)));
        lines.extend(versus.as_ref().map(|other| format!("compared with {}", escape_controls(other))));
        let names = escape_controls(&implied.join(" and "));
        match implied.len() {
            0 => {}
            1 => lines.push(format!("{names} has no --arg and points to the buffer")),
            _ => lines.push(format!("{names} have no --arg and point to the buffer")),
        }
    }
    if is_result_early(record) {
        lines.push(
            "the latency is below the throughput: the result does not depend on the argument, or is available long \
             before the call ends; --serialize fence measures to the end of the call"
                .to_string(),
        );
    }
    match record.addresses {
        Some(1) => lines.push(
            "the library could be loaded at only one address: at another, the cost may be outside the interval"
                .to_string(),
        ),
        Some(count) => lines.push(format!("the function was measured at {count} addresses")),
        None => {}
    }
    if let Some(TrainingRecord { calls, untrained }) = &record.trained {
        let untrained = format_cycles(untrained);
        lines.push(format!(
            "measured after up to {calls} calls, because earlier calls cost more: branch predictors learn slowly, or \
             the function keeps state; after some thousand calls, a call takes {untrained}"
        ));
    }
    if let (Some(looped), Some(unrolled)) = (&record.looped, &record.unrolled)
        && is_same_in_loop(looped, unrolled)
    {
        let (headline, other, place) = match record.cost == *looped {
            true => ("in a loop", unrolled, "without one"),
            false => ("without a loop", looped, "in one"),
        };
        lines.push(format!("measured {headline}; {place} the same: {}", format_cycles(other)));
    }
    if let Some(reason) = &record.unchecked {
        lines.push(format!("whether later calls do the work of the first one was not checked: {reason}"));
    }
    if let Some(obstacle) = &record.loop_obstacle {
        lines.push(format!("measured without a loop: {obstacle}"));
    }
    // Rounded, because 100 × 0.57 is 56.99999999999999.
    let percent = (1e6 * record.confidence).round() / 1e4;
    lines.push(format!(
        "{percent} % interval over {} layouts, {} of {} rounds used",
        record.layouts,
        record.samples,
        record.samples + record.dropped
    ));
    let looped = record.loop_count.map_or(String::new(), |count| format!(", looped {count} times"));
    if record.cold.is_any() {
        lines.push(format!("clock {}, one first run of the snippet compared with none", record.clock));
    } else {
        lines.push(format!(
            "clock {}, bodies of about {}, {} and {} copies{looped}",
            record.clock,
            record.unroll,
            2 * record.unroll,
            4 * record.unroll
        ));
    }
    let offer = ExecutorOffer::find_by_name(&record.executor).filter(|offer| !offer.is_default());
    let ring = offer.map_or(String::new(), |offer| format!("in {}, ", offer.place));
    lines.push(format!("{ring}CPU {}, {}, seed {}", record.cpu, record.cpu_model, record.seed));
    if let Some(ruler) = &record.ruler {
        let clock = ruler
            .core_mhz
            .map_or(String::new(), |[low, mean, high]| format!("; core clock {mean:.0} MHz ({low:.0} to {high:.0})"));
        let link = ruler.add_link.value.unwrap_or(f64::NAN);
        lines.push(format!("ruler: an add takes {link:.3} cycles{clock}"));
    }
    if let Some(aperf) = &record.aperf {
        let clock = aperf.core_mhz.map_or(String::new(), |mhz| format!("; core clock {mhz:.0} MHz"));
        let ruler = aperf.ruler_cycles_per_tick.map_or(String::new(), |ratio| format!(", by the ruler {ratio:.4}"));
        lines.push(format!("APERF: {:.4} cycles per TSC tick{ruler}{clock}", aperf.cycles_per_tick));
    }
    if let Some(passes) = record.counter_passes {
        let passes = if passes > 1 { format!(" in {passes} passes") } else { String::new() };
        lines.push(format!("events per copy, counted in further layouts{passes}"));
    }
    if let Some(cycles) = &record.counted_cycles {
        lines.push(format!("the core-cycles counter: {} per copy", format_cycles(cycles)));
    }
    if !record.changed.is_empty() {
        lines.push(format!("the code changed this state, and the module restored it: {}", record.changed.join(", ")));
    }
    lines
}
