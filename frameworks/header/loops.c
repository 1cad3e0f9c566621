/* Loops of multiplications, the second three times as long as the first; `break` leaves the last one. C99 and C++11. */
#include "cyclescope_loop.h"

#if CYCLESCOPE_VERSION < 1 || CYCLESCOPE_VERSION != 10000 * CYCLESCOPE_VERSION_MAJOR + 100 * CYCLESCOPE_VERSION_MINOR + CYCLESCOPE_VERSION_PATCH
#error "the header has a version"
#endif

static uint64_t multiply(int number, uint64_t value)
{
    while (number-- > 0) {
        CYCLESCOPE_HIDE(value);
        value *= value;
    }
    return value;
}

int main(void)
{
    struct cyclescope_loop_result result, none;
    uint64_t value = 3;

    CYCLESCOPE_LOOP("multiplications 50") {
        value = multiply(50, value);
        CYCLESCOPE_KEEP(value);
    }
    CYCLESCOPE_LOOP_TO(result, "multiplications 150") {
        value = multiply(150, value);
        CYCLESCOPE_KEEP(value);
    }
    CYCLESCOPE_LOOP("a \"quoted\" name") {
        value = multiply(10, value);
        CYCLESCOPE_KEEP(value);
    }
    CYCLESCOPE_LOOP_TO(none, "left") {
        CYCLESCOPE_KEEP(value);
        break;
    }
    if (result.low > result.cycles || result.cycles > result.high || result.low <= 0 || none.cycles > 0)
        return 1;
    if (!getenv("CYCLESCOPE_AB"))
        printf("result: %.1f\n", result.cycles);
    return 0;
}
