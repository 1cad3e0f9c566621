// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The deadline: a timer on another CPU that sends an NMI to the CPU whose slice takes too long.
 *
 * It is a high-resolution timer, not one of the timer wheel: jiffies do not advance while the
 * CPU that counts them is in the capsule. It watches one run at a time.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/version.h>
#include "module.h"

/* Periods of the watching timer per deadline: a slice ends at most one period late. */
#define PERIODS_PER_DEADLINE	8
#define SHORTEST_PERIOD_NS	500000ull
/* Far longer than an NMI takes to reach its CPU. */
#define PATIENCE_US		10000

static struct {
	struct hrtimer timer;
	/* The watched CPU, and the watching one. */
	unsigned int cpu, watcher;
	u64 nanoseconds;
	/* When the slice began; 0 outside of slices. */
	u64 began;
	/* The current or last slice exceeded its deadline. */
	bool over;
} watch;

static ktime_t period(void)
{
	return ns_to_ktime(max(watch.nanoseconds / PERIODS_PER_DEADLINE, SHORTEST_PERIOD_NS));
}

static enum hrtimer_restart cyclescope_watch_slice(struct hrtimer *timer)
{
	u64 began = READ_ONCE(watch.began);

	if (began && ktime_get_mono_fast_ns() - began > watch.nanoseconds) {
		WRITE_ONCE(watch.over, true);
		nmis_send();
	}
	hrtimer_forward_now(timer, period());
	return HRTIMER_RESTART;
}

static void cyclescope_start_watch(void *unused)
{
	hrtimer_start(&watch.timer, period(), HRTIMER_MODE_REL_PINNED_HARD);
}

void deadline_init(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&watch.timer, cyclescope_watch_slice, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&watch.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	watch.timer.function = cyclescope_watch_slice;
#endif
}

bool deadline_possible(void)
{
	return nmis_works() && num_online_cpus() > 1;
}

int deadline_arm(unsigned int cpu, u32 microseconds)
{
	nmis_aim(cpu);
	watch.cpu = cpu;
	watch.watcher = deadline_possible() ? cpumask_any_but(cpu_online_mask, cpu) : nr_cpu_ids;
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
	/* The timers of an offline CPU moved elsewhere, perhaps to the watched CPU. */
	hrtimer_cancel(&watch.timer);
	return deadline_arm(watch.cpu, watch.nanoseconds / 1000);
}

void deadline_disarm(void)
{
	hrtimer_cancel(&watch.timer);
	/* A pending NMI must arrive during the run that expects it, not during the next run or
	 * in an unloaded module. */
	nmis_settle(PATIENCE_US);
	nmis_aim(watch.cpu);
}

notrace void deadline_slice_begins(void)
{
	WRITE_ONCE(watch.over, false);
	WRITE_ONCE(watch.began, ktime_get_mono_fast_ns());
}
NOKPROBE_SYMBOL(deadline_slice_begins);

notrace bool deadline_slice_ends(void)
{
	WRITE_ONCE(watch.began, 0);
	return READ_ONCE(watch.over);
}
NOKPROBE_SYMBOL(deadline_slice_ends);
