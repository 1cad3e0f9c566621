// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * One run: code into the arena, rounds in slices, samples out.
 *
 * Interrupts are off during a slice and let in between two slices. An event in the middle of a
 * slice (an NMI, or an interrupt if the code has set IF) ends it. The kernel gets the event,
 * and the round runs again.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/nmi.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/irq_vectors.h>
#include <asm/mce.h>
#include <asm/msr-index.h>
#include <asm/processor-flags.h>
#include <asm/sync_core.h>
#include <asm/tsc.h>
#include "module.h"

#define INT3			0xcc
#define INT_N			0xcd
#define FIRST_INTERRUPT		32
#define LAST_INTERRUPT		255
#define NMI			2
#define NO_DEVICE		7
#define SELECTOR_OF_LDT		4
#define PAGE_FAULT		14
#define MACHINE_CHECK		18
#define SAMPLE_BYTES		sizeof(struct cyclescope_sample)

/* Results of one slice. */
struct slice {
	struct cpu_state before;
	u32 changed;
	/* The deadline passed. */
	bool over;
	/* Something other than the measured code ended it. */
	bool interrupted;
	/* nmis_taken before the slice, and whether one came outside the capsule. */
	unsigned int nmis;
	bool nmi_outside;
	u64 tsc, aperf, mperf;
};

static int put_code(struct capsule *capsule, const struct cyclescope_run *run)
{
	struct cyclescope_piece __user *list = u64_to_user_ptr(run->piece_list);
	u32 index;

	/* A stray jump must not find code of the last run. */
	if (capsule->used_to > capsule->used_from)
		memset(capsule->arena + capsule->used_from, INT3, capsule->used_to - capsule->used_from);
	capsule->used_from = ARENA_BYTES;
	capsule->used_to = 0;
	for (index = 0; index < run->pieces; index++) {
		struct cyclescope_piece piece;

		if (copy_from_user(&piece, list + index, sizeof(piece)))
			return -EFAULT;
		if (piece.offset > ARENA_BYTES || piece.bytes > ARENA_BYTES - piece.offset)
			return -EINVAL;
		capsule->used_from = min(capsule->used_from, piece.offset);
		capsule->used_to = max(capsule->used_to, piece.offset + piece.bytes);
		if (copy_from_user(capsule->arena + piece.offset, u64_to_user_ptr(piece.code), piece.bytes))
			return -EFAULT;
	}
	return 0;
}

static int put_calls(struct capsule *capsule, const struct cyclescope_run *run)
{
	struct cyclescope_call __user *list = u64_to_user_ptr(run->call_list);
	struct capsule_call *calls = capsule->calls;
	u32 index;

	for (index = 0; index < run->calls; index++) {
		struct cyclescope_call call;

		if (copy_from_user(&call, list + index, sizeof(call)))
			return -EFAULT;
		if (call.offset >= ARENA_BYTES || call.reserved)
			return -EINVAL;
		calls[index].entry = ARENA_AT + call.offset;
		calls[index].loop_count = call.loop_count;
	}
	return 0;
}

static int put_fills(struct capsule *capsule, const struct cyclescope_run *run)
{
	struct cyclescope_fill __user *list = u64_to_user_ptr(run->fill_list);
	u32 index;
	int bad = 0;

	for (index = 0; !bad && index < run->fills; index++) {
		struct cyclescope_fill fill;

		if (copy_from_user(&fill, list + index, sizeof(fill)))
			return -EFAULT;
		if (fill.flags & ~(CYCLESCOPE_FILL_WRITTEN | CYCLESCOPE_FILL_ALL) || fill.reserved)
			return -EINVAL;
		if (fill.flags)
			bad = capsule_fill(capsule, index, &fill);
	}
	return bad;
}

/* The way out loads the caller's selectors with the capsule's tables, which have no LDT. */
static bool has_ldt_selector(void)
{
	u16 ds, es, fs, gs;

	asm volatile("mov %%ds, %0" : "=r"(ds));
	asm volatile("mov %%es, %0" : "=r"(es));
	asm volatile("mov %%fs, %0" : "=r"(fs));
	asm volatile("mov %%gs, %0" : "=r"(gs));
	return (ds | es | fs | gs) & SELECTOR_OF_LDT;
}

