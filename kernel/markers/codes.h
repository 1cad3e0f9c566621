/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The codes of one design: include once per file, after DESIGN and the design's sites, each a
 * statement:
 *
 *   DESIGN                  its name
 *   SITE_bare(name)         the probe is called without a guard; `name` is the function's
 *   SITE_preemption(name)   with preemption off
 *   SITE_own(name)          with the kernel's own guard
 *   SITE_interrupts(name)   with interrupts off, and on after it
 *
 * A code is a function whose loop begins `placement` bytes after a cache line's start. Two
 * codes of one placement, with and without a site, have their loops at the same place, so that
 * their difference is the site's cost.
 */
#include <linux/compiler.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include "marker.h"

/* As in the markers of the first paper, which also called through a pointer. */
#define CALL_PROBE		probe("%d %p", 1, NULL)
#define CALL_PROBE_GUARDED	do { preempt_disable(); CALL_PROBE; preempt_enable(); } while (0)

#define CALL_PROBE_UNINTERRUPTED do { local_irq_disable(); CALL_PROBE; local_irq_enable(); } while (0)

#define GUARD_bare		CYCLESCOPE_GUARD_BARE
#define GUARD_preemption	CYCLESCOPE_GUARD_PREEMPTION
#define GUARD_own		CYCLESCOPE_GUARD_OWN
#define GUARD_interrupts	CYCLESCOPE_GUARD_INTERRUPTS
#define AROUND_nothing		CYCLESCOPE_AROUND_NOTHING
#define AROUND_memcpy		CYCLESCOPE_AROUND_MEMCPY

/* The barrier keeps a loop without work, and makes the site check again in each iteration. */
#define WORK_nothing		barrier()
#define WORK_memcpy		do { memcpy(marker_to, marker_from, CYCLESCOPE_MARKER_COPIED); barrier(); } while (0)

/* GCC rotates a loop so that it ends with the likeliest exit, and takes an unlikely() branch,
 * at 10 %, for one. A likelier branch keeps the loop's start at its place. */
#define AGAIN(condition)	__builtin_expect_with_probability(!!(condition), 1, 0.85)

#define NAME_OF(design, guard, around, placement)	design##_##guard##_##around##_##placement
#define EXPANDED(design, guard, around, placement)	NAME_OF(design, guard, around, placement)
#define NAME(guard, around, placement)			EXPANDED(DESIGN, guard, around, placement)

/* Neither inlined nor cloned, because the assembler's code contains the function's name. Not
 * traced, because tracing would change its first bytes. The counter passes through the padding,
 * so that nothing comes between padding and loop. */
#define CODE(guard, around, placement)									\
	static noinline notrace __noclone __aligned(64)						\
	void NAME(guard, around, placement)(u32 loops)							\
	{												\
		asm volatile(".balign 64\n\t.rept " #placement "\n\tnop\n\t.endr" : "+r"(loops));	\
		do {											\
			SITE_##guard(NAME(guard, around, placement));					\
			WORK_##around;									\
		} while (AGAIN(--loops));								\
	}

#define ROW(guard, around, placement)		ROW_OF(NAME(guard, around, placement), guard, around, placement)
#define ROW_OF(name, guard, around, placement)	ROW_EXPANDED(name, guard, around, placement)
#define ROW_EXPANDED(name, guard, around, placement) \
	{ name, GUARD_##guard, AROUND_##around, placement },

/* Every fourth byte of a cache line. */
#define PLACED(make, guard, around)									\
	make(guard, around, 0) make(guard, around, 4) make(guard, around, 8) make(guard, around, 12)	\
	make(guard, around, 16) make(guard, around, 20) make(guard, around, 24) make(guard, around, 28)	\
	make(guard, around, 32) make(guard, around, 36) make(guard, around, 40) make(guard, around, 44)	\
	make(guard, around, 48) make(guard, around, 52) make(guard, around, 56) make(guard, around, 60)

#ifdef SITE_bare
#define ALL_BARE(make)		PLACED(make, bare, nothing) PLACED(make, bare, memcpy)
#else
#define ALL_BARE(make)
#endif
#ifdef SITE_preemption
#define ALL_PREEMPTION(make)	PLACED(make, preemption, nothing) PLACED(make, preemption, memcpy)
#else
#define ALL_PREEMPTION(make)
#endif
#ifdef SITE_own
#define ALL_OWN(make)		PLACED(make, own, nothing) PLACED(make, own, memcpy)
#else
#define ALL_OWN(make)
#endif
#ifdef SITE_interrupts
#define ALL_INTERRUPTS(make)	PLACED(make, interrupts, nothing) PLACED(make, interrupts, memcpy)
#else
#define ALL_INTERRUPTS(make)
#endif
#define ALL(make)		ALL_BARE(make) ALL_PREEMPTION(make) ALL_OWN(make) ALL_INTERRUPTS(make)

ALL(CODE)

static const struct marker_code codes[] = { ALL(ROW) };

/* Adds the design to the list. */
#define DEFINE_MARKER(symbol, text, function)				\
	extern const struct marker_design marker_##symbol;		\
	const struct marker_design marker_##symbol = {			\
		.name = text,						\
		.codes = codes,						\
		.count = ARRAY_SIZE(codes),				\
		.connect = function,					\
	}
