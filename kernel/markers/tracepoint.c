// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * A tracepoint, as any module can define one: a static key in front of a call that knows its
 * listeners.
 *
 * It has a prototype and no format string, so its probes are its own. It defines no trace
 * event, and only this module can register a probe.
 */
#include <linux/kernel.h>
#include <linux/tracepoint.h>
#include "marker.h"

/* Since 6.16 DECLARE_TRACE appends _tp to the name, and another macro doesn't. */
#ifdef DECLARE_TRACE_EVENT
#define DECLARE	DECLARE_TRACE_EVENT
#else
#define DECLARE	DECLARE_TRACE
#endif
DECLARE(cyclescope_marker, TP_PROTO(int number, void *pointer), TP_ARGS(number, pointer));
DEFINE_TRACE(cyclescope_marker, TP_PROTO(int number, void *pointer), TP_ARGS(number, pointer));

#define DESIGN			tracepoint
#define SITE_own(name)		trace_cyclescope_marker(1, NULL)
#include "codes.h"

typedef void traced(void *data, int number, void *pointer);

static void empty(void *data, int number, void *pointer)
{
}

static void direct(void *data, int number, void *pointer)
{
	MARKER_TAKE(number);
	MARKER_TAKE(pointer);
}

static void counting(void *data, int number, void *pointer)
{
	marker_hits++;
}

static traced *const probes[] = {
	[CYCLESCOPE_PROBE_EMPTY] = empty,
	[CYCLESCOPE_PROBE_DIRECT] = direct,
	[CYCLESCOPE_PROBE_COUNTING] = counting,
};
static traced *connected;

static int connect(u32 number)
{
	int bad;

	if (number == CYCLESCOPE_PROBE_DORMANT) {
		unregister_trace_cyclescope_marker(connected, NULL);
		tracepoint_synchronize_unregister();
		return 0;
	}
	if (!probes[number])
		return -EOPNOTSUPP;
	bad = register_trace_cyclescope_marker(probes[number], NULL);
	if (!bad)
		connected = probes[number];
	return bad;
}

DEFINE_MARKER(tracepoint, "tracepoint", connect);
