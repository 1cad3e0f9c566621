/* Twenty kinds of code as benchmarks of the protocol of `cyclescope ab`. Two macros make it
 * another program:
 *   ADDED_UNITS   units of work in addition to a thousand
 *   PADDING       bytes before all functions, which only move the code */
#include "cyclescope.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef ADDED_UNITS
#define ADDED_UNITS 0
#endif
#ifdef PADDING
#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
__asm__(".text\n.fill " TEXT(PADDING) ", 1, 0x90");
#endif

enum { UNITS = 1000 + ADDED_UNITS, SAMPLES = 12, TABLE = 1 << 15, WORDS = 4096 };

static uint32_t table[TABLE], ring[TABLE];
static uint64_t words[WORDS];
static double numbers[WORDS];
static unsigned char text[WORDS], copy[WORDS];

static uint64_t random_state = 88172645463325252u;
static uint64_t next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

#define KIND(name) static __attribute__((noinline)) uint64_t name(uint64_t x)
/* Repeats a unit of work. */
#define LOOP for (int unit = 0; unit < UNITS; unit++)

KIND(additions) { LOOP for (int i = 0; i < 64; i++) { x += x; CYCLESCOPE_HIDE(x); } return x; }
KIND(multiplications) { LOOP for (int i = 0; i < 24; i++) { x *= x; CYCLESCOPE_HIDE(x); } return x; }
KIND(divisions) { LOOP { x = 0x123456789abcdefu / (x | 3) + 5; CYCLESCOPE_HIDE(x); } return x; }
KIND(float_chain) { double y = (double)x; LOOP for (int i = 0; i < 16; i++) { y = y * 0.5 + 1.0; CYCLESCOPE_HIDE(y); } return (uint64_t)y; }
KIND(float_sums) { double y = (double)x; LOOP for (int i = 0; i < 64; i++) y += numbers[(unit * 64 + i) % WORDS]; return (uint64_t)y; }
KIND(square_roots) { LOOP { double y = (double)(x & 1023) + 2.0; CYCLESCOPE_HIDE(y); __asm__("sqrtsd %0, %0" : "+x"(y)); x += (uint64_t)y; } return x; }
KIND(branches_taken_alike) { LOOP for (int i = 0; i < 64; i++) { if (i % 4) x += i; else x ^= i; CYCLESCOPE_HIDE(x); } return x; }
KIND(branches_at_random) { LOOP { if (next() & 1) x += 3; else x ^= 5; CYCLESCOPE_HIDE(x); } return x; }
KIND(counts_in_a_table) { LOOP for (int i = 0; i < 8; i++) table[next() % TABLE]++; return table[x % TABLE]; }
KIND(pointers_in_l1) { uint32_t at = (uint32_t)x % 1024; LOOP for (int i = 0; i < 16; i++) at = ring[at]; return at; }
KIND(pointers_in_l2) { uint32_t at = 1024 + (uint32_t)x % (TABLE - 1024); LOOP for (int i = 0; i < 8; i++) at = ring[at]; return at; }
KIND(copies) { LOOP { memcpy(copy, text, 2048); CYCLESCOPE_HIDE(copy[0]); } return copy[x % WORDS]; }
KIND(fills) { LOOP { memset(copy, (int)x, 4096); CYCLESCOPE_HIDE(copy[0]); } return copy[x % WORDS]; }
KIND(hashes) { LOOP for (int i = 0; i < 32; i++) x = (x ^ text[(unit + i) % WORDS]) * 1099511628211u; return x; }
KIND(searches) { LOOP { x += (uint64_t)((unsigned char *)memchr(text, 255, WORDS) - text); CYCLESCOPE_HIDE(text[0]); } return x; }
KIND(bits) { LOOP for (int i = 0; i < 32; i++) x += (uint64_t)__builtin_popcountll(words[(unit * 32 + i) % WORDS]); return x; }
KIND(sums) { LOOP for (int i = 0; i < 256; i++) x += words[(unit * 16 + i) % WORDS]; return x; }

