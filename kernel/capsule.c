// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The capsule's memory and page tables.
 *
 * They map only what one run needs: code to read and execute, everything else never to execute.
 * The kernel's text, its direct map and user memory are not mapped, so that measured code can
 * harm only its own areas. Code is written through the kernel's mapping, which can't be
 * executed, and executed through the capsule's, which can't be written.
 */
#include <linux/mem_encrypt.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/desc.h>
#include <asm/io.h>
#include <asm/page.h>
#include <asm/pgtable_types.h>
#include <asm/special_insns.h>
#include "module.h"

#define CHECK_AT(struct_name, member, number) \
	static_assert(offsetof(struct struct_name, member) == (number))
CHECK_AT(capsule_control, kernel_cr3, CONTROL_KERNEL_CR3);
CHECK_AT(capsule_control, kernel_cr4, CONTROL_KERNEL_CR4);
CHECK_AT(capsule_control, kernel_rsp, CONTROL_KERNEL_RSP);
CHECK_AT(capsule_control, kernel_gs, CONTROL_KERNEL_GS);
CHECK_AT(capsule_control, capsule_cr3, CONTROL_CAPSULE_CR3);
CHECK_AT(capsule_control, capsule_cr4, CONTROL_CAPSULE_CR4);
CHECK_AT(capsule_control, calls_end, CONTROL_CALLS_END);
CHECK_AT(capsule_control, warm_up, CONTROL_WARM_UP);
CHECK_AT(capsule_control, rounds, CONTROL_ROUNDS);
CHECK_AT(capsule_control, samples_end, CONTROL_SAMPLES_END);
CHECK_AT(capsule_control, unread, CONTROL_UNREAD);
CHECK_AT(capsule_control, delay, CONTROL_DELAY);
CHECK_AT(capsule_control, slice_end, CONTROL_SLICE_END);
CHECK_AT(capsule_control, avx, CONTROL_AVX);
CHECK_AT(capsule_control, selectors, CONTROL_SELECTORS);
CHECK_AT(capsule_control, vector, CONTROL_VECTOR);
CHECK_AT(capsule_control, error_code, CONTROL_ERROR_CODE);
CHECK_AT(capsule_control, ip, CONTROL_IP);
CHECK_AT(capsule_control, sp, CONTROL_SP);
CHECK_AT(capsule_control, flags, CONTROL_FLAGS);
CHECK_AT(capsule_control, cr2, CONTROL_CR2);
CHECK_AT(capsule_control, left_gs, CONTROL_LEFT_GS);
CHECK_AT(capsule_control, left_cr4, CONTROL_LEFT_CR4);
CHECK_AT(capsule_progress, round, PROGRESS_ROUND);
CHECK_AT(capsule_progress, random, PROGRESS_RANDOM);
CHECK_AT(capsule_progress, pending, PROGRESS_PENDING);
CHECK_AT(capsule_progress, selectors, PROGRESS_SELECTORS);

/* Intel SDM vol. 3A, 4.5. Accessed and dirty are set from the start. The CPU therefore writes
 * to the tables only at the first write to an area. */
#define ENTRY_TABLE	(_PAGE_PRESENT | _PAGE_RW | _PAGE_ACCESSED)
#define ENTRY_READ	(_PAGE_PRESENT | _PAGE_ACCESSED | _PAGE_NX)
#define ENTRY_WRITE	(_PAGE_PRESENT | _PAGE_RW | _PAGE_ACCESSED | _PAGE_DIRTY | _PAGE_NX)
#define ENTRY_EXECUTE	(_PAGE_PRESENT | _PAGE_ACCESSED)

#define CR4_LA57	(1ul << 12)
#define INT3		0xcc
#define PAGES(bytes)	((bytes) / PAGE_SIZE)

/* The 64-bit TSS (Intel SDM vol. 3A, 8.7). */
struct tss64 {
	u32 reserved0;
	u64 rsp[3];
	u64 reserved1;
	u64 ist[7];
	u64 reserved2;
	u16 reserved3;
	u16 io_map;
} __packed;

