/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the kernel's macros for assembly are called, where it has them.
 *
 * Asked for by name: vendors take them over into kernels of older versions.
 */
#ifndef CYCLESCOPE_ASSEMBLY_H
#define CYCLESCOPE_ASSEMBLY_H

#include <linux/linkage.h>
#if __has_include(<asm/ibt.h>)
#include <asm/ibt.h>
#endif
#if __has_include(<linux/cfi_types.h>)
#include <linux/cfi_types.h>
#endif

/* Targets of indirect branches (Intel CET). */
#ifndef ENDBR
#define ENDBR
#endif

/* Return thunks. */
#ifndef RET
#define RET	ret
#endif

/* Functions whose type is checked where they are called by a pointer (kCFI). */
#ifndef SYM_TYPED_FUNC_START
#define SYM_TYPED_FUNC_START	SYM_FUNC_START
#endif

#endif
