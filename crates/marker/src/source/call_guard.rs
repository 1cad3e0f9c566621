//! Guards: what an enabled marker does around the call of its probe, so that the probe isn't taken away meanwhile.

/// One guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallGuard {
    /// Its name in records.
    pub name: &'static str,
    /// One line on it.
    pub about: &'static str,
    /// C before the call.
    pub enter: &'static str,
    /// C after it.
    pub leave: &'static str,
}

/// All guards.
pub(crate) const ALL: &[CallGuard] = &[
    CallGuard { name: "none", about: "nothing", enter: "", leave: "" },
    CallGuard {
        name: "read-lock",
        about: "a read-side lock: nesting counted in memory of the thread, as user-space RCU does it where the \
                kernel orders memory for the readers (membarrier)",
        enter: "marker_read_lock();",
        leave: "marker_read_unlock();",
    },
];
