/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The capsule: the private address space in which measured code runs.
 *
 * Its memory layout, for C and for assembly.
 */
#ifndef CYCLESCOPE_CAPSULE_H
#define CYCLESCOPE_CAPSULE_H

/* Lies in a slot of the top-level table that neither the module's text nor the CPU's entry area
 * uses. */
#define CAPSULE_BASE	0xffff960000000000
#define CAPSULE_GUARD	0x10000
#define ARENA_BYTES	0x400000
#define SAMPLES_BYTES	0x400000
#define CALLS_BYTES	0x10000
#define STACK_BYTES	0x4000
#define EVICTION_BYTES	0x2000000

#define ARENA_AT	(CAPSULE_BASE + CAPSULE_GUARD)
#define CONTROL_AT	(ARENA_AT + ARENA_BYTES + CAPSULE_GUARD)
#define CALLS_AT	(CONTROL_AT + 0x1000 + CAPSULE_GUARD)
#define CONTEXT_AT	(CALLS_AT + CALLS_BYTES + CAPSULE_GUARD)
#define PROGRESS_AT	(CONTEXT_AT + 0x1000 + CAPSULE_GUARD)
#define SAMPLES_AT	(PROGRESS_AT + 0x1000 + CAPSULE_GUARD)
#define STACK_AT	(SAMPLES_AT + SAMPLES_BYTES + CAPSULE_GUARD)
#define DRIVER_STACK_TOP	(STACK_AT + STACK_BYTES)
/* One page for each kind of event that may interrupt another. */
#define EVENTS_AT	(DRIVER_STACK_TOP + CAPSULE_GUARD)
#define EVICTION_AT	(EVENTS_AT + 0x8000 + CAPSULE_GUARD)
/* The memory areas, with guards in between, come last, because their sizes differ. */
#define AREAS_AT	(EVICTION_AT + EVICTION_BYTES + CAPSULE_GUARD)

/* struct capsule_control: read-only in the capsule. */
#define CONTROL_KERNEL_CR3	0
#define CONTROL_KERNEL_CR4	8
#define CONTROL_KERNEL_RSP	16
#define CONTROL_KERNEL_GS	24
#define CONTROL_CAPSULE_CR3	32
#define CONTROL_CAPSULE_CR4	40
#define CONTROL_CALLS_END	48
#define CONTROL_WARM_UP		56
#define CONTROL_ROUNDS		64
#define CONTROL_SAMPLES_END	72
#define CONTROL_UNREAD		80
#define CONTROL_DELAY		88
#define CONTROL_SLICE_END	96
#define CONTROL_AVX		104
#define CONTROL_SELECTORS	112
#define CONTROL_VECTOR		120
#define CONTROL_ERROR_CODE	128
#define CONTROL_IP		136
#define CONTROL_SP		144
#define CONTROL_FLAGS		152
#define CONTROL_CR2		160
#define CONTROL_LEFT_GS		168
#define CONTROL_LEFT_CR4	176

/* struct capsule_progress: writable in the capsule. */
#define PROGRESS_ROUND		0
#define PROGRESS_RANDOM		8
#define PROGRESS_PENDING	16
#define PROGRESS_SELECTORS	24

/* The part of a program's context that the driver writes and reads, from its start. */
#define PROGRAM_CONTEXT		(CONTEXT_AT + 512)
#define CONTEXT_START		0
#define CONTEXT_END		8
#define CONTEXT_LOOP_COUNT	16

/* Reasons for leaving the capsule, in addition to the vectors of exceptions and interrupts, 0
 * to 255. */
#define LEFT_DONE		256
#define LEFT_SLICE		257
#define LEFT_NO_READING		258

/* Stacks of the interrupt stack table. */
#define STACK_FOR_NMI		2
#define STACK_FOR_MACHINE_CHECK	3
#define STACK_FOR_ALL		1

#endif
