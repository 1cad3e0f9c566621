// Functions of odd signatures. Each notes its arguments as text in `noted`.
#include <complex>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

extern "C" {
char noted[4096];
char *buffer_start;
char *second_start;
}

static void note(const char *text) {
    if (*noted) strcat(noted, " ");
    strcat(noted, text);
}
template <class T> static void note_number(const char *format, T value) {
    char text[64];
    snprintf(text, sizeof text, format, value);
    note(text);
}
static void put(long x) { note_number("%ld", x); }
static void put(unsigned long x) { note_number("%lu", x); }
static void put(int x) { put((long)x); }
static void put(unsigned x) { put((unsigned long)x); }
static void put(bool x) { note(x ? "yes" : "no"); }
static void put(double x) { note_number("%g", x); }
static void put(float x) { note_number("%gf", x); }
static void put(long double x) { note_number("%LgL", x); }
static void put(unsigned __int128 x) { note_number("%lx", (long)(x >> 64)), note_number("%lx", (long)x); }
static void put(__int128 x) { put((unsigned __int128)x); }
static void put(const void *x) {
    char *p = (char *)x;
    if (!p) return note("null");
    if (p >= buffer_start && p < buffer_start + 4096) return note_number("buffer+%ld", p - buffer_start);
    note_number("second+%ld", p - second_start);
}
typedef int Order(const void *, const void *);
static void put(Order *order) {
    int less = 1, more = 2;
    note(!order ? "null" : order(&more, &less) == 1 ? "compares" : "something else");
}
template <class... T> static void all(T... values) { (put(values), ...); }

struct Two { int a, b; };
struct Floats { float a, b; };
struct Floats3 { float a, b, c; };
struct LongDouble { long a; double b; };
struct DoubleLong { double a; long b; };
struct CharFloat { char a; float b; };
struct Three { long a, b, c; };
struct Ints { int a[3]; };
struct Nested { Two two; Floats floats; };
struct __attribute__((packed)) Packed { char a; int b; };
struct __attribute__((packed)) PackedWide { __int128 a; long b; };
struct alignas(16) Aligned { long a, b; };
struct alignas(64) Wide { long a; };
struct Extended { long double a; };
struct Empty {};
struct Base { int a; };
struct Derived : Base { float b; };
struct Bits { int a : 3, b : 5; };
struct ManyBits { int a : 3; long b[4]; char c[5000]; };
struct Copied { int a; Copied(const Copied &other) : a(other.a) {} Copied(int a) : a(a) {} };
struct Defaulted { int a; Defaulted(const Defaulted &) = default; ~Defaulted() = default; };
struct Moved { int a; Moved(const Moved &) = delete; Moved(Moved &&) = default; };
struct Fixed { int a; Fixed(const Fixed &) = delete; };
struct Virtual { int a; virtual void f() {} };
struct Holder { Copied copied; int b; };
union Either { long a; double b; };
enum Plain { One = 1, Two_ };
enum class Small : signed char { A = -1 };
typedef float Vector __attribute__((vector_size(16)));
struct Comparison { int a; Order *compare; };
struct Big { long x[5]; };

