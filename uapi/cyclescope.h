/* SPDX-License-Identifier: MIT OR (GPL-2.0 WITH Linux-syscall-note) */
/*
 * The interface between cyclescope and its kernel module.
 *
 * Every struct begins with its own size and with the version of this interface. The module
 * accepts only a struct of the size that its version has (else EINVAL), and refuses unknown
 * flags (EINVAL). It has no policy: bytes in, raw clock readings out.
 */
#ifndef CYCLESCOPE_UAPI_H
#define CYCLESCOPE_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define CYCLESCOPE_VERSION 4

/* Bytes of the page that holds a program's context. */
#define CYCLESCOPE_CONTEXT_BYTES 4096
/* Offset of the context in that page. */
#define CYCLESCOPE_CONTEXT_AT 512

/* Features of the machine (cyclescope_info.flags). */
/* APERF and MPERF are read around each slice. */
#define CYCLESCOPE_INFO_APERF (1u << 0)
/* A second CPU exists whose NMI ends code that runs too long; the test NMI arrived when the
 * module was loaded. */
#define CYCLESCOPE_INFO_DEADLINE (1u << 1)
/* Code can be run here; without it RUN and SET_AREAS return ENODEV. Markers don't depend on it. */
#define CYCLESCOPE_INFO_RUN (1u << 2)

/* Addresses of a program in ring 0, and limits of a run. All addresses are those of the private
 * address space in which measured code runs. They stay the same as long as the module is
 * loaded. */
struct cyclescope_info {
	__u32 size;
	__u32 version;
	__u32 flags;
	/* The kernel's calibrated frequency of the time stamp counter, kHz. */
	__u32 tsc_khz;
	/* The code arena. */
	__u64 arena;
	/* The page that holds the context. */
	__u64 context;
	/* The pages that programs with a cold start read through, all zero, eviction_bytes in
	 * total. */
	__u64 eviction;
	/* Largest number of bytes in all memory areas of one open file together. */
	__u64 most_area_bytes;
	__u32 arena_bytes;
	__u32 eviction_bytes;
	/* Largest number of memory areas of one open file. */
	__u32 most_areas;
	/* Largest numbers of pieces of code in a run, and of calls in a round. */
	__u32 most_pieces;
	__u32 most_calls;
	/* The longest slice and the longest deadline, µs. */
	__u32 longest_slice_us;
	__u32 longest_deadline_us;
};

/* A memory area of measured code: memory that it may read and write, between unmapped pages. */
struct cyclescope_area {
	/* Whole pages, at least one. */
	__u64 bytes;
	/* Output: its address. The same list of sizes gives the same addresses. */
	__u64 address;
};

/* The memory areas of an open file's later runs. They replace earlier ones and hold zeros. A
 * file has none at first. ENOSPC beyond the limits of cyclescope_info: for too many areas the
 * file keeps its earlier ones, for too many bytes it loses them. */
struct cyclescope_areas {
	__u32 size;
	__u32 version;
	/* 0: no flag is defined. */
	__u32 flags;
	__u32 areas;
	/* struct cyclescope_area, read and written. */
	__u64 area_list;
};

/* cyclescope_fill.flags */
/* Fill the pages that were written to since they were last filled. */
#define CYCLESCOPE_FILL_WRITTEN (1u << 0)
/* Fill every page. */
#define CYCLESCOPE_FILL_ALL (1u << 1)

/* Contents of a memory area before the first round; unchanged without a flag. */
struct cyclescope_fill {
	__u32 flags;
	__u32 reserved;
	/* Address of the contents, of the area's size; 0: copies of `word`. */
	__u64 content;
	__u64 word;
};

/* A program, and its offset in the arena. */
struct cyclescope_piece {
	__u32 offset;
	__u32 bytes;
	__u64 code;
};

/* One call of a round. */
struct cyclescope_call {
	/* Offset of the program in the arena. */
	__u32 offset;
	__u32 reserved;
	/* Written to the context's loop_count. */
	__u64 loop_count;
};

/* Largest number of events that count at the same time. */
#define CYCLESCOPE_MOST_EVENTS 8

/* A performance event of ring 0: `type`, `config`, `config1` and `config2` of perf_event_open(2).
 * Breakpoints are refused (EINVAL). */
