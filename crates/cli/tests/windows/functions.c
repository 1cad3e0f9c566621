// Functions that crates/cli/tests/windows/check measures, as a DLL and as an object file.
#define EXPORT __declspec(dllexport)
typedef unsigned long long word;

#define MULTIPLY "imul %0, %0\n"
#define ADD "add %0, %0\n"
#define TIMES_100(one) ".rept 100\n" one ".endr\n"

// A chain, and the same with one addition for each of its multiplications.
EXPORT word chain(word x) {
    __asm__ volatile(TIMES_100(MULTIPLY) : "+r"(x));
    return x;
}

EXPORT word longer(word x) {
    __asm__ volatile(TIMES_100(MULTIPLY ADD) : "+r"(x));
    return x;
}

// Raises an illegal instruction for other arguments than check passes, in registers and on the stack. Without optimisation it
// stores the first four into the space that its caller leaves for that.
EXPORT __attribute__((optimize("O0"))) word placed(word a, double b, char *c, double d, word e, double f) {
    if (a != 1 || b != 2.5 || *c == 0 || d != 4.5 || e != 5 || f != 6.5 || (word)__builtin_frame_address(0) % 16 != 0)
        __builtin_trap();
    return a;
}

EXPORT word twice(word x) { return 2 * x; }

EXPORT word apply(word (*function)(word), word x) {
    if (function(x) != 2 * x)
        __builtin_trap();
    return x;
}

// Constants, variables and addresses of both, as an object file has them for a linker.
static const word table[4] = {1, 20, 300, 4000};
static const word *middle = &table[2];
static word calls;
static double half = 0.5;
EXPORT word look_up(word index) {
    calls += index;
    if (*middle != 300 || half * 2 != 1 || calls > 1000000000000)
        __builtin_trap();
    return table[index & 3] + twice(calls);
}

// Takes memory of the process, and gives it back.
void *malloc(word bytes);
void free(void *memory);
EXPORT void *allocate(word bytes) {
    void *memory = malloc(bytes);
    if (!memory)
        __builtin_trap();
    free(memory);
    return memory;
}

EXPORT void store(volatile char *to) { *to = 1; }

EXPORT void endless(void) {
    for (;;)
        __asm__ volatile("");
}
