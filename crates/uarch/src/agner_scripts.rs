//! The scripts of A. Fog's test programs, and which tests here answer each.

use cyclescope_measure::study::{SuiteCatalog, SuiteQuestion};

/// A script, what it is for, and what answers it.
const fn script_entry(name: &'static str, about: &'static str, answers: &'static [&'static str]) -> SuiteQuestion {
    SuiteQuestion { name, about, answers }
}

/// All scripts, as their manual lists them: Test programs for measuring clock cycles and performance monitoring (2024).
pub(super) const AGNER: SuiteCatalog = SuiteCatalog {
    name: "agner",
    entries: &[
        script_entry("AVX_states", "switches between states of the vector registers", &["upper_halves"]),
        script_entry(
            "branch",
            "prediction of branches",
            &["direction_predictor", "predictor_reach", "indirect_history", "misprediction"],
        ),
        script_entry("cache_banks", "contention for the banks of a cache", &["cache_banks"]),
        script_entry("cache_latency", "latency of each level of cache", &["data_caches", "load_latency"]),
        script_entry(
            "cache_throughput",
            "throughput of each level of cache",
            &["load_rate", "store_rate", "copy_rate", "read_bandwidth"],
        ),
        script_entry("daxpy", "a vector times a number plus a vector", &["daxpy"]),
        script_entry("decoder_throughput", "instructions that are decoded in a cycle", &["decode_rate"]),
        script_entry("decode_double", "decoding of what becomes several operations", &["decode_double"]),
        script_entry("decode_nops", "decoding of no-operations by length", &["decode_rate"]),
        script_entry("decode_prefix", "decoding of several prefixes", &["decode_prefix"]),
        script_entry("exec_domain", "delays between units of several kinds", &["bypass_delay"]),
        script_entry("fused_branch", "branches that become one with an operation", &["macro_fusion"]),
        script_entry("instruct_boundaries", "boundaries that an instruction cache marks", &["first_decode"]),
        script_entry("jmp", "throughput of jumps", &["branch_targets", "branch_rate"]),
        script_entry("length_chg_prefix", "prefixes that change a length", &["length_changing_prefix"]),
        script_entry("loop_buffer", "the buffer of short loops", &["loop_buffer", "loop_rate"]),
        script_entry("loop_size", "loops by length", &["loop_rate", "uop_cache"]),
        script_entry("memcpy", "ways to copy memory", &["copy_methods"]),
        script_entry(
            "memory_mirror",
            "memory that is renamed as registers are",
            &["memory_renaming", "memory_renaming_reach"],
        ),
        script_entry("mixed_throughput", "mixtures of several instructions", &["mixed_throughput"]),
        script_entry(
            "mov_rename",
            "moves that renaming does",
            &["move_elimination", "rename_rate", "eliminated", "copies_in_flight"],
        ),
        script_entry(
            "out_of_order",
            "how far instructions overtake others",
            &["rob", "integer_scheduler", "shared_schedulers"],
        ),
        script_entry("partial_register_stall", "parts of registers and of flags", &["partial_registers"]),
        script_entry(
            "read_write_bandwidth",
            "bandwidth of memory",
            &["read_bandwidth", "write_bandwidth", "nt_write_bandwidth"],
        ),
        script_entry("resource_sharing", "what several threads share", &["resource_sharing"]),
        script_entry("returnstack", "size of the return stack", &["return_stack"]),
        script_entry("stack_sync_uops", "reads of the stack pointer", &["stack_engine"]),
        script_entry(
            "store_forwarding",
            "loads of what was just stored",
            &["store_forwarding", "failed_forwarding", "forwarding_map"],
        ),
        script_entry(
            "subnormal",
            "underflow, overflow and subnormal numbers",
            &["subnormals", "subnormals_x87", "special_numbers"],
        ),
        script_entry("taylor", "sums of a power series", &["taylor"]),
        script_entry("testmemcpyalign", "copies by alignment", &["copy_methods"]),
        script_entry("ucache_double_entries", "constants that take two entries", &["long_constants"]),
        script_entry("ucache_misprediction", "mispredictions without decoded instructions", &["misprediction_decoded"]),
        script_entry("ucache_size", "size of the cache of decoded instructions", &["uop_cache", "uop_cache_ways"]),
        script_entry("unaligned_mem", "loads and stores that are not aligned", &["split_access"]),
        script_entry("warmup_fp", "vector units that have to wake up", &["wake_up"]),
        script_entry("xor", "operations of a register with itself", &["dependency_breaking"]),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::TESTS;

    /// A test that is named here exists, and all else is a command.
    #[test]
    fn every_script_has_an_answer_that_exists() {
        let SuiteCatalog { entries, .. } = AGNER;
        assert_eq!(entries.len(), 37);
        for (number, SuiteQuestion { name, about, answers }) in entries.iter().enumerate() {
            assert!(entries[..number].iter().all(|other| other.name != *name), "{name} twice");
            assert!(!answers.is_empty() && !about.is_empty(), "{name}");
            for answer in *answers {
                let known = TESTS.iter().any(|test| test.name == *answer);
                assert!(known || answer.starts_with("cyclescope "), "{name}: there is no {answer}");
            }
        }
    }
}
