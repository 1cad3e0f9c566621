// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The CPU's state around a slice: what measured code may change and page tables do not protect.
 *
 * Raw instructions throughout: the kernel's own accessors keep shadows, which must not see
 * temporary values.
 */
#include <linux/kprobes.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/msr-index.h>
#include <asm/processor-flags.h>
#include "module.h"

/* No breakpoint; bit 10 reads as one (Intel SDM vol. 3B, 18.2.4). */
#define DR7_NONE	0x400

#define REGISTER(name) \
	static __always_inline u64 get_##name(void) \
	{ \
		u64 value; \
		asm volatile("mov %%" #name ", %0" : "=r"(value) : : "memory"); \
		return value; \
	} \
	static __always_inline void set_##name(u64 value) \
	{ \
		asm volatile("mov %0, %%" #name : : "r"(value) : "memory"); \
	}
REGISTER(cr0)
REGISTER(cr2)
REGISTER(cr8)
REGISTER(db0)
REGISTER(db1)
REGISTER(db2)
REGISTER(db3)
REGISTER(db6)
REGISTER(db7)

static __always_inline u64 get_cr4(void)
{
	u64 value;

	asm volatile("mov %%cr4, %0" : "=r"(value) : : "memory");
	return value;
}

static __always_inline u64 get_xcr0(void)
{
	u32 low, high;

	asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low | (u64)high << 32;
}

static __always_inline void set_xcr0(u64 value)
{
	asm volatile("xsetbv" : : "c"(0), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
}

static __always_inline u32 get_pkru(void)
{
	u32 value, high;

	asm volatile("rdpkru" : "=a"(value), "=d"(high) : "c"(0));
	return value;
}

static __always_inline void set_pkru(u32 value)
{
	asm volatile("wrpkru" : : "a"(value), "c"(0), "d"(0) : "memory");
}

static notrace void cyclescope_read_cpu_state(struct cpu_state *state)
{
	memset(state, 0, sizeof(*state));
	state->cr0 = get_cr0();
	state->cr2 = get_cr2();
	state->cr4 = get_cr4();
	state->cr8 = get_cr8();
	state->debug[0] = get_db0();
	state->debug[1] = get_db1();
	state->debug[2] = get_db2();
	state->debug[3] = get_db3();
	state->dr6 = get_db6();
	state->dr7 = get_db7();
	state->fs_base = get_msr(MSR_FS_BASE);
	state->gs_base = get_msr(MSR_GS_BASE);
	state->kernel_gs_base = get_msr(MSR_KERNEL_GS_BASE);
	if (registers.tsc_aux)
		state->tsc_aux = get_msr(MSR_TSC_AUX);
	if (registers.lbr)
		state->lbr_control = get_msr(MSR_ARCH_LBR_CTL);
	if (boot_cpu_has(X86_FEATURE_OSXSAVE))
		state->xcr0 = get_xcr0();
	if (state->cr4 & X86_CR4_PKE)
		state->pkru = get_pkru();
	asm volatile("mov %%ds, %0" : "=r"(state->ds));
	asm volatile("mov %%es, %0" : "=r"(state->es));
	asm volatile("mov %%fs, %0" : "=r"(state->fs));
	asm volatile("mov %%gs, %0" : "=r"(state->gs));
	asm volatile("sldt %0" : "=m"(state->ldt));
	asm volatile("str %0" : "=m"(state->task));
	asm volatile("sgdt %0" : "=m"(state->gdt));
	asm volatile("sidt %0" : "=m"(state->idt));
}
NOKPROBE_SYMBOL(cyclescope_read_cpu_state);

notrace void cpu_state_save(struct cpu_state *state)
{
	cyclescope_read_cpu_state(state);
	/* A debugger's breakpoint must not fire in the capsule, which has no handler for it. */
	set_db7(DR7_NONE);
}
NOKPROBE_SYMBOL(cpu_state_save);

/* XSAVES turns recording off when it saves the records (Intel SDM vol. 1, 13.11). Other
 * differences are perf's. */
static __always_inline bool xsaves_stopped_lbr(const struct cpu_state *now, const struct cpu_state *before)
{
	return before->lbr_control & ARCH_LBR_CTL_LBREN && now->lbr_control == (before->lbr_control & ~ARCH_LBR_CTL_LBREN);
}

/* Writes only what differs: some of these writes take hundreds of cycles, or an exit from a
 * virtual machine. */
notrace u32 cpu_state_restore(const struct cpu_state *state)
{
	struct cpu_state now;
	u32 changed = 0;

	cyclescope_read_cpu_state(&now);
	if (now.cr0 != state->cr0) {
		set_cr0(state->cr0);
		changed |= CYCLESCOPE_CHANGED_CR0;
	}
	/* Not reported: CR2 changes with each page fault. */
	if (now.cr2 != state->cr2)
		set_cr2(state->cr2);
	if (now.cr8 != state->cr8) {
		set_cr8(state->cr8);
		changed |= CYCLESCOPE_CHANGED_CR8;
	}
	if (memcmp(now.debug, state->debug, sizeof(now.debug)) || now.dr6 != state->dr6 ||
	    now.dr7 != DR7_NONE) {
		set_db0(state->debug[0]);
		set_db1(state->debug[1]);
		set_db2(state->debug[2]);
		set_db3(state->debug[3]);
		set_db6(state->dr6);
		changed |= CYCLESCOPE_CHANGED_DEBUG;
	}
	if (state->dr7 != DR7_NONE)
		set_db7(state->dr7);
	/* enter.S has loaded CR4, the flags, DS, ES, GS and its base. Loading a selector
	 * changes its base, so the bases come after. */
	if (now.fs != state->fs) {
		asm volatile("mov %0, %%fs" : : "r"((u32)state->fs));
		changed |= CYCLESCOPE_CHANGED_SEGMENTS;
	}
	if (now.fs != state->fs || now.fs_base != state->fs_base) {
		set_msr(MSR_FS_BASE, state->fs_base);
		changed |= CYCLESCOPE_CHANGED_BASES;
	}
	if (now.kernel_gs_base != state->kernel_gs_base) {
		set_msr(MSR_KERNEL_GS_BASE, state->kernel_gs_base);
		changed |= CYCLESCOPE_CHANGED_BASES;
	}
	if (now.tsc_aux != state->tsc_aux) {
		set_msr(MSR_TSC_AUX, state->tsc_aux);
		changed |= CYCLESCOPE_CHANGED_TSC_AUX;
	}
	if (xsaves_stopped_lbr(&now, state))
		set_msr(MSR_ARCH_LBR_CTL, state->lbr_control);
	if (now.xcr0 != state->xcr0) {
		set_xcr0(state->xcr0);
		changed |= CYCLESCOPE_CHANGED_XCR0;
	}
	if (now.pkru != state->pkru) {
		set_pkru(state->pkru);
		changed |= CYCLESCOPE_CHANGED_PKRU;
	}
	if (memcmp(&now.gdt, &state->gdt, sizeof(now.gdt)) || memcmp(&now.idt, &state->idt, sizeof(now.idt))) {
		asm volatile("lgdt %0" : : "m"(state->gdt));
		asm volatile("lidt %0" : : "m"(state->idt));
		changed |= CYCLESCOPE_CHANGED_TABLES;
	}
	if (now.ldt != state->ldt) {
		asm volatile("lldt %0" : : "m"(state->ldt));
		changed |= CYCLESCOPE_CHANGED_TABLES;
	}
	/* The task register can't be reloaded without a write to the table, so a change is only
	 * reported. */
	if (now.task != state->task)
		changed |= CYCLESCOPE_CHANGED_TABLES;
	return changed;
}
NOKPROBE_SYMBOL(cpu_state_restore);
