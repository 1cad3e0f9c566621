/* Included before the file of `cyclescope run --c`.

   CYCLESCOPE_BODY(code) marks the code to measure, once, in the function that is measured. It is the body of a loop: the
   machine code of one iteration is what is repeated. What stands before it in the function runs once before.

   CYCLESCOPE_HIDE(x)  the compiler knows nothing of x from here on, and takes it as changed
   CYCLESCOPE_KEEP(x)  the value of x is needed here */
#define CYCLESCOPE_BODY(...) \
    { \
        __label__ cyclescope_again; \
    cyclescope_again: \
        __asm__ volatile("cyclescope_begin:" ::: "memory"); \
        __VA_ARGS__; \
        __asm__ goto("cyclescope_end: jmp %l0" ::: "memory" : cyclescope_again); \
    }

/* 8 is the class of floating point types, in C and in C++; wider ones are vectors. */
#define CYCLESCOPE_HIDE(x) \
    do { \
        if (__builtin_classify_type(x) == 8 || sizeof(x) > 8) \
            __asm__ volatile("" : "+x"(x)); \
        else \
            __asm__ volatile("" : "+r"(x)); \
    } while (0)
#define CYCLESCOPE_KEEP(x) __asm__ volatile("" ::"r,m,x"(x))
