/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The ruler for markers: loops of known length in core cycles, called like markers' codes.
 * Their bodies are those of crates/measure/src/ruler/chains.rs, which explains them. Each lies
 * in one cache line.
 *
 *	void ruler_…(u32 loops);
 */
#include <asm/asm.h>
#include "assembly.h"

	.text

.macro INDEPENDENT
	addl	%ecx, %eax
	addl	%ecx, %edx
	addl	%ecx, %ebx
	addl	%ecx, %ebp
	addl	%ecx, %esi
	addl	%ecx, %edi
.endm

.macro RULER name copies body:vararg
	.balign	64
SYM_TYPED_FUNC_START(\name)
	pushq	%rbx
	pushq	%rbp
	pushq	%r15
	movl	%edi, %r15d
	.balign	64
1:	.rept	\copies
	\body
	.endr
	nop
	decq	%r15
	jnz	1b
	popq	%r15
	popq	%rbp
	popq	%rbx
	RET
SYM_FUNC_END(\name)
.endm

RULER ruler_imul_short, 4, imulq %rax, %rax
RULER ruler_imul_long, 14, imulq %rax, %rax
RULER ruler_add_short, 8, addl %eax, %eax
RULER ruler_add_long, 24, addl %eax, %eax
RULER ruler_sentinel, 4, INDEPENDENT
