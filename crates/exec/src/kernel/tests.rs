//! Tests of the executor that need no module.

use super::abi::{
    self, MarkerBytes, MarkerCall, MarkerCode, MarkerRun, MarkerSwitch, ModuleCall, ModuleOutcome, ModulePiece,
    ModuleProperties, ModuleRun, list_changed_state,
};
use super::device::explain_open_failure;
use super::exception::{describe_exception, find_ip_position};
use super::markers::{KernelProbe, KernelRuler, MarkerWorkload, ProbeGuard};
use super::*;
use cyclescope_core::machine::fact::{Fact, SystemFiles};
use cyclescope_core::machine::kernel_module::KernelModule;
use cyclescope_events::MOST_TOGETHER;
use std::io;
use std::process::Command;

#[test]
fn exceptions_have_names() {
    assert_eq!(describe_exception(0), "#DE (divide error)");
    assert_eq!(describe_exception(6), "#UD (invalid opcode)");
    assert_eq!(describe_exception(exception::PAGE_FAULT), "#PF (page fault)");
    assert_eq!(describe_exception(19), "#XM (SIMD floating-point exception)");
    assert_eq!(
        (describe_exception(2), describe_exception(128)),
        ("interrupt 2".to_string(), "interrupt 128".to_string())
    );
    // INT3, INTO and INT n save the address after them; faults save their own.
    let saved_as = |place| (0..34).filter(|vector| find_ip_position(*vector) == place).collect::<Vec<u32>>();
    assert_eq!(saved_as(SavedIpPosition::Behind), [3, 4, 32, 33]);
    assert_eq!(saved_as(SavedIpPosition::AroundInt1), [1]);
}

#[test]
fn every_bit_of_changed_state_has_a_name() {
    assert_eq!(list_changed_state(0), Vec::<&str>::new());
    assert_eq!(list_changed_state(1 << 1 | 1 << 8), ["CR8", "IA32_TSC_AUX"]);
    assert_eq!(list_changed_state(u32::MAX).len(), 10);
}

/// A machine without any files.
fn nothing() -> KernelModule {
    KernelModule::detect(&SystemFiles::rooted_at("/nonexistent"), "1")
}

/// The reason and the remedy for a device that fails with this error number.
fn open_failure(errno: i32, facts: &KernelModule) -> [String; 2] {
    let error = explain_open_failure(&io::Error::from_raw_os_error(errno), facts);
    assert_eq!(error.what, "executor kernel");
    assert!(!error.remedy.is_empty());
    [error.why, error.remedy]
}

#[test]
fn a_device_that_does_not_open_gives_a_reason() {
    let open = KernelModule { closed: Fact::Known(false), headers: Fact::Known(String::new()), ..nothing() };
    let loaded = KernelModule { loaded: Fact::Known(true), ..open.clone() };
    let locked = KernelModule { lockdown: Fact::Known(Some("integrity".to_string())), ..loaded.clone() };
    let refused = KernelModule { refused: Fact::Known(Some("a reason".to_string())), ..loaded.clone() };
    for (errno, facts, why, remedy) in [
        (libc::ENOENT, &open, "is not loaded", "docs/kernel-safety.md"),
        (libc::ENOENT, &nothing(), "is not loaded: the kernel seems to load no modules", "user mode"),
        (libc::ENOENT, &loaded, "no /dev/cyclescope", "devtmpfs"),
        (libc::EACCES, &locked, "locked down", "lockdown=none"),
        (libc::EACCES, &loaded, "for root", "run as root"),
        (libc::EPERM, &loaded, "CAP_SYS_RAWIO and CAP_SYS_MODULE", "containers"),
        (libc::ENODEV, &refused, "a reason", "user mode"),
        (libc::ENODEV, &loaded, "runs no code on this machine", "user mode"),
        (libc::EBUSY, &loaded, "too many runs", "wait"),
        (libc::EIO, &loaded, "can't be opened", "docs/kernel-safety.md"),
    ] {
        let [actual_why, actual_remedy] = open_failure(errno, facts);
        assert!(actual_why.contains(why) && actual_remedy.contains(remedy), "{errno}: {actual_why} / {actual_remedy}");
    }
}

#[test]
fn a_missing_module_is_reported() {
    match ModuleDevice::open() {
        Ok(module) => assert_eq!(module.version(), abi::INTERFACE_VERSION),
        Err(error) => assert!(!error.why.is_empty() && !error.remedy.is_empty()),
    }
}