static u64 *new_table(struct capsule *capsule)
{
	struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

	if (!page)
		return NULL;
	list_add(&page->lru, &capsule->tables);
	return page_address(page);
}

static u64 *entry_of(struct capsule *capsule, u64 at)
{
	u64 *table = capsule->root;
	unsigned int level;

	for (level = capsule->levels - 1; level > 0; level--) {
		u64 *entry = table + ((at >> (PAGE_SHIFT + 9 * level)) & 511);

		if (!*entry) {
			u64 *next = new_table(capsule);

			if (!next)
				return NULL;
			*entry = __sme_set(virt_to_phys(next)) | ENTRY_TABLE;
		}
		table = __va(__sme_clr(*entry) & PTE_PFN_MASK);
	}
	return table + ((at >> PAGE_SHIFT) & 511);
}

/* Maps vmalloc or module memory. */
static int map(struct capsule *capsule, u64 at, void *memory, size_t bytes, u64 how)
{
	size_t done;

	for (done = 0; done < bytes; done += PAGE_SIZE) {
		u64 *entry = entry_of(capsule, at + done);
		struct page *page = vmalloc_to_page(memory + done);

		if (!entry || !page)
			return -ENOMEM;
		*entry = __sme_set(page_to_phys(page)) | how;
	}
	return 0;
}

/* One page of zeros is mapped at all addresses: programs read them for the translations, not
 * for the bytes. */
static int map_eviction(struct capsule *capsule)
{
	u64 zeros = __sme_set(page_to_phys(ZERO_PAGE(0))) | ENTRY_READ;
	size_t done;

	for (done = 0; done < EVICTION_BYTES; done += PAGE_SIZE) {
		u64 *entry = entry_of(capsule, EVICTION_AT + done);

		if (!entry)
			return -ENOMEM;
		*entry = zeros;
	}
	return 0;
}

static int map_all(struct capsule *capsule)
{
	u64 inside = (u64)capsule_enter + capsule_places.inside, end = (u64)capsule_enter + capsule_places.end;
	int stack, bad;

	bad = map(capsule, ARENA_AT, capsule->arena, ARENA_BYTES, ENTRY_EXECUTE) ?:
	      map(capsule, CONTROL_AT, capsule->control, PAGE_SIZE, ENTRY_READ) ?:
	      map(capsule, CALLS_AT, capsule->calls, CALLS_BYTES, ENTRY_READ) ?:
	      map(capsule, CONTEXT_AT, capsule->context, PAGE_SIZE, ENTRY_WRITE) ?:
	      map(capsule, PROGRESS_AT, capsule->progress, PAGE_SIZE, ENTRY_WRITE) ?:
	      map(capsule, SAMPLES_AT, capsule->samples, SAMPLES_BYTES, ENTRY_WRITE) ?:
	      map(capsule, STACK_AT, capsule->stack, STACK_BYTES, ENTRY_WRITE) ?:
	      map(capsule, inside, (void *)inside, end - inside, ENTRY_EXECUTE) ?:
	      map_eviction(capsule);
	/* Uses every second page: an overflow of one stack must not reach the next. */
	for (stack = 0; !bad && stack < 4; stack++)
		bad = map(capsule, EVENTS_AT + stack * 2 * PAGE_SIZE, capsule->events + stack * PAGE_SIZE,
			  PAGE_SIZE, ENTRY_WRITE);
	return bad;
}

