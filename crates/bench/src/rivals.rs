//! Rivals: how other ways of timing read one function of known length, side by side.
//!
//! The function is a chain of 50 `mulpd`. Its length in core cycles is 50 times the latency in the
//! table of known costs for this micro-architecture, from published sources. The chain shares no
//! instruction with the ruler, so the ruler's assumed latency can't make our figure right. The
//! function's result is the next call's argument in the same register, so that calls cannot
//! overlap; call and return overlap with it.
//!
//! Every other way gives time, which is converted to core cycles with the core clock that our ruler
//! measured once at the start, the best that their user could do. `quanta` and `Instant` run
//! themselves. Criterion's and divan's ways are reproduced here, not run: their sampling and their
//! computations, without their warm-up of seconds and their reports.

use crate::busy_loop::pin_thread;
use crate::cost_table;
use crate::lab::{Lab, LoadCondition, SectionResult};
use cyclescope::run::RunRequest;
use cyclescope::snippet::Snippet;
use cyclescope::statistics::{mean, median, sample_variance};
use std::arch::x86_64::{__m128d, _mm_set1_pd};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Multiplications in the function.
const CHAIN_LINKS: usize = 50;
/// One multiplication, as in the table of known costs.
const CHAIN_LINK: &str = "mulpd xmm0, xmm1";
/// The factor: the least number above one, which XMM1 also holds in the measured snippet. Products
/// stay normal numbers for 10¹⁵ calls; subnormal ones would take longer.
const FACTOR: f64 = 1.0 + f64::EPSILON;
/// Measurements of each way in each condition.
const REPEATS: usize = 20;
/// Timed calls in one measurement.
const CALLS: usize = 2_000;

std::arch::global_asm!(
    ".p2align 6",
    ".globl cyclescope_bench_fifty",
    "cyclescope_bench_fifty:",
    ".rept 50",
    "mulpd xmm0, xmm1",
    ".endr",
    "ret",
);

unsafe extern "C" {
    /// Multiplies XMM0 by XMM1 and changes nothing else; not a C calling convention.
    fn cyclescope_bench_fifty();
}

/// Calls the function with the previous result.
#[inline(always)]
fn call_fifty(state: __m128d, factor: __m128d) -> __m128d {
    let result;
    // SAFETY: the function changes only XMM0, and uses the stack for its return address.
    unsafe {
        std::arch::asm!(
            "call {}",
            sym cyclescope_bench_fifty,
            inout("xmm0") state => result,
            in("xmm1") factor,
        );
    }
    result
}

/// Both lanes of a vector.
fn broadcast(value: f64) -> __m128d {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_set1_pd(value) }
}

/// A way of timing: its name, and its nanoseconds per call.
struct RivalMethod {
    name: &'static str,
    kind: &'static str,
    time: fn(&RivalClocks) -> f64,
}

/// Shared resources of the ways, made once.
struct RivalClocks {
    quanta: quanta::Clock,
    tsc_hertz: f64,
    instant_precision: Duration,
}

const RIVAL_METHODS: &[RivalMethod] = &[
    RivalMethod {
        name: "quanta raw(), mean of 2000 calls",
        kind: "itself",
        time: |tools| mean(&time_quanta_raw(tools)),
    },
    RivalMethod {
        name: "quanta raw(), median of 2000 calls",
        kind: "itself",
        time: |tools| median(&mut time_quanta_raw(tools)),
    },
    RivalMethod {
        name: "quanta now(), mean of 2000 calls",
        kind: "itself",
        time: |tools| mean(&time_quanta_now(tools)),
    },
    RivalMethod { name: "std Instant, mean of 2000 calls", kind: "itself", time: |_| mean(&time_instant()) },
    RivalMethod { name: "std Instant, median of 2000 calls", kind: "itself", time: |_| median(&mut time_instant()) },
    RivalMethod { name: "Criterion's way: slope over iterations", kind: "reproduced", time: |_| time_like_criterion() },
    RivalMethod { name: "divan's way: median of samples", kind: "reproduced", time: |tools| time_like_divan(tools)[1] },
    RivalMethod { name: "divan's way: fastest sample", kind: "reproduced", time: |tools| time_like_divan(tools)[0] },
];

