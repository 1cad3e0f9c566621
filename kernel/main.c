// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The device: runs programs in ring 0 for the cyclescope command, which is root.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#if __has_include(<linux/panic.h>)
#include <linux/panic.h>
#endif
#include <asm/cpufeature.h>
#include <asm/msr-index.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>
#include <asm/tsc.h>
#include "module.h"

/* The Rust side asserts the same numbers next to its structs, so that neither side compiles if
 * they differ. */
static_assert(sizeof(struct cyclescope_info) == 80);
static_assert(offsetof(struct cyclescope_info, arena) == 16);
static_assert(offsetof(struct cyclescope_info, most_area_bytes) == 40);
static_assert(offsetof(struct cyclescope_info, longest_deadline_us) == 72);
static_assert(sizeof(struct cyclescope_area) == 16);
static_assert(sizeof(struct cyclescope_areas) == 24);
static_assert(sizeof(struct cyclescope_fill) == 24);
static_assert(sizeof(struct cyclescope_piece) == 16);
static_assert(sizeof(struct cyclescope_call) == 16);
static_assert(sizeof(struct cyclescope_sample) == 16);
static_assert(sizeof(struct cyclescope_outcome) == 88);
static_assert(offsetof(struct cyclescope_outcome, ip_offset) == 40);
static_assert(offsetof(struct cyclescope_outcome, tsc) == 64);
static_assert(sizeof(struct cyclescope_event) == 40);
static_assert(sizeof(struct cyclescope_event_trial) == 40);
static_assert(sizeof(struct cyclescope_run) == 208);
static_assert(offsetof(struct cyclescope_run, warm_up) == 56);
static_assert(offsetof(struct cyclescope_run, seed) == 80);
static_assert(offsetof(struct cyclescope_run, fills) == 104);
static_assert(offsetof(struct cyclescope_run, event_list) == 112);
static_assert(offsetof(struct cyclescope_run, outcome) == 120);

/* Limits open files: each may hold a capsule of some 10 MiB and MOST_AREA_BYTES. */
#define MOST_OPENED	8

#define CR4_FRED	(1ul << 32)
#define MSR_SUPERVISOR_CET	0x6a2
#define SHADOW_STACK_ENABLED	1
#define LEAF_TDX	0x21
#define LEAF_SEV	0x8000001f
#define LEAF_SEV_BIT	2
#define SEV_STATUS	0xc0010131
#define SEV_STATUS_ES	(1ull << 1)

DEFINE_MUTEX(one_run);
static atomic_t opened = ATOMIC_INIT(0);

static char *refused = "";
module_param(refused, charp, 0444);
MODULE_PARM_DESC(refused, "why code can't be run here (read only; empty where it can)");
static bool markers_only;
module_param(markers_only, bool, 0444);
MODULE_PARM_DESC(markers_only, "take no code to run, only the numbers of markers");
/* The reason excludes markers too. */
static bool closed;

/* Not the kernel's function, whose header moves between versions. */
static void query_cpuid(u32 leaf, u32 answer[4])
{
	asm volatile("cpuid"
		     : "=a"(answer[0]), "=b"(answer[1]), "=c"(answer[2]), "=d"(answer[3])
		     : "a"(leaf), "c"(0));
}

/* Whether the processor has a leaf of the range that begins at `first`. */
static bool has_leaf(u32 first, u32 leaf)
{
	u32 answer[4];

	query_cpuid(first, answer);
	return answer[0] >= leaf;
}

/* Guests whose CPUID or MSRs fault into handlers that the capsule lacks (#VC, #VE). */
static bool is_encrypted_guest(void)
{
	u32 answer[4];

	if (has_leaf(0, LEAF_TDX)) {
		query_cpuid(LEAF_TDX, answer);
		if (answer[1] == 0x65746e49 && answer[3] == 0x5844546c) /* "IntelTDX" */
			return true;
	}
	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR) || !has_leaf(0x80000000, LEAF_SEV))
		return false;
	query_cpuid(LEAF_SEV, answer);
	/* If CPUID has SEV, the kernel itself has read this register during the boot. */
	return answer[0] & LEAF_SEV_BIT && get_msr(SEV_STATUS) & SEV_STATUS_ES;
}

