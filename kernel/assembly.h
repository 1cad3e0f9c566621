/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Names of the kernel's assembly macros, for kernels that lack them.
 *
 * Each macro is tested by its name, because vendors backport them to older kernels.
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

/* Functions whose type is checked in calls by pointer (kCFI). */
#ifndef SYM_TYPED_FUNC_START
#define SYM_TYPED_FUNC_START	SYM_FUNC_START
#endif

#endif
