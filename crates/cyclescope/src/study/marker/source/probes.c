/* What an enabled marker calls, and what its guards keep. */
#include <stdarg.h>
#include <stddef.h>

unsigned long marker_grace_period __attribute__((visibility("hidden"))) = 1;
__thread unsigned long marker_reader __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* How often the counting probe was called. */
unsigned long marker_hits;

/* The value is needed, and nothing else is done. */
#define take(value) asm volatile("" : : "r"(value))

void marker_probe_empty(const char *format, ...)
{
}

void marker_probe_count(const char *format, ...)
{
	marker_hits++;
}

void marker_probe_direct(const char *format, int number, void *pointer)
{
	take(number);
	take(pointer);
}

void marker_probe_varargs(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	take(va_arg(arguments, int));
	take(va_arg(arguments, void *));
	va_end(arguments);
}

/* Finds out from the format, at run time, what there is to take. */
void marker_probe_format(const char *format, ...)
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
