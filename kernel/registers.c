// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The model-specific registers of this machine. CPUID lists them, but some hypervisors answer
 * an access with #GP anyway. So each is tried once when the module loads, where an exception
 * does no harm.
 */
#include <linux/cache.h>
#include <linux/irqflags.h>
#include <linux/smp.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>
#include <asm/msr-index.h>
#include <asm/processor-flags.h>
#include "module.h"

struct registers registers __read_mostly;

static bool can_read(u32 number, u64 *value)
{
	u32 low = 0, high = 0, failed = 1;

	asm volatile("1:	rdmsr\n\t"
		     "xor %[failed], %[failed]\n"
		     "2:\n\t" _ASM_EXTABLE(1b, 2b)
		     : "+a"(low), "+d"(high), [failed] "+r"(failed) : "c"(number));
	*value = low | (u64)high << 32;
	return !failed;
}

static bool can_write(u32 number, u64 value)
{
	u32 failed = 1;

	asm volatile("1:	wrmsr\n\t"
		     "xor %[failed], %[failed]\n"
		     "2:\n\t" _ASM_EXTABLE(1b, 2b)
		     : [failed] "+r"(failed) : "c"(number), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
	return !failed;
}

static bool has(u32 number)
{
	u64 value;

	return can_read(number, &value);
}

/* Writes back the value just read. */
static bool has_writable(u32 number)
{
	u64 value;

	return can_read(number, &value) && can_write(number, value);
}

/* perf's NMIs may switch it between the two accesses. A register that is on is not written, and
 * perf has shown that it can be. */
static bool has_switch(u32 number, u64 on)
{
	u64 value;

	return can_read(number, &value) && (value & on || can_write(number, value));
}

void registers_init(void)
{
	unsigned long flags;

	local_irq_save(flags);
	registers = (struct registers){
		.tsc_aux = (boot_cpu_has(X86_FEATURE_RDTSCP) || boot_cpu_has(X86_FEATURE_RDPID)) &&
			   has_writable(MSR_TSC_AUX),
		.aperf = boot_cpu_has(X86_FEATURE_APERFMPERF) && has(MSR_IA32_APERF) && has(MSR_IA32_MPERF),
		.pebs = boot_cpu_has(X86_FEATURE_PEBS) && has_switch(MSR_IA32_PEBS_ENABLE, ~0ull),
		.branch_traces = boot_cpu_has(X86_FEATURE_BTS) &&
				 has_switch(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_TR | DEBUGCTLMSR_BTS),
		.lbr = boot_cpu_has(X86_FEATURE_ARCH_LBR) && has_writable(MSR_ARCH_LBR_CTL),
		/* Kernels that don't know it don't use it either. */
#ifdef X86_FEATURE_XFD
		.xfd_error = boot_cpu_has(X86_FEATURE_XFD) && has_writable(MSR_IA32_XFD_ERR),
#endif
		.machine_check = boot_cpu_has(X86_FEATURE_MCE) && has(MSR_IA32_MCG_STATUS),
	};
	local_irq_restore(flags);
}

/* As in `enter` and enter.S: without global pages and CET, and back. */
static void try_cr4(void *failed)
{
	unsigned long flags, cr4;
	u32 faulted = 1;

	local_irq_save(flags);
	asm volatile("mov %%cr4, %0" : "=r"(cr4));
	asm volatile("1:	mov %[cr4], %%cr4\n\t"
		     "xor %[faulted], %[faulted]\n"
		     "2:\n\t" _ASM_EXTABLE(1b, 2b)
		     : [faulted] "+r"(faulted) : [cr4] "r"(cr4 & ~(X86_CR4_PGE | CR4_CET)) : "memory");
	if (faulted)
		*(bool *)failed = true;
	else
		asm volatile("mov %0, %%cr4" : : "r"(cr4) : "memory");
	local_irq_restore(flags);
}

bool registers_cr4_works(void)
{
	bool failed = false;

	on_each_cpu(try_cr4, &failed, 1);
	return !failed;
}
