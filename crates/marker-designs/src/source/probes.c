/* The probes that an enabled marker calls, and the data of its guards. */
#include <stdarg.h>
#include "marker.h"

unsigned long marker_grace_period = 1;
MARKER_THREAD unsigned long marker_reader;

/* Number of calls of the counting probe. */
unsigned long marker_hits;

/* Each probe has its own section, because probes are copied like the functions that call them. */
#define PROBE(name)                                                                \
	MARKER_SECTION(in_cyclescope_probe_##name)                                        \
	__attribute__((section("in_cyclescope_probe_" #name), noipa, used))

/* Keeps the value alive and does nothing else. */
#define take(value) asm volatile("" : : "r"(value))

PROBE(empty) void marker_probe_empty(const char *format, ...)
{
}

PROBE(count) void marker_probe_count(const char *format, ...)
{
	marker_hits++;
}

PROBE(direct) void marker_probe_direct(const char *format, int number, void *pointer)
{
	take(number);
	take(pointer);
}

PROBE(varargs) void marker_probe_varargs(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	take(va_arg(arguments, int));
	take(va_arg(arguments, void *));
	va_end(arguments);
}

/* Parses the format at run time to find the arguments. */
PROBE(format) void marker_probe_format(const char *format, ...)
{
	va_list arguments;
	int is_long;

	va_start(arguments, format);
	for (; *format; format++) {
		if (*format != '%')
			continue;
		is_long = 0;
		for (format++; *format == 'l' || *format == 'h' || *format == 'z'; format++)
			is_long |= *format != 'h';
		switch (*format) {
		case 'd': case 'i': case 'u': case 'x': case 'c':
			if (is_long)
				take(va_arg(arguments, long));
			else
				take(va_arg(arguments, int));
			break;
		case 'p': case 's':
			take(va_arg(arguments, void *));
			break;
		case 'f': case 'g':
			take((long)va_arg(arguments, double));
			break;
		case '\0':
			format--;
			break;
		}
	}
	va_end(arguments);
}

#define CODE(name)                                                                 \
	{ #name, "", __start_in_cyclescope_probe_##name, __stop_in_cyclescope_probe_##name, \
	  (void *)marker_probe_##name, NULL }

const struct marker_code cyclescope_probes[] = {
	CODE(count), CODE(direct), CODE(empty), CODE(format), CODE(varargs),
};