static void fill_tables(struct capsule *capsule)
{
	struct tss64 *tss = capsule->tss;
	gate_desc *gates = capsule->idt;
	int vector;

	for (vector = 1; vector <= STACK_FOR_MACHINE_CHECK; vector++)
		tss->ist[vector - 1] = EVENTS_AT + (2 * vector - 1) * PAGE_SIZE;
	tss->io_map = sizeof(*tss);
	for (vector = 0; vector < 256; vector++) {
		u64 gate = (u64)capsule_enter + capsule_places.gates + 16 * vector;
		u8 stack = vector == 2 ? STACK_FOR_NMI : vector == 18 ? STACK_FOR_MACHINE_CHECK : STACK_FOR_ALL;

		gates[vector] = (gate_desc){
			.offset_low = (u16)gate,
			.segment = __KERNEL_CS,
			/* INT n reaches it only from ring 0; interrupts go off. */
			.bits = { .ist = stack, .type = GATE_INTERRUPT, .dpl = 0, .p = 1 },
			.offset_middle = (u16)(gate >> 16),
			.offset_high = (u32)(gate >> 32),
		};
	}
}

struct capsule *capsule_new(void)
{
	struct capsule *capsule = kzalloc(sizeof(*capsule), GFP_KERNEL_ACCOUNT);

	if (!capsule)
		return NULL;
	INIT_LIST_HEAD(&capsule->tables);
	capsule->levels = __read_cr4() & CR4_LA57 ? 5 : 4;
	capsule->arena = vmalloc(ARENA_BYTES);
	capsule->calls = vzalloc(CALLS_BYTES);
	capsule->context = vzalloc(PAGE_SIZE);
	capsule->samples = vzalloc(SAMPLES_BYTES);
	capsule->stack = vzalloc(STACK_BYTES);
	capsule->events = vzalloc(4 * PAGE_SIZE);
	capsule->control = vzalloc(PAGE_SIZE);
	capsule->progress = vzalloc(PAGE_SIZE);
	capsule->idt = vzalloc(PAGE_SIZE);
	capsule->gdt = vzalloc(PAGE_SIZE);
	capsule->tss = vzalloc(PAGE_SIZE);
	capsule->root = new_table(capsule);
	if (!capsule->arena || !capsule->calls || !capsule->context || !capsule->samples ||
	    !capsule->stack || !capsule->events || !capsule->control || !capsule->progress || !capsule->idt ||
	    !capsule->gdt || !capsule->tss || !capsule->root || map_all(capsule)) {
		capsule_free(capsule);
		return NULL;
	}
	memset(capsule->arena, INT3, ARENA_BYTES);
	fill_tables(capsule);
	return capsule;
}

/* The page tables of their addresses stay for the next areas. */
static void drop_areas(struct capsule *capsule)
{
	u32 number;
	u64 done;

	for (number = 0; number < capsule->area_count; number++) {
		struct capsule_area *area = &capsule->areas[number];

		for (done = 0; done < area->bytes; done += PAGE_SIZE) {
			u64 *entry = entry_of(capsule, area->at + done);

			if (entry)
				*entry = 0;
		}
		vfree(area->memory);
	}
	capsule->area_count = 0;
}

int capsule_set_areas(struct capsule *capsule, const struct cyclescope_area *areas, u32 count)
{
	u64 at = AREAS_AT;
	u32 number;

	drop_areas(capsule);
	for (number = 0; number < count; number++) {
		struct capsule_area *area = &capsule->areas[number];

		area->at = at;
		area->bytes = areas[number].bytes;
		area->memory = vzalloc(area->bytes);
		capsule->area_count = number + 1;
		if (!area->memory || map(capsule, at, area->memory, area->bytes, ENTRY_WRITE)) {
			drop_areas(capsule);
			return -ENOMEM;
		}
		at += area->bytes + CAPSULE_GUARD;
	}
	return 0;
}

void capsule_free(struct capsule *capsule)
{
	struct page *page, *next;

	if (capsule->root)
		drop_areas(capsule);
	list_for_each_entry_safe(page, next, &capsule->tables, lru) {
		list_del(&page->lru);
		__free_page(page);
	}
	vfree(capsule->arena);
	vfree(capsule->calls);
	vfree(capsule->context);
	vfree(capsule->samples);
	vfree(capsule->stack);
	vfree(capsule->events);
	vfree(capsule->control);
	vfree(capsule->progress);
	vfree(capsule->idt);
	vfree(capsule->gdt);
	vfree(capsule->tss);
	kfree(capsule);
}

