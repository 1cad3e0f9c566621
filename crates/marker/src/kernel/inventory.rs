//! The contents of the module: designs, the probes that each supports, and codes by key.

use super::super::source::design::SiteDesign;
use super::design;
use super::marker_device::MarkerDevice;
use crate::ProbeKind;
use cyclescope_core::error::RunError;
use cyclescope_exec::kernel::markers::{self, MarkerFunction, MarkerWorkload, ProbeGuard};
use std::collections::BTreeMap;

/// One design of the module.
pub(super) struct ModuleDesign {
    pub design: &'static SiteDesign,
    pub number: markers::DesignNumber,
    pub probes: Vec<ProbeKind>,
}

pub(super) fn strange_module_error() -> RunError {
    let why = "a design, guard or placement is missing or has another name";
    let remedy = "build and load the module that came with this program";
    RunError::from_harness("understanding the module's markers", why, remedy)
}

/// A design without a switch counts as off.
pub(super) fn ignore_unswitchable(error: RunError) -> Result<(), RunError> {
    match error {
        RunError::System { errno: libc::EOPNOTSUPP, .. } => Ok(()),
        error => Err(error),
    }
}

pub(super) fn list_designs(codes: &[MarkerFunction]) -> Vec<markers::DesignNumber> {
    let mut designs: Vec<markers::DesignNumber> = codes.iter().map(|code| code.design).collect();
    designs.dedup();
    designs
}

/// Determines the probes that a design supports, and the bytes that enabling changes. The design is
/// off afterwards.
pub(super) fn inspect_design(
    device: &mut impl MarkerDevice,
    number: markers::DesignNumber,
    codes: &[MarkerFunction],
    enabled: &mut [Vec<u8>],
) -> Result<ModuleDesign, RunError> {
    let own = || codes.iter().enumerate().filter(move |(_, code)| code.design == number);
    let name = own().next().map_or("", |(_, code)| code.name.as_str());
    let design = design::ALL.iter().find(|design| design.name == name).ok_or_else(strange_module_error)?;
    let mut probes = Vec::new();
    for probe in ProbeKind::ALL {
        match device.switch(number, Some(to_module_probe(probe))) {
            Ok(()) if probes.is_empty() => {
                for (index, code) in own() {
                    enabled[index] = device.bytes(code)?;
                }
            }
            Ok(()) => {}
            Err(error) => {
                ignore_unswitchable(error)?;
                continue;
            }
        }
        probes.push(probe);
    }
    device.switch(number, None).or_else(ignore_unswitchable)?;
    Ok(ModuleDesign { design, number, probes })
}

/// The module's probe of this kind.
pub(super) fn to_module_probe(probe: ProbeKind) -> markers::KernelProbe {
    match probe {
        ProbeKind::Empty => markers::KernelProbe::Empty,
        ProbeKind::Direct => markers::KernelProbe::Direct,
        ProbeKind::Varargs => markers::KernelProbe::Varargs,
        ProbeKind::Format => markers::KernelProbe::Format,
        ProbeKind::Count => markers::KernelProbe::Counting,
    }
}

/// Codes by design, guard, context and placement.
pub(super) struct CodeIndex<'a>(BTreeMap<(&'a str, u32, u32, u32), usize>);

impl<'a> CodeIndex<'a> {
    pub(crate) fn new(codes: &'a [MarkerFunction]) -> CodeIndex<'a> {
        let key =
            |code: &'a MarkerFunction| (code.name.as_str(), code.guard as u32, code.around as u32, code.placement);
        CodeIndex(codes.iter().enumerate().map(|(index, code)| (key(code), index)).collect())
    }

    /// The codes of a design at all placements; `None` if one is missing.
    pub(crate) fn find_codes(
        &self,
        name: &str,
        guard: ProbeGuard,
        around: MarkerWorkload,
        offsets: &[usize],
    ) -> Option<Vec<usize>> {
        let one = |offset: &usize| self.0.get(&(name, guard as u32, around as u32, *offset as u32)).copied();
        offsets.iter().map(one).collect()
    }
}