extern "C" {
void int_one(int a) { all(a); }
void long_six(long a, long b, long c, long d, long e, long f) { all(a, b, c, d, e, f); }
void long_eight(long a, long b, long c, long d, long e, long f, long g, long h) { all(a, b, c, d, e, f, g, h); }
void small(signed char a, short b, int c, unsigned char d, unsigned short e, unsigned f, bool g) {
    // Compilers may rely on values that are extended to 32 bits.
    int x, y, z, w;
    __asm__("movl %%edi, %0; movl %%esi, %1" : "=r"(x), "=r"(y) : "D"(a), "S"(b));
    __asm__("movl %%ecx, %0; movl %%r8d, %1" : "=r"(z), "=r"(w) : "c"(d));
    (void)w;
    all(x, y, c, z, (int)e, f, g);
}
void double_one(double a) { all(a); }
void float_one(float a) { all(a); }
void double_ten(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j) {
    all(a, b, c, d, e, f, g, h, i, j);
}
void mixed(int a, double b, float c, long d, double e, void *p) { all(a, b, c, d, e, p); }
float scaled(float *p, float a) { all((void *)p, a); return a; }
void counted(char *p, int n) { all((void *)p, n); }
void long_double(long double a) { all(a); }
void long_doubles(int a, long double b, double c, long double d, int e) { all(a, b, c, d, e); }
void after_seven(long a, long b, long c, long d, long e, long f, long g, long double h) { all(g, h); (void)(a + b + c + d + e + f); }
void wide(__int128 a) { all(a); }
void wide_split(long a, long b, long c, long d, long e, __int128 f, long g) { all(a, e, f, g); (void)(b + c + d); }
void two(Two s) { all(s.a, s.b); }
void floats(Floats s, float x) { all(s.a, s.b, x); }
void floats3(Floats3 s, float x) { all(s.a, s.b, s.c, x); }
void long_and_double(LongDouble s, long x, double y) { all(s.a, s.b, x, y); }
void double_and_long(DoubleLong s, long x, double y) { all(s.a, s.b, x, y); }
void char_and_float(CharFloat s, int x) { all((int)s.a, s.b, x); }
void three(int x, Three s, int y) { all(x, s.a, s.b, s.c, y); }
void ints(Ints s) { all(s.a[0], s.a[1], s.a[2]); }
void nested(Nested s) { all(s.two.a, s.two.b, s.floats.a, s.floats.b); }
void packed(Packed s, int x) { all((int)s.a, s.b, x); }
void packed_wide(long a, long b, long c, long d, long e, long f, long g, PackedWide s) { all(g, s.a, s.b); (void)(a + b + c + d + e + f); }
void extended_on_stack(long a, long b, long c, long d, long e, long f, long g, Extended s) { all(g, s.a); (void)(a + b + c + d + e + f); }
void aligned(long a, Aligned s, long b) { all(a, s.a, s.b, b); }
void aligned_on_stack(long a, long b, long c, long d, long e, long f, long g, Aligned s) { all(g, s.a, s.b); (void)(a + b + c + d + e + f); }
void extended(int x, Extended s) { all(x, s.a); }
void empty(int x, Empty, int y) { all(x, y); }
void derived(Derived s) { all(s.a, s.b); }
void split(long a, long b, long c, long d, long e, LongDouble s, Ints t, long f) { all(e, s.a, s.b, t.a[2], f); (void)(a + b + c + d); }
void no_vectors_left(double a, double b, double c, double d, double e, double f, double g, Floats3 s, double h) { all(g, s.a, s.b, s.c, h); (void)(a + b + c + d + e + f); }
void either(Either u) { all(u.a); }
void plain(Plain a, Small b) { all((int)a, (int)b); }
void complex_double(_Complex double a, double b) { all(__real__ a, __imag__ a, b); }
void complex_float(_Complex float a) { all(__real__ a, __imag__ a); }
void text(const char *t, char c, const char *u) { note(t), all((int)c), note(u); }
void copy(void *to, const void *from, size_t n) { all((const void *)to, from, n); }
void references(const int &a, int &&b) { all((const void *)&a, (const void *)&b); }
int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
void compared(void *p, int (*compare)(const void *, const void *)) { all((const void *)p, compare); }
void comparison(Comparison c, int n) { all(c.a, c.compare, n); }
void nothing(void) { note("called"); }
void variadic(int n, ...) {
    va_list list;
    va_start(list, n);
    double x = va_arg(list, double);
    long y = va_arg(list, long);
    void *p = va_arg(list, void *);
    all(n, x, y, p);
    va_end(list);
}
void variadic_text(int n, ...) {
    va_list list;
    va_start(list, n);
    const char *t = va_arg(list, const char *);
    all(n), note(t);
    va_end(list);
}
Big big_result(long a, double b) { all(a, b); return {{a, 2, 3, 4, 5}}; }
Two two_result(long a) { all(a); return {1, 2}; }
Floats3 floats_result(long a) { all(a); return {1, 2, 3}; }
long double long_double_result(long double a, int b) { all(a, b); return a * b; }
Extended extended_result(int a) { all(a); return {(long double)a}; }
Vector vector_result(int a) { all(a); return Vector{1, 2, 3, 4}; }
ManyBits many_bits_result(long a) { all(a); return {}; }
Bits bits_result(long a) { all(a); return {}; }
double double_result(long a) { all(a); return 0.5; }
void vector(Vector v) { put(v[0]); }
void quad(__float128 a) { put((double)a); }
void bits(Bits b) { all(b.a); }
void long_double_complex(_Complex long double a) { put(__real__ a); }
void over_aligned(Wide w) { put(w.a); }
}
std::string string_result(long a) { put(a); return std::string(1, 'x'); }
void view(std::string_view s) { note(std::string(s).c_str()); }
void string(std::string s) { note(s.c_str()); }
void owner(std::unique_ptr<int> p) { put((const void *)p.get()); }
void copied(Copied c) { put(c.a); }
void defaulted(Defaulted d) { put(d.a); }
void moved(Moved m) { put(m.a); }
void fixed(Fixed &f) { put((const void *)&f); }
void fixed_value(Fixed f) { put(f.a); }
void polymorphic(Virtual v) { put(v.a); }
void holder(Holder h) { put(h.b); }
void member(int Two::*m) { (void)m; }
namespace odd {
struct Foo {
    long v[4];
    __attribute__((noinline, used)) void method(int x) { all((const void *)this, x); }
    __attribute__((noinline, used)) static void shared(long a) { put(a); }
};
void over(int a) { put(a); }
void over(double a) { put(a); }
template <class T> void generic(T a) { put(a); }
template void generic<int>(int);
template void generic<float>(float);
}
__attribute__((noinline, noipa, used)) static void hidden(long *p, long n) { all((const void *)p, n); }