static int check(const struct capsule *capsule, const struct cyclescope_run *run)
{
	if (run->flags & ~CYCLESCOPE_RUN_UNGUARDED || !run->delay || !run->total_ms || (run->events && run->warm_up))
		return -EINVAL;
	if (run->fills != capsule->area_count)
		return -EINVAL;
	if (!run->pieces || run->pieces > MOST_PIECES || !run->calls || run->calls > MOST_CALLS)
		return -EINVAL;
	if (!run->rounds || run->warm_up > S32_MAX || run->rounds > S32_MAX)
		return -EINVAL;
	if (!run->slice_us || run->slice_us > LONGEST_SLICE_US || run->deadline_us <= run->slice_us ||
	    run->deadline_us < SHORTEST_DEADLINE_US || run->deadline_us > LONGEST_DEADLINE_US)
		return -EINVAL;
	if (has_ldt_selector())
		return -EINVAL;
	/* Only such a CPU may be looked up in masks and tables. */
	return run->cpu < nr_cpu_ids && cpu_online(run->cpu) ? 0 : -ESTALE;
}

static __always_inline u64 frequency_msr(u32 number)
{
	return registers.aperf ? get_msr(number) : 0;
}

/* Neither traced nor probed, nor are its parts: between saving and restoring, the CPU's state
 * is not what the kernel expects. */
static noinline notrace void enter(struct capsule *capsule, struct slice *slice, u32 slice_us)
{
	struct capsule_control *control = capsule->control;
	u64 tsc, aperf, mperf;

	cpu_state_save(&slice->before);
	control->kernel_cr3 = __native_read_cr3();
	control->kernel_cr4 = slice->before.cr4;
	control->capsule_cr4 = slice->before.cr4 & ~(X86_CR4_PGE | CR4_CET);
	control->kernel_gs = slice->before.gs_base;
	control->selectors = slice->before.ds | (u64)slice->before.es << 16 | (u64)slice->before.gs << 32;
	deadline_slice_begins();
	slice->nmis = nmis_taken();
	records_stop();
	aperf = frequency_msr(MSR_IA32_APERF);
	mperf = frequency_msr(MSR_IA32_MPERF);
	tsc = rdtsc_ordered();
	control->slice_end = tsc + (u64)tsc_khz * slice_us / 1000;
	capsule_enter(control);
	slice->tsc += rdtsc_ordered() - tsc;
	slice->mperf += frequency_msr(MSR_IA32_MPERF) - mperf;
	slice->aperf += frequency_msr(MSR_IA32_APERF) - aperf;
	slice->changed |= cpu_state_restore(&slice->before);
	records_restore();
	slice->over = deadline_slice_ends();
	/* Left by an instruction whose state is disabled; the kernel would assign it to its
	 * next #NM (Intel SDM vol. 1, 13.14). */
	if (registers.xfd_error && control->vector == NO_DEVICE)
		set_msr(MSR_IA32_XFD_ERR, 0);
	if (control->left_gs != control->kernel_gs)
		slice->changed |= CYCLESCOPE_CHANGED_BASES;
	if (memcmp(capsule->progress->selectors, &control->selectors, 3 * sizeof(u16)))
		slice->changed |= CYCLESCOPE_CHANGED_SEGMENTS;
	if (control->left_cr4 != control->capsule_cr4)
		slice->changed |= CYCLESCOPE_CHANGED_CR4;
}
NOKPROBE_SYMBOL(enter);

/* Whether the measured code raised the vector itself: INT n saves the address after the
 * instruction. */
static bool by_instruction(const struct capsule *capsule, u64 vector)
{
	u64 offset = capsule->control->ip - ARENA_AT;
	const u8 *code = capsule->arena + offset;

	return offset >= 2 && offset <= ARENA_BYTES && code[-2] == INT_N && code[-1] == vector;
}

static bool in_service(u64 vector)
{
	return apic->read(APIC_ISR + (u32)(vector / 32) * 0x10) & (1u << (vector % 32));
}

/* Whether the CPU reports a machine check in progress; otherwise the code raised the vector itself. */
static bool is_machine_check(void)
{
	return registers.machine_check && get_msr(MSR_IA32_MCG_STATUS) & MCG_STATUS_MCIP;
}

/* An interrupt comes if IF is set. In doubt the APIC decides: an interrupt that is not passed
 * on would keep its line busy for good. Some of a hypervisor's interrupts do not come through
 * the APIC. */
static bool is_interrupt(const struct capsule *capsule, u64 vector)
{
	if (vector < FIRST_INTERRUPT || vector > LAST_INTERRUPT || vector == IA32_SYSCALL_VECTOR)
		return false;
	return in_service(vector) ||
	       (capsule->control->flags & X86_EFLAGS_IF && !by_instruction(capsule, vector));
}

