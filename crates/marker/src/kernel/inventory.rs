//! What the module has: designs, the probes that each takes, and codes by what they are.

use super::super::source::design::Design;
use super::super::state::Probe;
use super::design;
use super::device::Device;
use cyclescope_core::error::RunError;
use cyclescope_exec::kernel::markers::{self, Around, Code, Guard};
use std::collections::BTreeMap;

/// One design of the module.
pub(super) struct Found {
    pub design: &'static Design,
    pub number: markers::Design,
    pub probes: Vec<Probe>,
}

pub(super) fn strange() -> RunError {
    let why = "a design, guard or placement is missing or has another name";
    let remedy = "build and load the module that came with this program";
    RunError::machinery("understanding the module's markers", why, remedy)
}

/// What has nothing to switch is off.
pub(super) fn unswitchable(error: RunError) -> Result<(), RunError> {
    match error {
        RunError::System { errno: libc::EOPNOTSUPP, .. } => Ok(()),
        error => Err(error),
    }
}

pub(super) fn designs(codes: &[Code]) -> Vec<markers::Design> {
    let mut designs: Vec<markers::Design> = codes.iter().map(|code| code.design).collect();
    designs.dedup();
    designs
}

/// Finds out which probes a design takes, and how its codes' bytes change. It is off afterwards.
pub(super) fn look(
    device: &mut impl Device,
    number: markers::Design,
    codes: &[Code],
    enabled: &mut [Vec<u8>],
) -> Result<Found, RunError> {
    let own = || codes.iter().enumerate().filter(move |(_, code)| code.design == number);
    let name = own().next().map_or("", |(_, code)| code.name.as_str());
    let design = design::ALL.iter().find(|design| design.name == name).ok_or_else(strange)?;
    let mut probes = Vec::new();
    for probe in Probe::ALL {
        match device.switch(number, Some(kind(probe))) {
            Ok(()) if probes.is_empty() => {
                for (index, code) in own() {
                    enabled[index] = device.bytes(code)?;
                }
            }
            Ok(()) => {}
            Err(error) => {
                unswitchable(error)?;
                continue;
            }
        }
        probes.push(probe);
    }
    device.switch(number, None).or_else(unswitchable)?;
    Ok(Found { design, number, probes })
}

/// The module's probe of this kind.
pub(super) fn kind(probe: Probe) -> markers::Probe {
    match probe {
        Probe::Empty => markers::Probe::Empty,
        Probe::Direct => markers::Probe::Direct,
        Probe::Varargs => markers::Probe::Varargs,
        Probe::Format => markers::Probe::Format,
        Probe::Count => markers::Probe::Counting,
    }
}

/// Codes by what they are.
pub(super) struct Places<'a>(BTreeMap<(&'a str, u32, u32, u32), usize>);

impl<'a> Places<'a> {
    pub(crate) fn new(codes: &'a [Code]) -> Places<'a> {
        let key =
            |code: &'a Code| (code.name.as_str(), code.guard as u32, code.around as u32, code.placement);
        Places(codes.iter().enumerate().map(|(index, code)| (key(code), index)).collect())
    }

    /// The codes of a design at all placements; none where one is missing.
    pub(crate) fn of(
        &self,
        name: &str,
        guard: Guard,
        around: Around,
        offsets: &[usize],
    ) -> Option<Vec<usize>> {
        let one = |offset: &usize| self.0.get(&(name, guard as u32, around as u32, *offset as u32)).copied();
        offsets.iter().map(one).collect()
    }
}
