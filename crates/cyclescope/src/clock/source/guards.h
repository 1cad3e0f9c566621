/* CYCLESCOPE_HIDE(x)  the compiler knows nothing of x from here on, and takes it as changed
   CYCLESCOPE_KEEP(x)  the value of x is needed here */
#ifndef CYCLESCOPE_HIDE
/* 8 is the class of floating point types, in C and in C++; wider ones are vectors. */
#define CYCLESCOPE_HIDE(x) \
    do { \
        if (__builtin_classify_type(x) == 8 || sizeof(x) > 8) \
            __asm__ volatile("" : "+x"(x)); \
        else \
            __asm__ volatile("" : "+r"(x)); \
    } while (0)
#ifdef __clang__
/* Of several places clang takes memory, which is a store in the code that is measured. */
#define CYCLESCOPE_KEEP(x) \
    do { \
        if (__builtin_classify_type(x) == 8 || sizeof(x) > 8) \
            __asm__ volatile("" ::"x"(x)); \
        else \
            __asm__ volatile("" ::"r"(x)); \
    } while (0)
#else
#define CYCLESCOPE_KEEP(x) __asm__ volatile("" ::"r,m,x"(x))
#endif
#endif
