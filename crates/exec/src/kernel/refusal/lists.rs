//! Lists of the instructions that are refused with all operands, of the allowed privileged ones,
//! and of the allowed model-specific registers. `docs/kernel-safety.md` shows the same lists; a
//! test compares them.

use super::reason::RefusalReason;
use iced_x86::Mnemonic;
use iced_x86::Mnemonic::*;

/// Instructions that are refused with all operands.
pub(super) const REFUSED_INSTRUCTIONS: &[(RefusalReason, &[Mnemonic])] = &[
    (RefusalReason::MachineStatus, &[Lmsw]),
    (RefusalReason::DescriptorTables, &[Lgdt, Lidt, Lldt, Ltr]),
    (RefusalReason::ModelSpecific, &[Wrmsrns, Wrmsrlist, Rdmsrlist]),
    (RefusalReason::Ports, &[In, Out, Insb, Insw, Insd, Outsb, Outsw, Outsd]),
    (
        RefusalReason::VirtualMachine,
        &[
            Vmxon, Vmxoff, Vmptrld, Vmptrst, Vmclear, Vmread, Vmwrite, Vmlaunch, Vmresume, Vmcall, Vmfunc, Invept,
            Invvpid, Vmrun, Vmload, Vmsave, Vmmcall, Vmgexit, Clgi, Stgi, Skinit, Invlpga,
        ],
    ),
    (RefusalReason::SystemCall, &[Syscall, Sysenter, Sysret, Sysretq, Sysexit, Sysexitq]),
    (RefusalReason::StopsProcessor, &[Hlt, Monitor, Mwait, Monitorx, Mwaitx]),
    (RefusalReason::DiscardsCache, &[Invd]),
    (
        RefusalReason::ProtectedMode,
        &[
            Rsm, Getsec, Getsecq, Encls, Enclv, Enclu, Pconfig, Pbndkb, Psmash, Pvalidate, Rmpadjust, Rmpupdate,
            Rmpquery, Seamcall, Seamops, Seamret, Tdcall,
        ],
    ),
    (
        RefusalReason::ShadowStack,
        &[Setssbsy, Clrssbsy, Wrussd, Wrussq, Wrssd, Wrssq, Incsspd, Incsspq, Rstorssp, Saveprevssp],
    ),
    (RefusalReason::UserInterrupts, &[Stui, Clui, Testui, Uiret, Senduipi]),
    (RefusalReason::EventDelivery, &[Eretu, Erets, Lkgs]),
    (RefusalReason::SupervisorState, &[Xrstors, Xrstors64]),
    (RefusalReason::Outlives, &[Loadiwkey, Hreset, Llwpcb, Slwpcb, Lwpins, Lwpval]),
    (RefusalReason::OtherProcessors, &[Invlpgb, Tlbsync, Enqcmds]),
    (
        RefusalReason::Vendor,
        &[
            Xstore,
            Xstore_alt,
            Xcryptecb,
            Xcryptcbc,
            Xcryptctr,
            Xcryptcfb,
            Xcryptofb,
            Montmul,
            Xsha1,
            Xsha256,
            Xsha512,
            Xsha512_alt,
            Ccs_encrypt,
            Ccs_hash,
            Loadall,
            Storeall,
            Rdudbg,
            Wrudbg,
            Cl1invmb,
            Altinst,
            Jmpe,
            Ibts,
            Xbts,
            Umov,
            Bb0_reset,
            Bb1_reset,
            Cpu_read,
            Cpu_write,
            Dmint,
            Rdm,
            Smint,
            Rdshr,
            Wrshr,
            Rsdc,
            Rsldt,
            Rsts,
            Svdc,
            Svldt,
            Svts,
        ],
    ),
];

/// Allowed privileged instructions: everything that they change is restored, or not changed for
/// good. [`super::instruction`] also checks the operands of moves, RDMSR, WRMSR and XSETBV.
pub(super) const ALLOWED_PRIVILEGED: &[Mnemonic] = &[
    Mov, Rdmsr, Wrmsr, Xsetbv, Clts, Wbinvd, Wbnoinvd, Invlpg, Invpcid, Cli, Sti, Swapgs, Stac, Clac, Xsaves, Xsaves64,
];

/// Waits that end by themselves only if the kernel has set a limit.
pub(super) const WAIT_INSTRUCTIONS: &[Mnemonic] = &[Umwait, Tpause];

/// A model-specific register: its number and its name (Intel SDM vol. 4, AMD APM vol. 2 appendix
/// A).
pub(super) type Msr = (u32, &'static str);

/// Registers that can be read without changing anything.
pub(super) const READABLE_MSRS: &[Msr] = &[
    (0x10, "IA32_TIME_STAMP_COUNTER"),
    (0x1b, "IA32_APIC_BASE"),
    (0x3a, "IA32_FEATURE_CONTROL"),
    (0x3b, "IA32_TSC_ADJUST"),
    (0x48, "IA32_SPEC_CTRL"),
    (0xce, "MSR_PLATFORM_INFO"),
    (0xe7, "IA32_MPERF"),
    (0xe8, "IA32_APERF"),
    (0xfe, "IA32_MTRRCAP"),
    (0x10a, "IA32_ARCH_CAPABILITIES"),
    (0x174, "IA32_SYSENTER_CS"),
    (0x175, "IA32_SYSENTER_ESP"),
    (0x176, "IA32_SYSENTER_EIP"),
    (0x198, "IA32_PERF_STATUS"),
    (0x199, "IA32_PERF_CTL"),
    (0x1a0, "IA32_MISC_ENABLE"),
    (0x277, "IA32_PAT"),
    (0x2ff, "IA32_MTRR_DEF_TYPE"),
    (0x6e0, "IA32_TSC_DEADLINE"),
    (0xda0, "IA32_XSS"),
    (0xc000_0080, "IA32_EFER"),
    (0xc000_0081, "IA32_STAR"),
    (0xc000_0082, "IA32_LSTAR"),
    (0xc000_0083, "IA32_CSTAR"),
    (0xc000_0084, "IA32_FMASK"),
    (0xc000_0100, "IA32_FS_BASE"),
    (0xc000_0101, "IA32_GS_BASE"),
    (0xc000_0102, "IA32_KERNEL_GS_BASE"),
    (0xc000_0103, "IA32_TSC_AUX"),
];

/// Registers that are restored, and commands that leave no state behind.
pub(super) const WRITABLE_MSRS: &[Msr] = &[
    (0x49, "IA32_PRED_CMD"),
    (0x10b, "IA32_FLUSH_CMD"),
    (0xc000_0100, "IA32_FS_BASE"),
    (0xc000_0101, "IA32_GS_BASE"),
    (0xc000_0102, "IA32_KERNEL_GS_BASE"),
    (0xc000_0103, "IA32_TSC_AUX"),
];
