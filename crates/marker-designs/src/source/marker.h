/*
 * Shared by the functions of all designs. The file may also contain a custom loop, so all names
 * except barrier() begin with "marker".
 */
#include <stddef.h>

#ifdef __i386__
/* There is no C library of 32-bit code. i386 kernels copy in the same way. */
static inline void *marker_copy(void *to, const void *from, size_t bytes)
{
	void *start = to;
	size_t words = bytes / 4;

	asm volatile("rep movsl" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
	return start;
}
#define memcpy marker_copy
/* A 64-bit process has no thread-local memory for its 32-bit code. */
#define MARKER_THREAD
#define MARKER_THREAD_MODEL
#define MARKER_WORD ".long"
#define MARKER_WORD_BYTES "4"
/* The registers of possible arguments, as ftrace saves them. */
#define MARKER_SAVE "push %eax; push %ecx; push %edx\n\t"
#define MARKER_RESTORE "pop %edx; pop %ecx; pop %eax\n\t"
#else
#include <string.h>
#define MARKER_THREAD __thread
#define MARKER_THREAD_MODEL , tls_model("initial-exec")
#define MARKER_WORD ".quad"
#define MARKER_WORD_BYTES "8"
#define MARKER_SAVE \
	"push %rax; push %rcx; push %rdx; push %rsi; push %rdi; push %r8; push %r9; sub $8, %rsp\n\t"
#define MARKER_RESTORE \
	"add $8, %rsp; pop %r9; pop %r8; pop %rdi; pop %rsi; pop %rdx; pop %rcx; pop %rax\n\t"
#endif

#ifdef __clang__
#define MARKER_COMPILER __VERSION__
#else
#define MARKER_COMPILER "gcc " __VERSION__
#endif

#define marker_unlikely(condition) __builtin_expect(!!(condition), 0)
#define barrier() asm volatile("" : : : "memory")

typedef void (*marker_probe)(const char *format, ...);

/* A compiled loop: its bytes, its entry, and the target of its enabled marker's jump or call. */
struct marker_code {
	const char *guard;
	const char *context;
	const void *start;
	const void *stop;
	void (*entry)(long loops, char *memory);
	void (*target)(void);
};

/* Input for patching: the distances to a place in the code and to its target. */
struct marker_record {
	long place;
	long target;
};

struct marker_design {
	const char *name;
	const char *compiler;
	/* The variable that enables the marker, or NULL. */
	volatile void *enabled;
	/* The pointer to the marker's probe. */
	marker_probe *probe;
	/* Puts the marker's library into a state; NULL without a library. */
	void (*switch_to)(unsigned int state);
	/* The counter that readers copy. Listings show its name. */
	const unsigned long *grace_period;
	const struct marker_record *records;
	const struct marker_record *records_end;
	/* Addresses of entries that can be patched. */
	void *const *entries;
	void *const *entries_end;
	size_t codes;
	struct marker_code code[];
};

/* Records and both bounds are subsections of one section, so that no linker drops them. */
#define MARKER_RECORD(place, target)                                               \
	".pushsection marker_records, 1, \"aw\"\n\t"                               \
	MARKER_WORD " " place " - .\n\t" MARKER_WORD " " target " - .\n\t.popsection"

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

/* A read-side lock. Readers copy the grace period counter. No grace period is in progress. */
#define MARKER_NESTING 0xffffffffUL
extern unsigned long marker_grace_period __attribute__((visibility("hidden")));
extern MARKER_THREAD unsigned long marker_reader __attribute__((visibility("hidden") MARKER_THREAD_MODEL));

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

/* A probe site in the format of SystemTap's <sys/sdt.h>: a NOP, and a note of version 3. */
#define MARKER_USDT(semaphore)                                                     \
	"990: nop\n\t"                                                             \
	".pushsection .note.stapsdt, \"\", \"note\"\n\t"                           \
	".balign 4\n\t.4byte 992f - 991f, 994f - 993f, 3\n"                        \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n"                                \
	"993: " MARKER_WORD " 990b, _.stapsdt.base, " semaphore "\n\t"              \
	".asciz \"cyclescope\"\n\t.asciz \"marker\"\n\t.asciz \"-4@%0 " MARKER_WORD_BYTES "@%1\"\n" \
	"994: .balign 4\n\t.popsection\n\t"                                        \
	".ifndef _.stapsdt.base\n\t"                                               \
	".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n\t" \
	".weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n"                         \
	"_.stapsdt.base: .space 1\n\t.size _.stapsdt.base, 1\n\t.popsection\n\t.endif"
