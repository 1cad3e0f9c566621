//! The probes that markers call.

/// The probe that an enabled marker calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProbeKind {
    /// Does nothing.
    Empty,
    /// Reads its arguments directly from the calling convention's registers.
    Direct,
    /// Reads them with `va_arg` and known types.
    Varargs,
    /// Reads them with `va_arg` according to the format string.
    Format,
    /// Counts its calls.
    Count,
}

impl ProbeKind {
    /// All probes.
    pub const ALL: [ProbeKind; 5] =
        [ProbeKind::Empty, ProbeKind::Direct, ProbeKind::Varargs, ProbeKind::Format, ProbeKind::Count];

    /// Its name in `probes.c`.
    pub fn c_name(self) -> &'static str {
        match self {
            ProbeKind::Empty => "empty",
            ProbeKind::Direct => "direct",
            ProbeKind::Varargs => "varargs",
            ProbeKind::Format => "format",
            ProbeKind::Count => "count",
        }
    }
}
