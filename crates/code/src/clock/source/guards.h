/* CYCLESCOPE_HIDE(x)  the compiler assumes from here on that x has changed to an unknown value
   CYCLESCOPE_KEEP(x)  the compiler must have the value of x here

   x must be a variable. Integers, pointers, float, double and vectors stay in their registers. All
   other types go through memory, with a store and a load in the code: long double, __int128,
   complex numbers, structures, unions, and arrays. So do long long in 32-bit code, and without SSE2
   vectors. In C, arrays of up to 8 bytes do not compile: use their elements. For an object of a C++
   class that cannot be copied byte by byte, such as a string or a container, the compiler assumes the
   same of all memory that other code can reach. */
#ifndef CYCLESCOPE_HIDE
/* Type classes in C and C++: 8 is floating point; 9 to 18 are complex numbers, structures and
   unions; vectors have a negative class, or 19. */
#define CYCLESCOPE_IN_MEMORY(x) \
    ((__builtin_classify_type(x) > 0 && __builtin_classify_type(x) < 19 \
        && (__builtin_classify_type(x) > 8 \
            || sizeof(x) > (__builtin_classify_type(x) == 8 ? sizeof(double) : sizeof(void *)))) \
        || CYCLESCOPE_LACKS_REGISTER(x))
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
/* Where floating point numbers are. In 32-bit code without SSE they are on the x87 stack, and vectors
   in memory; Clang gets the numbers in memory too. */
#if defined(__x86_64__) || defined(__SSE2_MATH__)
#define CYCLESCOPE_FLOAT "x"
#define CYCLESCOPE_LACKS_REGISTER(x) 0
#elif defined(__clang__)
#define CYCLESCOPE_FLOAT "x"
#define CYCLESCOPE_LACKS_REGISTER(x) CYCLESCOPE_IN_VECTOR(x)
#else
#define CYCLESCOPE_FLOAT "t"
#define CYCLESCOPE_LACKS_REGISTER(x) (CYCLESCOPE_IN_VECTOR(x) && __builtin_classify_type(x) != 8)
#endif
#define CYCLESCOPE_HIDE_VALUE(x) \
    do { \
        if (CYCLESCOPE_IN_MEMORY(x)) \
            __asm__ volatile("" : "+m"(x)); \
        else if (CYCLESCOPE_IN_VECTOR(x)) \
            __asm__ volatile("" : "+" CYCLESCOPE_FLOAT(CYCLESCOPE_VECTOR(x))); \
        else \
            __asm__ volatile("" : "+r"(x)); \
    } while (0)
#ifdef __clang__
/* With several constraints Clang chooses memory, which puts a store into the measured code. */
#define CYCLESCOPE_KEEP_VALUE(x) \
    do { \
        if (CYCLESCOPE_IN_MEMORY(x)) \
            __asm__ volatile("" ::"m"(x)); \
        else if (CYCLESCOPE_IN_VECTOR(x)) \
            __asm__ volatile("" ::"x"(CYCLESCOPE_VECTOR(x))); \
        else \
            __asm__ volatile("" ::"r"(x)); \
    } while (0)
#else
#define CYCLESCOPE_KEEP_VALUE(x) __asm__ volatile("" ::"r,m," CYCLESCOPE_FLOAT(x))
#endif
#ifdef __cplusplus
/* Values, arrays, and objects that only their class can copy. */
template <class type, bool is_object = !__is_trivially_copyable(type)> struct cyclescope_guard {
    __attribute__((always_inline)) static inline void hide(type &x) { CYCLESCOPE_HIDE_VALUE(x); }
    __attribute__((always_inline)) static inline void keep(const type &x) { CYCLESCOPE_KEEP_VALUE(x); }
};
template <class type, decltype(sizeof 0) length> struct cyclescope_guard<type[length], false> {
    __attribute__((always_inline)) static inline void hide(type (&x)[length]) { __asm__ volatile("" : "+m"(x)); }
    __attribute__((always_inline)) static inline void keep(const type (&x)[length]) { __asm__ volatile("" ::"m"(x)); }
};
template <class type> struct cyclescope_guard<type, true> {
    __attribute__((always_inline)) static inline void hide(type &x) { __asm__ volatile("" ::"r"(&x) : "memory"); }
    __attribute__((always_inline)) static inline void keep(const type &x) { __asm__ volatile("" ::"r"(&x) : "memory"); }
};
template <class type> __attribute__((always_inline)) static inline void cyclescope_hide(type &x)
{
    cyclescope_guard<type>::hide(x);
}
template <class type> __attribute__((always_inline)) static inline void cyclescope_keep(const type &x)
{
    cyclescope_guard<type>::keep(x);
}
#define CYCLESCOPE_HIDE(x) cyclescope_hide(x)
#define CYCLESCOPE_KEEP(x) cyclescope_keep(x)
#else
#define CYCLESCOPE_HIDE(x) CYCLESCOPE_HIDE_VALUE(x)
#define CYCLESCOPE_KEEP(x) CYCLESCOPE_KEEP_VALUE(x)
#endif
#endif
