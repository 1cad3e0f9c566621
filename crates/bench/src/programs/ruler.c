/* Chains of known cycles, for programs that compare with the system's clock: cc -O2 -shared -fPIC.
 * It shares no code with cyclescope. */
#include <stdint.h>

/* The instruction in blocks of a thousand that wait for each other. */
#define CHAIN(name, instruction) \
    uint64_t name(uint64_t blocks) \
    { \
        uint64_t value = blocks; \
        __asm__ volatile("1:\n\t.rept 1000\n\t" instruction " %0, %0\n\t.endr\n\tdec %1\n\tjnz 1b" \
                         : "+r"(value), "+r"(blocks) \
                         : \
                         : "cc"); \
        return value; \
    }

/* Additions take a core cycle each. */
CHAIN(add_up, "add")

/* Multiplications take a whole number of core cycles, also beside a busy sibling. */
CHAIN(multiply, "imul")
