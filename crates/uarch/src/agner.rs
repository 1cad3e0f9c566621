//! The scripts of A. Fog's test programs, and which tests here answer each.

use cyclescope_measure::study::{Catalog, Entry};

/// A script, what it is for, and what answers it.
const fn script(name: &'static str, about: &'static str, answers: &'static [&'static str]) -> Entry {
    Entry { name, about, answers }
}

/// All scripts, as their manual lists them: Test programs for measuring clock cycles and performance monitoring (2024).
pub(super) const AGNER: Catalog = Catalog {
    name: "agner",
    entries: &[
        script("AVX_states", "switches between states of the vector registers", &["upper_halves"]),
        script(
            "branch",
            "prediction of branches",
            &["direction_predictor", "predictor_reach", "indirect_history", "misprediction"],
        ),
        script("cache_banks", "contention for the banks of a cache", &["cache_banks"]),
        script("cache_latency", "latency of each level of cache", &["data_caches", "load_latency"]),
        script(
            "cache_throughput",
            "throughput of each level of cache",
            &["load_rate", "store_rate", "copy_rate", "read_bandwidth"],
        ),
        script("daxpy", "a vector times a number plus a vector", &["daxpy"]),
        script("decoder_throughput", "instructions that are decoded in a cycle", &["decode_rate"]),
        script("decode_double", "decoding of what becomes several operations", &["decode_double"]),
        script("decode_nops", "decoding of no-operations by length", &["decode_rate"]),
        script("decode_prefix", "decoding of several prefixes", &["decode_prefix"]),
        script("exec_domain", "delays between units of several kinds", &["bypass_delay"]),
        script("fused_branch", "branches that become one with an operation", &["macro_fusion"]),
        script("instruct_boundaries", "boundaries that an instruction cache marks", &["first_decode"]),
        script("jmp", "throughput of jumps", &["branch_targets", "branch_rate"]),
        script("length_chg_prefix", "prefixes that change a length", &["length_changing_prefix"]),
        script("loop_buffer", "the buffer of short loops", &["loop_buffer", "loop_rate"]),
        script("loop_size", "loops by length", &["loop_rate", "uop_cache"]),
        script("memcpy", "ways to copy memory", &["copy_methods"]),
        script(
            "memory_mirror",
            "memory that is renamed as registers are",
            &["memory_renaming", "memory_renaming_reach"],
        ),
        script("mixed_throughput", "mixtures of several instructions", &["mixed_throughput"]),
        script(
            "mov_rename",
            "moves that renaming does",
            &["move_elimination", "rename_rate", "eliminated", "copies_in_flight"],
        ),
        script(
            "out_of_order",
            "how far instructions overtake others",
            &["rob", "integer_scheduler", "shared_schedulers"],
        ),
        script("partial_register_stall", "parts of registers and of flags", &["partial_registers"]),
        script(
            "read_write_bandwidth",
            "bandwidth of memory",
            &["read_bandwidth", "write_bandwidth", "nt_write_bandwidth"],
        ),
        script("resource_sharing", "what several threads share", &["resource_sharing"]),
        script("returnstack", "size of the return stack", &["return_stack"]),
        script("stack_sync_uops", "reads of the stack pointer", &["stack_engine"]),
        script(
            "store_forwarding",
            "loads of what was just stored",
            &["store_forwarding", "failed_forwarding", "forwarding_map"],
        ),
        script(
            "subnormal",
            "underflow, overflow and subnormal numbers",
            &["subnormals", "subnormals_x87", "special_numbers"],
        ),
        script("taylor", "sums of a power series", &["taylor"]),
        script("testmemcpyalign", "copies by alignment", &["copy_methods"]),
        script("ucache_double_entries", "constants that take two entries", &["long_constants"]),
        script(
            "ucache_misprediction",
            "mispredictions without decoded instructions",
            &["misprediction_decoded"],
        ),
        script("ucache_size", "size of the cache of decoded instructions", &["uop_cache", "uop_cache_ways"]),
        script("unaligned_mem", "loads and stores that are not aligned", &["split_access"]),
        script("warmup_fp", "vector units that have to wake up", &["wake_up"]),
        script("xor", "operations of a register with itself", &["dependency_breaking"]),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::TESTS;

    /// A test that is named here exists, and all else is a command.
    #[test]
    fn every_script_has_an_answer_that_exists() {
        let Catalog { entries, .. } = AGNER;
        assert_eq!(entries.len(), 37);
        for (number, Entry { name, about, answers }) in entries.iter().enumerate() {
            assert!(entries[..number].iter().all(|other| other.name != *name), "{name} twice");
            assert!(!answers.is_empty() && !about.is_empty(), "{name}");
            for answer in *answers {
                let known = TESTS.iter().any(|test| test.name == *answer);
                assert!(known || answer.starts_with("cyclescope "), "{name}: there is no {answer}");
            }
        }
    }
}
