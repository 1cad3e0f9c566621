/* CYCLESCOPE_HIDE(x)  the compiler knows nothing of x from here on, and takes it as changed
   CYCLESCOPE_KEEP(x)  the value of x is needed here

   Integers, pointers, float, double and vectors stay in their registers. All else goes through memory, with a store and a
   load in the code: long double, __int128, complex numbers, structures, unions, and arrays of more than 8 bytes. Shorter
   arrays, and classes of C++ that are not copied as bytes, do not compile: name their elements. x is a variable. */
#ifndef CYCLESCOPE_HIDE
/* Classes of types, in C and in C++: 8 is floating point; from 9 to 18 are complex numbers, structures and unions; vectors
   have a negative one, or 19. */
#define CYCLESCOPE_IN_MEMORY(x) \
    (__builtin_classify_type(x) > 0 && __builtin_classify_type(x) < 19 \
        && (__builtin_classify_type(x) > 8 || sizeof(x) > 8))
#define CYCLESCOPE_IN_VECTOR(x) \
    (__builtin_classify_type(x) == 8 || __builtin_classify_type(x) < 0 || __builtin_classify_type(x) > 18)
/* What is meant for a vector register. Clang refuses what is too long for one, in code that never runs too: there it gets a byte of it. A vector
   of 8 bytes is to Clang one of MMX, and a double is none. */
#ifndef __clang__
#define CYCLESCOPE_VECTOR(x) (x)
#elif defined(__cplusplus)
template <bool is, bool is_short, class type> struct cyclescope_vector { typedef char of; };
template <class type> struct cyclescope_vector<true, false, type> { typedef type of; };
template <class type> struct cyclescope_vector<true, true, type> { typedef double of; };
#define CYCLESCOPE_VECTOR(x) \
    (*(typename cyclescope_vector<CYCLESCOPE_IN_VECTOR(x), sizeof(x) == 8, __typeof__(x)>::of *)&(x))
#else
#define CYCLESCOPE_VECTOR(x) \
    (*(__typeof__(*__builtin_choose_expr(CYCLESCOPE_IN_VECTOR(x), \
        __builtin_choose_expr(sizeof(x) == 8, (double *)0, &(x)), (char *)0)) *)&(x))
#endif
#define CYCLESCOPE_HIDE(x) \
    do { \
        if (CYCLESCOPE_IN_MEMORY(x)) \
            __asm__ volatile("" : "+m"(x)); \
        else if (CYCLESCOPE_IN_VECTOR(x)) \
            __asm__ volatile("" : "+x"(CYCLESCOPE_VECTOR(x))); \
        else \
            __asm__ volatile("" : "+r"(x)); \
    } while (0)
#ifdef __clang__
/* Of several places clang takes memory, which is a store in the code that is measured. */
#define CYCLESCOPE_KEEP(x) \
    do { \
        if (CYCLESCOPE_IN_MEMORY(x)) \
            __asm__ volatile("" ::"m"(x)); \
        else if (CYCLESCOPE_IN_VECTOR(x)) \
            __asm__ volatile("" ::"x"(CYCLESCOPE_VECTOR(x))); \
        else \
            __asm__ volatile("" ::"r"(x)); \
    } while (0)
#else
#define CYCLESCOPE_KEEP(x) __asm__ volatile("" ::"r,m,x"(x))
#endif
#endif
