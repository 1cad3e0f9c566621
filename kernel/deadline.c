// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The deadline: a timer on another CPU that sends an NMI to the one whose slice takes too long.
 *
 * A high-resolution timer, not one of the timer wheel: jiffies do not advance while the CPU that counts them is in the
 * capsule. One run is watched at a time.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/smp.h>
#include <linux/version.h>
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>
#include "module.h"

static struct {
	struct hrtimer timer;
	/* The CPU that is watched, and the one that watches. */
	unsigned int cpu, watcher;
	u64 nanoseconds;
	/* When the slice began; 0 outside of slices. */
	u64 began;
	/* The NMI was sent and no handler has taken it yet. */
	bool sent;
	/* The slice that runs, or ran last, is over time. */
	bool over;
} watch;

static enum hrtimer_restart cyclescope_watch_slice(struct hrtimer *timer)
{
	u64 began = READ_ONCE(watch.began);

	if (began && ktime_get_mono_fast_ns() - began > watch.nanoseconds) {
		WRITE_ONCE(watch.over, true);
		/* One at a time: a second that no handler expects would be an unknown NMI to the kernel. */
		if (!READ_ONCE(watch.sent)) {
			WRITE_ONCE(watch.sent, true);
			apic->send_IPI(watch.cpu, NMI_VECTOR);
		}
	}
	hrtimer_forward_now(timer, ns_to_ktime(watch.nanoseconds / 2));
	return HRTIMER_RESTART;
}

static void cyclescope_start_watch(void *unused)
{
	hrtimer_start(&watch.timer, ns_to_ktime(watch.nanoseconds / 2), HRTIMER_MODE_REL_PINNED_HARD);
}

/* Receives this module's NMIs, those that ended a slice and late ones; NMIs of others must not be claimed. */
static int cyclescope_handle_nmi(unsigned int type, struct pt_regs *regs)
{
	if (smp_processor_id() == READ_ONCE(watch.cpu) && READ_ONCE(watch.sent)) {
		WRITE_ONCE(watch.sent, false);
		return NMI_HANDLED;
	}
	return NMI_DONE;
}

int deadline_init(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&watch.timer, cyclescope_watch_slice, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&watch.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	watch.timer.function = cyclescope_watch_slice;
#endif
	return register_nmi_handler(NMI_LOCAL, cyclescope_handle_nmi, 0, "cyclescope");
}

void deadline_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "cyclescope");
}

bool deadline_possible(void)
{
	return num_online_cpus() > 1;
}

int deadline_arm(unsigned int cpu, u32 microseconds)
{
	watch.cpu = cpu;
	watch.watcher = cpumask_any_but(cpu_online_mask, cpu);
	watch.nanoseconds = microseconds * 1000ull;
	WRITE_ONCE(watch.began, 0);
	if (watch.watcher >= nr_cpu_ids)
		return -EOPNOTSUPP;
	return smp_call_function_single(watch.watcher, cyclescope_start_watch, NULL, 1);
}

int deadline_keep(void)
{
	if (watch.watcher >= nr_cpu_ids || cpu_online(watch.watcher))
		return 0;
	/* Its timers went elsewhere, perhaps to the CPU that is watched. */
	hrtimer_cancel(&watch.timer);
	return deadline_arm(watch.cpu, watch.nanoseconds / 1000);
}

void deadline_disarm(void)
{
	int patience = 1000;

	hrtimer_cancel(&watch.timer);
	/* A pending NMI must meet the run that expects it, not the next run's record or an unloaded module. */
	while (READ_ONCE(watch.sent) && patience--)
		udelay(10);
	WRITE_ONCE(watch.sent, false);
}

void deadline_slice_begins(void)
{
	WRITE_ONCE(watch.over, false);
	WRITE_ONCE(watch.began, ktime_get_mono_fast_ns());
}

bool deadline_slice_ends(void)
{
	WRITE_ONCE(watch.began, 0);
	return READ_ONCE(watch.over);
}
