// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Records that the CPU writes to memory by itself, of samples (PEBS) and of branches (BTS). The
 * memory is not mapped in the capsule, so they are off during a slice.
 *
 * They belong to perf, whose NMIs may switch them on at any time. This module's handler runs
 * after perf's and stops them again; it saves their state as perf's current setting. Records
 * that are on at the end of a slice are perf's too and stay on.
 */
#include <linux/kprobes.h>
#include <linux/smp.h>
#include <linux/types.h>
#include <asm/msr-index.h>
#include "module.h"

#define NOBODY		(~0u)
#define BRANCH_TRACES	(DEBUGCTLMSR_TR | DEBUGCTLMSR_BTS)

static struct {
	/* The CPU on which they are stopped, or NOBODY. One run at a time stops them. */
	unsigned int cpu;
	/* The saved settings. */
	u64 pebs, branch_traces;
} stopped = { .cpu = NOBODY };

static notrace void stop(void)
{
	u64 control;

	if (registers.pebs) {
		u64 enabled = get_msr(MSR_IA32_PEBS_ENABLE);

		if (enabled) {
			stopped.pebs = enabled;
			set_msr(MSR_IA32_PEBS_ENABLE, 0);
		}
	}
	if (!registers.branch_traces)
		return;
	control = get_msr(MSR_IA32_DEBUGCTLMSR);
	if (control & BRANCH_TRACES) {
		stopped.branch_traces = control & BRANCH_TRACES;
		set_msr(MSR_IA32_DEBUGCTLMSR, control & ~BRANCH_TRACES);
	}
}
NOKPROBE_SYMBOL(stop);

notrace void records_stop(void)
{
	stopped.pebs = 0;
	stopped.branch_traces = 0;
	WRITE_ONCE(stopped.cpu, smp_processor_id());
	stop();
}
NOKPROBE_SYMBOL(records_stop);

notrace void records_after_nmi(void)
{
	if (READ_ONCE(stopped.cpu) == smp_processor_id())
		stop();
}
NOKPROBE_SYMBOL(records_after_nmi);

notrace void records_restore(void)
{
	WRITE_ONCE(stopped.cpu, NOBODY);
	if (stopped.pebs && !get_msr(MSR_IA32_PEBS_ENABLE))
		set_msr(MSR_IA32_PEBS_ENABLE, stopped.pebs);
	if (stopped.branch_traces) {
		u64 control = get_msr(MSR_IA32_DEBUGCTLMSR);

		if (!(control & BRANCH_TRACES))
			set_msr(MSR_IA32_DEBUGCTLMSR, control | stopped.branch_traces);
	}
}
NOKPROBE_SYMBOL(records_restore);
