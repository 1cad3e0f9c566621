//! Guards: actions of an enabled marker around the probe call that keep the probe from being
//! removed.

/// One guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallGuard {
    /// Name in records.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// C code before the call.
    pub enter: &'static str,
    /// C code after the call.
    pub leave: &'static str,
}

/// All guards.
pub const ALL: &[CallGuard] = &[
    CallGuard { name: "none", about: "nothing", enter: "", leave: "" },
    CallGuard {
        name: "read-lock",
        about: "a read-side lock: nesting is counted in thread-local memory, as in user-space RCU when the kernel \
             orders memory for readers (membarrier)",
        enter: "marker_read_lock();",
        leave: "marker_read_unlock();",
    },
];
