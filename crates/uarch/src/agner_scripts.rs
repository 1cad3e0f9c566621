//! Which tests answer each script of A. Fog's test programs.

use super::test_list::TESTS;
use cyclescope_measure::study::{SuiteCatalog, SuiteQuestion};

/// All scripts and their purposes, in the order of their manual: Test programs for measuring clock
/// cycles and performance monitoring (2024). Tests refer to them by name.
const SCRIPTS: &[(&str, &str)] = &[
    ("AVX_states", "switches between states of the vector registers"),
    ("branch", "prediction of branches"),
    ("cache_banks", "contention for the banks of a cache"),
    ("cache_latency", "latency of each level of cache"),
    ("cache_throughput", "throughput of each level of cache"),
    ("daxpy", "a vector times a number plus a vector"),
    ("decoder_throughput", "instructions that are decoded in a cycle"),
    ("decode_double", "decoding of what becomes several operations"),
    ("decode_nops", "decoding of no-operations by length"),
    ("decode_prefix", "decoding of several prefixes"),
    ("exec_domain", "delays between units of several kinds"),
    ("fused_branch", "branches that become one with an operation"),
    ("instruct_boundaries", "boundaries that an instruction cache marks"),
    ("jmp", "throughput of jumps"),
    ("length_chg_prefix", "prefixes that change a length"),
    ("loop_buffer", "the buffer of short loops"),
    ("loop_size", "loops by length"),
    ("memcpy", "ways to copy memory"),
    ("memory_mirror", "memory that is renamed as registers are"),
    ("mixed_throughput", "mixtures of several instructions"),
    ("mov_rename", "moves that renaming does"),
    ("out_of_order", "how far instructions overtake others"),
    ("partial_register_stall", "parts of registers and of flags"),
    ("read_write_bandwidth", "bandwidth of memory"),
    ("resource_sharing", "what several threads share"),
    ("returnstack", "size of the return stack"),
    ("stack_sync_uops", "reads of the stack pointer"),
    ("store_forwarding", "loads of what was just stored"),
    ("subnormal", "underflow, overflow and subnormal numbers"),
    ("taylor", "sums of a power series"),
    ("testmemcpyalign", "copies by alignment"),
    ("ucache_double_entries", "constants that take two entries"),
    ("ucache_misprediction", "mispredictions without decoded instructions"),
    ("ucache_size", "size of the cache of decoded instructions"),
    ("unaligned_mem", "loads and stores that are not aligned"),
    ("warmup_fp", "vector units that have to wake up"),
    ("xor", "operations of a register with itself"),
];

/// The scripts, each with the tests that answer it.
pub(super) const AGNER: SuiteCatalog = SuiteCatalog {
    name: "agner",
    entries: &{
        let mut entries = [SuiteQuestion { name: "", about: "", answers: &[] }; SCRIPTS.len()];
        let mut number = 0;
        while number < SCRIPTS.len() {
            let (name, about) = SCRIPTS[number];
            entries[number] = SuiteQuestion { name, about, answers: ANSWERS[number].0.split_at(ANSWERS[number].1).0 };
            number += 1;
        }
        entries
    },
};

/// The largest number of tests that answer one script.
const MOST_ANSWERS: usize = 8;
/// The tests that answer each script, and their number.
const ANSWERS: [([&str; MOST_ANSWERS], usize); SCRIPTS.len()] = {
    let mut all = [([""; MOST_ANSWERS], 0); SCRIPTS.len()];
    let mut test = 0;
    while test < TESTS.len() {
        let mut answer = 0;
        while answer < TESTS[test].answers.len() {
            let (tests, count) = &mut all[find_script(TESTS[test].answers[answer])];
            tests[*count] = TESTS[test].name;
            *count += 1;
            answer += 1;
        }
        test += 1;
    }
    all
};

/// The index of a script in the list. Compilation fails if a test names an unknown script.
const fn find_script(name: &str) -> usize {
    let mut number = 0;
    while !is_same(SCRIPTS[number].0.as_bytes(), name.as_bytes()) {
        number += 1;
    }
    number
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_an_answer() {
        assert_eq!(AGNER.entries.len(), 37);
        for (number, SuiteQuestion { name, about, answers }) in AGNER.entries.iter().enumerate() {
            assert!(AGNER.entries[..number].iter().all(|other| other.name != *name), "{name} twice");
            assert!(!answers.is_empty() && !about.is_empty(), "{name}");
        }
    }
}
