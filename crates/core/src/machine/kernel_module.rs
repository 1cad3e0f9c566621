//! The kernel module of this project: whether it is present, and what prevents its use.
//!
//! [`KernelModule`] holds what files report; [`ModuleStudy`] holds what an opened module reports.
//! Only the module itself decides what it rejects: facts from before it is loaded are a forecast.

use serde::Serialize;

use super::fact::{Fact, SystemFiles, explain_missing};
use crate::unit::Hertz;
use cyclescope_platform::kernel::{MISSING_FACTS, SYSTEM_NAME};

/// Exists if the kernel supports modules.
const MODULES_FOLDER: &str = "/sys/module";
/// Exists while the module is loaded.
const MODULE_FOLDER: &str = "/sys/module/cyclescope";
/// The loaded module reports here why it rejects this machine.
const REFUSED_FILE: &str = "/sys/module/cyclescope/parameters/refused";

/// What files report about the module and about a kernel that could load it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelModule {
    /// Whether the module is loaded.
    pub loaded: Fact<bool>,
    /// Why the loaded module runs no code here, in its own words; the value is null if it does.
    pub refused: Fact<Option<String>>,
    /// Why it would run no code here, judging by files.
    pub forecast: Option<&'static str>,
    /// Headers of the running kernel.
    pub headers: Fact<String>,
    /// Whether modules cannot be loaded until the next boot.
    pub closed: Fact<bool>,
    /// Lockdown mode of the kernel; the value is null if it is not locked down.
    pub lockdown: Fact<Option<String>>,
    /// Whether modules must be signed.
    pub signed_only: Fact<bool>,
    /// Whether this process may load modules (`CAP_SYS_MODULE`).
    pub may_load: Fact<CapabilityRight>,
    /// Whether this process may use the module (`CAP_SYS_RAWIO` and `CAP_SYS_MODULE`).
    pub may_use: Fact<CapabilityRight>,
}

/// Whether a process may do something that needs a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CapabilityRight {
    /// The process may.
    Held,
    /// Root may.
    AsRoot,
    /// Not even root may: a container dropped the capability.
    Never,
}

/// Something that prevents this machine from using the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleObstacle {
    /// Description.
    pub text: String,
    /// Shell command that removes it, if there is one.
    pub remedy: Option<String>,
}

/// Facts reported by the opened module.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModuleStudy {
    /// Version of its interface.
    pub version: u32,
    /// Whether it runs code here. Markers work either way.
    pub code: bool,
    /// Whether a second CPU can end code that runs too long.
    pub deadline: bool,
    /// Whether the processor has APERF and MPERF.
    pub aperf: bool,
    /// The kernel's TSC rate.
    pub tsc: Hertz,
    /// That rate minus the one measured here, in parts per million.
    pub tsc_ppm: Option<f64>,
}

impl KernelModule {
    /// Reads the facts from files. `release` is the kernel version, as printed by `uname -r`.
    pub fn detect(files: &SystemFiles, release: &str) -> KernelModule {
        let exists = |path: &str| files.path(path).exists();
        let headers = format!("/lib/modules/{release}/build");
        KernelModule {
            loaded: match exists(MODULES_FOLDER) {
                true => Fact::Known(exists(MODULE_FOLDER)),
                false => Fact::unknown(explain_missing(format!("{MODULES_FOLDER} does not exist"))),
            },
            // An unset pointer prints as (null).
            refused: files
                .read_text(REFUSED_FILE)
                .map(|text| Some(text).filter(|text| !text.is_empty() && text != "(null)")),
            forecast: forecast_refusal(files),
            headers: match exists(&format!("{headers}/Makefile")) {
                true => Fact::Known(headers),
                false => Fact::unknown(explain_missing(format!("there is no {headers}"))),
            },
            closed: files.read_number("/proc/sys/kernel/modules_disabled").map(|closed: u32| closed != 0),
            lockdown: files
                .read_text("/sys/kernel/security/lockdown")
                .and_then(|text| Fact::from(parse_lockdown(&text))),
            signed_only: files.read_text("/sys/module/module/parameters/sig_enforce").map(|text| text.starts_with('Y')),
            may_load: read_right(files, CAP_SYS_MODULE),
            may_use: read_right(files, CAP_SYS_RAWIO | CAP_SYS_MODULE),
        }
    }

