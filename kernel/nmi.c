// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Non-maskable interrupts that this module sends, to end a slice that takes too long, and to
 * pass those that came in the capsule on to the kernel.
 *
 * The kernel asks its handlers in turn whether their source needs service. One NMI may serve
 * several sources; the next NMI then has no owner, which the kernel reports, or panics over.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>
#include "module.h"

#define NAME			"cyclescope"
/* A virtual CPU may be paused for that long. */
#define TEST_PATIENCE_US	1000000

static struct {
	unsigned int cpu;
	/* It was sent, and no handler has taken it yet. */
	bool sent;
	/* The value of nmis_taken. */
	unsigned int taken;
	/* An NMI is being raised for the kernel; `taken` when its slice began. */
	bool again;
	unsigned int before;
	/* All NMIs of nmis_test arrived. */
	bool works;
} nmi;

/* Runs for every NMI on every CPU, after perf's handler, which was registered first. It must
 * not claim the NMIs of others. */
static notrace int cyclescope_handle_nmi(unsigned int type, struct pt_regs *regs)
{
	if (smp_processor_id() != READ_ONCE(nmi.cpu))
		return NMI_DONE;
	WRITE_ONCE(nmi.taken, nmi.taken + 1);
	records_after_nmi();
	if (!READ_ONCE(nmi.sent))
		return NMI_DONE;
	WRITE_ONCE(nmi.sent, false);
	return NMI_HANDLED;
}
NOKPROBE_SYMBOL(cyclescope_handle_nmi);

/* Runs if no handler has found a source. For the NMI that is raised again this is right only if
 * another one came before it, which served its source. */
static notrace int cyclescope_claim_nmi(unsigned int type, struct pt_regs *regs)
{
	if (smp_processor_id() != READ_ONCE(nmi.cpu) || !READ_ONCE(nmi.again))
		return NMI_DONE;
	return nmi.taken - nmi.before > 1 ? NMI_HANDLED : NMI_DONE;
}
NOKPROBE_SYMBOL(cyclescope_claim_nmi);

int nmis_init(void)
{
	int bad = register_nmi_handler(NMI_LOCAL, cyclescope_handle_nmi, 0, NAME);

	if (bad)
		return bad;
	bad = register_nmi_handler(NMI_UNKNOWN, cyclescope_claim_nmi, 0, NAME);
	if (bad)
		unregister_nmi_handler(NMI_LOCAL, NAME);
	return bad;
}

void nmis_exit(void)
{
	unregister_nmi_handler(NMI_UNKNOWN, NAME);
	unregister_nmi_handler(NMI_LOCAL, NAME);
}

void nmis_aim(unsigned int cpu)
{
	WRITE_ONCE(nmi.cpu, cpu);
	WRITE_ONCE(nmi.sent, false);
}

void nmis_send(void)
{
	/* A second NMI without a handler would be an unknown NMI to the kernel. */
	if (READ_ONCE(nmi.sent))
		return;
	WRITE_ONCE(nmi.sent, true);
	apic->send_IPI(nmi.cpu, NMI_VECTOR);
}

bool nmis_settle(unsigned int microseconds)
{
	unsigned int waited;

	for (waited = 0; READ_ONCE(nmi.sent) && waited < microseconds; waited += 10)
		udelay(10);
	return !READ_ONCE(nmi.sent);
}

static void cyclescope_send_nmi(void *unused)
{
	nmis_send();
}

static bool arrives_at(unsigned int cpu)
{
	unsigned int sender = cpumask_any_but(cpu_online_mask, cpu);
	bool arrived;

	if (sender >= nr_cpu_ids)
		return false;
	nmis_aim(cpu);
	if (smp_call_function_single(sender, cyclescope_send_nmi, NULL, 1))
		return false;
	arrived = nmis_settle(TEST_PATIENCE_US);
	WRITE_ONCE(nmi.sent, false);
	return arrived;
}

void nmis_test(void)
{
	unsigned int cpu;

	cpus_read_lock();
	nmi.works = true;
	for_each_online_cpu(cpu) {
		nmi.works = arrives_at(cpu);
		if (!nmi.works)
			break;
		cond_resched();
	}
	cpus_read_unlock();
}

bool nmis_works(void)
{
	return nmi.works;
}

notrace unsigned int nmis_taken(void)
{
	return READ_ONCE(nmi.taken);
}
NOKPROBE_SYMBOL(nmis_taken);

void nmis_raise_again(unsigned int before)
{
	unsigned int now = nmis_taken(), waited;

	nmi.before = before;
	WRITE_ONCE(nmi.again, true);
	/* A real one, because INT 2 would not block another one during the kernel's first
	 * steps. */
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
	for (waited = 0; nmis_taken() == now && waited < 1000; waited++)
		udelay(1);
	/* The NMI that was taken may have been another one, just before it. */
	udelay(10);
	WRITE_ONCE(nmi.again, false);
}
