/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Declarations shared by the files of the module. */
#ifndef CYCLESCOPE_MODULE_H
#define CYCLESCOPE_MODULE_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/version.h>
#include <cyclescope.h>
#include "capsule.h"

#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 10, 0)
#error "cyclescope needs Linux 5.10 or newer"
#endif

#define MOST_PIECES		1024
#define MOST_AREAS		16
/* With eight open files half a GiB, which a test machine can spare. */
#define MOST_AREA_BYTES		(64ull << 20)
#define MOST_CALLS		(CALLS_BYTES / 16)
#define LONGEST_SLICE_US	100000
#define SHORTEST_DEADLINE_US	1000
/* Interrupts are off for an eighth more. The kernel's watchdogs allow 10 s, and
 * every other CPU may wait for this one. */
#define LONGEST_DEADLINE_US	1000000

struct perf_event;

/* Read-only in the capsule; enter.S uses the offsets in capsule.h. */
struct capsule_control {
	u64 kernel_cr3;
	u64 kernel_cr4;
	u64 kernel_rsp;
	u64 kernel_gs;
	u64 capsule_cr3;
	u64 capsule_cr4;
	u64 calls_end;
	u64 warm_up;
	u64 rounds;
	u64 samples_end;
	u64 unread;
	u64 delay;
	u64 slice_end;
	u64 avx;
	u64 selectors;
	/* Written when the capsule was left. */
	u64 vector;
	u64 error_code;
	u64 ip;
	u64 sp;
	u64 flags;
	u64 cr2;
	/* As the code left it. */
	u64 left_gs;
	u64 left_cr4;
};

/* Writable in the capsule: the driver's progress, to be checked before use. */
struct capsule_progress {
	u64 round;
	u64 random;
	u64 pending;
	/* DS, ES and GS as the code left them. */
	u16 selectors[4];
};

/* One call in the driver's format. */
struct capsule_call {
	u64 entry;
	u64 loop_count;
};

/* A memory area of measured code. */
struct capsule_area {
	void *memory;
	/* Address in the capsule. */
	u64 at;
	u64 bytes;
};

/* The memory of one open file, by its kernel addresses. */
struct capsule {
	void *arena;
	void *calls;
	void *context;
	void *samples;
	void *stack;
	void *events;
	struct capsule_control *control;
	struct capsule_progress *progress;
	/* The descriptor tables that the CPU uses in the capsule. */
	void *idt;
	void *gdt;
	void *tss;
	u64 *root;
	unsigned int levels;
	struct list_head tables;
	/* Addresses of the CPU's own tables, where the capsule maps its tables;
	 * 0 before the first run. */
	u64 idt_at;
	u64 gdt_at;
	u64 tss_at;
	/* Its task register. */
	u16 task;
	struct capsule_area areas[MOST_AREAS];
	u32 area_count;
	/* The part of the arena that holds code. */
	u32 used_from;
	u32 used_to;
};

struct capsule *capsule_new(void);
void capsule_free(struct capsule *capsule);
/* Maps the descriptor tables at the addresses of this CPU's own tables; ESTALE
 * on any CPU other than `cpu`. May sleep. */
int capsule_adopt_cpu(struct capsule *capsule, u32 cpu);
/* Whether the tables are at the addresses that the current CPU uses. */
bool capsule_fits_cpu(const struct capsule *capsule);

/* Replaces the areas by areas of these sizes, which the caller has checked.
 * After an error the capsule has no areas. */
int capsule_set_areas(struct capsule *capsule, const struct cyclescope_area *areas, u32 count);
/* Fills pages of an area. */
int capsule_fill(struct capsule *capsule, u32 number, const struct cyclescope_fill *fill);

/* enter.S */
void capsule_enter(struct capsule_control *control);
void capsule_hand_on(unsigned int vector);
/* Distances from capsule_enter. */
extern const struct capsule_places {
	/* The page that both the kernel's tables and the capsule's map, and the
	 * end of its code. */
	u32 inside;
	u32 gates;
	u32 end;
} capsule_places;

/* All state that measured code can change and no page table protects. */
struct cpu_state {
	u64 cr0, cr2, cr4, cr8;
	u64 debug[4], dr6, dr7;
	u64 fs_base, gs_base, kernel_gs_base, tsc_aux, xcr0, lbr_control;
	u32 pkru;
	u16 ds, es, fs, gs, ldt, task;
	struct { u16 limit; u64 base; } __packed gdt, idt;
};

/* CET would require an ENDBR64 wherever measured code or the driver branches
 * indirectly. */
