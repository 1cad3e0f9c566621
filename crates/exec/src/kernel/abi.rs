//! The module's interface, as in `uapi/cyclescope.h`. Both sides assert the same sizes and offsets.

use crate::Sample;
use std::mem::{offset_of, size_of};

/// The version of the interface that this library speaks.
pub(super) const INTERFACE_VERSION: u32 = 4;
/// Bytes of the page that holds a context.
pub(super) const CONTEXT_BYTES: usize = 4096;
/// Offset of the context in that page.
pub(super) const CONTEXT_AT: usize = 512;

/// [`ModuleProperties::flags`]: APERF and MPERF are read around each slice.
pub(super) const INFO_APERF: u32 = 1;
/// [`ModuleProperties::flags`]: a second CPU can end code that runs too long.
pub(super) const INFO_DEADLINE: u32 = 1 << 1;
/// [`ModuleProperties::flags`]: code can be run here.
pub(super) const INFO_RUN: u32 = 1 << 2;
/// [`ModuleRun::flags`]: run even if nothing can end an endless loop.
pub(super) const RUN_UNGUARDED: u32 = 1;
/// [`ModuleFill::flags`]: fill the pages that were written to since they were last filled.
pub(super) const FILL_WRITTEN: u32 = 1;
/// [`ModuleFill::flags`]: fill every page.
pub(super) const FILL_ALL: u32 = 1 << 1;

/// Parts of the CPU's state that measured code changed, by bit of [`ModuleOutcome::changed`].
const CHANGED_STATE_NAMES: [&str; 10] = [
    "CR0",
    "CR8",
    "the debug registers",
    "a segment register",
    "the base of FS or GS",
    "a descriptor table register",
    "XCR0",
    "PKRU",
    "IA32_TSC_AUX",
    "CR4",
];

/// The bits of [`ModuleOutcome::changed`] in words.
pub(super) fn list_changed_state(bits: u32) -> Vec<&'static str> {
    CHANGED_STATE_NAMES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, name)| *name).collect()
}

/// Values of [`ModuleOutcome::status`].
pub(super) mod status {
    pub(in super::super) const DONE: u32 = 0;
    pub(in super::super) const FAULT: u32 = 1;
    pub(in super::super) const DEADLINE: u32 = 2;
    pub(in super::super) const NO_READING: u32 = 3;
    pub(in super::super) const ASTRAY: u32 = 4;
}

/// `struct cyclescope_info`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModuleProperties {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) flags: u32,
    pub(super) tsc_khz: u32,
    pub(super) arena: u64,
    pub(super) context: u64,
    pub(super) eviction: u64,
    pub(super) most_area_bytes: u64,
    pub(super) arena_bytes: u32,
    pub(super) eviction_bytes: u32,
    pub(super) most_areas: u32,
    pub(super) most_pieces: u32,
    pub(super) most_calls: u32,
    pub(super) longest_slice_us: u32,
    pub(super) longest_deadline_us: u32,
}

/// `struct cyclescope_area`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleArea {
    pub(super) bytes: u64,
    pub(super) address: u64,
}

/// `struct cyclescope_areas`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleAreaList {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) flags: u32,
    pub(super) areas: u32,
    pub(super) area_list: u64,
}

/// `struct cyclescope_fill`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModuleFill {
    pub(super) flags: u32,
    pub(super) reserved: u32,
    pub(super) content: u64,
    pub(super) word: u64,
}

/// `struct cyclescope_piece`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ModulePiece {
    pub(super) offset: u32,
    pub(super) bytes: u32,
    pub(super) code: u64,
}

/// `struct cyclescope_call`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleCall {
    pub(super) offset: u32,
    pub(super) reserved: u32,
    pub(super) loop_count: u64,
}

/// `struct cyclescope_event`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModuleEvent {
    pub(super) kind: u32,
    pub(super) reserved: u32,
    pub(super) config: u64,
    pub(super) config1: u64,
    pub(super) config2: u64,
    pub(super) count: u64,
}

