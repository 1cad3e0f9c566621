// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The list of markers, and their switches.
 *
 * Enabled sites are state of the whole module. The open file that enabled one owns this state
 * until all sites are off again, at the latest when the file is closed.
 */
#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "markers/marker.h"
#include "module.h"

#ifndef CONFIG_KALLSYMS
#error "the lengths of markers are in the symbols that a kernel without KALLSYMS does not keep"
#endif

/* The Rust side asserts the same numbers next to its structs. */
static_assert(sizeof(struct cyclescope_marker_code) == 56);
static_assert(offsetof(struct cyclescope_marker_code, name) == 16);
static_assert(offsetof(struct cyclescope_marker_code, address) == 48);
static_assert(sizeof(struct cyclescope_marker_bytes) == 24);
static_assert(sizeof(struct cyclescope_marker_switch) == 20);
static_assert(sizeof(struct cyclescope_marker_call) == 8);
static_assert(sizeof(struct cyclescope_marker_run) == 80);
static_assert(offsetof(struct cyclescope_marker_run, call_list) == 32);
static_assert(offsetof(struct cyclescope_marker_run, slice_us) == 56);
static_assert(offsetof(struct cyclescope_marker_run, hits) == 64);

#define MARKER(design)	extern const struct marker_design marker_##design;
#include "markers/list.h"
#undef MARKER

static const struct marker_design *const designs[] = {
#define MARKER(design)	&marker_##design,
#include "markers/list.h"
#undef MARKER
};

/* Source and target must not be congruent modulo 4096: loads would wait for stores that only
 * seem to have their address (Intel optimization manual, 4-KByte aliasing). */
static struct {
	u8 from[CYCLESCOPE_MARKER_COPIED];
	u8 apart[320];
	u8 to[CYCLESCOPE_MARKER_COPIED];
} memory __aligned(PAGE_SIZE);
u8 *marker_to __read_mostly = memory.to;
u8 *marker_from __read_mostly = memory.from;

/* Taken before `one_run`. The owner never waits for it long, not even to close: others get
 * EBUSY. */
static DEFINE_MUTEX(sites);
static struct file *owner;
static bool enabled[ARRAY_SIZE(designs)];

static const struct marker_code *find(u32 number, u32 *design)
{
	for (*design = 0; *design < ARRAY_SIZE(designs); ++*design) {
		if (number < designs[*design]->count)
			return designs[*design]->codes + number;
		number -= designs[*design]->count;
	}
	return NULL;
}

const struct marker_code *marker_code(u32 number)
{
	u32 design;

	return find(number, &design);
}

/* The length of a code in bytes, from the module's own symbols: compilers don't report it, and
 * only GNU's assembler does. */
static u32 length_of(const struct marker_code *code)
{
	const struct mod_kallsyms *symbols = &THIS_MODULE->core_kallsyms;
	unsigned int index;

	for (index = 0; index < symbols->num_symtab; index++)
		if (symbols->symtab[index].st_value == (unsigned long)code->run && symbols->symtab[index].st_size)
			return symbols->symtab[index].st_size;
	return 0;
}

static void disable(u32 design)
{
	if (!enabled[design])
		return;
	designs[design]->connect(CYCLESCOPE_PROBE_DORMANT);
	enabled[design] = false;
}

static int enable(u32 design, u32 probe)
{
	int bad;

	/* A design may refuse some of the probes itself. */
	if (!designs[design]->connect || !marker_probes[probe])
		return -EOPNOTSUPP;
	bad = designs[design]->connect(probe);
	enabled[design] = !bad;
	return bad;
}

static void settle_owner(struct file *file)
{
	WRITE_ONCE(owner, memchr(enabled, true, sizeof(enabled)) ? file : NULL);
}

