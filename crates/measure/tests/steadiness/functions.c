// Functions of a test. The name says whether the first call after a fresh start executes what later
// ones do, stateful_NAME or steady_NAME, or that it can't be called twice, unchecked_NAME. The buffer
// has random contents.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

// Used-up buffers.

static void insertion_sort(unsigned char *p, long n) {
    for (long i = 1; i < n; i++) {
        unsigned char x = p[i];
        long j = i;
        while (j && p[j - 1] > x) {
            p[j] = p[j - 1];
            j--;
        }
        p[j] = x;
    }
}
void stateful_sort_8(unsigned char *p) { insertion_sort(p, 8); }
void stateful_sort_24(unsigned char *p) { insertion_sort(p, 24); }
void stateful_sort_64(unsigned char *p) { insertion_sort(p, 64); }
void stateful_sort_256(unsigned char *p) { insertion_sort(p, 256); }

void stateful_bubble_sort(unsigned char *p) {
    for (int swapped = 1; swapped;) {
        swapped = 0;
        for (int i = 1; i < 32; i++)
            if (p[i - 1] > p[i]) {
                unsigned char x = p[i];
                p[i] = p[i - 1];
                p[i - 1] = x;
                swapped = 1;
            }
    }
}

static NOINLINE long partition(unsigned char *p, long n) {
    long end = 0;
    for (long i = 0; i < n; i++)
        if (p[i] < 128) {
            unsigned char x = p[i];
            __asm__ volatile("" ::: "memory");
            p[i] = p[end];
            p[end++] = x;
        }
    return end;
}
static int mixed(const unsigned char *p, long n) {
    long runs = 1;
    for (long i = 1; i < n; i++) runs += (p[i] < 128) != (p[i - 1] < 128);
    return (int)runs;
}
int stateful_partition(unsigned char *p) {
    int runs = mixed(p, 64);
    partition(p, 64);
    return runs > 2 ? runs * mixed(p, 64) : 0;
}

static int compare_bytes(const void *a, const void *b) {
    return *(const unsigned char *)a < *(const unsigned char *)b ? -1 : 1;
}
void stateful_heap_sort(unsigned char *p) {
    for (long n = 32; n > 1; n--) {
        for (long i = n / 2; i-- > 0;)
            for (long at = i, child; (child = 2 * at + 1) < n; at = child) {
                if (child + 1 < n && p[child + 1] > p[child]) child++;
                if (p[at] >= p[child]) break;
                unsigned char x = p[at];
                p[at] = p[child];
                p[child] = x;
            }
        unsigned char x = p[0];
        p[0] = p[n - 1];
        p[n - 1] = x;
    }
}

static NOINLINE void quick_sort(unsigned char *p, long n, int (*less)(const void *, const void *)) {
    if (n < 2) return;
    unsigned char pivot = p[n / 2];
    long i = 0, j = n - 1;
    for (;; i++, j--) {
        while (less(p + i, &pivot) < 0 && p[i] != pivot) i++;
        while (less(p + j, &pivot) > 0 && p[j] != pivot) j--;
        if (i >= j) break;
        unsigned char x = p[i];
        p[i] = p[j];
        p[j] = x;
    }
    quick_sort(p, j + 1 < n ? j + 1 : n - 1, less);
    if (j + 1 < n) quick_sort(p + j + 1, n - j - 1, less);
}
void stateful_quick_sort(unsigned char *p) { quick_sort(p, 48, compare_bytes); }

long stateful_remove_spaces(unsigned char *p) {
    long end = 0;
    for (long i = 0; i < 200; i++)
        if (p[i] > 64) p[end++] = p[i];
    memset(p + end, 0, 200 - end);
    return end;
}

void stateful_upper_case(unsigned char *p) {
    for (int i = 0; i < 100; i++)
        if (p[i] >= 'a' && p[i] <= 'z') {
            __asm__ volatile("" ::: "memory");
            p[i] -= 32;
        }
}

long stateful_split_words(unsigned char *p) {
    long words = 0;
    for (int i = 0; i < 500; i++)
        if (p[i] < 20 && p[i]) {
            words++;
            p[i] = 0;
            __asm__ volatile("" ::: "memory");
        }
    return words;
}

// Data of the library.

static uint32_t keys[256];
int stateful_hash_insert(const unsigned char *p) {
    int new = 0;
    for (int i = 0; i < 16; i++) {
        uint32_t key = ((const uint32_t *)p)[i] | 1, at = key * 2654435761u >> 24;
        while (keys[at] && keys[at] != key) at = (at + 1) & 255;
        if (!keys[at]) {
            keys[at] = key;
            new ++;
        }
    }
    return new;
}

static long memo[64];
static NOINLINE long fib(int n) {
    if (n < 2) return n;
    if (!memo[n]) memo[n] = fib(n - 1) + fib(n - 2);
    return memo[n];
}
long stateful_memoised_fib(void) { return fib(40); }

static int ready;
static double table[64];
double stateful_one_shot_init(unsigned long i) {
    if (!ready) {
        for (int k = 0; k < 64; k++) table[k] = k * 0.5;
        ready = 1;
    }
    return table[i & 63];
}