/// `struct cyclescope_event_trial`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModuleEventTrial {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) flags: u32,
    pub(super) cpu: u32,
    pub(super) events: u32,
    pub(super) fitting: u32,
    pub(super) error: u32,
    pub(super) reserved: u32,
    pub(super) event_list: u64,
}

/// `struct cyclescope_outcome`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModuleOutcome {
    pub(super) status: u32,
    pub(super) vector: u32,
    pub(super) error_code: u64,
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) cr2: u64,
    pub(super) ip_offset: u32,
    pub(super) changed: u32,
    pub(super) rounds_done: u32,
    pub(super) slices: u32,
    pub(super) repeated: u32,
    pub(super) counted_rounds: u32,
    pub(super) tsc: u64,
    pub(super) aperf: u64,
    pub(super) mperf: u64,
}

/// `struct cyclescope_run`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModuleRun {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) flags: u32,
    pub(super) cpu: u32,
    pub(super) pieces: u32,
    pub(super) calls: u32,
    pub(super) piece_list: u64,
    pub(super) call_list: u64,
    pub(super) context: u64,
    pub(super) samples: u64,
    pub(super) warm_up: u32,
    pub(super) rounds: u32,
    pub(super) delay: u32,
    pub(super) slice_us: u32,
    pub(super) deadline_us: u32,
    pub(super) total_ms: u32,
    pub(super) seed: u64,
    pub(super) fill_list: u64,
    pub(super) unread: u64,
    pub(super) fills: u32,
    pub(super) events: u32,
    pub(super) event_list: u64,
    pub(super) outcome: ModuleOutcome,
}

/// Bytes of a marker design's name, including the terminator.
pub(super) const MARKER_NAME_BYTES: usize = 16;
/// Bytes that one iteration around a memcpy copies.
#[cfg(test)]
pub(super) const MARKER_COPIED: u32 = 4096;
/// Largest number of marker calls in a round.
pub(super) const MARKER_MOST_CALLS: u32 = 512;
/// The longest delay before a marker's call.
#[cfg(test)]
pub(super) const MARKER_MOST_DELAY: u32 = 1024;
/// Largest number of iterations in a round.
pub(super) const MARKER_MOST_WORK: u32 = 32768;
/// Weight of an iteration with a memcpy, in iterations.
pub(super) const MARKER_COPY_WEIGHT: u32 = 4;
/// The longest slice of a run of markers.
pub(super) const MARKER_LONGEST_SLICE_US: u32 = 5000;
/// Value of [`MarkerSwitch::probe`] that switches the sites off.
pub(super) const PROBE_DORMANT: u32 = 0;

/// `struct cyclescope_marker_code`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MarkerCode {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) code: u32,
    pub(super) design: u32,
    pub(super) name: [u8; MARKER_NAME_BYTES],
    pub(super) guard: u32,
    pub(super) around: u32,
    pub(super) placement: u32,
    pub(super) bytes: u32,
    pub(super) address: u64,
}

/// `struct cyclescope_marker_bytes`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MarkerBytes {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) code: u32,
    pub(super) bytes: u32,
    pub(super) buffer: u64,
}

/// `struct cyclescope_marker_switch`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MarkerSwitch {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) flags: u32,
    pub(super) design: u32,
    pub(super) probe: u32,
}

/// `struct cyclescope_marker_call`
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkerCall {
    pub(super) code: u32,
    pub(super) loops: u32,
}

/// `struct cyclescope_marker_run`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MarkerRun {
    pub(super) size: u32,
    pub(super) version: u32,
    pub(super) flags: u32,
    pub(super) cpu: u32,
    pub(super) calls: u32,
    pub(super) warm_up: u32,
    pub(super) rounds: u32,
    pub(super) delay: u32,
    pub(super) call_list: u64,
    pub(super) samples: u64,
    pub(super) seed: u64,
    pub(super) slice_us: u32,
    pub(super) total_ms: u32,
    pub(super) hits: u64,
    pub(super) rounds_done: u32,
    pub(super) slices: u32,
}