    /// Obstacles to loading the module, those without a remedy first.
    pub fn list_obstacles(&self) -> Vec<ModuleObstacle> {
        let fixed = |text: String| ModuleObstacle { text, remedy: None };
        if MISSING_FACTS.is_some() {
            return vec![fixed(format!("the module is for Linux, and this system is {SYSTEM_NAME}"))];
        }
        let mut found = Vec::new();
        if let Some(why) = self.forecast {
            found.push(fixed(why.to_string()));
        }
        match &self.closed {
            Fact::Known(true) => {
                found.push(fixed("the kernel loads no modules until the next boot (kernel.modules_disabled)".into()));
            }
            Fact::Unknown(why) => found.push(fixed(format!("the kernel seems to load no modules: {why}"))),
            Fact::Known(false) => {}
        }
        if let Fact::Known(Some(how)) = &self.lockdown {
            found.push(fixed(format!(
                "the kernel is locked down ({how}), which forbids it, signed or not; booting without Secure Boot \
                 lifts that"
            )));
        }
        if self.may_load == Fact::Known(CapabilityRight::Never) {
            found.push(fixed("a container prevents root from loading modules: load it on the host".into()));
        }
        if let Fact::Unknown(why) = &self.headers {
            let remedy = "sudo apt-get install linux-headers-$(uname -r)   # Debian, Ubuntu".to_string();
            found.push(ModuleObstacle {
                text: format!("the kernel's headers are missing: {why}"),
                remedy: Some(remedy),
            });
        }
        if self.signed_only == Fact::Known(true) {
            let text = "the kernel loads only signed modules; docs/kernel-safety.md explains how to sign this one";
            let remedy = "sudo /lib/modules/$(uname -r)/build/scripts/sign-file sha256 KEY CERTIFICATE \
                          target/module/kernel/cyclescope.ko";
            found.push(ModuleObstacle { text: text.to_string(), remedy: Some(remedy.to_string()) });
        }
        found
    }
}

/// Extracts the word in brackets; `None` for `none`.
fn parse_lockdown(text: &str) -> Result<Option<String>, String> {
    let word = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    match word {
        Some("none") => Ok(None),
        Some(word) => Ok(Some(word.to_string())),
        None => Err(format!("/sys/kernel/security/lockdown contains {text:?}")),
    }
}

/// Why the module would reject this machine, in its own words. The kernel shows the flag `fred` if
/// it uses FRED, and `tdx_guest` only in such guests. Hosts show `sev_es` and `sev_snp` too.
fn forecast_refusal(files: &SystemFiles) -> Option<&'static str> {
    if files.read_text("/sys/hypervisor/guest_type").known().is_some_and(|kind| kind == "PV") {
        return Some("a Xen PV guest does not own its descriptor tables");
    }
    let Fact::Known(record) = files.read_first_record("/proc/cpuinfo") else { return None };
    let flags = record.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':')).map(|(_, flags)| flags);
    let has = |name: &str| flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == name));
    if has("fred") {
        return Some("with FRED, exceptions do not go through the IDT: markers alone can run; boot with fred=off");
    }
    let encrypted = has("tdx_guest") || has("hypervisor") && (has("sev_es") || has("sev_snp"));
    encrypted
        .then_some("in an SEV-ES, SEV-SNP or TDX guest ordinary instructions raise exceptions for the guest's kernel")
}

// linux/capability.h
const CAP_SYS_MODULE: u64 = 1 << 16;
const CAP_SYS_RAWIO: u64 = 1 << 17;

/// Whether this process has all of these capabilities.
fn read_right(files: &SystemFiles, capabilities: u64) -> Fact<CapabilityRight> {
    files.read_text("/proc/self/status").and_then(|status| {
        let set = |name: &str| {
            let digits = status.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(digits.trim(), 16).ok()
        };
        match (set("CapEff:"), set("CapBnd:")) {
            (Some(held), _) if held & capabilities == capabilities => Fact::Known(CapabilityRight::Held),
            (Some(_), Some(bound)) if bound & capabilities == capabilities => Fact::Known(CapabilityRight::AsRoot),
            (Some(_), Some(_)) => Fact::Known(CapabilityRight::Never),
            _ => Fact::unknown("/proc/self/status names no capabilities"),
        }
    })
}

#[cfg(test)]
mod tests;
