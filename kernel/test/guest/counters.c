/* Performance events in ring 0: counters WHAT. See `tests` at the end. */
#include "request.h"
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/wait.h>

#define ROUNDS		200
#define TURNS		11
#define DUMMY		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY }
#define TASK_CLOCK	{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_TASK_CLOCK }
#define PAGE_FAULTS	{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS }
#define CYCLES		{ .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES }
#define UNKNOWN		{ .type = 0x7fffffff }

/* How many count at the same time; `error` is why the next one does not. */
static int fitting(int file, struct cyclescope_event *events, uint32_t count, uint32_t *error)
{
	struct cyclescope_event_trial trial = {
		.size = sizeof(trial), .version = CYCLESCOPE_VERSION, .cpu = 1, .events = count,
		.event_list = (uintptr_t)events,
	};

	errno = 0;
	if (ioctl(file, CYCLESCOPE_TRY_EVENTS, &trial))
		return -errno;
	*error = trial.error;
	return trial.fitting;
}

/* A run of some rounds, each of some iterations of a loop, that counts these events. */
static void make_counted(struct request *request, int file, struct cyclescope_event *events, uint32_t count,
			 uint32_t iterations)
{
	make(request, file, 1);
	/* mov eax, N; dec eax; jnz */
	memcpy(request->code, "\xb8", 1);
	memcpy(request->code + 1, &iterations, 4);
	memcpy(request->code + 5, "\xff\xc8\x75\xfc", 4);
	two_readings(request->code + 9);
	request->piece.bytes = 9 + 26;
	request->run.rounds = ROUNDS;
	request->run.deadline_us = info.longest_deadline_us;
	request->run.total_ms = 60000;
	request->run.events = count;
	request->run.event_list = (uintptr_t)events;
}

/* Runs until some rounds were counted: a busy host may stop the emulated CPU in any slice. */
static uint64_t count_first(int file, struct cyclescope_event *events, uint32_t count, uint32_t iterations)
{
	struct request request;
	const struct cyclescope_outcome *outcome = &request.run.outcome;
	int attempt;

	for (attempt = 0; attempt < 50; attempt++) {
		make_counted(&request, file, events, count, iterations);
		demand(!answer(&request), "an answer");
		drop(&request);
		if (outcome->status == CYCLESCOPE_DONE && outcome->counted_rounds)
			break;
	}
	demand(attempt < 50 && outcome->counted_rounds <= ROUNDS, "rounds that were counted");
	return events[0].count / outcome->counted_rounds;
}

