//! A tracer for sites that only a tracer can enable: the kernel's uprobes, through
//! `perf_event_open`.
//!
//! The kernel puts a breakpoint (INT3) over the site's first byte in one process, and counts the
//! traps. Any tracer of user space without a library in the process does at least this, so it is
//! the lowest possible cost. It requires root (or CAP_PERFMON and CAP_SYS_ADMIN), a kernel with
//! CONFIG_UPROBE_EVENTS, and code in a file.

use cyclescope_core::error::Unavailable;
use perf_event_open_sys as perf;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The file with the kernel's number for uprobe events.
const UPROBE_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// A breakpoint in one process.
#[derive(Debug)]
pub(crate) struct Uprobe {
    event: File,
}

impl Uprobe {
    /// Sets a breakpoint at an offset in a file, in all executable mappings of that file in the
    /// process.
    pub(crate) fn attach(process: i32, file: &OwnedFd, offset: u64) -> Result<Uprobe, Unavailable> {
        let kind = std::fs::read_to_string(UPROBE_TYPE).map_err(|error| uprobe_unavailable(&error))?;
        let kind = kind.trim().parse().map_err(|_| uprobe_unavailable(&io::ErrorKind::InvalidData.into()))?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("it has no NUL byte");
        let mut attributes = perf::bindings::perf_event_attr {
            size: size_of::<perf::bindings::perf_event_attr>() as u32,
            type_: kind,
            ..Default::default()
        };
        attributes.__bindgen_anon_3.uprobe_path = path.as_ptr() as u64;
        attributes.__bindgen_anon_4.probe_offset = offset;
        let close_on_exec = u64::from(perf::bindings::PERF_FLAG_FD_CLOEXEC);
        // SAFETY: the attributes and the path outlive the call.
        let event = unsafe { perf::perf_event_open(&mut attributes, process, -1, -1, close_on_exec) };
        if event < 0 {
            return Err(uprobe_unavailable(&io::Error::last_os_error()));
        }
        // SAFETY: the kernel has just created this descriptor for us.
        Ok(Uprobe { event: unsafe { File::from_raw_fd(event) } })
    }

    /// Number of traps in the process.
    pub(crate) fn read_count(&self) -> io::Result<u64> {
        let mut count = [0; 8];
        (&self.event).read_exact(&mut count)?;
        Ok(u64::from_ne_bytes(count))
    }
}

fn uprobe_unavailable(error: &io::Error) -> Unavailable {
    Unavailable {
        what: "a tracer's breakpoint (uprobe)".to_string(),
        why: error.to_string(),
        remedy: "run it as root, on a kernel with CONFIG_UPROBE_EVENTS".to_string(),
    }
}
