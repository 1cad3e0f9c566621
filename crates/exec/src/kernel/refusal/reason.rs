//! Why code is refused: a closed list.

/// Why code is not run in ring 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RefusalReason {
    /// CR3.
    PageTables,
    /// CR4 and control registers that nothing restores.
    ControlRegister,
    /// CR0 with any value other than the one read from it.
    MachineStatus,
    /// DR7, also as DR5.
    DebugControl,
    /// GDT, IDT, LDT and task register.
    DescriptorTables,
    /// A model-specific register that is not listed, or whose number is unknown before the code
    /// runs.
    ModelSpecific,
    /// XCR0 with any value other than the one read from it.
    ExtendedState,
    /// Ports.
    Ports,
    /// Virtual machines.
    VirtualMachine,
    /// System calls and their returns.
    SystemCall,
    /// Waits that may never end.
    StopsProcessor,
    /// Modified cache lines that are discarded.
    DiscardsCache,
    /// Modes above ring 0, and protected memory.
    ProtectedMode,
    /// Shadow stacks.
    ShadowStack,
    /// User interrupts.
    UserInterrupts,
    /// Flexible return and event delivery.
    EventDelivery,
    /// State that only the kernel may load.
    SupervisorState,
    /// State that nothing restores afterwards.
    Outlives,
    /// Other processors.
    OtherProcessors,
    /// INT 2.
    FalseNmi,
    /// Instructions of few or old processors.
    Vendor,
    /// A privileged instruction that no other reason covers.
    Unlisted,
    /// Bytes that the decoder does not know.
    UnknownEncoding,
    /// A direct branch out of the code.
    BranchLeaves,
    /// An instruction that continues past the end of the code.
    CutOff,
    /// One CPU: a branch back.
    LoneBackward,
    /// One CPU: an indirect branch.
    LoneIndirect,
    /// One CPU: a repeated string instruction.
    LoneRepeat,
    /// One CPU: the loop's counter is written.
    LoneCounter,
    /// One CPU: a wait.
    LoneWait,
}

const LEAVE_OUT: &str = "leave the instruction out; ring 0 can't measure it safely";
const KNOWN_MSR: &str = "set ECX to a constant before it, with no branch target in between; \
    docs/kernel-safety.md lists the registers";
const USER_MODE: &str = "leave the instruction out; if it is not privileged, measure it in user mode";
const STAY_WITHIN: &str = "let branches end inside of the snippet or at its end, and instructions be whole";
const SECOND_CPU: &str = "measure it on a machine with two CPUs or in user mode; --force runs it all the same";

impl RefusalReason {
    /// All reasons: the end of a sentence about the instruction, and a remedy.
    pub(crate) const ALL: [(RefusalReason, &'static str, &'static str); 30] = [
        (RefusalReason::PageTables, "it changes the page tables, and with them the way back", LEAVE_OUT),
        (RefusalReason::ControlRegister, "it changes a control register that the way back depends on", LEAVE_OUT),
        (
            RefusalReason::MachineStatus,
            "it may change CR0; only a value read from it may be written",
            "read the same register from CR0 in front of it, and let nothing else write to it in between",
        ),
        (RefusalReason::DebugControl, "it can arm breakpoints in the kernel", LEAVE_OUT),
        (RefusalReason::DescriptorTables, "it replaces the tables that route exceptions and interrupts", LEAVE_OUT),
        (RefusalReason::ModelSpecific, "its model-specific register is not known to be safe", KNOWN_MSR),
        (
            RefusalReason::ExtendedState,
            "it may change XCR0; only a value read from it may be written",
            "put `xor ecx, ecx` and XGETBV in front of it, and let nothing else write to ECX, EAX and EDX in between",
        ),
        (RefusalReason::Ports, "it reaches devices", LEAVE_OUT),
        (RefusalReason::VirtualMachine, "it enters or leaves a virtual machine, or controls one", LEAVE_OUT),
        (
            RefusalReason::SystemCall,
            "it jumps to the kernel's entry or to user mode, which are not mapped: it could only fault",
            "leave the instruction out",
        ),
        (RefusalReason::StopsProcessor, "it can stop the processor for good", USER_MODE),
        (RefusalReason::DiscardsCache, "it discards cached data not yet written to memory", LEAVE_OUT),
        (RefusalReason::ProtectedMode, "it enters or controls a mode outside the kernel's control", LEAVE_OUT),
        (RefusalReason::ShadowStack, "it moves or writes shadow stacks", USER_MODE),
        (RefusalReason::UserInterrupts, "it controls or sends user interrupts", USER_MODE),
        (
            RefusalReason::EventDelivery,
            "it returns from an event that never happened, or changes the kernel's GS",
            LEAVE_OUT,
        ),
        (RefusalReason::SupervisorState, "it loads state that belongs to the kernel", LEAVE_OUT),
        (RefusalReason::Outlives, "it changes state that nothing restores afterwards", LEAVE_OUT),
        (RefusalReason::OtherProcessors, "it reaches other processors or devices", LEAVE_OUT),
        (
            RefusalReason::FalseNmi,
            "it imitates a non-maskable interrupt, which would be passed to the kernel",
            LEAVE_OUT,
        ),
        (RefusalReason::Vendor, "only few or old processors have it, and its effect here is unknown", USER_MODE),
        (RefusalReason::Unlisted, "it is privileged, and not on the list of safe instructions", LEAVE_OUT),
        (
            RefusalReason::UnknownEncoding,
            "the decoder does not know these bytes, which may mean anything to a newer processor",
            USER_MODE,
        ),
        (RefusalReason::BranchLeaves, "it branches out of the code", STAY_WITHIN),
        (RefusalReason::CutOff, "it continues past the end of the code", STAY_WITHIN),
        (
            RefusalReason::LoneBackward,
            "it branches back, and without a second CPU nothing ends an endless loop",
            SECOND_CPU,
        ),
        (
            RefusalReason::LoneIndirect,
            "it can branch to anywhere, and without a second CPU nothing ends an endless loop",
            SECOND_CPU,
        ),
        (RefusalReason::LoneRepeat, "it may repeat without end, and without a second CPU nothing stops it", SECOND_CPU),
        (
            RefusalReason::LoneCounter,
            "it writes to R15, the loop's counter, and without a second CPU nothing ends an endless loop",
            SECOND_CPU,
        ),
        (RefusalReason::LoneWait, "it may wait without end, and without a second CPU nothing wakes it", SECOND_CPU),
    ];

    /// The reason as the end of a sentence about the instruction.
    pub fn text(self) -> &'static str {
        RefusalReason::ALL.iter().find(|(reason, ..)| *reason == self).map_or("", |(_, text, _)| text)
    }

    /// What the user can do about it.
    pub(crate) fn remedy(self) -> &'static str {
        RefusalReason::ALL.iter().find(|(reason, ..)| *reason == self).map_or("", |(.., remedy)| remedy)
    }
}
