/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Enters the capsule, runs the rounds, and leaves again.
 *
 * The page tables of the kernel and of the capsule both map this file, except its first page,
 * at one address. The capsule maps its own descriptor tables at the addresses of the kernel's.
 * So the load of CR3 changes address space, IDT, GDT and TSS in one instruction: at no time do
 * the tables of one belong to the memory of the other.
 *
 * Every event, exception or interrupt, leaves the capsule for good. The C side passes
 * interrupts on to the kernel and enters again.
 */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/segment.h>
#include <asm/nospec-branch.h>
#include "assembly.h"
#include "capsule.h"

/* objtool can't follow a function with two address spaces and several stacks. */
#define NO_STACK_CHECK(name) \
	.pushsection .discard.func_stack_frame_non_standard, "aw" ; \
	.quad name ; \
	.popsection

#define FLAGS_ALWAYS	0x2
/* AC, NT, DF and TF: flags that a program must not leave set. */
#define FLAGS_STRAY	0x44500

	.section .text.cyclescope_capsule, "ax", @progbits
	.balign 4096

/*
 * void capsule_enter(struct capsule_control *control);
 *
 * Its page is not mapped in the capsule, so measured code cannot reach the only instruction
 * that could load any address space from a register of its choice. The loaded address space
 * maps only the next page.
 */
SYM_FUNC_START(capsule_enter)
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushfq
	pushq	%rdi
	movq	%rsp, CONTROL_KERNEL_RSP(%rdi)
	movq	CONTROL_CAPSULE_CR3(%rdi), %rax
	movq	CONTROL_CAPSULE_CR4(%rdi), %rcx
	/* Without global pages: translations of the kernel must not survive the load of CR3. */
	movq	%rcx, %cr4
	jmp	.Lswitch
	.org	4096 - 3, 0xcc
.Lswitch:
	movq	%rax, %cr3

SYM_INNER_LABEL(capsule_inside, SYM_L_LOCAL)
	movabsq	$DRIVER_STACK_TOP, %rsp
	movabsq	$CONTROL_AT, %rbx
	movabsq	$PROGRESS_AT, %rbp
	movabsq	$PROGRAM_CONTEXT, %r12
	movq	PROGRESS_ROUND(%rbp), %r13
	movabsq	$SAMPLES_AT, %r14

.Lround:
	cmpq	CONTROL_ROUNDS(%rbx), %r13
	jae	.Ldone
	/* Interrupts are let in only between rounds, so that none falls into a round. */
	rdtsc
	shlq	$32, %rdx
	orq	%rdx, %rax
	cmpq	CONTROL_SLICE_END(%rbx), %rax
	ja	.Lslice
	cmpq	CONTROL_SAMPLES_END(%rbx), %r14
	ja	.Lslice
	movabsq	$CALLS_AT, %r15

.Lcall:
	movq	PROGRESS_RANDOM(%rbp), %rax
	movq	%rax, %rcx
	shlq	$13, %rcx
	xorq	%rcx, %rax
	movq	%rax, %rcx
	shrq	$7, %rcx
	xorq	%rcx, %rax
	movq	%rax, %rcx
	shlq	$17, %rcx
	xorq	%rcx, %rax
	movq	%rax, PROGRESS_RANDOM(%rbp)
	shrq	$32, %rax
	imulq	CONTROL_DELAY(%rbx), %rax
	shrq	$32, %rax
	incq	%rax
	movq	8(%r15), %rcx
	movq	%rcx, CONTEXT_LOOP_COUNT(%r12)
	movq	CONTROL_UNREAD(%rbx), %rcx
	movq	%rcx, CONTEXT_START(%r12)
	movq	%rcx, CONTEXT_END(%r12)
1:	decq	%rax
	jnz	1b
	ANNOTATE_RETPOLINE_SAFE
	call	*(%r15)
	cli
	movabsq	$CONTROL_AT, %rbx
	movabsq	$PROGRESS_AT, %rbp
	movabsq	$PROGRAM_CONTEXT, %r12
	pushfq
	popq	%rax
	testl	$FLAGS_STRAY, %eax
	jz	2f
	pushq	$FLAGS_ALWAYS
	popfq
