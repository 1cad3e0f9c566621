//! The reference: a C program that times each block in loops of its own.

use crate::busy_loop::pin_thread;
use crate::lab::SectionResult;
use std::path::Path;
use std::process::Command;

/// Places of a loop's start in a cache line, and the bytes between them. No two places are the
/// same.
const PLACES: std::ops::Range<usize> = 0..16;
const PLACE_BYTES: usize = 5;
/// Runs of the program; the middle one counts.
const PROGRAM_RUNS: usize = 3;
/// Approximate instructions in the shorter of a block's two loops. The longer has three times as
/// many copies.
const SHORT_LOOP: usize = 200;

/// The program's clock, its ruler, and the cost of a block from two loops of it.
const HEAD: &str = r#"#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>
#define ALL "rax","rbx","rcx","rdx","rsi","rdi","r8","r9","r10","r11","r12","r13","r14","cc","memory", \
    "xmm0","xmm1","xmm2","xmm3","xmm4","xmm5","xmm6","xmm7","xmm8","xmm9","xmm10","xmm11","xmm12","xmm13", \
    "xmm14","xmm15"
enum { ITERATIONS = 500, REPEATS = 11, LINKS = 30, SHORT = 400, LONG = 1200 };
static uint64_t now(void) { unsigned cpu; uint64_t time = __rdtscp(&cpu); _mm_lfence(); return time; }
static void __attribute__((noinline)) ruler(long n) {
    for (long i = 0; i < n; i++) asm volatile(".rept 30\nimul %%rax, %%rax\n.endr" ::: "rax", "cc");
}
static int compare(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}
static double cost(void (*one)(long), void (*three)(long), int more_copies) {
    double values[REPEATS];
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        uint64_t t0 = now(); one(ITERATIONS);
        uint64_t t1 = now(); three(ITERATIONS);
        uint64_t t2 = now(); ruler(SHORT);
        uint64_t t3 = now(); ruler(LONG);
        uint64_t t4 = now();
        double rate = ((double)(t4 - t3) - (double)(t3 - t2)) / ((LONG - SHORT) * LINKS * (double)IMUL_LATENCY);
        double more = (double)(t2 - t1) - (double)(t1 - t0);
        values[repeat] = more / ((double)ITERATIONS * more_copies) / rate;
    }
    qsort(values, REPEATS, sizeof *values, compare);
    return values[REPEATS / 2];
}
"#;

/// Core cycles of a block, over the places of its loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceCost {
    /// The mean.
    pub mean: f64,
    /// The lowest cost.
    pub lowest: f64,
    /// The highest cost.
    pub highest: f64,
}

/// Compiles the program for these blocks, and runs it on a CPU whose `imul` has this latency.
pub fn measure_blocks(blocks: &[String], cpu: usize, imul_latency: u32) -> SectionResult<Vec<ReferenceCost>> {
    let directory = std::env::temp_dir().join(format!("cyclescope-bench-blocks-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let runs = compile_and_run(blocks, cpu, imul_latency, &directory);
    std::fs::remove_dir_all(&directory)?;
    let runs = runs?;
    let middle = |block: usize| {
        let mut costs: Vec<ReferenceCost> = runs.iter().map(|run| run[block]).collect();
        costs.sort_by(|one, other| one.mean.total_cmp(&other.mean));
        costs[costs.len() / 2]
    };
    Ok((0..blocks.len()).map(middle).collect())
}

fn compile_and_run(
    blocks: &[String],
    cpu: usize,
    imul_latency: u32,
    directory: &Path,
) -> SectionResult<Vec<Vec<ReferenceCost>>> {
    let (source, program) = (directory.join("blocks.c"), directory.join("blocks"));
    std::fs::write(&source, write_program(blocks))?;
    let flags = ["-O1", "-mno-red-zone", "-fno-align-loops", "-fno-align-functions", "-w"];
    let latency = format!("-DIMUL_LATENCY={imul_latency}");
    let compiled = Command::new("cc").args(flags).arg(latency).arg(&source).arg("-o").arg(&program).output()?;
    if !compiled.status.success() {
        return Err(format!("cc: {}", String::from_utf8_lossy(&compiled.stderr)).into());
    }
    let run = || -> SectionResult<Vec<ReferenceCost>> {
        let output = Command::new(&program).output()?;
        let text = String::from_utf8(output.stdout)?;
        let costs: Option<Vec<ReferenceCost>> = text.lines().map(parse_line).collect();
        let costs = costs.filter(|costs| costs.len() == blocks.len());
        costs.ok_or_else(|| format!("the reference program printed {text:?}").into())
    };
    // The program inherits the CPU of the thread that starts it.
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            pin_thread(cpu).map_err(|error| error.to_string())?;
            (0..PROGRAM_RUNS).map(|_| run().map_err(|error| error.to_string())).collect::<Result<Vec<_>, String>>()
        });
        pinned.join().expect("the thread does not panic").map_err(Into::into)
    })
}

