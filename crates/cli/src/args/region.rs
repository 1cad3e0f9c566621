//! Options for a region of an executable.

use super::number::parse_seconds;
use clap::Args;

const REGION_HEADING: &str = "Region of an executable";

/// The end of the region that starts at --from, and the run from which it is taken.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct RegionArgs {
    /// Measure the executable of --elf from the address --from to this one, with the registers and
    /// memory of a run. Addresses are hexadecimal, as objdump -d prints them, or a symbol and an
    /// offset: 0x1139, main, main+0x1a
    #[arg(help_heading = REGION_HEADING, long, value_name = "ADDRESS", group = "part_of_elf",
        requires_all = ["elf", "from"],
        conflicts_with_all = ["call", "versus", "versus_call", "cflags", "cold", "unroll", "serialize", "setup", "values",
            "buffer", "contents", "stack"])]
    pub to: Option<String>,
    /// Take the region at the N-th arrival at --from [default: 1]
    #[arg(help_heading = REGION_HEADING, long, value_name = "N", requires = "to",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub hit: Option<u64>,
    /// Arguments of the run, with quotes as in a shell
    #[arg(help_heading = REGION_HEADING, long = "args", value_name = "WORDS", requires = "to", allow_hyphen_values = true)]
    pub arguments: Option<String>,
    /// Seconds that the run may take to the end of the region [default: 60]
    #[arg(help_heading = REGION_HEADING, long, value_name = "SECONDS", requires = "to", value_parser = parse_seconds)]
    pub timeout: Option<f64>,
}
