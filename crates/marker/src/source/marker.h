/*
 * What the functions of all designs share. A loop of the user's may be in the same file: all names but that of
 * barrier() begin with "marker".
 */
#include <stddef.h>
#include <string.h>

#ifdef __clang__
#define MARKER_COMPILER __VERSION__
#else
#define MARKER_COMPILER "gcc " __VERSION__
#endif

#define marker_unlikely(condition) __builtin_expect(!!(condition), 0)
#define barrier() asm volatile("" : : : "memory")

typedef void (*marker_probe)(const char *format, ...);

/* A compiled loop: its bytes, where it is entered, and what its marker jumps to or calls when it is enabled. */
struct marker_code {
	const char *guard;
	const char *context;
	const void *start;
	const void *stop;
	void (*entry)(long loops, char *memory);
	void (*target)(void);
};

/* What patching has to know: the distances to a place in the code and to what is to be reached from there. */
struct marker_record {
	long place;
	long target;
};

struct marker_design {
	const char *name;
	const char *compiler;
	/* The variable that enables the marker, if one does. */
	volatile void *enabled;
	/* Where the marker finds its probe. */
	marker_probe *probe;
	/* What puts the marker's library into a state, where the marker is a library's. */
	void (*switch_to)(unsigned int state);
	/* What readers take over from: markers name it where they show their code. */
	const unsigned long *grace_period;
	const struct marker_record *records;
	const struct marker_record *records_end;
	/* Addresses of entries that can be patched. */
	void *const *entries;
	void *const *entries_end;
	size_t codes;
	struct marker_code code[];
};

/* Records lie between their two bounds, which are subsections of the same section: so no linker drops them. */
#define MARKER_RECORD(place, target)                                               \
	".pushsection marker_records, 1, \"aw\"\n\t"                               \
	".quad " place " - .\n\t.quad " target " - .\n\t.popsection"

#define MARKER_RECORDS                                                             \
	asm(".pushsection marker_records, 0, \"aw\"\n\t.balign 8\n"                \
	    "marker_records_start:\n\t.popsection\n\t"                             \
	    ".pushsection marker_records, 2, \"aw\"\n"                             \
	    "marker_records_end:\n\t.popsection");                                 \
	extern const struct marker_record marker_records_start[] __attribute__((visibility("hidden"))); \
	extern const struct marker_record marker_records_end[] __attribute__((visibility("hidden")));

#define MARKER_SECTION(name)                                                       \
	extern const char __start_##name[] __attribute__((visibility("hidden")));  \
	extern const char __stop_##name[] __attribute__((visibility("hidden")));

/* A read-side lock. The counter's value while a grace period is none; readers take it over. */
#define MARKER_NESTING 0xffffffffUL
extern unsigned long marker_grace_period __attribute__((visibility("hidden")));
extern __thread unsigned long marker_reader __attribute__((visibility("hidden"), tls_model("initial-exec")));

static inline void marker_read_lock(void)
{
	unsigned long nesting = *(volatile unsigned long *)&marker_reader;

	barrier();
	if (!marker_unlikely(nesting & MARKER_NESTING))
		*(volatile unsigned long *)&marker_reader = *(volatile unsigned long *)&marker_grace_period;
	else
		*(volatile unsigned long *)&marker_reader = nesting + 1;
	barrier();
}

static inline void marker_read_unlock(void)
{
	barrier();
	*(volatile unsigned long *)&marker_reader = marker_reader - 1;
	barrier();
}

/* A probe site as SystemTap's <sys/sdt.h> lays it down: a NOP, and a note of version 3. */
#define MARKER_USDT(semaphore)                                                     \
	"990: nop\n\t"                                                             \
	".pushsection .note.stapsdt, \"\", \"note\"\n\t"                           \
	".balign 4\n\t.4byte 992f - 991f, 994f - 993f, 3\n"                        \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n"                                \
	"993: .8byte 990b, _.stapsdt.base, " semaphore "\n\t"                      \
	".asciz \"cyclescope\"\n\t.asciz \"marker\"\n\t.asciz \"-4@%0 8@%1\"\n"    \
	"994: .balign 4\n\t.popsection\n\t"                                        \
	".ifndef _.stapsdt.base\n\t"                                               \
	".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n\t" \
	".weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n"                         \
	"_.stapsdt.base: .space 1\n\t.size _.stapsdt.base, 1\n\t.popsection\n\t.endif"
