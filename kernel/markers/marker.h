/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Markers: instrumentation sites in ordinary kernel code, to be measured as the kernel's own compiler makes them.
 *
 * A design is one way to build a site that can be off and on; a code is one function, a loop around one site.
 */
#ifndef CYCLESCOPE_MARKER_H
#define CYCLESCOPE_MARKER_H

#include <linux/types.h>
#include <cyclescope.h>

struct marker_code {
	void (*run)(u32 loops);
	/* As in struct cyclescope_marker_code. */
	u8 guard, around, placement;
};

/* One for each file of a design. What runs its codes holds the same lock as what switches it. */
struct marker_design {
	const char *name;
	const struct marker_code *codes;
	u32 count;
	/* Puts a probe behind all sites, or takes the last one away where it is CYCLESCOPE_PROBE_DORMANT. Not called for
	 * a second probe before that. May sleep; taking away can't fail. NULL where there is nothing to switch.
	 * Where sites find their probe through a pointer, the last one stays behind sites that are off: that one which
	 * counts counts nothing then proves that they don't call. */
	int (*connect)(u32 probe);
};

/* What sites call. */
typedef void marker_probe(const char *format, ...);
/* NULL where the kernel takes none of this kind; the dormant one is. */
extern marker_probe *const marker_probes[CYCLESCOPE_PROBE_COUNTING + 1];
/* Calls of the counting probes. */
extern u64 marker_hits;

/* What the memcpy contexts copy; by pointers, since of addresses that it knows the compiler would prepare more before the
 * loop, and move it. */
extern u8 *marker_to, *marker_from;

/* Keeps the compiler from dropping what a probe takes. */
#define MARKER_TAKE(value)	asm volatile("" : : "r"(value))

#endif
