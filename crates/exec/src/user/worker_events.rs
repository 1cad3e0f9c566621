//! The performance events of a worker: how they are read, and their descriptors.
//!
//! The worker opens its events before its sandbox is closed, and sends the descriptors. It reads the
//! events with RDPMC around each call, where the kernel allows that. Otherwise its caller reads them
//! around a command that runs all rounds of one call, and divides the count among the rounds.

use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_events::{self as events, EventCode, EventGroup, EventRefusal, MOST_TOGETHER};
use cyclescope_worker::setup::EVENT_WORDS;
use cyclescope_worker::view::MOST_EVENTS;
use perf_event_open_sys::bindings as abi;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

const _: () = assert!(MOST_EVENTS == MOST_TOGETHER);
const _: () = {
    use cyclescope_worker::event_reading::page;
    assert!(offset_of!(abi::perf_event_mmap_page, lock) == page::LOCK_AT);
    assert!(offset_of!(abi::perf_event_mmap_page, index) == page::INDEX_AT);
    assert!(offset_of!(abi::perf_event_mmap_page, offset) == page::OFFSET_AT);
    assert!(offset_of!(abi::perf_event_mmap_page, pmc_width) == page::WIDTH_AT);
};

/// The step that fails if descriptors do not arrive.
const TAKING_EVENTS: &str = "taking the worker's performance events";

/// Events of the worker and its successors.
#[derive(Debug, Default)]
pub(super) struct WorkerEvents {
    codes: Vec<EventCode>,
    /// Whether the worker reads them with RDPMC.
    by_rdpmc: bool,
    /// The ends of a socket for their descriptors: the caller's and the worker's.
    sockets: Option<[UnixDatagram; 2]>,
    group: Option<EventGroup>,
}

impl WorkerEvents {
    /// Finds out by trying how these events are read.
    pub(super) fn probe(codes: &[EventCode], machine: &Machine) -> Result<WorkerEvents, RunError> {
        let refused = |refusal: EventRefusal| RunError::Unavailable(refusal.into());
        let (number, by_rdpmc) = events::count_fitting(codes, machine).map_err(refused)?;
        if number < codes.len() {
            let why = format!("{number} of {} events count at the same time", codes.len());
            return Err(RunError::from_harness("counting events", why, "name fewer events"));
        }
        let sockets = UnixDatagram::pair().map_err(|error| RunError::from_io(TAKING_EVENTS, &error))?;
        Ok(WorkerEvents { codes: codes.to_vec(), by_rdpmc, sockets: Some(sockets.into()), group: None })
    }

    pub(super) fn codes(&self) -> &[EventCode] {
        &self.codes
    }

    pub(super) fn is_read_by_worker(&self) -> bool {
        self.by_rdpmc
    }

    /// The worker's end of the socket.
    pub(super) fn worker_socket(&self) -> Option<i32> {
        self.sockets.as_ref().map(|[_, worker]| worker.as_raw_fd())
    }

    /// The attributes of the events, as the worker's setup has them.
    pub(super) fn list_attributes(&self) -> Vec<[u64; EVENT_WORDS]> {
        let attributes = |(number, code): (usize, &EventCode)| {
            let mut words = [0u64; EVENT_WORDS];
            // SAFETY: the words are at least as long, and as aligned.
            unsafe { words.as_mut_ptr().cast::<abi::perf_event_attr>().write(code.attributes(number == 0)) };
            words
        };
        self.codes.iter().enumerate().map(attributes).collect()
    }

    /// Takes the descriptors that a new worker has sent.
    pub(super) fn take_descriptors(&mut self) -> Result<(), RunError> {
        let Some([own, _]) = &self.sockets else { return Ok(()) };
        let received: Result<Vec<OwnedFd>, RunError> =
            self.codes.iter().map(|_| receive_descriptor(own.as_raw_fd())).collect();
        self.group = Some(EventGroup::from_descriptors(received?));
        Ok(())
    }

    /// Reads all counts.
    pub(super) fn read_counts(&self) -> Result<Vec<u64>, RunError> {
        let group = self.group.as_ref().expect("the worker has sent its events");
        group.read_counts().map_err(|refusal| RunError::Unavailable(refusal.into()))
    }
}

/// Takes the descriptor of a message that has arrived.
fn receive_descriptor(socket: i32) -> Result<OwnedFd, RunError> {
    let mut byte = 0u8;
    // A `cmsghdr` with one descriptor, aligned.
    let mut control = [0u64; 3];
    let mut piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: zeros are valid for all fields.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: all parts of the message live through the calls. The kernel puts a descriptor behind
    // the header that `CMSG_FIRSTHDR` returns, if the message has one.
    unsafe {
        if libc::recvmsg(socket, &raw mut message, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) < 0 {
            return Err(RunError::from_io(TAKING_EVENTS, &std::io::Error::last_os_error()));
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Err(RunError::from_harness(TAKING_EVENTS, "a message has no descriptor", "leave --counters out"));
        }
        Ok(OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<i32>().read_unaligned()))
    }
}

const _: () = assert!(size_of::<abi::perf_event_attr>() <= size_of::<[u64; EVENT_WORDS]>());