static int in_order(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

/* The median time of a round. The host may stop the emulated CPU in a slice; and a kernel that finds
 * its TSC unstable lets its clock stand still while interrupts are off. */
static uint64_t typical_time(int file, struct cyclescope_event *events, uint32_t count, uint32_t iterations)
{
	uint64_t times[TURNS];

	for (int turn = 0; turn < TURNS; turn++) {
		times[turn] = count_first(file, events, count, iterations);
		demand(!events[1].count && !events[2].count, "neither dummies nor page faults");
	}
	qsort(times, TURNS, sizeof(*times), in_order);
	return times[TURNS / 2];
}

/* Events of the kernel count in slices, and only what happens there. */
static void software(void)
{
	struct cyclescope_event events[] = { TASK_CLOCK, DUMMY, PAGE_FAULTS };
	uint64_t few = 0, many = 0;
	int file = open_device();
	uint32_t error;

	demand(fitting(file, events, 3, &error) == 3 && !error, "three that count together");
	for (int attempt = 0; attempt < 10 && !(few && many > 2 * few); attempt++) {
		few = typical_time(file, events, 3, 1000);
		many = typical_time(file, events, 3, 16000);
	}
	printf("a round of 1000 iterations takes %llu ns, one of 16000 %llu ns\n", (unsigned long long)few,
	       (unsigned long long)many);
	demand(few > 0 && many > 2 * few, "time that grows with the rounds");
	demand(works(file, 1), "a run without events");
}

/* A processor without counters is an error that tells so; one with counters counts. */
static void hardware(void)
{
	struct cyclescope_event events[] = { DUMMY, CYCLES };
	struct request request;
	int file = open_device(), fit;
	uint32_t error;

	fit = fitting(file, events, 2, &error);
	printf("%d of 2 events count: %s\n", fit, strerror(error));
	if (fit == 2) {
		demand(count_first(file, events + 1, 1, 1000) > 1000, "a core cycle for each iteration");
		return;
	}
	demand(fit == 1 && (error == ENOENT || error == EOPNOTSUPP), "no counter");
	make_counted(&request, file, events, 2, 1);
	demand(answer(&request) == (int)error, "the same answer for a run");
	demand(works(file, 1), "a run without events");
}

static void wrong(void)
{
	struct cyclescope_event breakpoint[] = { { .type = PERF_TYPE_BREAKPOINT } };
	struct cyclescope_event reserved[] = { { .type = PERF_TYPE_SOFTWARE, .reserved = 1 } };
	struct cyclescope_event good[] = { DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY };
	struct cyclescope_event unknown[] = { UNKNOWN };
	struct cyclescope_event_trial trial;
	struct request request;
	int file = open_device();
	uint32_t error;

	demand(fitting(file, good, 8, &error) == 8, "eight events");
	demand(fitting(file, good, 9, &error) == -EINVAL, "EINVAL for nine");
	demand(fitting(file, good, 0, &error) == -EINVAL, "EINVAL for none");
	demand(fitting(file, NULL, 1, &error) == -EFAULT, "EFAULT for no list");
	demand(!fitting(file, breakpoint, 1, &error) && error == EINVAL, "EINVAL for a breakpoint");
	demand(!fitting(file, reserved, 1, &error) && error == EINVAL, "EINVAL for something reserved");
	demand(!fitting(file, unknown, 1, &error) && error == ENOENT, "ENOENT for an unknown unit");
	trial = (struct cyclescope_event_trial){ .size = sizeof(trial), .version = CYCLESCOPE_VERSION, .cpu = 8191, .events = 1 };
	demand(ioctl(file, CYCLESCOPE_TRY_EVENTS, &trial) && errno == ESTALE, "ESTALE for an unknown CPU");
	trial.flags = 1;
	demand(ioctl(file, CYCLESCOPE_TRY_EVENTS, &trial) && errno == EINVAL, "EINVAL for an unknown flag");
	make_counted(&request, file, good, 1, 1);
	request.run.warm_up = 1;
	demand(answer(&request) == EINVAL, "EINVAL for untimed rounds");
	make_counted(&request, file, unknown, 1, 1);
	demand(answer(&request) == ENOENT, "ENOENT for a run");
	make_counted(&request, file, (void *)16, 1, 1);
	demand(answer(&request) == EFAULT, "EFAULT for a list that is not there");
	demand(works(file, 1), "a valid run");
}

/* Runs that fail before, during and after their slices leave no event open. */
static void failing(void)
{
	struct cyclescope_event events[] = { DUMMY, TASK_CLOCK, UNKNOWN };
	struct request request;
	int file = open_device();

	for (int turn = 0; turn < 500; turn++) {
		make_counted(&request, file, events, 3, 1);
		demand(answer(&request) == ENOENT, "ENOENT for the third event");
		request.run.events = 2;
		request.run.samples = 16;
		demand(answer(&request) == EFAULT, "EFAULT for the samples");
		request.run.samples = (uintptr_t)request.samples;
		memcpy(request.code, "\x0f\x0b", 2);
		demand(!answer(&request) && request.run.outcome.status == CYCLESCOPE_FAULT, "a fault");
		drop(&request);
	}
}

/* A process that is killed while it counts. */
static void killed(void)
{
	struct cyclescope_event events[] = { DUMMY, TASK_CLOCK };
	struct request request;

	for (int turn = 0; turn < 20; turn++) {
		pid_t child = fork();

		if (!child) {
			make_counted(&request, open_device(), events, 2, 1000);
			for (;;)
				answer(&request);
		}
		wait_ms(20);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	demand(works(open_device(), 1), "a valid run");
}

static const struct test tests[] = {
	{ "software", software }, { "hardware", hardware }, { "wrong", wrong }, { "failing", failing }, { "killed", killed },
};

int main(int count, char **words)
{
	return run_test(tests, sizeof(tests) / sizeof(*tests), count, words);
}