2:	cmpq	$0, CONTROL_AVX(%rbx)
	je	3f
	vzeroupper
3:	movq	CONTROL_UNREAD(%rbx), %rcx
	movq	CONTEXT_START(%r12), %rax
	movq	CONTEXT_END(%r12), %rdx
	cmpq	%rcx, %rax
	je	.Lno_reading
	cmpq	%rcx, %rdx
	je	.Lno_reading
	cmpq	CONTROL_WARM_UP(%rbx), %r13
	jb	4f
	movq	%rax, (%r14)
	movq	%rdx, 8(%r14)
	addq	$16, %r14
4:	addq	$16, %r15
	cmpq	CONTROL_CALLS_END(%rbx), %r15
	jb	.Lcall
	incq	%r13
	/* A single store, so that an NMI never finds half of it. The end of the samples follows
	 * from it. */
	movq	%r13, PROGRESS_ROUND(%rbp)
	jmp	.Lround

	/* From here to the end NMIs and machine checks only leave a note: a second exit would
	 * overwrite the reason of the first. */
SYM_INNER_LABEL(capsule_leaving, SYM_L_LOCAL)
.Ldone:
	movl	$LEFT_DONE, %edi
	jmp	.Lleave
.Lslice:
	movl	$LEFT_SLICE, %edi
	jmp	.Lleave
.Lno_reading:
	movl	$LEFT_NO_READING, %edi
	jmp	.Lleave

	/* On the stack for NMIs or for machine checks: vector, and the words that the CPU
	 * pushed. */
.Lunmaskable:
	pushq	%rax
	pushq	%rcx
	movq	24(%rsp), %rax
	leaq	capsule_leaving(%rip), %rcx
	cmpq	%rcx, %rax
	jb	5f
	leaq	capsule_end(%rip), %rcx
	cmpq	%rcx, %rax
	jae	5f
	movabsq	$PROGRESS_AT, %rax
	movq	16(%rsp), %rcx
	btsq	%rcx, PROGRESS_PENDING(%rax)
	cmpl	$2, %ecx
	jne	.Lback_without_iretq
	popq	%rcx
	popq	%rax
	addq	$8, %rsp
	iretq

	/* A machine check may have interrupted an NMI's steps above. IRETQ would then let in a
	 * second NMI on the stack of the first. So RAX, flags and RIP are stored below the
	 * interrupted stack pointer, where nothing else lies. */
.Lback_without_iretq:
	movq	48(%rsp), %rax		/* RSP */
	movq	24(%rsp), %rcx		/* RIP */
	movq	%rcx, -8(%rax)
	movq	40(%rsp), %rcx		/* RFLAGS */
	movq	%rcx, -16(%rax)
	movq	8(%rsp), %rcx		/* RAX */
	movq	%rcx, -24(%rax)
	popq	%rcx
	leaq	-24(%rax), %rsp
	popq	%rax
	popfq
	leaq	8(%rsp), %rsp
	ANNOTATE_RETPOLINE_SAFE
	jmp	*-8(%rsp)

5:	addq	$16, %rsp

	/* The registers' values of the measured code are not needed from here on. */
.Levent:
	popq	%rdi			/* vector */
	/* An exception of that kind has an error code, INT n has none. The CPU starts from the
	 * stack's top, a multiple of 16, and pushes five words or six. */
	xorl	%esi, %esi
	testb	$8, %spl
	jnz	6f
	popq	%rsi			/* error code */
6:	popq	%r11			/* RIP */
	addq	$8, %rsp		/* CS */
	popq	%r8			/* RFLAGS */
	popq	%r9			/* RSP */
	movq	%cr2, %r10