/// Runs the section.
pub fn compare_rivals(lab: &mut Lab) -> SectionResult {
    let code = vec![CHAIN_LINK; CHAIN_LINKS].join("; ");
    let Some(latency) = published_latency(lab.microarchitecture()) else {
        let text = format!("rivals: no published latency of {CHAIN_LINK} for this core, so the truth is unknown");
        lab.record_demand(&text, None, lab.machine.cpu.name());
        return Ok(());
    };
    let truth = latency * CHAIN_LINKS as f64;
    let Some(snippet) = lab.assemble_snippet(&code, "")? else { return Ok(()) };
    let Some((megahertz, tsc_hertz)) = measure_core_clock(lab, &snippet)? else {
        return Err("the core clock could not be measured".into());
    };
    println!(
        "truth {truth} core cycles: {CHAIN_LINKS} × the published latency of {CHAIN_LINK}, {latency}; \
         core clock by our ruler once at the start: {megahertz:.0} MHz\n\n{:<40} {:<11} {:<7} \
         {:>9} {:>9} {:>8} {:>9} {:>19}",
        "way", "", "", "mean", "bias", "bias %", "std dev", "range"
    );
    let cpu = lab.cpu;
    let tools = RivalClocks { quanta: quanta::Clock::new(), tsc_hertz, instant_precision: measure_instant_precision() };
    let mut ours = [0.0; 2];
    for (load, worst) in LoadCondition::BOTH.into_iter().zip(&mut ours) {
        let load_guard = lab.start_load(load)?;
        let costs = measure_our_costs(lab, &snippet)?;
        print_row("cyclescope run", "itself", load, &costs, truth);
        *worst = costs.iter().map(|cost| (cost - truth).abs()).fold(0.0, f64::max);
        // A separate thread, so that this one may still run anywhere.
        let others = std::thread::scope(|scope| {
            let timing = || pin_thread(cpu).map(|()| measure_rival_costs(&tools, megahertz));
            scope.spawn(timing).join().expect("timing does not panic")
        })?;
        for (way, costs) in RIVAL_METHODS.iter().zip(&others) {
            print_row(way.name, way.kind, load, costs, truth);
        }
        drop(load_guard);
    }
    let figure = format!("largest error {:.3} cycles idle, {:.3} loaded, of {truth}", ours[0], ours[1]);
    let met = ours.iter().all(|worst| *worst <= 0.005 * truth);
    lab.record_demand("50-instruction function: ours within 0.5 % each time, idle and loaded", Some(met), figure);
    Ok(())
}

/// The published latency of a link on a micro-architecture, in core cycles.
fn published_latency(microarchitecture: &str) -> Option<f64> {
    cost_table::known_costs().iter().find(|row| row.code == CHAIN_LINK).and_then(|row| row.cost(microarchitecture))
}

/// The core clock in MHz and the TSC's rate, once.
fn measure_core_clock(lab: &mut Lab, snippet: &Snippet) -> SectionResult<Option<(f64, f64)>> {
    let request = RunRequest { budget: Some(Duration::from_millis(300)), layouts: Some(64), ..RunRequest::default() };
    let run = lab.measure(snippet, &request)?;
    let (Some([_, hertz, _]), Some(estimate)) = (run.tsc, &run.measurement.estimate) else { return Ok(None) };
    Ok(Some((hertz.to_megahertz() / estimate.rate[1], hertz.0)))
}

fn measure_our_costs(lab: &mut Lab, snippet: &Snippet) -> SectionResult<Vec<f64>> {
    let mut costs = Vec::new();
    for _ in 0..REPEATS {
        let run = lab.measure(snippet, &RunRequest::default())?;
        costs.extend(run.estimate().map(|estimate| estimate.cost.value));
    }
    Ok(costs)
}

/// Core cycles by each way, in turns, so that all have the same disturbances.
fn measure_rival_costs(tools: &RivalClocks, megahertz: f64) -> Vec<Vec<f64>> {
    let mut costs = vec![Vec::new(); RIVAL_METHODS.len()];
    for _ in 0..REPEATS {
        for (way, costs) in RIVAL_METHODS.iter().zip(&mut costs) {
            costs.push((way.time)(tools) * megahertz / 1e3);
        }
    }
    costs
}

fn print_row(name: &str, kind: &str, load: LoadCondition, costs: &[f64], truth: f64) {
    let Some(low) = costs.iter().copied().reduce(f64::min) else {
        println!("{name:<40} {kind:<11} {:<7} no number", load.name());
        return;
    };
    let high = costs.iter().copied().fold(low, f64::max);
    let centre = mean(costs);
    let range = format!("{low:.2}..{high:.2}");
    println!(
        "{name:<40} {kind:<11} {:<7} {centre:>9.2} {:>+9.2} {:>+8.2} {:>9.3} {range:>19}",
        load.name(),
        centre - truth,
        100.0 * (centre - truth) / truth,
        sample_variance(costs).sqrt(),
    );
}