struct node {
    struct node *next;
    long value;
};
static struct node nodes[20];
static struct node *head;
static int built;
static struct node *head_of_grown;
long stateful_list_consumption(void) {
    if (!built) {
        built = 1;
        for (int i = 0; i < 19; i++) nodes[i].next = &nodes[i + 1];
        head = nodes;
    }
    if (!head) return -1;
    long value = head->value;
    head = head->next;
    return value;
}

static int queued = 20;
static volatile long queue[20];
long stateful_queue_that_ends_late(void) {
    long sum = 0;
    if (queued) {
        queued--;
        for (int i = 0; i < 20; i++) sum += queue[i];
    }
    return sum;
}

static int left = 700;
static volatile int work;
void stateful_budget_that_ends_after_700_calls(void) {
    if (left) {
        left--;
        for (int i = 0; i < 10; i++) work++;
    }
}

static int heap[64] = {0}, heap_size = -1;
int stateful_heap_pop(void) {
    if (heap_size < 0)
        for (heap_size = 0; heap_size < 40; heap_size++) heap[heap_size] = heap_size;
    if (!heap_size) return -1;
    int top = heap[0], last = heap[--heap_size], at = 0;
    for (int child; (child = 2 * at + 1) < heap_size; at = child) {
        if (child + 1 < heap_size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static int state;
int stateful_state_machine(volatile int *out) {
    switch (state) {
    case 0: state = 1; out[0] = 1; out[1] = 2; break;
    case 1: state = 2; out[5] *= 3; out[7] += out[5]; out[1] ^= 2; break;
    case 2: state = 3; out[2] = out[1] - out[3]; break;
    case 3: state = 4; out[4] = 4; break;
    case 4: state = 5; out[6] = out[4] + out[2] * 5; out[8] = 6; break;
    default: state = 0; out[9] = 9;
    }
    return state;
}

static NOINLINE void open_door(volatile int *out) { out[0] = 1; state = 2; }
static NOINLINE void close_door(volatile int *out) { out[0]--; out[1]++; out[2] ^= 1; }
static void (*step)(volatile int *) = open_door;
void stateful_function_pointer(volatile int *out) {
    step(out);
    step = close_door;
}

static unsigned toggled;
int stateful_toggle(volatile int *out) {
    toggled ^= 1;
    if (toggled) {
        out[0] = 1;
        out[1] += 2;
        return 3;
    }
    out[2] = 5;
    return out[3];
}

static uint64_t seed = 88172645463325252u;
int stateful_random_branch(volatile int *out) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    if (seed & 0x100) {
        out[0]++;
        out[1] ^= out[0];
        out[2]--;
    }
    return (int)seed;
}

static char *line;
char *stateful_lazy_allocation(const char *p) {
    if (!line) {
        static char memory[64];
        line = memory;
        for (int i = 0; i < 64; i++) line[i] = p[i] ^ 1;
    }
    return line;
}

// Numbers that the time of instructions depends on.

static double level = 1;
double stateful_denormal_decay(void) {
    for (int i = 0; i < 64; i++) level *= 0.7;
    return level;
}
static float tiny = 1e-42f;
float stateful_denormal_that_grows(void) {
    for (int i = 0; i < 8; i++) tiny *= 1.5f;
    return tiny;
}
static long double slow = 1;
void stateful_denormal_x87(void) {
    for (int i = 0; i < 500; i++) slow *= 0.75L;
}
static uint64_t dividend = 18446744073709551615u;
static volatile uint64_t divisor = 7;
uint64_t stateful_division(void) {
    for (int i = 0; i < 4; i++) dividend /= divisor;
    return dividend;
}
static volatile int small_divisor = -9;
int stateful_division_of_ints(int *p) {
    static int rest = 2147483647;
    rest /= small_divisor;
    return rest / small_divisor;
}

static struct node grown[1 << 12];
static unsigned used;
long stateful_growing_list(void) {
    if (used < 1 << 12) {
        grown[used].next = head_of_grown;
        head_of_grown = &grown[used++];
    }
    long sum = 0;
    for (struct node *at = head_of_grown; at; at = at->next) sum += at->value;
    return sum;
}
static uint32_t pages[1 << 22], lookups;
uint32_t stateful_growing_table(void) {
    uint32_t mask = ++lookups < 64 ? 1023 : (1 << 22) - 1, at = lookups;
    for (int i = 0; i < 200; i++) at = (pages[at & mask]++ & 1) + at * 1664525 + 1013904223;
    return at;
}

// Long calls.

static long iterations = 20000000;
void stateful_slow_start(volatile unsigned char *p) {
    for (long i = 0; i < iterations; i++) *p;
    iterations = 10000000;
}
void unchecked_hours(volatile unsigned char *p) {
    for (long i = 0; i < 1000000000000; i++) *p;
}

static size_t filled = 100;
void stateful_shrinking_fill(unsigned char *p) {
    __asm__ volatile("rep stosb" : "+D"(p), "+c"((size_t){filled}) : "a"(0) : "memory");
    filled = 3;
}

static long cached_key = -1, cached;
long stateful_last_result_cache(long n) {
    if (cached_key != (n & 0xff)) {
        long sum = 0;
        for (long i = 0; i < 50; i++) sum = sum * 31 + i;
        cached = sum;
        cached_key = n & 0xff;
    }
    return cached;
}

// State that costs nothing.

long steady_counter(void) {
    static long counter;
    return ++counter;
}
double steady_accumulator(void) {
    static double sum;
    return sum += 1.5;
}
long steady_sum(const unsigned char *p) {
    long sum = 0;
    for (int i = 0; i < 1000; i++) sum += p[i];
    return sum;
}
void steady_out(long *out) {
    out[0] = 1;
    out[1] = 2;
}
void steady_fill(unsigned char *p) {
    for (int i = 0; i < 1000; i++) p[i] = i;
}
void steady_increment_all(unsigned char *p) {
    for (int i = 0; i < 300; i++) p[i]++;
}
uint32_t steady_crc(const unsigned char *p) {
    uint32_t crc = ~0u;
    for (int i = 0; i < 100; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
    }
    return crc;
}
uint32_t steady_hash(const unsigned char *p) {
    uint32_t hash = 2166136261u;
    for (int i = 0; i < 64; i++) hash = (hash ^ p[i]) * 16777619u;
    return hash;
}
void steady_reverse(unsigned char *p) {
    for (int i = 0, j = 99; i < j; i++, j--) {
        unsigned char x = p[i];
        p[i] = p[j];
        p[j] = x;
    }
}
uint64_t steady_random(void) {
    static uint64_t own = 1;
    own ^= own << 13;
    own ^= own >> 7;
    return own ^= own << 17;
}
long steady_recursion(long n) { return (n & 15) < 2 ? 1 : (n & 15) * steady_recursion((n & 15) - 1); }
void steady_matrix(double *p) {
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            double sum = 0;
            for (int k = 0; k < 8; k++) sum += p[8 * i + k] * p[64 + 8 * k + j];
            p[128 + 8 * i + j] = sum;
        }
}
int steady_ring(const unsigned char *p) {
    static unsigned char ring[256];
    static unsigned at;
    ring[at++ & 255] = p[0];
    return ring[(at + 9) & 255];
}
int steady_search(const unsigned char *p) {
    int i = 0;
    while (p[i] != 77) i++;
    return i;
}
int steady_switch(const unsigned char *p, unsigned long n) {
    switch (n & 7) {
    case 0: return p[1] + 4;
    case 1: return p[2] * 3;
    case 2: return p[3] - 7;
    case 3: return p[4] ^ p[5];
    case 4: return p[0] << 3;
    case 5: return p[9] / 7;
    default: return 9;
    }
}
long steady_call_through_pointer(const unsigned char *p) {
    static int (*volatile compare)(const void *, const void *) = compare_bytes;
    return compare(p, p + 1) + compare(p + 2, p + 3);
}
int steady_bits(uint64_t x) { return __builtin_popcountll(x) + __builtin_ctzll(x | 1); }
void steady_copy(unsigned char *p) { memcpy(p + 1000, p, 777); }
long steady_long_loop(const unsigned char *p) {
    long sum = 0;
    for (int pass = 0; pass < 1000; pass++)
        for (int i = 0; i < 1000; i++) sum = sum * 3 + p[i];
    return sum;
}
long steady_init_of_little_share(const unsigned char *p) {
    static int first;
    if (!first) first = 1;
    return steady_sum(p);
}
// Numbers that vary.
uint64_t steady_division(const unsigned char *p) {
    uint64_t sum = 0;
    for (int i = 1; i < 100; i++) sum += 1000000 / (p[i] + 1);
    return sum;
}
uint32_t steady_random_remainder(void) {
    static uint32_t own = 1;
    static volatile uint32_t modulus = 2147483647;
    return own = (uint32_t)(own * 16807ull % modulus);
}
double steady_mean(void) {
    static double mean;
    return mean += (100.0 - mean) / 8;
}
double steady_denormals(double *p) {
    static volatile double tiny_number = 1e-310;
    p[0] = tiny_number * 0.5;
    return p[0] + tiny_number;
}
int steady_empty(void) { return 0; }

// Divisions and square roots.

static double root(double x) {
    double y;
    __asm__("sqrtsd %1, %0" : "=x"(y) : "x"(x));
    return y;
}
static double decaying = 1e300;
double stateful_short_root(void) {
    double sum = 0;
    for (int i = 0; i < 20; i++) {
        decaying = root(decaying);
        sum += decaying;
    }
    return sum;
}
static unsigned seldom;
unsigned stateful_few_division(unsigned *p) {
    unsigned sum = 0;
    for (int i = 0; i < 4000; i++) sum = sum * 31 + p[i];
    if (!seldom) {
        for (int i = 0; i < 12; i++) seldom += sum / (p[i] | 1) + 1;
    }
    return sum;
}
static double running = 2;
double steady_running_root(void) {
    double sum = 0;
    for (int i = 0; i < 20; i++) sum += root(running += 0.37);
    return sum;
}
double steady_quotient_of_floats(double *p) { return (p[0] + 3) / 7 + root(p[1] * p[1] + 2); }