.Lleave:
	movabsq	$CONTROL_AT, %rbx
	movq	%cr4, %r15
	/* The kernel finds its data through GS: it must be right before an NMI can find the
	 * kernel's tables. */
	movl	$0xc0000101, %ecx	/* IA32_GS_BASE */
	rdmsr
	shlq	$32, %rdx
	leaq	(%rdx, %rax), %rbp
	movabsq	$PROGRESS_AT, %rcx
	movw	%ds, PROGRESS_SELECTORS(%rcx)
	movw	%es, PROGRESS_SELECTORS + 2(%rcx)
	movw	%gs, PROGRESS_SELECTORS + 4(%rcx)
	movq	CONTROL_SELECTORS(%rbx), %rax
	movl	%eax, %ds
	shrq	$16, %rax
	movl	%eax, %es
	shrq	$16, %rax
	movl	%eax, %gs
	movl	$0xc0000101, %ecx
	movl	CONTROL_KERNEL_GS(%rbx), %eax
	movl	CONTROL_KERNEL_GS + 4(%rbx), %edx
	wrmsr
	movq	CONTROL_KERNEL_RSP(%rbx), %r13
	movq	CONTROL_KERNEL_CR4(%rbx), %r14
	movq	CONTROL_KERNEL_CR3(%rbx), %rax
	movq	%rax, %cr3
	movq	%r14, %cr4
	movq	%r13, %rsp
	/* IRETQ also ends the blocking of NMIs, if an NMI was the way out. */
	pushq	$__KERNEL_DS
	pushq	%r13
	pushq	8(%r13)
	pushq	$__KERNEL_CS
	leaq	7f(%rip), %rax
	pushq	%rax
	iretq
7:	popq	%rbx
	movq	%rdi, CONTROL_VECTOR(%rbx)
	movq	%rsi, CONTROL_ERROR_CODE(%rbx)
	movq	%r11, CONTROL_IP(%rbx)
	movq	%r9, CONTROL_SP(%rbx)
	movq	%r8, CONTROL_FLAGS(%rbx)
	movq	%r10, CONTROL_CR2(%rbx)
	movq	%rbp, CONTROL_LEFT_GS(%rbx)
	movq	%r15, CONTROL_LEFT_CR4(%rbx)
	addq	$8, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	RET

	/* One gate each, of 16 bytes, so that the C side can find them by number. */
	.balign 16
SYM_INNER_LABEL(capsule_gates, SYM_L_LOCAL)
	.set	vector, 0
	.rept	256
	.balign 16, 0xcc
	pushq	$vector
	.if	vector == 2 || vector == 18
	jmp	.Lunmaskable
	.else
	jmp	.Levent
	.endif
	.set	vector, vector + 1
	.endr
SYM_INNER_LABEL(capsule_end, SYM_L_LOCAL)
	int3
SYM_FUNC_END(capsule_enter)
NO_STACK_CHECK(capsule_enter)
/* A probe's INT3 in the capsule would end the slice, and the copy for its single step is not
 * mapped there. To the kernel a function ends at the next label. */
_ASM_NOKPROBE(capsule_enter)
_ASM_NOKPROBE(capsule_inside)
_ASM_NOKPROBE(capsule_leaving)
_ASM_NOKPROBE(capsule_gates)
_ASM_NOKPROBE(capsule_end)
	.balign 4096, 0xcc

/*
 * void capsule_hand_on(unsigned int vector);
 *
 * Raises an interrupt that came in the capsule, for the kernel's own handler.
 */
	.text
SYM_FUNC_START(capsule_hand_on)
	movl	%edi, %edi
	shlq	$4, %rdi
	leaq	.Lraise(%rip), %rax
	addq	%rdi, %rax
	ANNOTATE_RETPOLINE_SAFE
	jmp	*%rax
	.balign 16
.Lraise:
	.set	vector, 0
	.rept	256
	.balign 16, 0xcc
	ENDBR
	int	$vector
	RET
	.set	vector, vector + 1
	.endr
SYM_FUNC_END(capsule_hand_on)
NO_STACK_CHECK(capsule_hand_on)
_ASM_NOKPROBE(capsule_hand_on)

	/* For the C side, as distances: objtool takes an address for the target of an indirect
	 * branch. */
	.section .rodata
	.balign 4
SYM_DATA_START(capsule_places)
	.long	capsule_inside - capsule_enter, capsule_gates - capsule_enter, capsule_end - capsule_enter
SYM_DATA_END(capsule_places)