struct cyclescope_event {
	__u32 type;
	__u32 reserved;
	__u64 config;
	__u64 config1;
	__u64 config2;
	/* Output of RUN: its count in all rounds of cyclescope_outcome.counted_rounds. */
	__u64 count;
};

/* Opens events one after another, on one CPU, until one does not count. Closes all of them. */
struct cyclescope_event_trial {
	__u32 size;
	__u32 version;
	/* 0: no flag is defined. */
	__u32 flags;
	__u32 cpu;
	/* Number of events, at least 1. */
	__u32 events;
	/* Output: how many of them count at the same time, from the first one. */
	__u32 fitting;
	/* Output: the error number of the next one; EBUSY if it has no counter, 0 if there is none. */
	__u32 error;
	__u32 reserved;
	/* struct cyclescope_event */
	__u64 event_list;
};

/* One sample: the clock's raw readings. */
struct cyclescope_sample {
	__u64 start;
	__u64 end;
};

/* cyclescope_run.flags */
/* Run even if no second CPU could end an endless loop. Without this flag such a run returns
 * EOPNOTSUPP. */
#define CYCLESCOPE_RUN_UNGUARDED (1u << 0)

/* cyclescope_outcome.status */
enum cyclescope_status {
	/* All rounds are done. */
	CYCLESCOPE_DONE = 0,
	/* The code raised an exception: vector, error_code, ip, cr2. */
	CYCLESCOPE_FAULT = 1,
	/* A slice, or the attempts at one round, took longer than the deadline: ip. */
	CYCLESCOPE_DEADLINE = 2,
	/* A program returned without a clock reading. */
	CYCLESCOPE_NO_READING = 3,
	/* A wild jump reached the way out of the private address space, or the driver's notes
	 * are damaged. */
	CYCLESCOPE_ASTRAY = 4,
};

/* cyclescope_outcome.changed: state that the code changed and the module restored. */
#define CYCLESCOPE_CHANGED_CR0 (1u << 0)
#define CYCLESCOPE_CHANGED_CR8 (1u << 1)
#define CYCLESCOPE_CHANGED_DEBUG (1u << 2)
#define CYCLESCOPE_CHANGED_SEGMENTS (1u << 3)
#define CYCLESCOPE_CHANGED_BASES (1u << 4)
#define CYCLESCOPE_CHANGED_TABLES (1u << 5)
#define CYCLESCOPE_CHANGED_XCR0 (1u << 6)
#define CYCLESCOPE_CHANGED_PKRU (1u << 7)
#define CYCLESCOPE_CHANGED_TSC_AUX (1u << 8)
#define CYCLESCOPE_CHANGED_CR4 (1u << 9)

/* Value of ip_offset if the instruction is outside the arena. */
#define CYCLESCOPE_NOWHERE 0xffffffffu

/* Result of a run, written by the module. */
struct cyclescope_outcome {
	__u32 status;
	__u32 vector;
	__u64 error_code;
	__u64 ip;
	__u64 sp;
	__u64 cr2;
	/* Offset of ip in the arena, or CYCLESCOPE_NOWHERE. */
	__u32 ip_offset;
	__u32 changed;
	/* Timed rounds whose samples are written. */
	__u32 rounds_done;
	/* Number of slices, and of rounds that ran again after an interrupt or NMI. */
	__u32 slices;
	__u32 repeated;
	/* Number of rounds in which the events were counted: those in slices that no interrupt or
	 * NMI ended. 0 without events. */
	__u32 counted_rounds;
	/* Increments of TSC, APERF and MPERF in the slices. */
	__u64 tsc;
	__u64 aperf;
	__u64 mperf;
};

/* One layout: programs, the calls of a round, the number of rounds. EACCES once the kernel is
 * locked down. An event that can't be opened has its own error number, EBUSY if no counter is
 * free; ENODATA if one loses its counter. */
