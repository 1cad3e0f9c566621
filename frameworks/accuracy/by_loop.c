/* The functions in the loop of the C header: prints their names and core cycles. */
#include "cyclescope_loop.h"
#include "functions.h"
#include "reference.h"

int main(void)
{
    prepare_functions();
    for (int n = 0; n < FUNCTIONS; n++) {
        const struct timed_function *function = &timed_functions[n];
        struct cyclescope_loop_result result;
        uint64_t value = 3;
        write_reference(function->run);
        CYCLESCOPE_LOOP_TO(result, function->name) {
            value = function->run(value);
            CYCLESCOPE_KEEP(value);
        }
        write_reference(function->run);
        printf("%s %.3f\n", function->name, result.cycles);
    }
    return 0;
}
