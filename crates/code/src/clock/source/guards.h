/* CYCLESCOPE_HIDE(x)  the compiler assumes from here on that x has changed to an unknown value
   CYCLESCOPE_KEEP(x)  the compiler must have the value of x here

   x must be a variable. Integers, pointers, float, double and vectors stay in their registers. All
   other types go through memory, with a store and a load in the code: long double, __int128,
   complex numbers, structures, unions, and arrays of more than 8 bytes. Shorter arrays, and C++
   classes that are not trivially copyable, do not compile: use their elements. */
#ifndef CYCLESCOPE_HIDE
/* Type classes in C and C++: 8 is floating point; 9 to 18 are complex numbers, structures and
   unions; vectors have a negative class, or 19. */
#define CYCLESCOPE_IN_MEMORY(x) \
    (__builtin_classify_type(x) > 0 && __builtin_classify_type(x) < 19 \
        && (__builtin_classify_type(x) > 8 || sizeof(x) > 8))
#define CYCLESCOPE_IN_VECTOR(x) \
    (__builtin_classify_type(x) == 8 || __builtin_classify_type(x) < 0 || __builtin_classify_type(x) > 18)
/* Operand for a vector register. Clang rejects longer operands even in code that never runs, so it
   gets one byte of them there. For Clang, a vector of 8 bytes belongs to MMX, a double does not. */
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
/* With several constraints Clang chooses memory, which puts a store into the measured code. */
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
