// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * An immediate value: MOV of a constant, test, branch. Switching overwrites the constant in the
 * code.
 *
 * The kernel lacks immediate values, and exports none of its functions to patch text. So the
 * pages are mapped a second time, writable; the text itself is never writable. One byte is
 * written at a time, and no code runs meanwhile.
 */
#include <linux/cache.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>
#include <asm/sync_core.h>
#include "marker.h"

static marker_probe *probe __read_mostly;

/* Volatile, or the compiler would move it out of the loop. The note has the constant's offset
 * from the function's start; an address would need relocation. */
#define IMMEDIATE(name) ({								\
	u8 value;									\
											\
	asm volatile("movb $0, %0\n"							\
		     "771:\n\t"								\
		     ".pushsection .rodata\n\t"						\
		     ".balign 4\n"							\
		     __stringify(name) "_constant:\n\t"					\
		     ".long 771b - 1 - " __stringify(name) "\n\t"			\
		     ".popsection" : "=q"(value));					\
	value;										\
})

#define DESIGN			immediate
#define SITE_bare(name)		do { if (unlikely(IMMEDIATE(name))) CALL_PROBE; } while (0)
#define SITE_preemption(name)	do { if (unlikely(IMMEDIATE(name))) CALL_PROBE_GUARDED; } while (0)
#define SITE_interrupts(name)	do { if (unlikely(IMMEDIATE(name))) CALL_PROBE_UNINTERRUPTED; } while (0)
#include "codes.h"

#define CONSTANT(guard, around, placement)	CONSTANT_OF(NAME(guard, around, placement))
#define CONSTANT_OF(name)			CONSTANT_EXPANDED(name)
#define CONSTANT_EXPANDED(name)			extern const u32 name##_constant;
#define PLACE(guard, around, placement)		PLACE_OF(NAME(guard, around, placement))
#define PLACE_OF(name)				PLACE_EXPANDED(name)
#define PLACE_EXPANDED(name)			&name##_constant,

ALL(CONSTANT)
/* Offsets in the order of the codes. */
static const u32 *const constants[] = { ALL(PLACE) };
static_assert(ARRAY_SIZE(constants) == ARRAY_SIZE(codes));

/* The writable mapping. It exists while the sites are on, so that switching off needs no
 * memory. */
static struct {
	void *pages;
	unsigned long text;
} writable;

static unsigned long constant(u32 code)
{
	return (unsigned long)codes[code].run + *constants[code];
}

static int map_text(void)
{
	unsigned long from = ULONG_MAX, to = 0;
	struct page **pages;
	u32 index, count;

	for (index = 0; index < ARRAY_SIZE(codes); index++) {
		from = min(from, constant(index) & PAGE_MASK);
		to = max(to, constant(index) + 1);
	}
	count = DIV_ROUND_UP(to - from, PAGE_SIZE);
	pages = kmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (index = 0; index < count; index++)
		pages[index] = vmalloc_to_page((void *)(from + index * PAGE_SIZE));
	writable.pages = vmap(pages, count, VM_MAP, PAGE_KERNEL);
	writable.text = from;
	kfree(pages);
	return writable.pages ? 0 : -ENOMEM;
}

static void serialize_core(void *unused)
{
	sync_core();
}

static void write_constants(u8 value)
{
	u32 code;

	for (code = 0; code < ARRAY_SIZE(codes); code++)
		WRITE_ONCE(*(u8 *)(writable.pages + (constant(code) - writable.text)), value);
	/* A CPU may have fetched the old bytes already (Intel SDM vol. 3A, 9.1.3). */
	on_each_cpu(serialize_core, NULL, 1);
}

static int connect(u32 number)
{
	int bad;

	if (number == CYCLESCOPE_PROBE_DORMANT) {
		write_constants(0);
		vunmap(writable.pages);
		return 0;
	}
	probe = marker_probes[number];
	bad = map_text();
	if (!bad)
		write_constants(1);
	return bad;
}

DEFINE_MARKER(immediate, "immediate", connect);
