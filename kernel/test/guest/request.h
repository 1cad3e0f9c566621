/* A valid run, for programs that change a field of it. */
#ifndef REQUEST_H
#define REQUEST_H

#define _GNU_SOURCE
#include <cyclescope.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PAGE		4096

static struct cyclescope_info info;

/* A run that is valid until a field is changed. */
struct request {
	int file;
	struct cyclescope_run run;
	struct cyclescope_piece piece;
	struct cyclescope_call call;
	uint8_t code[64];
	uint8_t *context;
	uint8_t *samples;
};

static inline void demand(bool met, const char *what)
{
	if (met)
		return;
	fprintf(stderr, "not met: %s (%s)\n", what, strerror(errno));
	exit(1);
}

static inline uint8_t *page(void)
{
	uint8_t *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	demand(memory != MAP_FAILED, "a page");
	return memory;
}

static inline int open_device(void)
{
	int file = open("/dev/cyclescope", O_RDWR | O_CLOEXEC);

	demand(file >= 0, "the device opens");
	return file;
}

/* mov rcx, context; rdtsc; mov [rcx], eax; mov [rcx+4], edx; rdtsc; mov [rcx+8], eax; mov [rcx+12], edx; ret */
static inline void two_readings(uint8_t *code)
{
	uint64_t context = info.context + CYCLESCOPE_CONTEXT_AT;

	memcpy(code, "\x48\xb9", 2);
	memcpy(code + 2, &context, 8);
	memcpy(code + 10, "\x0f\x31\x89\x01\x89\x51\x04\x0f\x31\x89\x41\x08\x89\x51\x0c\xc3", 16);
}

static inline void make(struct request *request, int file, unsigned int cpu)
{
	memset(request, 0, sizeof(*request));
	request->file = file;
	request->context = page();
	request->samples = page();
	two_readings(request->code);
	request->piece.bytes = 26;
	request->piece.code = (uintptr_t)request->code;
	request->run = (struct cyclescope_run){
		.size = sizeof(request->run), .version = CYCLESCOPE_VERSION, .cpu = cpu,
		.pieces = 1, .calls = 1,
		.piece_list = (uintptr_t)&request->piece, .call_list = (uintptr_t)&request->call,
		.context = (uintptr_t)request->context, .samples = (uintptr_t)request->samples,
		.rounds = 1, .delay = 1, .slice_us = 1000, .deadline_us = 20000, .total_ms = 1000, .seed = 1,
		.unread = 0x123456789abcdef,
	};
}

static inline void drop(struct request *request)
{
	munmap(request->context, PAGE);
	munmap(request->samples, PAGE);
}

static inline int answer(struct request *request)
{
	errno = 0;
	return ioctl(request->file, CYCLESCOPE_RUN, &request->run) ? errno : 0;
}

/* Whether a run of a few instructions ends well. A busy host may stop the emulated CPU for longer
 * than any deadline, so a run that exceeds it is tried again. */
static inline bool works(int file, unsigned int cpu)
{
	struct request request;
	struct cyclescope_sample *sample;
	bool good, late = true;

	for (int attempt = 0; late && attempt < 50; attempt++) {
		make(&request, file, cpu);
		sample = (void *)request.samples;
		good = !answer(&request);
		late = good && request.run.outcome.status == CYCLESCOPE_DEADLINE;
		good = good && request.run.outcome.status == CYCLESCOPE_DONE && sample->end > sample->start;
		drop(&request);
	}
	return good;
}

static inline void pin(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	demand(!sched_setaffinity(0, sizeof(set), &set), "this thread on its CPU");
}

static inline void wait_ms(long milliseconds)
{
	struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

struct test {
	const char *name;
	void (*run)(void);
};

/* One of the tests, by its name, on CPU 1. */
static inline int run_test(const struct test *tests, size_t many, int count, char **words)
{
	int file = open_device();

	info.size = sizeof(info);
	info.version = CYCLESCOPE_VERSION;
	demand(count == 2 && !ioctl(file, CYCLESCOPE_GET_INFO, &info), "what the module says");
	close(file);
	pin(1);
	for (size_t index = 0; index < many; index++)
		if (!strcmp(tests[index].name, words[1])) {
			tests[index].run();
			return 0;
		}
	fprintf(stderr, "%s: no %s\n", words[0], words[1]);
	return 2;
}

#endif
