// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * One run of markers: rounds of calls in slices, each call timed.
 *
 * The codes belong to the module and end by themselves, so there is no capsule and no deadline.
 * The iterations limit the duration of a round. Interrupts are off during a slice and let in
 * between two slices. Codes whose guard turns them off around each call of the probe let them
 * in elsewhere too.
 */
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/nmi.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>
#include "markers/marker.h"
#include "module.h"

/* Samples between two slices: several rounds of most calls. */
#define MOST_SAMPLES	4096
static_assert(MOST_SAMPLES >= CYCLESCOPE_MARKER_MOST_CALLS);

struct timed_call {
	void (*run)(u32 loops);
	u32 loops;
};

struct batch {
	struct timed_call calls[CYCLESCOPE_MARKER_MOST_CALLS];
	struct cyclescope_sample samples[MOST_SAMPLES];
	u64 random;
	/* Finished rounds, including the warm-up. */
	u64 round;
};

static void (*const rulers[])(u32 loops) = {
	[CYCLESCOPE_RULER_IMUL_SHORT - CYCLESCOPE_RULER_IMUL_SHORT] = ruler_imul_short,
	[CYCLESCOPE_RULER_IMUL_LONG - CYCLESCOPE_RULER_IMUL_SHORT] = ruler_imul_long,
	[CYCLESCOPE_RULER_ADD_SHORT - CYCLESCOPE_RULER_IMUL_SHORT] = ruler_add_short,
	[CYCLESCOPE_RULER_ADD_LONG - CYCLESCOPE_RULER_IMUL_SHORT] = ruler_add_long,
	[CYCLESCOPE_RULER_SENTINEL - CYCLESCOPE_RULER_IMUL_SHORT] = ruler_sentinel,
};

static int check(const struct cyclescope_marker_run *run)
{
	if (run->flags || !run->delay || run->delay > CYCLESCOPE_MARKER_MOST_DELAY || !run->total_ms)
		return -EINVAL;
	if (!run->calls || run->calls > CYCLESCOPE_MARKER_MOST_CALLS)
		return -EINVAL;
	if (!run->rounds || run->warm_up > S32_MAX || run->rounds > S32_MAX)
		return -EINVAL;
	if (!run->slice_us || run->slice_us > CYCLESCOPE_MARKER_LONGEST_SLICE_US)
		return -EINVAL;
	return 0;
}

/* Finds the function of a call. Returns the weight of one of its iterations, 0 if the code does
 * not exist. */
static u32 resolve(u32 number, struct timed_call *call)
{
	const struct marker_code *code;
	u32 ruler = number - CYCLESCOPE_RULER_IMUL_SHORT;

	if (ruler < ARRAY_SIZE(rulers)) {
		call->run = rulers[ruler];
		return 1;
	}
	code = marker_code(number);
	if (!code)
		return 0;
	call->run = code->run;
	return code->around == CYCLESCOPE_AROUND_MEMCPY ? CYCLESCOPE_MARKER_COPY_WEIGHT : 1;
}

static int take_calls(struct batch *batch, const struct cyclescope_marker_run *run)
{
	struct cyclescope_marker_call __user *list = u64_to_user_ptr(run->call_list);
	u64 work = 0;
	u32 index;

	for (index = 0; index < run->calls; index++) {
		struct cyclescope_marker_call call;
		u32 weight;

		if (copy_from_user(&call, list + index, sizeof(call)))
			return -EFAULT;
		weight = resolve(call.code, &batch->calls[index]);
		work += (u64)call.loops * weight;
		if (!weight || !call.loops || work > CYCLESCOPE_MARKER_MOST_WORK)
			return -EINVAL;
		batch->calls[index].loops = call.loops;
	}
	return 0;
}

static __always_inline u64 read_clock(void)
{
	u32 low, high;

	/* The first fence waits for everything before; the second one holds back everything
	 * after. */
	asm volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return low | (u64)high << 32;
}

/* Keeps rounds from synchronizing with a clock that counts in steps; as in enter.S. */
static void wait(struct batch *batch, u32 most)
{
	u64 turns;

	batch->random ^= batch->random << 13;
	batch->random ^= batch->random >> 7;
	batch->random ^= batch->random << 17;
	turns = ((batch->random >> 32) * most >> 32) + 1;
	asm volatile("1:	dec %0\n\tjnz 1b" : "+r"(turns));
}

static void run_round(struct batch *batch, const struct cyclescope_marker_run *run, struct cyclescope_sample *samples)
{
	u32 index;

	for (index = 0; index < run->calls; index++) {
		const struct timed_call *call = &batch->calls[index];

		wait(batch, run->delay);
		samples[index].start = read_clock();
		call->run(call->loops);
		samples[index].end = read_clock();
		/* Codes may have let interrupts in. */
		local_irq_disable();
	}
}

/* Runs one slice, if this is the requested CPU. Returns the number of timed samples. */
static int run_slice(struct batch *batch, const struct cyclescope_marker_run *run)
{
	u64 rounds = (u64)run->warm_up + run->rounds, end;
	unsigned long flags;
	int kept = 0;

	/* Interrupts that are let in must not take the CPU away. */
	preempt_disable();
	local_irq_save(flags);
	if (smp_processor_id() != run->cpu) {
		kept = -ESTALE;
	} else {
		end = read_clock() + (u64)tsc_khz * run->slice_us / 1000;
		do {
			run_round(batch, run, batch->samples + kept);
			if (batch->round >= run->warm_up)
				kept += run->calls;
			batch->round++;
		} while (batch->round < rounds && kept + run->calls <= MOST_SAMPLES && read_clock() < end);
	}
	local_irq_restore(flags);
	preempt_enable();
	touch_softlockup_watchdog();
	cond_resched();
	return kept;
}

static long run_rounds(struct batch *batch, struct cyclescope_marker_run *run)
{
	struct cyclescope_sample __user *samples = u64_to_user_ptr(run->samples);
	u64 rounds = (u64)run->warm_up + run->rounds, began = ktime_get_ns();

	marker_hits = 0;
	while (batch->round < rounds && ktime_get_ns() - began < run->total_ms * 1000000ull) {
		int kept;

		/* Restarts if the signal's handler allows it. */
		if (signal_pending(current))
			return -ERESTARTSYS;
		kept = run_slice(batch, run);
		if (kept < 0)
			return kept;
		if (copy_to_user(samples, batch->samples, kept * sizeof(*samples)))
			return -EFAULT;
		samples += kept;
		run->rounds_done += kept / run->calls;
		run->slices++;
	}
	run->hits = marker_hits;
	return 0;
}

long markers_run(struct cyclescope_marker_run *run)
{
	struct batch *batch;
	long bad = check(run);

	if (bad)
		return bad;
	batch = kvzalloc(sizeof(*batch), GFP_KERNEL_ACCOUNT);
	if (!batch)
		return -ENOMEM;
	/* A state of zero would stay zero. */
	batch->random = run->seed | 1;
	run->rounds_done = 0;
	run->slices = 0;
	bad = take_calls(batch, run) ?: run_rounds(batch, run);
	kvfree(batch);
	return bad;
}
