// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Provokes effects of other parts of a kernel on the module. Each is a parameter; writing to it
 * starts the effect:
 *
 *   wide_idt=1             gives the IDT of each CPU the limit 0xffff, as a VM exit on Intel leaves it
 *   nmis="CPU BURSTS GAP"  sends bursts of NMIs to a CPU, in sequence: with GAP 0 single ones, else
 *                          two, at most GAP ns apart; each burst begins when the previous one has
 *                          been handled
 *
 * and only when the module is loaded:
 *
 *   lose_nmis=1            NMIs sent through this interface stop arriving
 *
 * Read back: taken, the number of NMIs that its handler has taken, and lost, of bursts that
 * nobody took.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/apic.h>
#include <asm/desc.h>
#include <asm/extable.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>
#include <asm/processor-flags.h>

#define PATIENCE_US	200000
#define MOST_PROBES	128

static unsigned int taken, lost, hits, refused;
module_param(taken, uint, 0444);
module_param(lost, uint, 0444);
module_param(hits, uint, 0444);
module_param(refused, uint, 0444);
static bool lose_nmis;
module_param(lose_nmis, bool, 0444);
static char *refuse = "";
module_param(refuse, charp, 0444);

static unsigned int target;
/* Number of reasons for the handler, one for each NMI that was sent. Like a counter's overflow,
 * the next NMI of any origin finds it. */
static atomic_t reasons = ATOMIC_INIT(0);
/* The NMI and its reason come together. */
static bool sending;
/* A CPU on which each second NMI finds no reason; none at first. */
static int both = -1;
module_param(both, int, 0644);
static bool first_came;

static int handle_nmi(unsigned int type, struct pt_regs *regs)
{
	int found;

	if (smp_processor_id() == both) {
		first_came = !first_came;
		return first_came;
	}
	if (smp_processor_id() != target)
		return NMI_DONE;
	while (READ_ONCE(sending))
		cpu_relax();
	found = atomic_xchg(&reasons, 0);
	taken += found;
	return found;
}

static void send(void)
{
	unsigned long flags;

	local_irq_save(flags);
	WRITE_ONCE(sending, true);
	apic->send_IPI(target, NMI_VECTOR);
	atomic_inc(&reasons);
	WRITE_ONCE(sending, false);
	local_irq_restore(flags);
}

static int set_nmis(const char *text, const struct kernel_param *parameter)
{
	unsigned int bursts, gap, waited;

	if (sscanf(text, "%u %u %u", &target, &bursts, &gap) != 3 || target >= nr_cpu_ids)
		return -EINVAL;
	while (bursts-- && !signal_pending(current)) {
		send();
		if (gap) {
			ndelay(get_random_u32() % gap);
			send();
		}
		for (waited = 0; atomic_read(&reasons) && waited < PATIENCE_US; waited++)
			udelay(1);
		lost += atomic_xchg(&reasons, 0) != 0;
		cond_resched();
	}
	return 0;
}

static const struct kernel_param_ops nmis_ops = { .set = set_nmis };
module_param_cb(nmis, &nmis_ops, NULL, 0200);

static void widen(void *unused)
{
	struct desc_ptr idt;

	store_idt(&idt);
	idt.size = 0xffff;
	load_idt(&idt);
}

static int set_wide_idt(const char *text, const struct kernel_param *parameter)
{
	on_each_cpu(widen, NULL, 1);
	return 0;
}

static const struct kernel_param_ops wide_idt_ops = { .set = set_wide_idt };
module_param_cb(wide_idt, &wide_idt_ops, NULL, 0200);

static struct kprobe probes[MOST_PROBES];
static char names[MOST_PROBES][KSYM_NAME_LEN];
static unsigned int probe_count;

static int count_hit(struct kprobe *probe, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static int set_probe(const char *text, const struct kernel_param *parameter)
{
	struct kprobe *probe = &probes[probe_count];
	int bad;

	if (probe_count == MOST_PROBES)
		return -ENOSPC;
	strscpy(names[probe_count], text, KSYM_NAME_LEN);
	*probe = (struct kprobe){ .symbol_name = strim(names[probe_count]), .pre_handler = count_hit };
	bad = register_kprobe(probe);
	probe_count += !bad;
	return bad;
}

static const struct kernel_param_ops probe_ops = { .set = set_probe };
module_param_cb(probe, &probe_ops, NULL, 0200);

/* Overwrites protected kernel memory; this is a test. */
static void overwrite(void *to, const void *from, size_t bytes)
{
	unsigned long flags, cr0;

	local_irq_save(flags);
	asm volatile("mov %%cr0, %0" : "=r"(cr0));
	asm volatile("mov %0, %%cr0" : : "r"(cr0 & ~X86_CR0_WP) : "memory");
	memcpy(to, from, bytes);
	asm volatile("mov %0, %%cr0" : : "r"(cr0) : "memory");
	local_irq_restore(flags);
}

static bool is_refused(const u8 *code)
{
	if (!strcmp(refuse, "msr"))
		return code[0] == 0x0f && (code[1] == 0x32 || code[1] == 0x30);
	/* Registers above the seventh need a prefix. */
	code += code[0] == 0x41;
	return code[0] == 0x0f && code[1] == 0x22 && (code[2] & 0x38) == 4 << 3;
}

/* UD2 replaces the instruction before any of the module's code runs. */
static int refuse_in(struct notifier_block *block, unsigned long state, void *data)
{
	struct module *module = data;
	unsigned int index;

	for (index = 0; state == MODULE_STATE_COMING && index < module->num_exentries; index++) {
		int *place = &module->extable[index].insn;
		u8 *code = (u8 *)place + *place;

		if (is_refused(code)) {
			overwrite(code, "\x0f\x0b", 2);
			refused++;
		}
	}
	return NOTIFY_DONE;
}

static struct notifier_block modules = { .notifier_call = refuse_in };

static void (*real_send)(int cpu, int vector);

static void lose(int cpu, int vector)
{
	if (vector != NMI_VECTOR)
		real_send(cpu, vector);
}

static void set_send(void (*send_IPI)(int cpu, int vector))
{
	overwrite(&apic->send_IPI, &send_IPI, sizeof(send_IPI));
}

static int __init disturber_begin(void)
{
	int bad = register_nmi_handler(NMI_LOCAL, handle_nmi, 0, "disturber");

	if (!bad && lose_nmis) {
		real_send = apic->send_IPI;
		set_send(lose);
	}
	if (!bad && *refuse)
		bad = register_module_notifier(&modules);
	return bad;
}

static void __exit disturber_end(void)
{
	if (lose_nmis)
		set_send(real_send);
	if (*refuse)
		unregister_module_notifier(&modules);
	while (probe_count)
		unregister_kprobe(&probes[--probe_count]);
	unregister_nmi_handler(NMI_LOCAL, "disturber");
}

module_init(disturber_begin);
module_exit(disturber_end);

MODULE_DESCRIPTION("Disturbs cyclescope's module, for its tests");
MODULE_LICENSE("Dual MIT/GPL");
