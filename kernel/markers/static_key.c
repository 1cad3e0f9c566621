// SPDX-License-Identifier: MIT OR GPL-2.0
/* A static key: a NOP that the kernel overwrites with a jump. */
#include <linux/cache.h>
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include "marker.h"

static DEFINE_STATIC_KEY_FALSE(enabled);
static marker_probe *probe __read_mostly;

#define DESIGN			static_key
#define SITE_bare(name)		do { if (static_branch_unlikely(&enabled)) CALL_PROBE; } while (0)
#define SITE_preemption(name)	do { if (static_branch_unlikely(&enabled)) CALL_PROBE_GUARDED; } while (0)
#define SITE_interrupts(name)	do { if (static_branch_unlikely(&enabled)) CALL_PROBE_UNINTERRUPTED; } while (0)
#include "codes.h"

static int connect(u32 number)
{
	if (number == CYCLESCOPE_PROBE_DORMANT) {
		static_branch_disable(&enabled);
		return 0;
	}
	probe = marker_probes[number];
	static_branch_enable(&enabled);
	return 0;
}

DEFINE_MARKER(static_key, "static-key", connect);