void markers_release(struct file *file)
{
	u32 design;

	/* Only a call on this file could make it the owner, and all its calls have ended. */
	if (READ_ONCE(owner) != file)
		return;
	mutex_lock(&sites);
	for (design = 0; design < ARRAY_SIZE(designs); design++)
		disable(design);
	WRITE_ONCE(owner, NULL);
	mutex_unlock(&sites);
}

static long describe(struct file *file, void *argument)
{
	struct cyclescope_marker_code *code = argument;
	const struct marker_code *found = find(code->code, &code->design);

	if (!found)
		return -ENOENT;
	memset(code->name, 0, sizeof(code->name));
	strscpy(code->name, designs[code->design]->name, sizeof(code->name));
	code->guard = found->guard;
	code->around = found->around;
	code->placement = found->placement;
	code->bytes = length_of(found);
	code->address = (u64)found->run;
	return 0;
}

static long read_bytes(struct file *file, void *argument)
{
	struct cyclescope_marker_bytes *bytes = argument;
	const struct marker_code *found = marker_code(bytes->code);

	if (!found)
		return -ENOENT;
	if (bytes->bytes != length_of(found))
		return -EINVAL;
	return copy_to_user(u64_to_user_ptr(bytes->buffer), found->run, bytes->bytes) ? -EFAULT : 0;
}

static long switch_design(struct file *file, void *argument)
{
	const struct cyclescope_marker_switch *wanted = argument;
	long bad = 0;

	if (wanted->flags || wanted->design >= ARRAY_SIZE(designs) || wanted->probe > CYCLESCOPE_PROBE_COUNTING)
		return -EINVAL;
	disable(wanted->design);
	if (wanted->probe != CYCLESCOPE_PROBE_DORMANT)
		bad = enable(wanted->design, wanted->probe);
	settle_owner(file);
	return bad;
}

static long run(struct file *file, void *argument)
{
	long answer;

	if (mutex_lock_interruptible(&one_run))
		return -ERESTARTSYS;
	answer = markers_run(argument);
	mutex_unlock(&one_run);
	return answer;
}

static const struct {
	unsigned int command;
	/* Needs the sites exclusively; the other calls only read. */
	bool alone;
	long (*run)(struct file *file, void *argument);
} calls[] = {
	{ CYCLESCOPE_MARKER_CODE, false, describe },
	{ CYCLESCOPE_MARKER_BYTES, false, read_bytes },
	{ CYCLESCOPE_MARKER_SWITCH, true, switch_design },
	{ CYCLESCOPE_MARKER_RUN, true, run },
};

static long cyclescope_marker_call(struct file *file, u32 call, void *argument)
{
	long answer;

	if (!calls[call].alone)
		return calls[call].run(file, argument);
	if (mutex_lock_interruptible(&sites))
		return -ERESTARTSYS;
	if (owner && owner != file)
		answer = -EBUSY;
	else
		answer = calls[call].run(file, argument);
	mutex_unlock(&sites);
	return answer;
}

long markers_ioctl(struct file *file, unsigned int command, void __user *user)
{
	union {
		struct { u32 size, version; } head;
		struct cyclescope_marker_code code;
		struct cyclescope_marker_bytes bytes;
		struct cyclescope_marker_switch wanted;
		struct cyclescope_marker_run run;
	} argument;
	u32 call, size = _IOC_SIZE(command);
	long bad;

	for (call = 0; call < ARRAY_SIZE(calls) && calls[call].command != command; call++)
		;
	if (call == ARRAY_SIZE(calls))
		return -ENOTTY;
	if (copy_from_user(&argument, user, sizeof(argument.head)))
		return -EFAULT;
	if (argument.head.size != size || argument.head.version != CYCLESCOPE_VERSION)
		return -EINVAL;
	if (copy_from_user(&argument, user, size))
		return -EFAULT;
	argument.head.size = size;
	argument.head.version = CYCLESCOPE_VERSION;
	bad = cyclescope_marker_call(file, call, &argument);
	if (!bad && copy_to_user(user, &argument, size))
		return -EFAULT;
	return bad;
}
