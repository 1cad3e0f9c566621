// SPDX-License-Identifier: MIT OR GPL-2.0
/* A flag in memory: load, test, branch. */
#include <linux/cache.h>
#include <linux/kernel.h>
#include "marker.h"

static bool enabled __read_mostly;
static marker_probe *probe __read_mostly;

#define DESIGN			flag
#define SITE_bare(name)		do { if (unlikely(READ_ONCE(enabled))) CALL_PROBE; } while (0)
#define SITE_preemption(name)	do { if (unlikely(READ_ONCE(enabled))) CALL_PROBE_GUARDED; } while (0)
#define SITE_interrupts(name)	do { if (unlikely(READ_ONCE(enabled))) CALL_PROBE_UNINTERRUPTED; } while (0)
#include "codes.h"

static int connect(u32 number)
{
	if (number != CYCLESCOPE_PROBE_DORMANT)
		probe = marker_probes[number];
	WRITE_ONCE(enabled, number != CYCLESCOPE_PROBE_DORMANT);
	return 0;
}

DEFINE_MARKER(flag, "flag", connect);
