//! The study of markers with the module on an emulated machine, where times have no meaning.

use crate::command_result::CommandResult;
use crate::markers;
use cyclescope::asm::CodeMode;
use cyclescope::executor::kernel::markers::MarkerWorkload;
use cyclescope::study::ResultRecord;
use cyclescope::study::marker::anatomy::AssemblyLine;
use cyclescope::study::marker::bench::{CaseVisit, MarkerBench, call};
use cyclescope::study::marker::kernel::{CLOCK, CONTEXTS, KernelBench};
use cyclescope::study::marker::record::{MarkerOrigin, MarkerRecord, measure_records};
use cyclescope::study::marker::state::MarkerState;
use cyclescope::study::marker::survey::{PROOF_LOOPS, VisitPlan};

/// Any value works: nothing is measured.
const STEP: f64 = 1.0;
const IMUL_LATENCY: f64 = 3.0;

/// Checks that each case's calls are counted, its bytes are reported and equal for all placements,
/// and its rounds are complete.
pub fn check_marker_study() -> CommandResult {
    let around = CONTEXTS.map(|(_, around): (&str, MarkerWorkload)| around);
    let mut bench = KernelBench::new(markers::open_markers()?, &around, STEP, 1)?;
    let records = measure_records(
        &mut bench,
        &VisitPlan::quick(IMUL_LATENCY, 1),
        &study_surroundings(),
        &mut Vec::<ResultRecord>::new(),
    )?;
    let cases = bench.cases().to_vec();
    assert_eq!(records.len(), cases.len());
    for (case, record) in records.iter().enumerate() {
        let place = format!("{} {} {}", record.design, record.state, record.context);
        check_record(record, &cases[case].state).map_err(|error| format!("{place}: {error}"))?;
        let it = bench.anatomy_at(case, 0);
        for placement in 1..bench.placement_offsets().len() {
            let other = bench.anatomy_at(case, placement);
            if (other.likely_bytes, other.unlikely_bytes) != (it.likely_bytes, it.unlikely_bytes) {
                return Err(format!("{place}: other bytes at placement {placement}").into());
            }
        }
        check_whole_rounds(&mut bench, case).map_err(|error| format!("{place}: {error}"))?;
    }
    print_table(&records);
    Ok(())
}

fn study_surroundings() -> MarkerOrigin {
    MarkerOrigin {
        executor: "kernel",
        mode: CodeMode::default(),
        clock: CLOCK,
        confidence: 0.95,
        cpu: 0,
        cpu_model: String::new(),
        seed: 1,
        repro: String::new(),
        emulated: true,
    }
}

/// The expected contents of a record.
fn check_record(record: &MarkerRecord, state: &MarkerState) -> CommandResult {
    let expected = state.probe.map(|_| if state.enabled { PROOF_LOOPS } else { 0 });
    if record.calls.map(|calls| calls.counted) != expected {
        return Err(format!("{:?}, not {expected:?}", record.calls).into());
    }
    let quantities = [&record.cost, &record.step.cost, &record.base, &record.site];
    let timed = quantities.iter().any(|quantity| quantity.value.is_some());
    let placed = record.placements.iter().any(|placement| placement.cost.value.is_some());
    let caveats = serde_json::to_string(&record.caveats)?;
    if timed || placed || !caveats.contains("\"emulated\"") {
        return Err("a time of an emulated machine".into());
    }
    let code = &record.code;
    let bytes = (code.likely_bytes, code.unlikely_bytes);
    let fits = match record.design {
        "none" => bytes == (0, 0) && (code.function_likely_bytes, code.function_unlikely_bytes) == (0, 0),
        // mov al, 0; test al, al; jne
        "immediate" => matches!(bytes.0, 6 | 10) && bytes.1 > 0,
        "static-key" | "tracepoint" => matches!(bytes.0, 2 | 5) && bytes.1 > 0,
        _ => bytes.0 > 0 && bytes.1 > 0,
    };
    let whole = code.function_unlikely_bytes == code.unlikely_bytes as i64
        && code.function_likely_bytes >= code.likely_bytes as i64;
    // Records must not contain addresses of the kernel; -8 is not an address.
    let address = |line: &AssemblyLine| line.text.contains("0xffffffff") && !line.text.contains("0xfffffffff");
    let named = !code.assembly.iter().any(address);
    if !fits || !whole || !named || code.assembly.is_empty() {
        let lines: Vec<String> = code.assembly.iter().map(ToString::to_string).collect();
        return Err(format!("{bytes:?} bytes in\n{}", lines.join("\n")).into());
    }
    Ok(())
}

/// Checks that a visit's round has all its calls.
fn check_whole_rounds(bench: &mut KernelBench, case: usize) -> CommandResult {
    let visit = |placement| CaseVisit { placement, loops: [3, 9], ruler_loops: 10 };
    let visits: Vec<CaseVisit> = (0..bench.placement_offsets().len()).map(visit).collect();
    let samples = bench.run_visits(case, &visits)?;
    let whole = samples.len() == visits.len()
        && samples.iter().all(|one| {
            let mut rounds = one.rounds();
            let round = rounds.next().unwrap_or(&[]);
            let timed = round.iter().all(|ticks| ticks.is_finite() && *ticks > 0.0);
            round.len() == call::COUNT && timed && rounds.next().is_none()
        });
    if whole { Ok(()) } else { Err("a round is not whole".into()) }
}

/// Prints the bytes by design and state, without times.
fn print_table(records: &[MarkerRecord]) {
    println!("{}", records.first().map_or("", |record| record.compiler.as_str()));
    for record in records {
        let code = &record.code;
        println!(
            "{:<11}{:<16}{:<8}calls {:<5}likely {} ({}) unlikely {} ({}) lines {} {} {}",
            record.design,
            record.state,
            record.context,
            record.calls.map_or("-".to_string(), |calls| calls.counted.to_string()),
            code.likely_bytes,
            code.function_likely_bytes,
            code.unlikely_bytes,
            code.function_unlikely_bytes,
            code.cache_lines.base,
            code.cache_lines.likely,
            code.cache_lines.both,
        );
    }
    for record in records.iter().filter(|record| record.context == "empty") {
        if matches!(record.state.as_str(), "dormant" | "base") {
            println!("{}", record.design);
            record.code.assembly.iter().for_each(|line| println!("  {line}"));
        }
    }
}