struct cyclescope_run {
	__u32 size;
	__u32 version;
	__u32 flags;
	/* The CPU that the caller is pinned to. ESTALE if it runs on another one, or this
	 * number does not exist. */
	__u32 cpu;
	__u32 pieces;
	__u32 calls;
	/* struct cyclescope_piece, struct cyclescope_call. */
	__u64 piece_list;
	__u64 call_list;
	/* CYCLESCOPE_CONTEXT_BYTES, copied in before the first round and out after the last. */
	__u64 context;
	/* Memory for rounds * calls samples. */
	__u64 samples;
	/* Numbers of untimed rounds and of timed ones. */
	__u32 warm_up;
	__u32 rounds;
	/* Largest number of iterations of a one-cycle delay loop before each call, at least 1. */
	__u32 delay;
	/* Time in µs after which interrupts are let in, between two rounds. Codes with
	 * CYCLESCOPE_GUARD_INTERRUPTS let them in, too. */
	__u32 slice_us;
	/* Time in µs after which an NMI ends a slice; more than slice_us. */
	__u32 deadline_us;
	/* Time limit of the whole run in ms; it then ends as if the deadline had passed. */
	__u32 total_ms;
	/* Seed of the delays. */
	__u64 seed;
	/* struct cyclescope_fill, one for each of the file's areas. */
	__u64 fill_list;
	/* The value that both readings hold before each call. */
	__u64 unread;
	/* Number of fills: EINVAL unless it equals the number of the file's areas. */
	__u32 fills;
	/* Number of events to count; EINVAL if there are some and an untimed round. */
	__u32 events;
	/* struct cyclescope_event, read and written. */
	__u64 event_list;
	struct cyclescope_outcome outcome;
};

/*
 * Markers: instrumentation sites in the module's own code, in every design of the module. A
 * *code* is one function, a loop around one site. Codes are numbered from 0, sorted by design.
 * The design that is switched on is state of the module, and belongs to the open file that
 * switched it. Any other that switches or runs gets EBUSY.
 */

/* Bytes of a design's name, including the terminator. */
#define CYCLESCOPE_MARKER_NAME_BYTES 16
/* Bytes that one iteration of a memcpy context copies. */
#define CYCLESCOPE_MARKER_COPIED 4096
/* Largest number of calls in a round. */
#define CYCLESCOPE_MARKER_MOST_CALLS 512
/* Largest number of iterations of the delay before a call. */
#define CYCLESCOPE_MARKER_MOST_DELAY 1024
/* Largest number of iterations in a round, over all its calls, so that interrupts wait for at
 * most some milliseconds. One around a memcpy counts as CYCLESCOPE_MARKER_COPY_WEIGHT. */
#define CYCLESCOPE_MARKER_MOST_WORK 32768
#define CYCLESCOPE_MARKER_COPY_WEIGHT 4
/* The longest slice, µs. */
#define CYCLESCOPE_MARKER_LONGEST_SLICE_US 5000

/* Code around the call of the probe. */
enum cyclescope_guard {
	CYCLESCOPE_GUARD_BARE = 0,
	/* preempt_disable and preempt_enable. */
	CYCLESCOPE_GUARD_PREEMPTION = 1,
	/* The design's own guard in the kernel. */
	CYCLESCOPE_GUARD_OWN = 2,
	/* local_irq_disable and local_irq_enable: interrupts are let in between the calls, and off again when the code ends. */
	CYCLESCOPE_GUARD_INTERRUPTS = 3,
};

/* Further work of the loop. */
enum cyclescope_surroundings {
	CYCLESCOPE_AROUND_NOTHING = 0,
	CYCLESCOPE_AROUND_MEMCPY = 1,
};

/* The probe that an enabled site calls, always with the arguments "%d %p", 1, NULL or, from a tracepoint, 1, NULL. */
enum cyclescope_probe {
	/* Nothing: the site is off. */
	CYCLESCOPE_PROBE_DORMANT = 0,
	CYCLESCOPE_PROBE_EMPTY = 1,
	/* Takes its arguments as parameters. */
	CYCLESCOPE_PROBE_DIRECT = 2,
	/* Takes its arguments by va_arg, with known types. */
	CYCLESCOPE_PROBE_VARARGS = 3,
	/* Takes its arguments through the format string. */
	CYCLESCOPE_PROBE_FORMAT = 4,
	/* Counts its calls: cyclescope_marker_run.hits. */
	CYCLESCOPE_PROBE_COUNTING = 5,
};

