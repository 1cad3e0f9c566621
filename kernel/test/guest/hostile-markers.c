/* Callers that break every rule of the module's markers: hostile-markers WHAT. See `tests` at
 * the end. */
#define _GNU_SOURCE
#include <cyclescope.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096
#define MANY		0x7fffffff
#define LOOPS		10
#define KERNEL_ADDRESS	0xffff888000000000

/* Requests that are valid until a field is changed. */
struct request {
	struct cyclescope_marker_code code;
	struct cyclescope_marker_bytes bytes;
	struct cyclescope_marker_switch on;
	struct cyclescope_marker_run run;
	struct cyclescope_marker_call call;
	struct cyclescope_sample sample;
	uint8_t buffer[PAGE];
};

static void demand(bool met, const char *what)
{
	if (met)
		return;
	fprintf(stderr, "not met: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static int open_device(void)
{
	int file = open("/dev/cyclescope", O_RDWR | O_CLOEXEC);

	demand(file >= 0, "the device opens");
	return file;
}

static void pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	demand(!sched_setaffinity(0, sizeof(set), &set), "this thread on its CPU");
}

static void wait_ms(long milliseconds)
{
	struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static int answer(int file, unsigned long command, void *argument)
{
	errno = 0;
	return ioctl(file, command, argument) ? errno : 0;
}

/* A request for one code. */
static void make(struct request *request, int file, uint32_t code)
{
	memset(request, 0, sizeof(*request));
	request->code = (struct cyclescope_marker_code){
		.size = sizeof(request->code), .version = CYCLESCOPE_VERSION, .code = code,
	};
	demand(!answer(file, CYCLESCOPE_MARKER_CODE, &request->code), "what the code is");
	request->bytes = (struct cyclescope_marker_bytes){
		.size = sizeof(request->bytes), .version = CYCLESCOPE_VERSION, .code = code,
		.bytes = request->code.bytes, .buffer = (uintptr_t)request->buffer,
	};
	demand(request->code.bytes <= sizeof(request->buffer), "room for the code");
	request->on = (struct cyclescope_marker_switch){
		.size = sizeof(request->on), .version = CYCLESCOPE_VERSION, .design = request->code.design,
		.probe = CYCLESCOPE_PROBE_COUNTING,
	};
	request->call = (struct cyclescope_marker_call){ .code = code, .loops = LOOPS };
	request->run = (struct cyclescope_marker_run){
		.size = sizeof(request->run), .version = CYCLESCOPE_VERSION, .cpu = 1, .calls = 1, .rounds = 1, .delay = 1,
		.call_list = (uintptr_t)&request->call, .samples = (uintptr_t)&request->sample,
		.seed = 1, .slice_us = 1000, .total_ms = 1000,
	};
}

static int turn(int file, uint32_t design, uint32_t probe)
{
	struct cyclescope_marker_switch on = {
		.size = sizeof(on), .version = CYCLESCOPE_VERSION, .design = design, .probe = probe,
	};

	return answer(file, CYCLESCOPE_MARKER_SWITCH, &on);
}

/* Finds the first code of each design. Returns their number. */
static uint32_t first_codes(int file, uint32_t *codes, uint32_t room)
{
	struct cyclescope_marker_code code = { .size = sizeof(code), .version = CYCLESCOPE_VERSION };
	uint32_t designs = 0;

	for (; !answer(file, CYCLESCOPE_MARKER_CODE, &code); code.code++)
		if (code.design == designs) {
			demand(designs < room, "room for the designs");
			codes[designs++] = code.code;
		}
	demand(errno == ENOENT && designs > 1, "an end to the codes");
	return designs;
}

/* Number of calls of the counting probe in a run of a code. */
static uint64_t hits(int file, uint32_t code)
{
	struct request request;

	make(&request, file, code);
	demand(!answer(file, CYCLESCOPE_MARKER_RUN, &request.run), "a run");
	demand(request.run.rounds_done == 1 && request.sample.end > request.sample.start, "its sample");
	return request.run.hits;
}

/* Each change alone, with the expected answer. */
static void values(void)
{
	static const struct {
		unsigned long command;
		size_t argument, at, bytes;
		uint64_t value;
		int wanted;
	} changes[] = {
#define CHANGE(which, command, part, member, value, wanted) { command, offsetof(struct request, which), \
	offsetof(struct request, part.member), sizeof(((struct request *)0)->part.member), value, wanted }
#define CODE(member, value, wanted)	CHANGE(code, CYCLESCOPE_MARKER_CODE, code, member, value, wanted)
#define BYTES(member, value, wanted)	CHANGE(bytes, CYCLESCOPE_MARKER_BYTES, bytes, member, value, wanted)
#define SWITCH(member, value, wanted)	CHANGE(on, CYCLESCOPE_MARKER_SWITCH, on, member, value, wanted)
#define RUN(member, value, wanted)	CHANGE(run, CYCLESCOPE_MARKER_RUN, run, member, value, wanted)
#define CALL(member, value, wanted)	CHANGE(run, CYCLESCOPE_MARKER_RUN, call, member, value, wanted)
#define HEAD(make) make(size, 0, EINVAL), make(size, 8, EINVAL), make(size, 1000, EINVAL), make(size, ~0u, EINVAL), \
	make(version, 0, EINVAL), make(version, CYCLESCOPE_VERSION - 1, EINVAL), \
	make(version, CYCLESCOPE_VERSION + 1, EINVAL), make(version, ~0u, EINVAL)
#define POINTER(make, name) make(name, 0, EFAULT), make(name, KERNEL_ADDRESS, EFAULT), make(name, ~0ull, EFAULT), \
	make(name, 0x8000000000000000, EFAULT), make(name, 0x7fffffffefff, EFAULT), make(name, 1, EFAULT)
		HEAD(CODE), HEAD(BYTES), HEAD(SWITCH), HEAD(RUN),
		CODE(code, 100000, ENOENT), CODE(code, ~0u, ENOENT), CODE(code, CYCLESCOPE_RULER_IMUL_SHORT, ENOENT),
		BYTES(code, 100000, ENOENT), BYTES(code, ~0u, ENOENT), BYTES(bytes, 0, EINVAL), BYTES(bytes, 4096, EINVAL),
		BYTES(bytes, ~0u, EINVAL), POINTER(BYTES, buffer),
		SWITCH(flags, 1, EINVAL), SWITCH(flags, ~0u, EINVAL), SWITCH(design, 1000, EINVAL), SWITCH(design, ~0u, EINVAL),
		SWITCH(probe, 6, EINVAL), SWITCH(probe, ~0u, EINVAL),
		RUN(flags, 1, EINVAL), RUN(flags, ~0u, EINVAL),
		RUN(cpu, 0, ESTALE), RUN(cpu, 8191, ESTALE), RUN(cpu, ~0u, ESTALE),
		RUN(calls, 0, EINVAL), RUN(calls, CYCLESCOPE_MARKER_MOST_CALLS + 1, EINVAL), RUN(calls, ~0u, EINVAL),
		RUN(rounds, 0, EINVAL), RUN(rounds, 1u << 31, EINVAL), RUN(rounds, ~0u, EINVAL),
		RUN(warm_up, 1u << 31, EINVAL), RUN(warm_up, ~0u, EINVAL),
		RUN(delay, 0, EINVAL), RUN(delay, CYCLESCOPE_MARKER_MOST_DELAY + 1, EINVAL), RUN(delay, ~0u, EINVAL),
		RUN(slice_us, 0, EINVAL), RUN(slice_us, CYCLESCOPE_MARKER_LONGEST_SLICE_US + 1, EINVAL),
		RUN(slice_us, ~0u, EINVAL), RUN(total_ms, 0, EINVAL),
		POINTER(RUN, call_list), POINTER(RUN, samples),
		CALL(code, 100000, EINVAL), CALL(code, CYCLESCOPE_RULER_SENTINEL + 1u, EINVAL), CALL(code, ~0u, EINVAL),
		CALL(loops, 0, EINVAL), CALL(loops, CYCLESCOPE_MARKER_MOST_WORK + 1, EINVAL), CALL(loops, ~0u, EINVAL),
		/* Valid, if odd. */
		CALL(loops, CYCLESCOPE_MARKER_MOST_WORK, 0), CALL(code, CYCLESCOPE_RULER_SENTINEL, 0),
		RUN(delay, CYCLESCOPE_MARKER_MOST_DELAY, 0), RUN(seed, 0, 0), RUN(hits, ~0ull, 0), RUN(rounds_done, ~0u, 0),
		RUN(slice_us, 1, 0), SWITCH(probe, CYCLESCOPE_PROBE_DORMANT, 0),
	};
	int file = open_device();
	struct request request;

	for (size_t index = 0; index < sizeof(changes) / sizeof(*changes); index++) {
		int got;

		make(&request, file, 0);
		memcpy((char *)&request + changes[index].at, &changes[index].value, changes[index].bytes);
		got = answer(file, changes[index].command, (char *)&request + changes[index].argument);
		if (got != changes[index].wanted)
			fprintf(stderr, "change %zu, of the bytes at %zu to %#llx: %s\n", index, changes[index].at,
				(unsigned long long)changes[index].value, strerror(got));
		demand(got == changes[index].wanted, "this answer");
		demand(hits(file, 0) == 0, "nothing that is on");
	}
}

/* The work of all calls of a round is limited, a memcpy counts more, and time ends runs with
 * too many rounds. */
static void bounds(void)
{
	struct cyclescope_marker_call calls[CYCLESCOPE_MARKER_MOST_CALLS];
	struct cyclescope_sample samples[CYCLESCOPE_MARKER_MOST_CALLS] = {};
	int file = open_device();
	struct request request;
	uint32_t code = 0;

	make(&request, file, 0);
	for (int index = 0; index < CYCLESCOPE_MARKER_MOST_CALLS; index++)
		calls[index] = (struct cyclescope_marker_call){ CYCLESCOPE_RULER_ADD_SHORT,
			CYCLESCOPE_MARKER_MOST_WORK / CYCLESCOPE_MARKER_MOST_CALLS };
	request.run.calls = CYCLESCOPE_MARKER_MOST_CALLS;
	request.run.call_list = (uintptr_t)calls;
	request.run.samples = (uintptr_t)samples;
	demand(!answer(file, CYCLESCOPE_MARKER_RUN, &request.run), "as many calls and as much work as may be");
	for (int index = 0; index < CYCLESCOPE_MARKER_MOST_CALLS; index++)
		demand(samples[index].end > samples[index].start, "every sample");
	calls[300].loops++;
	demand(answer(file, CYCLESCOPE_MARKER_RUN, &request.run) == EINVAL, "EINVAL for one iteration more");
	do
		make(&request, file, code++);
	while (request.code.around != CYCLESCOPE_AROUND_MEMCPY);
	request.call.loops = CYCLESCOPE_MARKER_MOST_WORK / CYCLESCOPE_MARKER_COPY_WEIGHT;
	demand(!answer(file, CYCLESCOPE_MARKER_RUN, &request.run), "as many copies as may be");
	request.call.loops++;
	demand(answer(file, CYCLESCOPE_MARKER_RUN, &request.run) == EINVAL, "EINVAL for one copy more");
	make(&request, file, 0);
	request.run.warm_up = MANY;
	request.run.total_ms = 50;
	demand(!answer(file, CYCLESCOPE_MARKER_RUN, &request.run) && !request.run.rounds_done, "an end by time");
	demand(request.run.slices > 1, "several slices");
}

/* Sites belong to the file that switched one on, until all are off. */
static void owners(void)
{
	int file = open_device(), other = open_device();
	uint32_t codes[16], designs = first_codes(file, codes, 16);
	struct request request;

	for (uint32_t design = 0; design < designs; design++) {
		if (turn(file, design, CYCLESCOPE_PROBE_COUNTING) == EOPNOTSUPP)
			continue;
		demand(hits(file, codes[design]) == LOOPS, "a site that is on");
		make(&request, other, codes[design]);
		demand(answer(other, CYCLESCOPE_MARKER_RUN, &request.run) == EBUSY, "EBUSY for another's run");
		for (uint32_t of = 0; of < designs; of++)
			for (uint32_t probe = 0; probe <= CYCLESCOPE_PROBE_COUNTING; probe++)
				demand(turn(other, of, probe) == EBUSY, "EBUSY for another's switch");
		demand(!answer(other, CYCLESCOPE_MARKER_BYTES, &request.bytes), "bytes for anyone");
		close(other);
		other = open_device();
		demand(hits(file, codes[design]) == LOOPS, "what another can't end by closing");
		/* By hand, and by closing. */
		if (design % 2)
			demand(!turn(file, design, CYCLESCOPE_PROBE_DORMANT), "switching off");
		else
			close(file), file = open_device();
		demand(hits(other, codes[design]) == 0, "a site that is off, for another");
	}
	/* All at once. */
	for (uint32_t design = 0; design < designs; design++)
		turn(file, design, CYCLESCOPE_PROBE_COUNTING);
	close(file);
	for (uint32_t design = 0; design < designs; design++)
		demand(hits(other, codes[design]) == 0, "all sites off with their owner");
}

/* A process is killed in the middle of a run with its sites on. */
static void killed(void)
{
	int file = open_device();
	uint32_t codes[16], designs = first_codes(file, codes, 16);

	for (uint32_t number = 0; number < 2 * designs; number++) {
		uint32_t design = number % designs;
		pid_t child = fork();

		if (!child) {
			int own = open_device();
			struct request request;

			pin(1);
			turn(own, design, CYCLESCOPE_PROBE_COUNTING);
			make(&request, own, codes[design]);
			request.call.loops = 1000;
			request.run.warm_up = MANY;
			request.run.total_ms = 60000;
			answer(own, CYCLESCOPE_MARKER_RUN, &request.run);
			_exit(0);
		}
		pin(0);
		wait_ms(50);
		kill(child, SIGKILL);
		demand(waitpid(child, NULL, 0) == child, "the child's end");
		pin(1);
		demand(hits(file, codes[design]) == 0, "its sites off");
	}
}

/* Opens, switches and closes devices, to find leaks. */
static void turns(void)
{
	for (int number = 0; number < 50; number++) {
		int file = open_device();
		uint32_t codes[16], designs = first_codes(file, codes, 16);

		for (uint32_t design = 0; design < designs; design++)
			turn(file, design, number % 5 + 1);
		hits(file, codes[number % designs]);
		close(file);
	}
}

/* For `rmmod` during a run: two seconds with all sites on. */
static void endure(void)
{
	int file = open_device();
	uint32_t codes[16], designs = first_codes(file, codes, 16);
	struct request request;

	for (uint32_t design = 0; design < designs; design++)
		turn(file, design, CYCLESCOPE_PROBE_EMPTY);
	make(&request, file, codes[0]);
	request.run.warm_up = MANY;
	request.run.total_ms = 2000;
	demand(!answer(file, CYCLESCOPE_MARKER_RUN, &request.run), "a run of two seconds");
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{ "values", values }, { "bounds", bounds }, { "owners", owners }, { "killed", killed }, { "turns", turns },
	{ "endure", endure },
};

int main(int count, char **words)
{
	demand(count == 2, "one word");
	pin(1);
	for (size_t index = 0; index < sizeof(tests) / sizeof(*tests); index++)
		if (!strcmp(tests[index].name, words[1])) {
			tests[index].run();
			return 0;
		}
	fprintf(stderr, "hostile-markers: no %s\n", words[1]);
	return 2;
}
