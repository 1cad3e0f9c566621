/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Markers: instrumentation sites in ordinary kernel code, measured as the kernel's own compiler
 * makes them.
 *
 * A design is one way to build a site that can be switched on and off; a code is one function,
 * a loop around one site.
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

/* One for each file of a design. Running its codes and switching them hold the same lock. */
struct marker_design {
	const char *name;
	const struct marker_code *codes;
	u32 count;
	/* Connects a probe to all sites, or disconnects it for CYCLESCOPE_PROBE_DORMANT. A
	 * second probe is connected only after that. May sleep; disconnecting can't fail. NULL
	 * if there is nothing to switch. If sites find their probe through a pointer, the last
	 * probe stays connected while they are off. Counting no calls then proves that they
	 * don't call it. */
	int (*connect)(u32 probe);
};

/* The function that sites call. */
typedef void marker_probe(const char *format, ...);
/* NULL if the kernel takes no probe of this kind; the dormant one always is. */
extern marker_probe *const marker_probes[CYCLESCOPE_PROBE_COUNTING + 1];
/* Calls of the counting probes. */
extern u64 marker_hits;

/* Source and target of the memcpy contexts. They are pointers: with known addresses the
 * compiler would prepare more before the loop, and move it. */
extern u8 *marker_to, *marker_from;

/* Keeps the compiler from dropping a probe's arguments. */
#define MARKER_TAKE(value)	asm volatile("" : : "r"(value))

#endif