/* The capsule's way out returns with IRETQ, which would need a token on such a stack. */
static bool has_supervisor_shadow_stack(void)
{
	return __read_cr4() & CR4_CET && get_msr(MSR_SUPERVISOR_CET) & SHADOW_STACK_ENABLED;
}

static char *reason_against_all(void)
{
	if (boot_cpu_has(X86_FEATURE_XENPV))
		return "a Xen PV guest does not own its descriptor tables";
	if (is_encrypted_guest())
		return "in an SEV-ES, SEV-SNP or TDX guest ordinary instructions raise exceptions for the guest's kernel";
	if (!boot_cpu_has(X86_FEATURE_NX) || !boot_cpu_has(X86_FEATURE_XMM2))
		return "the processor has no NX or no SSE2";
	if (!tsc_khz)
		return "the kernel does not know the rate of the time stamp counter";
	return "";
}

static char *reason_against_code(void)
{
	if (markers_only)
		return "the module was loaded for markers only (markers_only=1)";
	if (__read_cr4() & CR4_FRED)
		return "with FRED, exceptions do not go through the IDT: markers alone can run; boot with fred=off";
	if (has_supervisor_shadow_stack())
		return "the kernel uses a shadow stack of its own";
	if (!registers_cr4_works())
		return "a hypervisor forbids the change of CR4 around measured code";
	return "";
}

static int device_open(struct inode *inode, struct file *file)
{
	/* Code for the device has the rights of a module. */
	if (!capable(CAP_SYS_RAWIO) || !capable(CAP_SYS_MODULE))
		return -EPERM;
	if (security_locked_down(LOCKDOWN_DEV_MEM))
		return -EACCES;
	if (closed)
		return -ENODEV;
	if (atomic_inc_return(&opened) > MOST_OPENED) {
		atomic_dec(&opened);
		return -EBUSY;
	}
	file->private_data = NULL;
	return nonseekable_open(inode, file);
}

static int device_release(struct inode *inode, struct file *file)
{
	markers_release(file);
	if (file->private_data)
		capsule_free(file->private_data);
	atomic_dec(&opened);
	return 0;
}

static void fill_info(struct cyclescope_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->version = CYCLESCOPE_VERSION;
	if (!*refused)
		info->flags |= CYCLESCOPE_INFO_RUN;
	if (registers.aperf)
		info->flags |= CYCLESCOPE_INFO_APERF;
	if (deadline_possible())
		info->flags |= CYCLESCOPE_INFO_DEADLINE;
	info->tsc_khz = tsc_khz;
	info->arena = ARENA_AT;
	info->context = CONTEXT_AT;
	info->eviction = EVICTION_AT;
	info->most_area_bytes = MOST_AREA_BYTES;
	info->arena_bytes = ARENA_BYTES;
	info->eviction_bytes = EVICTION_BYTES;
	info->most_areas = MOST_AREAS;
	info->most_pieces = MOST_PIECES;
	info->most_calls = MOST_CALLS;
	info->longest_slice_us = LONGEST_SLICE_US;
	info->longest_deadline_us = LONGEST_DEADLINE_US;
}