/* Chains of known length in core cycles, each in one cache line. cyclescope_marker_call.code is
 * one of these or the number of a code. Per iteration: 4 or 14 links of dependent imul, 8 or 24
 * of dependent add, 24 of independent add. */
enum cyclescope_marker_ruler {
	CYCLESCOPE_RULER_IMUL_SHORT = 0x80000000,
	CYCLESCOPE_RULER_IMUL_LONG = 0x80000001,
	CYCLESCOPE_RULER_ADD_SHORT = 0x80000002,
	CYCLESCOPE_RULER_ADD_LONG = 0x80000003,
	CYCLESCOPE_RULER_SENTINEL = 0x80000004,
};

/* Description of a code. ENOENT past the last one. */
struct cyclescope_marker_code {
	__u32 size;
	__u32 version;
	/* Input: its number. All other fields are output. */
	__u32 code;
	/* The number of its design. */
	__u32 design;
	char name[CYCLESCOPE_MARKER_NAME_BYTES];
	/* enum cyclescope_guard, enum cyclescope_surroundings. */
	__u32 guard;
	__u32 around;
	/* Offset of its loop from the start of a cache line. */
	__u32 placement;
	/* Its length in bytes. */
	__u32 bytes;
	__u64 address;
};

/* The current bytes of a code. */
struct cyclescope_marker_bytes {
	__u32 size;
	__u32 version;
	__u32 code;
	/* Length of the code: EINVAL for any other value. */
	__u32 bytes;
	__u64 buffer;
};

/* Switches all sites of one design on or off. EOPNOTSUPP for a probe that the design or this kernel lacks. */
struct cyclescope_marker_switch {
	__u32 size;
	__u32 version;
	/* 0: no flag is defined. */
	__u32 flags;
	__u32 design;
	/* enum cyclescope_probe */
	__u32 probe;
};

/* One call of a round: a number of iterations of a code or of a ruler. */
struct cyclescope_marker_call {
	__u32 code;
	__u32 loops;
};

/* Rounds of calls, each timed by LFENCE, RDTSC, LFENCE on both sides. */
struct cyclescope_marker_run {
	__u32 size;
	__u32 version;
	/* 0: no flag is defined. */
	__u32 flags;
	/* The CPU that the caller is pinned to. ESTALE if it runs on another one. */
	__u32 cpu;
	__u32 calls;
	/* Numbers of untimed rounds and of timed ones. */
	__u32 warm_up;
	__u32 rounds;
	/* Largest number of iterations of a one-cycle delay loop before each call, at least 1. */
	__u32 delay;
	/* struct cyclescope_marker_call */
	__u64 call_list;
	/* Memory for rounds * calls of struct cyclescope_sample. */
	__u64 samples;
	/* Seed of the delays. */
	__u64 seed;
	/* Time in µs after which interrupts are let in, between two rounds. */
	__u32 slice_us;
	/* Time limit of the whole run in ms; it then ends early. */
	__u32 total_ms;
	/* Output from here on. Calls of the counting probe, including the warm-up. */
	__u64 hits;
	/* Timed rounds whose samples are written. */
	__u32 rounds_done;
	__u32 slices;
};

#define CYCLESCOPE_GET_INFO _IOWR('y', 0x40, struct cyclescope_info)
#define CYCLESCOPE_RUN _IOWR('y', 0x41, struct cyclescope_run)
#define CYCLESCOPE_SET_AREAS _IOWR('y', 0x42, struct cyclescope_areas)
#define CYCLESCOPE_TRY_EVENTS _IOWR('y', 0x43, struct cyclescope_event_trial)
/* 0x50 to 0x5f are for markers. */
#define CYCLESCOPE_MARKER_CODE _IOWR('y', 0x50, struct cyclescope_marker_code)
#define CYCLESCOPE_MARKER_BYTES _IOWR('y', 0x51, struct cyclescope_marker_bytes)
#define CYCLESCOPE_MARKER_SWITCH _IOWR('y', 0x52, struct cyclescope_marker_switch)
#define CYCLESCOPE_MARKER_RUN _IOWR('y', 0x53, struct cyclescope_marker_run)

#endif
