//! Sets of ports.

/// Ports as bits.
pub type PortMask = u32;

/// Largest number of ports and units.
pub(super) const PORTS_MOST: usize = PortMask::BITS as usize;

/// Largest number of cycles that work keeps a port.
pub(super) const MAX_WORK_CYCLES: usize = 8;