#define CR4_CET			(1ul << 23)

/* The kernel's own accessors change their names between versions. */
static __always_inline u64 get_msr(u32 number)
{
	u32 low, high;

	asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
	return low | (u64)high << 32;
}

static __always_inline void set_msr(u32 number, u64 value)
{
	asm volatile("wrmsr" : : "c"(number), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
}

/* Model-specific registers of this machine that the module can read and write. */
extern struct registers {
	bool tsc_aux, aperf, pebs, branch_traces, lbr, xfd_error, machine_check;
} registers;
void registers_init(void);
/* Whether every CPU allows the write to CR4 that a slice makes. */
bool registers_cr4_works(void);

void cpu_state_save(struct cpu_state *state);
/* Restores state that differs. Returns it as bits CYCLESCOPE_CHANGED_. */
u32 cpu_state_restore(const struct cpu_state *state);

/* Records that the CPU writes by itself, on this CPU, with interrupts off. All
 * of them stop; those that were on restart, unless perf has switched them
 * meanwhile. */
void records_stop(void);
void records_restore(void);
/* At the end of an NMI, in which perf may have switched them on. */
void records_after_nmi(void);

/* NMIs that this module sends, one at a time, all to one CPU. */
int nmis_init(void);
void nmis_exit(void);
/* Sends an NMI from each CPU to the next, to test that all arrive; nmis_works
 * then has the result. May sleep. */
void nmis_test(void);
bool nmis_works(void);
/* The CPU that the next ones go to. */
void nmis_aim(unsigned int cpu);
/* Sends an NMI unless one is on its way. */
void nmis_send(void);
/* Waits until the last one is handled. */
bool nmis_settle(unsigned int microseconds);
/* A number that grows with each NMI that the kernel takes on that CPU. */
unsigned int nmis_taken(void);
/* Raises for the kernel, on this CPU, the NMI that ended a slice. `before` is
 * nmis_taken at the start of the slice. */
void nmis_raise_again(unsigned int before);

/* The NMI that ends a slice. */
void deadline_init(void);
bool deadline_possible(void);
/* Watches this CPU from another one until deadline_disarm. May sleep; no CPU
 * comes or goes meanwhile. */
int deadline_arm(unsigned int cpu, u32 microseconds);
/* Arms again if the watching CPU has gone offline. */
int deadline_keep(void);
void deadline_disarm(void);
/* Around a slice, with interrupts off. */
void deadline_slice_begins(void);
/* Whether the deadline passed. */
bool deadline_slice_ends(void);

/* Performance events of a run. */
struct run_events {
	u32 count;
	/* An event has lost its counter. */
	bool lost;
	struct perf_event *open[CYCLESCOPE_MOST_EVENTS];
	/* Their counts at the two ends of the last slice, and in all slices that count. */
	u64 before[CYCLESCOPE_MOST_EVENTS], after[CYCLESCOPE_MOST_EVENTS], counts[CYCLESCOPE_MOST_EVENTS];
};

/* Opens the events of a run; after an error too, events_close closes those that are open. May
 * sleep. */
int events_open(struct run_events *events, const struct cyclescope_run *run);
void events_close(struct run_events *events);
/* Around a slice, with interrupts off. */
void events_slice_begins(struct run_events *events);
void events_slice_ends(struct run_events *events);
/* Adds the counts of the last slice. */
void events_keep_slice(struct run_events *events);
/* Copies the counts out; ENODATA if an event has lost its counter. May sleep. */
int events_report(struct run_events *events, const struct cyclescope_run *run);
/* Executes one TRY_EVENTS. */
long events_try(void __user *user);

/* Executes one RUN; the caller holds the device's lock. */
long run_layout(struct capsule *capsule, struct cyclescope_run *run);

struct file;
struct marker_code;

/* One run of any kind at a time: each has its CPU to itself, and the deadline
 * watches only one. */
extern struct mutex one_run;

/* The device's calls for markers; -ENOTTY for any other. */
long markers_ioctl(struct file *file, unsigned int command, void __user *user);
/* Switches off the sites that a closed file has switched on. */
void markers_release(struct file *file);
/* The code of this number, of any design; NULL past the last one. */
const struct marker_code *marker_code(u32 number);
/* Executes one MARKER_RUN; the caller keeps the sites unchanged. */
long markers_run(struct cyclescope_marker_run *run);

/* ruler.S */
void ruler_imul_short(u32 loops);
void ruler_imul_long(u32 loops);
void ruler_add_short(u32 loops);
void ruler_add_long(u32 loops);
void ruler_sentinel(u32 loops);

#endif
