/* Included before the file of `cyclescope run --c`.

   CYCLESCOPE_BODY(code) marks the code to measure, once, in the function that is measured. It is the body of a loop: the
   machine code of one iteration is what is repeated. What stands before it in the function runs once before. */
#define CYCLESCOPE_BODY(...) \
    { \
        __label__ cyclescope_again; \
    cyclescope_again: \
        __asm__ volatile("cyclescope_begin:" ::: "memory"); \
        __VA_ARGS__; \
        __asm__ goto("cyclescope_end: jmp %l0" ::: "memory" : cyclescope_again); \
    }
