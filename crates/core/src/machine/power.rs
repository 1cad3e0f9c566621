//! Power management that changes the core clock (governor, preference, turbo), and huge pages.

use serde::Serialize;

use super::fact::{Fact, SystemFiles};

/// How the kernel manages the clock of one CPU, and memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerSettings {
    /// Frequency governor, such as `performance` or `schedutil`.
    pub governor: Fact<String>,
    /// Driver below it, such as `intel_pstate`.
    pub driver: Fact<String>,
    /// Energy/performance preference of intel_pstate or amd_pstate.
    pub preference: Fact<String>,
    /// Whether the core may exceed its base frequency.
    pub turbo: Fact<bool>,
    /// File that controls turbo, and the value that switches turbo off.
    #[serde(skip)]
    pub turbo_switch: Option<(&'static str, &'static str)>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Fact<String>,
}

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";

impl PowerSettings {
    /// Reads the settings of `cpu` (Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst;
    /// mm/transhuge.rst).
    pub(crate) fn detect(files: &SystemFiles, cpu: u32) -> PowerSettings {
        let policy = |name: &str| files.read_text(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}"));
        let no_turbo = files.read_number::<u32>(NO_TURBO).map(|off| off == 0);
        let boost = files.read_number::<u32>(BOOST).map(|on| on == 1);
        let turbo_switch = match (&no_turbo, &boost) {
            (Fact::Known(_), _) => Some((NO_TURBO, "1")),
            (_, Fact::Known(_)) => Some((BOOST, "0")),
            _ => None,
        };
        PowerSettings {
            governor: policy("scaling_governor"),
            driver: policy("scaling_driver"),
            preference: policy("energy_performance_preference"),
            turbo: no_turbo.or_else(|| boost),
            turbo_switch,
            huge_pages: files
                .read_text("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| Fact::from(parse_selected(&text))),
        }
    }
}

/// Extracts the word in brackets from a kernel setting such as `always [madvise] never`.
fn parse_selected(text: &str) -> Result<String, String> {
    text.split_whitespace()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .map(str::to_string)
        .ok_or_else(|| format!("{text:?} selects nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_selected() {
        assert_eq!(parse_selected("always [madvise] never").unwrap(), "madvise");
        assert_eq!(parse_selected("[always] madvise never\n").unwrap(), "always");
        assert!(parse_selected("always never").is_err());
    }

    #[test]
    fn turbo_is_read_from_either_driver() {
        let root = std::env::temp_dir().join(format!("cyclescope-power-{}", std::process::id()));
        let file = |path: &str, text: &str| {
            let path = root.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let read = || PowerSettings::detect(&SystemFiles::rooted_at(&root), 3);
        assert!(read().turbo.why().is_some() && read().turbo_switch.is_none());
        file(BOOST, "1\n");
        file("/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "schedutil\n");
        assert_eq!((read().turbo, read().turbo_switch), (Fact::Known(true), Some((BOOST, "0"))));
        assert_eq!(read().governor, Fact::Known("schedutil".to_string()));
        file(NO_TURBO, "1\n");
        assert_eq!((read().turbo, read().turbo_switch), (Fact::Known(false), Some((NO_TURBO, "1"))));
        std::fs::remove_dir_all(root).unwrap();
    }
}