/* Passes an event in the capsule on to the kernel. True if the event, and not the measured
 * code, ended the slice. */
static bool hand_on(struct capsule *capsule, const struct slice *slice)
{
	u64 vector = capsule->control->vector;
	u64 pending = capsule->progress->pending;
	bool check = vector == MACHINE_CHECK || pending & (1ull << MACHINE_CHECK);
	bool came = vector == NMI;

	if (check && is_machine_check()) {
		came |= vector == MACHINE_CHECK;
		capsule_hand_on(MACHINE_CHECK);
	}
	if (is_interrupt(capsule, vector)) {
		came = true;
		capsule_hand_on(vector);
	}
	/* The NMI's sender finds its reason unchanged. */
	if (vector == NMI || pending & (1ull << NMI))
		nmis_raise_again(slice->nmis);
	return came;
}

/* One slice, if this is the requested CPU. */
static int run_slice(struct capsule *capsule, const struct cyclescope_run *run, struct slice *slice,
		     struct run_events *events)
{
	unsigned long flags;
	unsigned int nmis;
	int bad;

	cpus_read_lock();
	bad = deadline_keep();
	if (bad) {
		cpus_read_unlock();
		return bad;
	}
	kernel_fpu_begin();
	local_irq_save(flags);
	if (smp_processor_id() != run->cpu || !capsule_fits_cpu(capsule)) {
		bad = -ESTALE;
	} else {
		sync_core();
		nmis = nmis_taken();
		events_slice_begins(events);
		enter(capsule, slice, run->slice_us);
		events_slice_ends(events);
		slice->nmi_outside = nmis_taken() != nmis;
		slice->interrupted = hand_on(capsule, slice);
	}
	local_irq_restore(flags);
	kernel_fpu_end();
	cpus_read_unlock();
	touch_softlockup_watchdog();
	cond_resched();
	return bad;
}

static u64 kept(const struct cyclescope_run *run, u64 round)
{
	return round > run->warm_up ? round - run->warm_up : 0;
}

/* Copies out the samples of the rounds since `from`, if the driver's progress is possible. */
static int take_samples(struct capsule *capsule, struct cyclescope_run *run, u64 from, bool *astray)
{
	u64 round = capsule->progress->round;
	u64 bytes, before = kept(run, from) * run->calls * SAMPLE_BYTES;

	*astray = round < from || round > capsule->control->rounds;
	if (*astray)
		return 0;
	bytes = kept(run, round) * run->calls * SAMPLE_BYTES - before;
	*astray = bytes > SAMPLES_BYTES;
	if (*astray)
		return 0;
	if (copy_to_user(u64_to_user_ptr(run->samples) + before, capsule->samples, bytes))
		return -EFAULT;
	run->outcome.rounds_done = kept(run, round);
	return 0;
}

static void tell_event(const struct capsule *capsule, struct cyclescope_run *run, u32 status)
{
	const struct capsule_control *control = capsule->control;

	run->outcome.status = status;
	run->outcome.vector = control->vector;
	run->outcome.error_code = control->error_code;
	run->outcome.ip = control->ip;
	run->outcome.sp = control->sp;
	/* CR2 holds an older address unless a page fault happened. */
	if (control->vector == PAGE_FAULT && !by_instruction(capsule, PAGE_FAULT))
		run->outcome.cr2 = control->cr2;
	run->outcome.ip_offset = control->ip - ARENA_AT < ARENA_BYTES ? control->ip - ARENA_AT : CYCLESCOPE_NOWHERE;
}

/* Evaluates the end of a slice. True if the run is over. */
static bool cyclescope_note_end(const struct capsule *capsule, struct cyclescope_run *run, const struct slice *slice,
				bool late)
{
	u64 vector = capsule->control->vector;

	if (slice->interrupted) {
		run->outcome.repeated++;
		if (late)
			tell_event(capsule, run, CYCLESCOPE_DEADLINE);
		return late;
	}
	if (vector == LEFT_SLICE) {
		if (late)
			tell_event(capsule, run, CYCLESCOPE_DEADLINE);
		return late;
	}
	if (vector == LEFT_DONE && capsule->progress->round == capsule->control->rounds)
		run->outcome.status = CYCLESCOPE_DONE;
	else if (vector == LEFT_NO_READING)
		run->outcome.status = CYCLESCOPE_NO_READING;
	else
		tell_event(capsule, run, vector < 256 ? CYCLESCOPE_FAULT : CYCLESCOPE_ASTRAY);
	return true;
}

