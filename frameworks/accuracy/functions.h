/* Twenty functions, the same machine code for all frameworks. Each uses its argument, so that its
 * result can be passed to the next call. */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FUNCTIONS = 20 };

struct timed_function {
    const char *name;
    uint64_t (*run)(uint64_t);
};

extern const struct timed_function timed_functions[FUNCTIONS];

/* Prepares the data of the functions. */
void prepare_functions(void);

#ifdef __cplusplus
}
#endif