/// All numbers shared by both sides of the interface, with their expressions in C.
fn numbers() -> Vec<(&'static str, u64)> {
    let mut all = vec![
        ("CYCLESCOPE_GET_INFO", abi::GET_INFO),
        ("CYCLESCOPE_RUN", abi::RUN),
        ("CYCLESCOPE_VERSION", abi::INTERFACE_VERSION.into()),
        ("CYCLESCOPE_CONTEXT_BYTES", CONTEXT_BYTES as u64),
        ("CYCLESCOPE_CONTEXT_AT", CONTEXT_AT as u64),
        ("CYCLESCOPE_INFO_APERF", abi::INFO_APERF.into()),
        ("CYCLESCOPE_INFO_DEADLINE", abi::INFO_DEADLINE.into()),
        ("CYCLESCOPE_INFO_RUN", abi::INFO_RUN.into()),
        ("CYCLESCOPE_SET_AREAS", abi::SET_AREAS),
        ("CYCLESCOPE_TRY_EVENTS", abi::TRY_EVENTS),
        ("CYCLESCOPE_MOST_EVENTS", MOST_TOGETHER as u64),
        ("sizeof(struct cyclescope_event)", size_of::<abi::ModuleEvent>() as u64),
        ("sizeof(struct cyclescope_event_trial)", size_of::<abi::ModuleEventTrial>() as u64),
        ("offsetof(struct cyclescope_event, type)", std::mem::offset_of!(abi::ModuleEvent, kind) as u64),
        ("CYCLESCOPE_FILL_WRITTEN", abi::FILL_WRITTEN.into()),
        ("CYCLESCOPE_FILL_ALL", abi::FILL_ALL.into()),
        ("sizeof(struct cyclescope_area)", size_of::<abi::ModuleArea>() as u64),
        ("sizeof(struct cyclescope_areas)", size_of::<abi::ModuleAreaList>() as u64),
        ("sizeof(struct cyclescope_fill)", size_of::<abi::ModuleFill>() as u64),
        ("CYCLESCOPE_RUN_UNGUARDED", abi::RUN_UNGUARDED.into()),
        ("CYCLESCOPE_DONE", status::DONE.into()),
        ("CYCLESCOPE_FAULT", status::FAULT.into()),
        ("CYCLESCOPE_DEADLINE", status::DEADLINE.into()),
        ("CYCLESCOPE_NO_READING", status::NO_READING.into()),
        ("CYCLESCOPE_ASTRAY", status::ASTRAY.into()),
        ("sizeof(struct cyclescope_info)", size_of::<ModuleProperties>() as u64),
        ("sizeof(struct cyclescope_piece)", size_of::<ModulePiece>() as u64),
        ("sizeof(struct cyclescope_call)", size_of::<ModuleCall>() as u64),
        ("sizeof(struct cyclescope_sample)", size_of::<Sample>() as u64),
        ("sizeof(struct cyclescope_outcome)", size_of::<ModuleOutcome>() as u64),
        ("sizeof(struct cyclescope_run)", size_of::<ModuleRun>() as u64),
        ("CYCLESCOPE_MARKER_CODE", abi::MARKER_CODE),
        ("CYCLESCOPE_MARKER_BYTES", abi::MARKER_BYTES),
        ("CYCLESCOPE_MARKER_SWITCH", abi::MARKER_SWITCH),
        ("CYCLESCOPE_MARKER_RUN", abi::MARKER_RUN),
        ("CYCLESCOPE_MARKER_NAME_BYTES", abi::MARKER_NAME_BYTES as u64),
        ("CYCLESCOPE_MARKER_COPIED", abi::MARKER_COPIED.into()),
        ("CYCLESCOPE_MARKER_MOST_CALLS", abi::MARKER_MOST_CALLS.into()),
        ("CYCLESCOPE_MARKER_MOST_DELAY", abi::MARKER_MOST_DELAY.into()),
        ("CYCLESCOPE_MARKER_MOST_WORK", abi::MARKER_MOST_WORK.into()),
        ("CYCLESCOPE_MARKER_COPY_WEIGHT", abi::MARKER_COPY_WEIGHT.into()),
        ("CYCLESCOPE_MARKER_LONGEST_SLICE_US", abi::MARKER_LONGEST_SLICE_US.into()),
        ("CYCLESCOPE_PROBE_DORMANT", abi::PROBE_DORMANT.into()),
        ("CYCLESCOPE_PROBE_EMPTY", KernelProbe::Empty as u64),
        ("CYCLESCOPE_PROBE_DIRECT", KernelProbe::Direct as u64),
        ("CYCLESCOPE_PROBE_VARARGS", KernelProbe::Varargs as u64),
        ("CYCLESCOPE_PROBE_FORMAT", KernelProbe::Format as u64),
        ("CYCLESCOPE_PROBE_COUNTING", KernelProbe::Counting as u64),
        ("CYCLESCOPE_GUARD_BARE", ProbeGuard::Bare as u64),
        ("CYCLESCOPE_GUARD_PREEMPTION", ProbeGuard::Preemption as u64),
        ("CYCLESCOPE_GUARD_OWN", ProbeGuard::Own as u64),
        ("CYCLESCOPE_GUARD_INTERRUPTS", ProbeGuard::Interrupts as u64),
        ("CYCLESCOPE_AROUND_NOTHING", MarkerWorkload::Nothing as u64),
        ("CYCLESCOPE_AROUND_MEMCPY", MarkerWorkload::Memcpy as u64),
        ("CYCLESCOPE_RULER_IMUL_SHORT", KernelRuler::ImulShort as u64),
        ("CYCLESCOPE_RULER_IMUL_LONG", KernelRuler::ImulLong as u64),
        ("CYCLESCOPE_RULER_ADD_SHORT", KernelRuler::AddShort as u64),
        ("CYCLESCOPE_RULER_ADD_LONG", KernelRuler::AddLong as u64),
        ("CYCLESCOPE_RULER_SENTINEL", KernelRuler::Sentinel as u64),
        ("sizeof(struct cyclescope_marker_code)", size_of::<MarkerCode>() as u64),
        ("sizeof(struct cyclescope_marker_bytes)", size_of::<MarkerBytes>() as u64),
        ("sizeof(struct cyclescope_marker_switch)", size_of::<MarkerSwitch>() as u64),
        ("sizeof(struct cyclescope_marker_call)", size_of::<MarkerCall>() as u64),
        ("sizeof(struct cyclescope_marker_run)", size_of::<MarkerRun>() as u64),
    ];
    macro_rules! offsets {
        ($($of:literal $type:ty: $($field:ident)*;)*) => {$($(all.push((
            concat!("offsetof(struct cyclescope_", $of, ", ", stringify!($field), ")"),
            std::mem::offset_of!($type, $field) as u64,
        ));)*)*};
    }
    offsets! {
        "info" ModuleProperties: size version flags tsc_khz arena context eviction most_area_bytes arena_bytes eviction_bytes
            most_areas most_pieces most_calls longest_slice_us longest_deadline_us;
        "area" abi::ModuleArea: bytes address;
        "areas" abi::ModuleAreaList: size version flags areas area_list;
        "event" abi::ModuleEvent: reserved config config1 config2 count;
        "event_trial" abi::ModuleEventTrial: size version flags cpu events fitting error reserved event_list;
        "fill" abi::ModuleFill: flags reserved content word;
        "piece" ModulePiece: offset bytes code;
        "call" ModuleCall: offset reserved loop_count;
        "sample" Sample: start end;
        "outcome" ModuleOutcome: status vector error_code ip sp cr2 ip_offset changed rounds_done slices repeated
            counted_rounds tsc aperf mperf;
        "run" ModuleRun: size version flags cpu pieces calls piece_list call_list context samples warm_up rounds delay
            slice_us deadline_us total_ms seed fill_list unread fills events event_list outcome;
        "marker_code" MarkerCode: size version code design name guard around placement bytes address;
        "marker_bytes" MarkerBytes: size version code bytes buffer;
        "marker_switch" MarkerSwitch: size version flags design probe;
        "marker_call" MarkerCall: code loops;
        "marker_run" MarkerRun: size version flags cpu calls warm_up rounds delay call_list samples seed slice_us
            total_ms hits rounds_done slices;
    }
    all
}

