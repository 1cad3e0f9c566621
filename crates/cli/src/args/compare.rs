//! Options of `compare`.

use super::number::parse_precision;
use clap::Args;
use cyclescope::study::instr::tables::compare::Tolerance;
use std::path::PathBuf;

/// Options of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "A published table is a CSV file whose first line names its columns: mnemonic, operands, and \
    latency_cycles or rthroughput_cycles or both; optionally encoding, code, from and to. Numbers are core cycles, \
    such as 3, 3.5, <=7 or 14-18. A latency without `from` and `to` is compared with the largest measured latency \
    between explicit operands, or else between registers, or else from an address, or else any.")]
pub struct CompareArgs {
    /// Result file: from `cyclescope instr --out` or `cyclescope ports --out`, or printed by
    /// `cyclescope run --json` or `cyclescope uarch --json`
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Second result file, or a published table as a CSV file
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Treat differences up to this as equal: core cycles, a share, or the wider of both [default:
    /// 0.05,3%, below one cycle 0.01,3%; for two result files 0.02,1%]
    #[arg(long, value_name = "CYCLES,SHARE", value_parser = parse_tolerance)]
    pub tolerance: Option<Tolerance>,
    /// Show all differences [default: only the 20 largest]
    #[arg(long)]
    pub all: bool,
    /// Show how each listed difference was measured
    #[arg(long)]
    pub explain: bool,
    /// Exit with 1 if anything differs
    #[arg(long)]
    pub fail_on_diff: bool,
}

fn parse_tolerance(text: &str) -> Result<Tolerance, String> {
    let mut found = Tolerance { cycles: 0.0, cycles_below_one: 0.0, share: 0.0 };
    let mut seen = [false; 2];
    for part in text.split(',') {
        let width = parse_precision(part.trim())?;
        if std::mem::replace(&mut seen[usize::from(width.share > 0.0)], true) {
            return Err("expected at most one number of core cycles and one share, as in 0.05,3%".to_string());
        }
        found.cycles += width.cycles;
        found.cycles_below_one += width.cycles;
        found.share += width.share;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope::measure::Precision;

    #[test]
    fn tolerances_are_cycles_or_shares() {
        assert_eq!(parse_precision("0.01").unwrap(), Precision { cycles: 0.01, share: 0.0, cap: None });
        assert_eq!(parse_precision("2%").unwrap(), Precision { cycles: 0.0, share: 0.02, cap: None });
        let both = Tolerance { cycles: 0.05, cycles_below_one: 0.05, share: 0.03 };
        assert_eq!(parse_tolerance("0.05,3%").unwrap(), both);
        assert_eq!(parse_tolerance("3%, 0.05").unwrap(), both);
        assert_eq!(parse_tolerance("0.05").unwrap(), Tolerance { share: 0.0, ..both });
        assert!(
            parse_tolerance("0.05,0.01").is_err() && parse_tolerance("3%,1%").is_err() && parse_tolerance("").is_err()
        );
        assert!(parse_precision("0").is_err() && parse_precision("nan").is_err() && parse_precision("-1").is_err());
    }
}
