// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Tests the module's part for records (PEBS and branch traces) with simulated registers, which
 * emulators lack, and a simulated perf, whose NMI switches them between any two accesses. A
 * failure is reported, and this module does not load.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/preempt.h>
#include "tested/module.h"

static u64 imitated_get_msr(u32 number);
static void imitated_set_msr(u32 number, u64 value);
#define get_msr	imitated_get_msr
#define set_msr	imitated_set_msr
#include "tested/records.c"

struct registers registers = { .pebs = true, .branch_traces = true };

/* A bit of the same register that is not switched, but belongs to others (LBR). */
#define OTHERS	1

struct setting {
	u64 pebs, control;
};

static const struct setting settings[] = {
	{ 0, 0 }, { 1, OTHERS }, { 0, BRANCH_TRACES }, { 3, OTHERS | BRANCH_TRACES }, { 4, BRANCH_TRACES },
};

static struct {
	struct setting now, wanted, by_nmi;
	/* Accesses left until the NMI, which comes once. */
	int left;
	bool in_nmi, restoring;
	/* The register of the last read; 0 after a write. */
	u32 read;
	/* perf's NMI came between a read and the write that follows from it: the older setting
	 * that may be written. */
	struct setting excused;
} machine;

/* Before an access to a register, or at no access. */
static void take_nmi(u32 written)
{
	if (machine.in_nmi || machine.left-- != 0)
		return;
	if (written && written == machine.read)
		machine.excused = machine.restoring ? (struct setting){ ~0ull, ~0ull } : (struct setting){ 0, OTHERS };
	machine.in_nmi = true;
	machine.now = machine.wanted = machine.by_nmi;
	records_after_nmi();
	machine.in_nmi = false;
}

static u64 imitated_get_msr(u32 number)
{
	take_nmi(0);
	if (!machine.in_nmi)
		machine.read = number;
	return number == MSR_IA32_PEBS_ENABLE ? machine.now.pebs : machine.now.control;
}

static void imitated_set_msr(u32 number, u64 value)
{
	take_nmi(number);
	if (!machine.in_nmi)
		machine.read = 0;
	if (number == MSR_IA32_PEBS_ENABLE)
		machine.now.pebs = value;
	else
		machine.now.control = value;
}

/* Runs one slice. Returns whether the NMI came. */
static bool slice(const struct setting *before, const struct setting *by_nmi, int left, int *bad)
{
	machine = (typeof(machine)){ .now = *before, .wanted = *before, .by_nmi = *by_nmi, .left = left };
	records_stop();
	take_nmi(0);
	if (machine.now.pebs || machine.now.control & BRANCH_TRACES) {
		pr_err("on in the slice: %llx, %llx\n", machine.now.pebs, machine.now.control);
		*bad = -EINVAL;
	}
	machine.restoring = true;
	machine.read = 0;
	records_restore();
	take_nmi(0);
	/* The module can't see what perf switched off while it was off. */
	if (!by_nmi->pebs || !(by_nmi->control & BRANCH_TRACES))
		return machine.left < 0;
	if ((machine.now.pebs ^ machine.wanted.pebs) & ~machine.excused.pebs ||
	    (machine.now.control ^ machine.wanted.control) & ~machine.excused.control) {
		pr_err("NMI %d accesses on: %llx, %llx where perf wants %llx, %llx\n", left, machine.now.pebs,
		       machine.now.control, machine.wanted.pebs, machine.wanted.control);
		*bad = -EINVAL;
	}
	return machine.left < 0;
}

static int __init imitator_begin(void)
{
	unsigned int before, by_nmi, slices = 0;
	int left, bad = 0;

	preempt_disable();
	for (before = 0; before < ARRAY_SIZE(settings); before++)
		for (by_nmi = 0; by_nmi < ARRAY_SIZE(settings); by_nmi++)
			for (left = 0; slice(&settings[before], &settings[by_nmi], left, &bad); left++)
				slices++;
	preempt_enable();
	pr_info("%u slices\n", slices);
	return bad;
}

static void __exit imitator_end(void)
{
}

module_init(imitator_begin);
module_exit(imitator_end);

MODULE_DESCRIPTION("Tests cyclescope's module with imitated registers");
MODULE_LICENSE("Dual MIT/GPL");