/* The CPU marks written pages, and every entry flushes all translations. */
int capsule_fill(struct capsule *capsule, u32 number, const struct cyclescope_fill *fill)
{
	const struct capsule_area *area = &capsule->areas[number];
	const char __user *content = u64_to_user_ptr(fill->content);
	u64 done;

	for (done = 0; done < area->bytes; done += PAGE_SIZE) {
		u64 *entry = entry_of(capsule, area->at + done);

		if (!entry)
			return -ENOMEM;
		if (!(fill->flags & CYCLESCOPE_FILL_ALL) && !(*entry & _PAGE_DIRTY))
			continue;
		if (!fill->content)
			memset64(area->memory + done, fill->word, PAGE_SIZE / sizeof(fill->word));
		else if (copy_from_user(area->memory + done, content + done, PAGE_SIZE))
			return -EFAULT;
		*entry &= ~(u64)_PAGE_DIRTY;
		cond_resched();
	}
	return 0;
}

static bool overlap(u64 a, u64 b)
{
	return (a ^ b) < PAGE_SIZE;
}

/* The tables of the current CPU. */
struct own_tables {
	struct desc_ptr gdt, idt;
	u16 task;
};

static void find_tables(struct own_tables *own)
{
	native_store_gdt(&own->gdt);
	store_idt(&own->idt);
	asm volatile("str %0" : "=r"(own->task));
}

/* Copies the GDT if this is the requested CPU and its tables are as Linux makes them: one page
 * each. A VM exit may have left larger limits (Intel SDM vol. 3C, 28.5.2). */
static int copy_gdt(struct capsule *capsule, u32 cpu, struct own_tables *own)
{
	size_t bytes;
	int bad = -ESTALE;

	preempt_disable();
	if (smp_processor_id() == cpu) {
		find_tables(own);
		bytes = min(own->gdt.size + 1ul, PAGE_SIZE);
		bad = -ENXIO;
		if (own->idt.size >= PAGE_SIZE - 1 && !offset_in_page(own->gdt.address) &&
		    !offset_in_page(own->idt.address) && (own->task & ~7) + sizeof(struct ldttss_desc) <= bytes) {
			memset(capsule->gdt, 0, PAGE_SIZE);
			memcpy(capsule->gdt, (void *)own->gdt.address, bytes);
			bad = 0;
		}
	}
	preempt_enable();
	return bad;
}

int capsule_adopt_cpu(struct capsule *capsule, u32 cpu)
{
	struct own_tables own;
	struct ldttss_desc *tss;
	u64 tss_at;
	int bad = copy_gdt(capsule, cpu, &own);

	if (bad)
		return bad;
	tss = capsule->gdt + (own.task & ~7);
	tss_at = tss->base0 | tss->base1 << 16 | (u64)tss->base2 << 24 | (u64)tss->base3 << 32;
	if (offset_in_page(tss_at) || overlap(tss_at, own.gdt.address) || overlap(tss_at, own.idt.address) ||
	    overlap(own.gdt.address, own.idt.address))
		return -ENXIO;
	capsule->task = own.task;
	if (capsule->idt_at == own.idt.address && capsule->gdt_at == own.gdt.address && capsule->tss_at == tss_at)
		return 0;
	if (map(capsule, own.idt.address, capsule->idt, PAGE_SIZE, ENTRY_READ) ||
	    map(capsule, own.gdt.address, capsule->gdt, PAGE_SIZE, ENTRY_READ) ||
	    map(capsule, tss_at, capsule->tss, PAGE_SIZE, ENTRY_READ))
		return -ENOMEM;
	capsule->idt_at = own.idt.address;
	capsule->gdt_at = own.gdt.address;
	capsule->tss_at = tss_at;
	return 0;
}

bool capsule_fits_cpu(const struct capsule *capsule)
{
	struct own_tables own;

	find_tables(&own);
	return own.idt.address == capsule->idt_at && own.gdt.address == capsule->gdt_at && own.task == capsule->task;
}