static long get_info(void __user *user)
{
	struct cyclescope_info info;

	if (copy_from_user(&info, user, offsetof(struct cyclescope_info, flags)))
		return -EFAULT;
	if (info.size != sizeof(info) || info.version != CYCLESCOPE_VERSION)
		return -EINVAL;
	fill_info(&info);
	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

/* The file's capsule, created by its first run. */
static struct capsule *capsule_of(struct file *file)
{
	if (!file->private_data)
		file->private_data = capsule_new();
	return file->private_data;
}

/* Checked for each run, because a kernel can be locked down at any time. */
static int may_run(void)
{
	if (*refused)
		return -ENODEV;
	if (security_locked_down(LOCKDOWN_DEV_MEM))
		return -EACCES;
	return 0;
}

static long run(struct file *file, void __user *user)
{
	struct cyclescope_run run;
	struct capsule *capsule;
	long answer = may_run();

	if (answer)
		return answer;
	if (copy_from_user(&run, user, 2 * sizeof(u32)))
		return -EFAULT;
	if (run.size != sizeof(run) || run.version != CYCLESCOPE_VERSION)
		return -EINVAL;
	if (copy_from_user(&run, user, sizeof(run)))
		return -EFAULT;
	run.size = sizeof(run);
	run.version = CYCLESCOPE_VERSION;
	memset(&run.outcome, 0, sizeof(run.outcome));
	if (mutex_lock_interruptible(&one_run))
		return -ERESTARTSYS;
	capsule = capsule_of(file);
	/* Reports of the kernel from here on say that root has run code in it. */
	add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	answer = capsule ? run_layout(capsule, &run) : -ENOMEM;
	mutex_unlock(&one_run);
	if (!answer && copy_to_user(user, &run, sizeof(run)))
		return -EFAULT;
	return answer;
}

/* Whether areas of these sizes are allowed. */
static int check_areas(const struct cyclescope_area *areas, u32 count)
{
	u64 bytes = 0;
	u32 index;

	for (index = 0; index < count; index++) {
		if (!areas[index].bytes || offset_in_page(areas[index].bytes))
			return -EINVAL;
		if (areas[index].bytes > MOST_AREA_BYTES - bytes)
			return -ENOSPC;
		bytes += areas[index].bytes;
	}
	return 0;
}

static int replace_areas(struct capsule *capsule, struct cyclescope_area *areas, u32 count)
{
	u32 index;
	int bad;

	bad = capsule_set_areas(capsule, areas, 0) ?: check_areas(areas, count) ?:
	      capsule_set_areas(capsule, areas, count);
	for (index = 0; !bad && index < count; index++)
		areas[index].address = capsule->areas[index].at;
	return bad;
}

static long set_areas(struct file *file, void __user *user)
{
	struct cyclescope_area areas[MOST_AREAS];
	struct cyclescope_areas wanted;
	struct capsule *capsule;
	void __user *list;
	size_t bytes;
	int bad;

	if (copy_from_user(&wanted, user, sizeof(wanted)))
		return -EFAULT;
	if (wanted.size != sizeof(wanted) || wanted.version != CYCLESCOPE_VERSION || wanted.flags)
		return -EINVAL;
	if (*refused)
		return -ENODEV;
	if (wanted.areas > MOST_AREAS)
		return -ENOSPC;
	list = u64_to_user_ptr(wanted.area_list);
	bytes = wanted.areas * sizeof(*areas);
	if (copy_from_user(areas, list, bytes))
		return -EFAULT;
	if (mutex_lock_interruptible(&one_run))
		return -ERESTARTSYS;
	capsule = capsule_of(file);
	bad = capsule ? replace_areas(capsule, areas, wanted.areas) : -ENOMEM;
	mutex_unlock(&one_run);
	if (!bad && copy_to_user(list, areas, bytes))
		bad = -EFAULT;
	return bad;
}

/* Has the lock of runs, because each event takes a counter from the others. */
static long try_events(void __user *user)
{
	long answer = may_run();

	if (answer)
		return answer;
	if (mutex_lock_interruptible(&one_run))
		return -ERESTARTSYS;
	answer = events_try(user);
	mutex_unlock(&one_run);
	return answer;
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	switch (command) {
	case CYCLESCOPE_GET_INFO:
		return get_info((void __user *)argument);
	case CYCLESCOPE_RUN:
		return run(file, (void __user *)argument);
	case CYCLESCOPE_SET_AREAS:
		return set_areas(file, (void __user *)argument);
	case CYCLESCOPE_TRY_EVENTS:
		return try_events((void __user *)argument);
	default:
		return markers_ioctl(file, command, (void __user *)argument);
	}
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "cyclescope",
	.fops = &operations,
	.mode = 0600,
};

static int __init module_begin(void)
{
	int bad;

	refused = reason_against_all();
	closed = *refused;
	if (!closed)
		refused = reason_against_code();
	if (*refused)
		pr_warn("refused: %s\n", refused);
	bad = nmis_init();
	if (bad)
		return bad;
	if (!*refused) {
		registers_init();
		nmis_test();
		if (!nmis_works() && num_online_cpus() > 1)
			pr_warn("an NMI did not arrive: nothing can end code that runs too long\n");
	}
	deadline_init();
	bad = misc_register(&device);
	if (bad)
		nmis_exit();
	return bad;
}

static void __exit module_end(void)
{
	misc_deregister(&device);
	nmis_exit();
}

module_init(module_begin);
module_exit(module_end);

MODULE_DESCRIPTION("Runs code to be measured in ring 0, in an address space of its own");
MODULE_AUTHOR("The cyclescope project");
MODULE_LICENSE("Dual MIT/GPL");