#[test]
fn the_call_numbers_are_those_of_version_4() {
    // _IOWR('y', 0x40, 80 bytes), 0x41 with 208 bytes, 0x42 with 24 and 0x43 with 40.
    let numbers = [abi::GET_INFO, abi::RUN, abi::SET_AREAS, abi::TRY_EVENTS];
    assert_eq!(numbers, [0xc050_7940, 0xc0d0_7941, 0xc018_7942, 0xc028_7943]);
}

#[test]
fn both_sides_of_the_interface_agree() {
    let folder = std::env::temp_dir().join(format!("cyclescope-uapi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("numbers");
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../uapi/cyclescope.h");
    let prints: String = numbers()
        .iter()
        .map(|(expression, _)| format!("printf(\"%llu\\n\", (unsigned long long)({expression}));\n"))
        .collect();
    let source = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"{header}\"\nint main(void) {{\n{prints}return 0;\n}}\n"
    );
    std::fs::write(folder.join("numbers.c"), source).unwrap();
    let built = Command::new("cc").arg("-o").arg(&program).arg(folder.join("numbers.c")).output();
    let printed = match built {
        Err(error) => {
            std::fs::remove_dir_all(&folder).unwrap();
            return cyclescope_skipped::report_skipped(format_args!("cc doesn't run: {error}"));
        }
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Command::new(&program).output().unwrap()
        }
    };
    std::fs::remove_dir_all(&folder).unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let expected = numbers();
    assert_eq!(printed.lines().count(), expected.len());
    for ((expression, number), line) in expected.iter().zip(printed.lines()) {
        assert_eq!(line, number.to_string(), "{expression}");
    }
}

#[test]
fn a_cpu_number_beyond_every_set_is_an_error() {
    let refused = super::device::PinnedThread::pin(1 << 20).map(drop);
    assert!(matches!(refused, Err(RunError::Machinery { why, .. }) if why == "there is no CPU 1048576"));
}
