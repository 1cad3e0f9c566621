//! Validates a program's memory before an executor uses it.

use super::{
    AreaAccess, AreaAddress, AreaFill, MOST_ABOVE_TOP, MOST_AREA_BYTES, MOST_AREAS, MemoryArea, PagePresence, PageSize,
    PhysicalFrames, PointerPosition, ProgramMemory,
};
use cyclescope_core::error::BadBatch;

/// The lowest address beyond user space with four-level page tables (Intel SDM vol. 3A, 4.5).
const ADDRESSES: u64 = 1 << 47;
/// Register that counts a loop's iterations.
const LOOP_REGISTER: u8 = 15;

/// What is wrong with an area, and what is valid.
struct AreaDefect {
    what: String,
    expected: String,
}

fn reject_area(what: impl Into<String>, expected: impl Into<String>) -> Result<(), AreaDefect> {
    Err(AreaDefect { what: what.into(), expected: expected.into() })
}

impl ProgramMemory {
    /// Checks that an executor can provide this memory. The error names the wrong area, the reason,
    /// and what is expected.
    pub fn check(&self) -> Result<(), BadBatch> {
        if self.areas.len() > MOST_AREAS {
            return Err(BadBatch {
                part: "the memory".to_string(),
                what: format!("it has {} areas", self.areas.len()),
                expected: format!("at most {MOST_AREAS}"),
            });
        }
        for (number, area) in self.areas.iter().enumerate() {
            let checked = area
                .check_size()
                .and_then(|()| area.check_access())
                .and_then(|()| area.check_fill())
                .and_then(|()| self.check_pointer(number))
                .and_then(|()| self.check_address(number));
            checked.map_err(|AreaDefect { what, expected }| BadBatch {
                part: format!("area {number}"),
                what,
                expected,
            })?;
        }
        Ok(())
    }

    fn check_pointer(&self, number: usize) -> Result<(), AreaDefect> {
        let area = &self.areas[number];
        let Some(pointer) = area.pointer else { return Ok(()) };
        if pointer.register >= LOOP_REGISTER {
            return reject_area(
                format!("register {} points into it", pointer.register),
                "a general purpose register by its encoding number, 0 to 14",
            );
        }
        let shares_register =
            |other: &MemoryArea| other.pointer.is_some_and(|other| other.register == pointer.register);
        if self.areas[..number].iter().any(shares_register) {
            return reject_area(
                format!("register {} points into another area already", pointer.register),
                "a different register for each area",
            );
        }
        if pointer.at == PointerPosition::Top && (area.bytes < MOST_ABOVE_TOP || matches!(area.fill, AreaFill::Ring(_)))
        {
            return reject_area(
                format!("a register points to the top of its {} bytes", area.bytes),
                format!("at least {MOST_ABOVE_TOP} bytes, and not a ring"),
            );
        }
        let least = if matches!(area.fill, AreaFill::Ring(_)) { 8 } else { 1 };
        if pointer.at == PointerPosition::Middle && self.pointer_offset(number).is_none_or(|at| at + least > area.bytes)
        {
            return reject_area(
                format!("the staggered middle of {} bytes is outside it", area.bytes),
                "a larger area, or a pointer to its start",
            );
        }
        Ok(())
    }

    fn check_address(&self, number: usize) -> Result<(), AreaDefect> {
        let area = &self.areas[number];
        let AreaAddress::Fixed(address) = area.address else { return Ok(()) };
        if address == 0 || !address.is_multiple_of(area.page_bytes()) {
            return reject_area(
                format!("its address {address:#x} is not the start of a page"),
                format!("a multiple of {:#x}", area.page_bytes()),
            );
        }
        if address > ADDRESSES - area.mapped_bytes() {
            return reject_area(
                format!("its end is beyond the addresses of user space, from {address:#x} on"),
                format!("an end of at most {ADDRESSES:#x}"),
            );
        }
        let overlaps = |other: &&MemoryArea| {
            matches!(other.address, AreaAddress::Fixed(start)
                if start < address + area.mapped_bytes() && address < start + other.mapped_bytes())
        };
        match self.areas[..number].iter().find(overlaps) {
            Some(_) => reject_area(
                format!("at {address:#x} it overlaps another area"),
                "addresses at which the areas do not overlap",
            ),
            None => Ok(()),
        }
    }
}

impl MemoryArea {
    fn check_size(&self) -> Result<(), AreaDefect> {
        if !(1..=MOST_AREA_BYTES).contains(&self.bytes) {
            return reject_area(format!("it has {} bytes", self.bytes), format!("1 to {MOST_AREA_BYTES} bytes"));
        }
        match self.frames {
            PhysicalFrames::Repeated(pages) if pages == 0 || self.frame_bytes() > self.mapped_bytes() => reject_area(
                format!("{pages} physical pages repeat in {} pages", self.mapped_bytes() / self.page_bytes()),
                "at least one physical page, and at most as many as the area has pages",
            ),
            _ => Ok(()),
        }
    }

    fn check_access(&self) -> Result<(), AreaDefect> {
        let has_plain_pages = self.pages == PageSize::Small
            && self.frames == PhysicalFrames::Own
            && self.present == PagePresence::AtPointer;
        match self.access {
            AreaAccess::Code if !has_plain_pages => {
                reject_area("it holds code", "small pages of its own, which come with a fault")
            }
            AreaAccess::Code | AreaAccess::Data => Ok(()),
        }
    }

    fn check_fill(&self) -> Result<(), AreaDefect> {
        let room = self.bytes.min(self.frame_bytes());
        match &self.fill {
            AreaFill::Pattern(_) | AreaFill::Random(_) => Ok(()),
            AreaFill::Bytes(bytes) if bytes.is_empty() => {
                reject_area("it is filled with no bytes", "at least one byte")
            }
            AreaFill::Bytes(bytes) | AreaFill::Image(bytes) if bytes.len() as u64 > room => reject_area(
                format!("it is filled with {} bytes", bytes.len()),
                format!("at most {room} bytes, the size of its physical memory"),
            ),
            AreaFill::Bytes(_) | AreaFill::Image(_) => Ok(()),
            AreaFill::Ring(ring) => {
                if ring.stride == 0 || !ring.stride.is_multiple_of(8) {
                    return reject_area(
                        format!("its ring has a stride of {}", ring.stride),
                        "a multiple of 8 bytes, the size of a pointer",
                    );
                }
                let (elements, distinct) = (ring.element_count(self.bytes), ring.distinct_elements(self.frame_bytes()));
                if elements == 0 {
                    return reject_area("a pointer does not fit in it", "at least 8 bytes");
                }
                if elements > distinct {
                    return reject_area(
                        format!("{elements} elements of its ring share {distinct} places in physical memory"),
                        "a stride that gives each element its own place, such as a page plus a line",
                    );
                }
                Ok(())
            }
        }
    }
}
