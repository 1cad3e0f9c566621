// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Performance events of a run: opened before its first slice, read around each, closed after the
 * last.
 *
 * The kernel programs the counters, as it does for perf. Each event is pinned to its counter: it
 * counts all the time, or is an error. Events count everything in ring 0 on their CPU; only
 * what they count in slices is kept.
 */
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "module.h"

static bool is_counting(const struct perf_event *event, u32 cpu)
{
	return READ_ONCE(event->state) == PERF_EVENT_STATE_ACTIVE && READ_ONCE(event->oncpu) == (int)cpu;
}

/* Opens an event on a CPU. EBUSY if no counter is free. */
static struct perf_event *open_event(const struct cyclescope_event *wanted, u32 cpu)
{
	struct perf_event_attr attributes = {
		.type = wanted->type,
		.size = sizeof(attributes),
		.config = wanted->config,
		.config1 = wanted->config1,
		.config2 = wanted->config2,
		.pinned = 1,
		.exclude_user = 1,
		.exclude_hv = 1,
	};
	struct perf_event *event;

	/* It would use the debug registers, which are off in slices. */
	if (wanted->reserved || wanted->type == PERF_TYPE_BREAKPOINT)
		return ERR_PTR(-EINVAL);
	event = perf_event_create_kernel_counter(&attributes, cpu, NULL, NULL, NULL);
	if (IS_ERR(event) || is_counting(event, cpu))
		return event;
	perf_event_release_kernel(event);
	return ERR_PTR(-EBUSY);
}

/* Opens events until one does not count. Returns its error. */
static int open_events(struct run_events *events, const struct cyclescope_event *list, u32 count, u32 cpu)
{
	memset(events, 0, sizeof(*events));
	for (; events->count < count; events->count++) {
		struct perf_event *event = open_event(list + events->count, cpu);

		if (IS_ERR(event))
			return PTR_ERR(event);
		events->open[events->count] = event;
	}
	return 0;
}

int events_open(struct run_events *events, const struct cyclescope_run *run)
{
	struct cyclescope_event list[CYCLESCOPE_MOST_EVENTS];

	events->count = 0;
	if (run->events > CYCLESCOPE_MOST_EVENTS)
		return -EINVAL;
	if (copy_from_user(list, u64_to_user_ptr(run->event_list), run->events * sizeof(*list)))
		return -EFAULT;
	return open_events(events, list, run->events, run->cpu);
}

void events_close(struct run_events *events)
{
	while (events->count)
		perf_event_release_kernel(events->open[--events->count]);
}

/* Reads the counts, on the events' CPU, with interrupts off. The kernel's own functions for that
 * sleep or are not exported. */
static void read_counts(struct run_events *events, u64 counts[])
{
	u32 index;

	for (index = 0; index < events->count; index++) {
		struct perf_event *event = events->open[index];

		events->lost |= !is_counting(event, smp_processor_id());
		if (events->lost)
			return;
		event->pmu->read(event);
		counts[index] = local64_read(&event->count);
	}
}

void events_slice_begins(struct run_events *events)
{
	read_counts(events, events->before);
}

void events_slice_ends(struct run_events *events)
{
	read_counts(events, events->after);
}

void events_keep_slice(struct run_events *events)
{
	u32 index;

	for (index = 0; index < events->count; index++)
		events->counts[index] += events->after[index] - events->before[index];
}

/* Whether the events were on their counters all the time. */
static bool always_counted(struct run_events *events)
{
	u64 enabled, running;
	u32 index;

	for (index = 0; index < events->count && !events->lost; index++) {
		perf_event_read_value(events->open[index], &enabled, &running);
		events->lost = enabled != running;
	}
	return !events->lost;
}

int events_report(struct run_events *events, const struct cyclescope_run *run)
{
	struct cyclescope_event __user *list = u64_to_user_ptr(run->event_list);
	u32 index;

	if (!always_counted(events))
		return -ENODATA;
	for (index = 0; index < events->count; index++)
		if (put_user(events->counts[index], &list[index].count))
			return -EFAULT;
	return 0;
}

long events_try(void __user *user)
{
	struct cyclescope_event list[CYCLESCOPE_MOST_EVENTS];
	struct cyclescope_event_trial trial;
	struct run_events events;

	if (copy_from_user(&trial, user, sizeof(trial)))
		return -EFAULT;
	if (trial.size != sizeof(trial) || trial.version != CYCLESCOPE_VERSION || trial.flags ||
	    !trial.events || trial.events > CYCLESCOPE_MOST_EVENTS)
		return -EINVAL;
	if (trial.cpu >= nr_cpu_ids || !cpu_online(trial.cpu))
		return -ESTALE;
	if (copy_from_user(list, u64_to_user_ptr(trial.event_list), trial.events * sizeof(*list)))
		return -EFAULT;
	trial.error = -open_events(&events, list, trial.events, trial.cpu);
	trial.fitting = events.count;
	events_close(&events);
	return copy_to_user(user, &trial, sizeof(trial)) ? -EFAULT : 0;
}
