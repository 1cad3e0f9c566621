//! The TSC's rate as the kernel reported it at boot.
//!
//! Limits: the log needs `CAP_SYSLOG` if `kernel.dmesg_restrict` is 1, and it drops its oldest
//! lines.

use super::fact::Fact;
use crate::unit::Hertz;

/// Rates in the log: as first detected, and as refined a second later against HPET or the ACPI
/// timer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KernelLog {
    /// `tsc: Detected … MHz`.
    pub detected: Fact<Hertz>,
    /// `tsc: Refined TSC clocksource calibration: … MHz`.
    pub refined: Fact<Hertz>,
    /// Why the kernel stopped using the TSC as a clock (`Marking TSC unstable due to …`).
    pub unstable: Option<String>,
}

impl KernelLog {
    /// Reads the whole log, in a few milliseconds.
    pub(crate) fn read() -> KernelLog {
        match cyclescope_platform::kernel::read_log() {
            Ok(text) => KernelLog::parse(&text),
            Err(why) => KernelLog { detected: Fact::unknown(why.clone()), refined: Fact::unknown(why), unstable: None },
        }
    }

    /// Extracts the rates from the log's text.
    pub(crate) fn parse(text: &str) -> KernelLog {
        let rate = |marks: &[&str]| {
            let found = text.lines().rev().find_map(|line| {
                let rest = marks.iter().find_map(|mark| Some(line.split_once(mark)?.1))?;
                rest.trim_start_matches(':').split_whitespace().next()?.parse::<f64>().ok()
            });
            match found {
                Some(megahertz) => Fact::Known(Hertz(megahertz * 1e6)),
                None => Fact::unknown("the kernel's log does not contain this line"),
            }
        };
        let unstable = text.lines().find_map(|line| Some(line.split_once("Marking TSC unstable due to ")?.1));
        KernelLog {
            detected: rate(&["tsc: Detected "]),
            refined: rate(&["Refined TSC clocksource calibration"]),
            unstable: unstable.map(|why| why.trim().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_metal_log_gives_both_rates() {
        let log = KernelLog::parse(
            "<6>[    0.000000] tsc: Fast TSC calibration using PIT\n\
             <6>[    0.000000] tsc: Detected 3600.163 MHz processor\n\
             <6>[    1.530139] tsc: Refined TSC clocksource calibration: 3599.998 MHz\n",
        );
        assert_eq!(log.detected.known(), Some(&Hertz(3600.163e6)));
        assert_eq!(log.refined.known(), Some(&Hertz(3599.998e6)));
        assert_eq!(log.unstable, None);
    }

    #[test]
    fn the_last_line_counts_and_missing_lines_give_reasons() {
        let log = KernelLog::parse(
            "[0.0] tsc: Detected 2400.000 MHz processor\n[0.1] tsc: Detected 2592.000 MHz TSC\n\
             [9.0] tsc: Marking TSC unstable due to clocksource watchdog\n",
        );
        assert_eq!(log.detected.known(), Some(&Hertz(2592.0e6)));
        assert!(log.refined.why().is_some());
        assert_eq!(log.unstable.as_deref(), Some("clocksource watchdog"));
    }

    #[test]
    fn this_machine_has_rates_or_gives_reasons() {
        let log = KernelLog::read();
        assert!(log.detected.known().is_some() != log.detected.why().is_some());
    }
}