fn time_quanta_raw(tools: &RivalClocks) -> Vec<f64> {
    let (mut state, factor) = (broadcast(1.0), broadcast(FACTOR));
    let call = |_| {
        let start = tools.quanta.raw();
        state = call_fifty(state, factor);
        let end = tools.quanta.raw();
        end.saturating_sub(start) as f64 / tools.tsc_hertz * 1e9
    };
    (0..CALLS).map(call).collect()
}

fn time_quanta_now(tools: &RivalClocks) -> Vec<f64> {
    let (mut state, factor) = (broadcast(1.0), broadcast(FACTOR));
    let call = |_| {
        let start = tools.quanta.now();
        state = call_fifty(state, factor);
        tools.quanta.now().duration_since(start).as_nanos() as f64
    };
    (0..CALLS).map(call).collect()
}

fn time_instant() -> Vec<f64> {
    let (mut state, factor) = (broadcast(1.0), broadcast(FACTOR));
    let call = |_| {
        let start = Instant::now();
        state = call_fifty(state, factor);
        start.elapsed().as_nanos() as f64
    };
    (0..CALLS).map(call).collect()
}

/// Time of consecutive calls, in nanoseconds.
fn time_batch(iterations: u64) -> f64 {
    let (mut state, factor) = (broadcast(1.0), broadcast(FACTOR));
    let start = Instant::now();
    for _ in 0..iterations {
        state = call_fifty(state, factor);
    }
    let passed = start.elapsed().as_nanos() as f64;
    black_box(state);
    passed
}

/// Criterion's linear sampling: 100 samples of d, 2d, 3d … iterations, and the slope of a line
/// through the origin by least squares. It plans for 20 ms instead of Criterion's 5 s.
fn time_like_criterion() -> f64 {
    const SAMPLES: u64 = 100;
    const PLANNED: f64 = 20e6;
    let call = time_batch(2_000) / 2_000.0;
    let step = (PLANNED / call / (SAMPLES * (SAMPLES + 1) / 2) as f64).ceil().max(1.0) as u64;
    let samples: Vec<[f64; 2]> =
        (1..=SAMPLES).map(|sample| [(sample * step) as f64, time_batch(sample * step)]).collect();
    fit_slope(&samples)
}

/// Slope of the line through the origin with the least squared errors.
fn fit_slope(points: &[[f64; 2]]) -> f64 {
    let products: f64 = points.iter().map(|[x, y]| x * y).sum();
    let squares: f64 = points.iter().map(|[x, _]| x * x).sum();
    products / squares
}

/// divan's sampling. A sample grows until it takes a hundred times the timer's precision. Then it
/// takes 100 samples, less the cost of an empty loop of equally many iterations. Returns the
/// fastest and the median sample, per call.
fn time_like_divan(tools: &RivalClocks) -> [f64; 2] {
    const SAMPLES: usize = 100;
    let mut size = 1;
    while time_batch(size) < 100.0 * tools.instant_precision.as_nanos() as f64 {
        size *= 2;
    }
    let empty = |_| {
        let start = Instant::now();
        for iteration in 0..size {
            black_box(iteration);
        }
        start.elapsed().as_nanos() as f64
    };
    let overhead = median(&mut (0..SAMPLES).map(empty).collect::<Vec<_>>());
    let mut samples: Vec<f64> = (0..SAMPLES).map(|_| (time_batch(size) - overhead).max(0.0) / size as f64).collect();
    let middle = median(&mut samples);
    [samples[0], middle]
}

/// The smallest difference that `Instant` shows.
fn measure_instant_precision() -> Duration {
    let difference = || {
        let start = Instant::now();
        loop {
            let passed = start.elapsed();
            if !passed.is_zero() {
                return passed;
            }
        }
    };
    (0..100).map(|_| difference()).min().unwrap_or(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::arch::x86_64::_mm_storeu_pd;

    #[test]
    fn a_line_through_the_origin_is_found() {
        assert!((fit_slope(&[[1.0, 3.0], [2.0, 6.0], [5.0, 15.0]]) - 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_function_multiplies_fifty_times() {
        let product = (0..CHAIN_LINKS).fold(3.0, |value, _| value * 1.25);
        let mut lanes = [0.0; 2];
        // SAFETY: the array has room for both lanes.
        unsafe { _mm_storeu_pd(lanes.as_mut_ptr(), call_fifty(broadcast(3.0), broadcast(1.25))) };
        assert_eq!(lanes, [product; 2]);
    }

    #[test]
    fn the_truth_comes_from_the_table() {
        assert_eq!(published_latency("Zen 5"), Some(3.0));
        assert_eq!(published_latency("Golden Cove"), Some(4.0));
        assert_eq!(published_latency("no such core"), None);
    }
}