/* A slice that was interrupted has counts of a round that is not complete. */
static void keep_counts(const struct capsule *capsule, struct cyclescope_run *run, const struct slice *slice,
			struct run_events *events, u64 from)
{
	if (!events->count || slice->interrupted || slice->nmi_outside)
		return;
	events_keep_slice(events);
	run->outcome.counted_rounds += capsule->progress->round - from;
}

static int run_rounds(struct capsule *capsule, struct cyclescope_run *run, struct run_events *events)
{
	struct capsule_progress *progress = capsule->progress;
	struct slice slice = {};
	u64 round = 0, began = ktime_get_ns(), stuck_since = began;
	bool astray, late, over = false;
	int bad;

	while (!over) {
		progress->round = round;
		progress->pending = 0;
		bad = run_slice(capsule, run, &slice, events) ?: take_samples(capsule, run, round, &astray);
		if (bad)
			return bad;
		run->outcome.slices++;
		if (!astray)
			keep_counts(capsule, run, &slice, events, round);
		/* A slice that is always interrupted never reaches its own deadline. A slice
		 * that ended before its first round says nothing about the code: a virtual
		 * machine was stopped, or the slice is too short. */
		if (astray || progress->round != round || capsule->control->vector == LEFT_SLICE)
			stuck_since = ktime_get_ns();
		late = slice.over || ktime_get_ns() - stuck_since > run->deadline_us * 1000ull;
		late &= progress->round == round && capsule->control->vector != LEFT_SLICE;
		late |= ktime_get_ns() - began > run->total_ms * 1000000ull;
		round = progress->round;
		over = cyclescope_note_end(capsule, run, &slice, late);
		if (astray) {
			tell_event(capsule, run, CYCLESCOPE_ASTRAY);
			over = true;
		}
		/* Restarts if the signal's handler allows it: so far only the caller's samples
		 * are overwritten. */
		if (!over && signal_pending(current))
			return -ERESTARTSYS;
	}
	run->outcome.changed = slice.changed;
	run->outcome.tsc = slice.tsc;
	run->outcome.aperf = slice.aperf;
	run->outcome.mperf = slice.mperf;
	return 0;
}

static void set_up(struct capsule *capsule, const struct cyclescope_run *run)
{
	struct capsule_control *control = capsule->control;

	memset(control, 0, sizeof(*control));
	control->capsule_cr3 = __sme_set(virt_to_phys(capsule->root));
	control->calls_end = CALLS_AT + run->calls * sizeof(struct capsule_call);
	control->warm_up = run->warm_up;
	control->rounds = (u64)run->warm_up + run->rounds;
	control->samples_end = SAMPLES_AT + SAMPLES_BYTES - run->calls * SAMPLE_BYTES;
	control->unread = run->unread;
	control->delay = run->delay;
	control->avx = boot_cpu_has(X86_FEATURE_AVX) && boot_cpu_has(X86_FEATURE_OSXSAVE);
	/* A state of zero would stay zero. */
	capsule->progress->random = run->seed | 1;
	memset(capsule->stack, 0, STACK_BYTES);
}

/* Runs the rounds with the events open and the deadline armed. */
static int run_watched(struct capsule *capsule, struct cyclescope_run *run, struct run_events *events)
{
	int bad;

	cpus_read_lock();
	bad = deadline_arm(run->cpu, run->deadline_us);
	cpus_read_unlock();
	if (!bad || (bad == -EOPNOTSUPP && run->flags & CYCLESCOPE_RUN_UNGUARDED))
		bad = run_rounds(capsule, run, events);
	deadline_disarm();
	return bad;
}

long run_layout(struct capsule *capsule, struct cyclescope_run *run)
{
	struct run_events events;
	int bad;

	bad = check(capsule, run) ?: put_code(capsule, run) ?: put_calls(capsule, run) ?: put_fills(capsule, run) ?:
	      capsule_adopt_cpu(capsule, run->cpu);
	if (bad)
		return bad;
	if (copy_from_user(capsule->context, u64_to_user_ptr(run->context), CYCLESCOPE_CONTEXT_BYTES))
		return -EFAULT;
	set_up(capsule, run);
	bad = events_open(&events, run) ?: run_watched(capsule, run, &events) ?: events_report(&events, run);
	events_close(&events);
	if (!bad && copy_to_user(u64_to_user_ptr(run->context), capsule->context, CYCLESCOPE_CONTEXT_BYTES))
		bad = -EFAULT;
	return bad;
}