static uint64_t one(uint64_t x) { return x + 1; }
static uint64_t two(uint64_t x) { return x ^ 2; }
static uint64_t three(uint64_t x) { return x * 3; }
static uint64_t (*volatile calls[4])(uint64_t) = { one, two, three, two };
KIND(calls_by_pointer) { LOOP for (int i = 0; i < 16; i++) x = calls[i % 4](x); return x; }

KIND(interpreter)
{
    LOOP for (int i = 0; i < 16; i++)
        switch (text[(unit % 64) * 16 + i] % 6) {
        case 0: x += 7; break;
        case 1: x ^= x >> 3; break;
        case 2: x *= 5; break;
        case 3: x -= words[i]; break;
        case 4: x = x << 7 | x >> 57; break;
        default: x = ~x;
        }
    return x;
}

KIND(sorts)
{
    LOOP {
        uint64_t few[12];
        for (int i = 0; i < 12; i++)
            few[i] = words[(unit % 32) * 12 + i];
        for (int i = 1; i < 12; i++)
            for (int j = i; j > 0 && few[j - 1] > few[j]; j--) {
                uint64_t kept = few[j];
                few[j] = few[j - 1];
                few[j - 1] = kept;
            }
        x += few[6];
    }
    return x;
}

static const struct kind { const char *name; uint64_t (*run)(uint64_t); int iterations; } kinds[] = {
#define ROW(name, iterations) { #name, name, iterations }
    ROW(additions, 30), ROW(multiplications, 25), ROW(divisions, 150), ROW(float_chain, 15), ROW(float_sums, 10),
    ROW(square_roots, 80), ROW(branches_taken_alike, 20), ROW(branches_at_random, 100), ROW(counts_in_a_table, 50),
    ROW(pointers_in_l1, 25), ROW(pointers_in_l2, 12), ROW(copies, 30), ROW(fills, 25), ROW(hashes, 15), ROW(searches, 20),
    ROW(bits, 10), ROW(sums, 10), ROW(calls_by_pointer, 25), ROW(interpreter, 20), ROW(sorts, 4),
};

int main(void)
{
    const char *path = getenv("CYCLESCOPE_AB");
    int file = path && *path ? open(path, O_WRONLY | O_APPEND) : STDOUT_FILENO;
    struct cyclescope_calibration pair = cyclescope_calibrate();

    if (file < 0)
        return 1;
    for (int i = 0; i < TABLE; i++)
        ring[i] = (uint32_t)(i < 1024 ? (i * 421 + 1) % 1024 : 1024 + ((i - 1024) * 8269 + 1) % (TABLE - 1024));
    for (int i = 0; i < WORDS; i++) {
        words[i] = next();
        numbers[i] = (double)i;
        text[i] = (unsigned char)(next() % 254);
    }
    text[WORDS - 1] = 255;
    for (unsigned number = 0; number < sizeof kinds / sizeof *kinds; number++) {
        const struct kind *kind = &kinds[number];
        uint64_t x = kind->run(3);
        for (int sample = 0; sample < SAMPLES; sample++) {
            char line[256];
            double before = cyclescope_scale_now(&pair).cycles, after;
            uint64_t ticks, start = cyclescope_lfence_rdtsc_lfence_start();
            for (int i = 0; i < kind->iterations; i++)
                x = kind->run(x);
            CYCLESCOPE_KEEP(x);
            ticks = cyclescope_lfence_rdtsc_lfence_end() - start;
            after = cyclescope_scale_now(&pair).cycles;
            int length = snprintf(line, sizeof line,
                "{\"name\":\"%s\",\"iterations\":%d,\"ticks\":%llu,\"rulers\":[%.6f,%.6f]}\n", kind->name,
                kind->iterations, (unsigned long long)ticks, before, after);
            if (write(file, line, (size_t)length) != length)
                return 1;
        }
    }
    return 0;
}