const _: () = {
    assert!(size_of::<ModuleProperties>() == 80);
    assert!(offset_of!(ModuleProperties, arena) == 16);
    assert!(offset_of!(ModuleProperties, most_area_bytes) == 40);
    assert!(offset_of!(ModuleProperties, longest_deadline_us) == 72);
    assert!(size_of::<ModuleArea>() == 16);
    assert!(size_of::<ModuleAreaList>() == 24);
    assert!(size_of::<ModuleFill>() == 24);
    assert!(size_of::<ModulePiece>() == 16);
    assert!(size_of::<ModuleCall>() == 16);
    assert!(size_of::<Sample>() == 16);
    assert!(size_of::<ModuleOutcome>() == 88);
    assert!(offset_of!(ModuleOutcome, ip_offset) == 40);
    assert!(offset_of!(ModuleOutcome, tsc) == 64);
    assert!(size_of::<ModuleEvent>() == 40);
    assert!(size_of::<ModuleEventTrial>() == 40);
    assert!(size_of::<ModuleRun>() == 208);
    assert!(offset_of!(ModuleRun, warm_up) == 56);
    assert!(offset_of!(ModuleRun, seed) == 80);
    assert!(offset_of!(ModuleRun, fills) == 104);
    assert!(offset_of!(ModuleRun, event_list) == 112);
    assert!(offset_of!(ModuleRun, outcome) == 120);
    assert!(size_of::<MarkerCode>() == 56);
    assert!(offset_of!(MarkerCode, name) == 16);
    assert!(offset_of!(MarkerCode, address) == 48);
    assert!(size_of::<MarkerBytes>() == 24);
    assert!(size_of::<MarkerSwitch>() == 20);
    assert!(size_of::<MarkerCall>() == 8);
    assert!(size_of::<MarkerRun>() == 80);
    assert!(offset_of!(MarkerRun, call_list) == 32);
    assert!(offset_of!(MarkerRun, slice_us) == 56);
    assert!(offset_of!(MarkerRun, hits) == 64);
};

/// `_IOWR('y', number, size)` (asm-generic/ioctl.h).
const fn encode_ioctl(number: u64, size: usize) -> u64 {
    3 << 30 | (size as u64) << 16 | (b'y' as u64) << 8 | number
}

/// `CYCLESCOPE_GET_INFO`
pub(super) const GET_INFO: u64 = encode_ioctl(0x40, size_of::<ModuleProperties>());
/// `CYCLESCOPE_RUN`
pub(super) const RUN: u64 = encode_ioctl(0x41, size_of::<ModuleRun>());
/// `CYCLESCOPE_SET_AREAS`
pub(super) const SET_AREAS: u64 = encode_ioctl(0x42, size_of::<ModuleAreaList>());
/// `CYCLESCOPE_TRY_EVENTS`
pub(super) const TRY_EVENTS: u64 = encode_ioctl(0x43, size_of::<ModuleEventTrial>());
/// `CYCLESCOPE_MARKER_CODE`
pub(super) const MARKER_CODE: u64 = encode_ioctl(0x50, size_of::<MarkerCode>());
/// `CYCLESCOPE_MARKER_BYTES`
pub(super) const MARKER_BYTES: u64 = encode_ioctl(0x51, size_of::<MarkerBytes>());
/// `CYCLESCOPE_MARKER_SWITCH`
pub(super) const MARKER_SWITCH: u64 = encode_ioctl(0x52, size_of::<MarkerSwitch>());
/// `CYCLESCOPE_MARKER_RUN`
pub(super) const MARKER_RUN: u64 = encode_ioctl(0x53, size_of::<MarkerRun>());