fn parse_line(line: &str) -> Option<ReferenceCost> {
    let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [mean, lowest, highest] = numbers[..] else { return None };
    Some(ReferenceCost { mean, lowest, highest })
}

/// The program's text: two loops for each block and place.
fn write_program(blocks: &[String]) -> String {
    let numbered = || blocks.iter().enumerate();
    let loops: String = numbered().map(|(number, block)| write_loops(number, block)).collect();
    let costs: String = numbered().map(|(number, block)| write_cost(number, block)).collect();
    format!("{HEAD}{loops}int main(void) {{\n{costs}    return 0;\n}}\n")
}

/// Copies of a block in the shorter of its loops.
fn short_copies(block: &str) -> usize {
    (SHORT_LOOP / (block.matches(';').count() + 1)).max(1)
}

/// The functions with a block's loops.
fn write_loops(number: usize, block: &str) -> String {
    let code = block.replace("; ", "\\n");
    let write_loop = |place: usize, length: usize| {
        let copies = [1, 3][length] * short_copies(block);
        let start = format!("asm volatile(\".p2align 6\\n.nops {}\");", 1 + place * PLACE_BYTES);
        let body = format!(".intel_syntax noprefix\\n.rept {copies}\\n{code}\\n.endr\\n.att_syntax");
        format!(
            "static void __attribute__((noinline)) block{number}_{place}_{length}(long n) {{ {start} \
             for (long i = 0; i < n; i++) asm volatile(\"{body}\" ::: ALL); }}\n"
        )
    };
    PLACES.flat_map(|place| [0, 1].map(|length| write_loop(place, length))).collect()
}

/// The statements that print a block's mean, lowest and highest cost.
fn write_cost(number: usize, block: &str) -> String {
    let more = 2 * short_copies(block);
    let measure_place = |place: usize| {
        format!(
            "      found = cost(block{number}_{place}_0, block{number}_{place}_1, {more}); sum += found; \
             if (found < low) low = found; if (found > high) high = found;\n"
        )
    };
    let places: String = PLACES.map(measure_place).collect();
    format!(
        "    {{ double sum = 0, low = 1e9, high = 0, found;\n{places}\
         \x20     printf(\"%.4f %.4f %.4f\\n\", sum / {}, low, high); }}\n",
        PLACES.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_two_loops_at_each_place() {
        let text = write_program(&["nop; nop".to_string(), "xor eax, eax".to_string()]);
        assert_eq!(text.matches("static void __attribute__((noinline)) block").count(), 2 * 16 * 2);
        assert!(text.contains(".rept 100\\n") && text.contains(".rept 600\\n"));
    }

    #[test]
    fn lines_have_three_numbers() {
        let cost = ReferenceCost { mean: 5.0, lowest: 4.5, highest: 5.5 };
        assert_eq!(parse_line("5.0000 4.5000 5.5000"), Some(cost));
        assert_eq!(parse_line("5.0 4.5"), None);
    }
}
