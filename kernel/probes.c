// SPDX-License-Identifier: MIT OR GPL-2.0
/* The probes that enabled markers call, each with more work than the previous one. */
#include <linux/kernel.h>
#include "markers/marker.h"

u64 marker_hits;

static void empty(const char *format, ...)
{
}

static __maybe_unused void direct(const char *format, int number, void *pointer)
{
	MARKER_TAKE(number);
	MARKER_TAKE(pointer);
}

static void varargs(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	MARKER_TAKE(va_arg(list, int));
	MARKER_TAKE(va_arg(list, void *));
	va_end(list);
}

static void parse(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	for (; *format; format++) {
		if (*format != '%')
			continue;
		switch (*++format) {
		case 'd':
			MARKER_TAKE(va_arg(list, int));
			break;
		case 'p':
			MARKER_TAKE(va_arg(list, void *));
			break;
		default:
			va_end(list);
			return;
		}
	}
	va_end(list);
}

static void counting(const char *format, ...)
{
	marker_hits++;
}

marker_probe *const marker_probes[] = {
	[CYCLESCOPE_PROBE_EMPTY] = empty,
	/* Arguments are in the same registers with and without an ellipsis (System V ABI,
	 * 3.2.3). A kernel that checks the types of indirect calls (CFI) would refuse this one. */
#if !defined(CONFIG_CFI_CLANG) && !defined(CONFIG_CFI)
	[CYCLESCOPE_PROBE_DIRECT] = (marker_probe *)(void *)direct,
#endif
	[CYCLESCOPE_PROBE_VARARGS] = varargs,
	[CYCLESCOPE_PROBE_FORMAT] = parse,
	[CYCLESCOPE_PROBE_COUNTING] = counting,
};
