/* What a function takes in this program, to compare with what a framework reads in it. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The time stamp counter, when earlier code is done. */
uint64_t read_ticks(void);

/* How often this thread gave its CPU to another one. */
long count_switches(void);

/* The core clock now, measured in a fifth of a millisecond. */
double measure_cycles_per_tick(void);

/* Appends a line with the name of one of the timed functions and the core cycles of a call to the
 * file that the variable ACCURACY_REFERENCE names. Without the variable it does nothing. */
void write_reference(uint64_t (*run)(uint64_t));

/* The same of a call that begins when earlier code is done, and ends before later code begins. It
 * overlaps with none, and takes some cycles more. */
void write_alone_reference(uint64_t (*run)(uint64_t));

#ifdef __cplusplus
}
#endif
