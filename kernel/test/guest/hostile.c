/* Callers that break every rule of the module: hostile WHAT. See `tests` at the end. */
#include "request.h"
#include <asm/ldt.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MANY		0x7fffffff
#define KERNEL_ADDRESS	0xffff888000000000
#define NOT_CANONICAL	0x8000000000000000
#define MOST_OPENED	8

/* Each change alone, with the expected answer. */
static void values(void)
{
	static const struct {
		size_t at, bytes;
		uint64_t value;
		int wanted;
	} changes[] = {
#define RUN(member, value, wanted) { offsetof(struct request, run.member), sizeof(((struct request *)0)->run.member), value, wanted }
#define PIECE(member, value, wanted) { offsetof(struct request, piece.member), sizeof(((struct request *)0)->piece.member), value, wanted }
#define CALL(member, value, wanted) { offsetof(struct request, call.member), sizeof(((struct request *)0)->call.member), value, wanted }
#define POINTER(name) RUN(name, 0, EFAULT), RUN(name, KERNEL_ADDRESS, EFAULT), RUN(name, NOT_CANONICAL, EFAULT), \
	RUN(name, ~0ull, EFAULT), RUN(name, 0x7fffffffefff, EFAULT), RUN(name, 1, EFAULT)
		RUN(size, 0, EINVAL), RUN(size, sizeof(struct cyclescope_run) - 1, EINVAL),
		RUN(size, sizeof(struct cyclescope_run) + 8, EINVAL), RUN(size, ~0u, EINVAL),
		RUN(version, 0, EINVAL), RUN(version, CYCLESCOPE_VERSION - 1, EINVAL), RUN(version, CYCLESCOPE_VERSION + 1, EINVAL), RUN(version, ~0u, EINVAL),
		RUN(flags, 2, EINVAL), RUN(flags, 4, EINVAL), RUN(flags, 1u << 31, EINVAL), RUN(flags, ~0u, EINVAL),
		RUN(cpu, 0, ESTALE), RUN(cpu, 2, ESTALE), RUN(cpu, 5, ESTALE), RUN(cpu, 8191, ESTALE), RUN(cpu, 8192, ESTALE), RUN(cpu, ~0u, ESTALE),
		RUN(pieces, 0, EINVAL), RUN(pieces, 1025, EINVAL), RUN(pieces, ~0u, EINVAL),
		RUN(calls, 0, EINVAL), RUN(calls, 4097, EINVAL), RUN(calls, ~0u, EINVAL),
		RUN(rounds, 0, EINVAL), RUN(rounds, 1u << 31, EINVAL), RUN(rounds, ~0u, EINVAL),
		RUN(warm_up, 1u << 31, EINVAL), RUN(warm_up, ~0u, EINVAL),
		RUN(delay, 0, EINVAL), RUN(total_ms, 0, EINVAL), RUN(fills, 1, EINVAL), RUN(fills, ~0u, EINVAL),
		RUN(events, 1, EFAULT), RUN(events, CYCLESCOPE_MOST_EVENTS + 1, EINVAL), RUN(events, ~0u, EINVAL),
		RUN(slice_us, 0, EINVAL), RUN(slice_us, 20000, EINVAL), RUN(slice_us, ~0u, EINVAL),
		RUN(deadline_us, 0, EINVAL), RUN(deadline_us, 1000, EINVAL), RUN(deadline_us, 1000001, EINVAL),
		RUN(deadline_us, ~0u, EINVAL),
		POINTER(piece_list), POINTER(call_list), POINTER(context), POINTER(samples),
		PIECE(code, 0, EFAULT), PIECE(code, KERNEL_ADDRESS, EFAULT), PIECE(code, ~0ull, EFAULT),
		PIECE(bytes, 0x400001, EINVAL), PIECE(bytes, ~0u, EINVAL), PIECE(offset, 0x400000, EINVAL),
		PIECE(offset, ~0u, EINVAL), PIECE(offset, 0x3fffff, EINVAL),
		CALL(offset, 0x400000, EINVAL), CALL(offset, ~0u, EINVAL), CALL(reserved, 1, EINVAL),
		/* Valid, if odd. */
		RUN(flags, 1, 0), RUN(seed, 0, 0), RUN(unread, 0, 0), RUN(fill_list, ~0ull, 0), RUN(event_list, ~0ull, 0),
		PIECE(bytes, 0, 0), CALL(loop_count, ~0ull, 0), CALL(offset, 0x3fffff, 0), RUN(delay, ~0u, 0),
		RUN(warm_up, MANY, 0),
	};
	int file = open_device();
	struct request request;

	for (size_t index = 0; index < sizeof(changes) / sizeof(*changes); index++) {
		int got;

		make(&request, file, 1);
		memcpy((char *)&request + changes[index].at, &changes[index].value, changes[index].bytes);
		got = answer(&request);
		if (got != changes[index].wanted)
			fprintf(stderr, "change %zu, of the bytes at %zu to %#llx: %s\n", index, changes[index].at,
				(unsigned long long)changes[index].value, strerror(got));
		demand(got == changes[index].wanted, "this answer");
		drop(&request);
		demand(works(file, 1), "a valid run after it");
	}
}

static bool known(unsigned long command)
{
	return command == CYCLESCOPE_RUN || command == CYCLESCOPE_GET_INFO || command == CYCLESCOPE_SET_AREAS ||
	       command == CYCLESCOPE_TRY_EVENTS || command == CYCLESCOPE_MARKER_CODE ||
	       command == CYCLESCOPE_MARKER_BYTES || command == CYCLESCOPE_MARKER_SWITCH ||
	       command == CYCLESCOPE_MARKER_RUN;
}

/* Every memory argument unmapped or not writable, each in turn. */
static void memory(void)
{
	int file = open_device();
	struct request request;
	struct cyclescope_run *run;

	make(&request, file, 1);
	mprotect(request.context, PAGE, PROT_READ);
	demand(answer(&request) == EFAULT, "EFAULT for a context that can't be written to");
	mprotect(request.context, PAGE, PROT_READ | PROT_WRITE);
	mprotect(request.samples, PAGE, PROT_READ);
	demand(answer(&request) == EFAULT, "EFAULT for samples that can't be written to");
	mprotect(request.samples, PAGE, PROT_READ | PROT_WRITE);
	request.run.rounds = 2 * PAGE / sizeof(struct cyclescope_sample);
	munmap(request.samples + PAGE, PAGE);
	demand(answer(&request) == EFAULT, "EFAULT for samples without room");
	request.run.rounds = 1;
	run = (void *)page();
	*run = request.run;
	mprotect(run, PAGE, PROT_READ);
	demand(ioctl(file, CYCLESCOPE_RUN, run) && errno == EFAULT, "EFAULT for a request that can't be written to");
	demand(ioctl(file, CYCLESCOPE_RUN, (char *)run + PAGE - 8) && errno != 0, "a request across the end of memory");
	demand(ioctl(file, CYCLESCOPE_RUN, NULL) && errno == EFAULT, "EFAULT for no request");
	demand(ioctl(file, CYCLESCOPE_RUN, KERNEL_ADDRESS) && errno == EFAULT, "EFAULT for the kernel's memory");
	demand(ioctl(file, CYCLESCOPE_GET_INFO, NULL) && errno == EFAULT, "EFAULT for no room");
	demand(ioctl(file, CYCLESCOPE_GET_INFO, KERNEL_ADDRESS) && errno == EFAULT, "EFAULT for the kernel's room");
	info.version = CYCLESCOPE_VERSION - 1;
	demand(ioctl(file, CYCLESCOPE_GET_INFO, &info) && errno == EINVAL, "EINVAL for another version");
	/* Every size: the kernel handles some numbers of other drivers itself. */
	for (unsigned int size = 0; size < 256; size++)
		for (unsigned int number = 0; number < 256; number++) {
			unsigned long command = _IOC(_IOC_READ | _IOC_WRITE, 'y', number, size);

			if (!known(command))
				demand(ioctl(file, command, run) && errno == ENOTTY, "ENOTTY for an unknown call");
		}
	demand(read(file, run, 1) < 0 && write(file, run, 1) < 0 && lseek(file, 1, SEEK_SET) < 0, "neither read nor written");
	demand(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED, "nothing to map");
	demand(works(file, 1), "a valid run");
}

/* How often what is repeated runs: `number` times on each machine, and more on those that a release waits for. */
static int repeats(int number)
{
	const char *factor = getenv("thorough");

	return factor ? number * atoi(factor) : number;
}

static uint64_t random_state = 1;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Requests with random words in random places: every one returns an answer. */
static void random_requests(void)
{
	static const uint64_t words[] = {
		0, 1, 2, 7, 8, 63, 1000, 4095, 4096, 4097, 0x3fffff, 0x400000, 0x400001, 0x7fffffff, 0x80000000,
		0xffffffff, KERNEL_ADDRESS, NOT_CANONICAL, ~0ull, 0x7ffffffff000, 0xffffffff81000000,
	};
	unsigned int answers[200] = {};
	int file = open_device(), count = repeats(2000);
	struct request request;
	struct cyclescope_piece pieces[4];

	for (int number = 0; number < count; number++) {
		make(&request, file, 1);
		request.run.deadline_us = 3000;
		for (int piece = 0; piece < 4; piece++)
			pieces[piece] = (struct cyclescope_piece){ draw() % 64, draw() % 65, (uintptr_t)request.code };
		if (draw() % 4 == 0) {
			request.run.piece_list = (uintptr_t)pieces;
			request.run.pieces = 1 + draw() % 4;
		}
		for (int change = draw() % 3; change >= 0; change--) {
			size_t at = draw() % (offsetof(struct request, code) / 4) * 4;

			/* The file, and addresses through which the kernel would rightly
			 * overwrite this program. */
			if (at < offsetof(struct request, run.flags))
				continue;
			memcpy((char *)&request + at, &words[draw() % (sizeof(words) / sizeof(*words))], 4 + draw() % 2 * 4);
		}
		request.code[0] ^= draw() % 8 == 0;
		if (request.run.total_ms > 5)
			request.run.total_ms = 5;
		if (request.run.deadline_us > 3000)
			request.run.deadline_us = 3000;
		answers[answer(&request)]++;
		drop(&request);
	}
	for (int code = 0; code < 200; code++)
		if (answers[code])
			printf("%u %s\n", answers[code], code ? strerror(code) : "run");
	demand(answers[0] > 200 && answers[EINVAL] > 200 && answers[EFAULT] > 200, "some of each");
	demand(works(file, 1), "a valid run");
}

/* The maximum number of devices, and one more. */
static void crowd(void)
{
	int files[MOST_OPENED];

	for (int index = 0; index < MOST_OPENED; index++)
		files[index] = open_device();
	for (int index = 0; index < MOST_OPENED; index++)
		demand(works(files[index], 1), "a run of each");
	demand(open("/dev/cyclescope", O_RDWR) < 0 && errno == EBUSY, "EBUSY for one more");
	close(files[0]);
	files[0] = open_device();
	demand(works(files[0], 1), "a run in the place of one that has gone");
}

static void *many_runs(void *argument)
{
	int file = (intptr_t)argument >> 1;
	unsigned int cpu = (intptr_t)argument & 1;
	int count = repeats(100);

	pin(cpu);
	for (int number = 0; number < count; number++)
		demand(works(file, cpu), "a run beside others");
	return NULL;
}

static void threads(void)
{
	int files[2] = { open_device(), open_device() };
	pthread_t started[4];

	for (int index = 0; index < 4; index++)
		pthread_create(&started[index], NULL, many_runs, (void *)(intptr_t)(files[index / 3] << 1 | (index & 1)));
	for (int index = 0; index < 4; index++)
		pthread_join(started[index], NULL);
}

static void long_run(struct request *request, unsigned int milliseconds)
{
	request->run.warm_up = MANY;
	request->run.total_ms = milliseconds;
}

static void *run_it(void *request)
{
	pin(1);
	answer(request);
	return NULL;
}

/* The device is closed, or memory unmapped, while a run needs it. */
static void taken_away(void)
{
	for (int what = 0; what < 3; what++) {
		struct request request;
		pthread_t runner;

		make(&request, open_device(), 1);
		long_run(&request, 300);
		pin(0);
		pthread_create(&runner, NULL, run_it, &request);
		wait_ms(100);
		if (what == 0)
			close(request.file);
		else
			munmap(what == 1 ? request.samples : request.context, PAGE);
		pthread_join(runner, NULL);
		pin(1);
		demand(works(open_device(), 1), "a run of another device");
	}
}

/* A device shared by two processes, one of which ends, or is killed during a run. */
static void processes(void)
{
	int file = open_device();

	demand(works(file, 1), "a run");
	for (int number = 0; number < 20; number++) {
		pid_t child = fork();
		int status;

		if (!child) {
			struct request request;

			pin(1);
			if (number % 2 && !works(file, 1))
				_exit(1);
			make(&request, number % 4 < 2 ? file : open_device(), 1);
			long_run(&request, 60000);
			/* Every fifth one runs an endless loop. */
			if (number % 5 == 0)
				memcpy(request.code, "\xeb\xfe", 2);
			answer(&request);
			_exit(0);
		}
		pin(0);
		wait_ms(50);
		kill(child, SIGKILL);
		demand(waitpid(child, &status, 0) == child, "the child's end");
		pin(1);
		demand(works(file, 1), "a run after it");
	}
}

/* A slice that is over before the first round: only the run's own time limit ends it. */
static void short_slices(void)
{
	struct request request;

	make(&request, open_device(), 1);
	request.run.slice_us = 1;
	request.run.deadline_us = 2000;
	request.run.delay = ~0u;
	request.run.total_ms = 200;
	demand(!answer(&request), "an answer");
	demand(request.run.outcome.status != CYCLESCOPE_FAULT, "no fault");
	demand(works(request.file, 1), "a valid run");
}

/* mov rcx, context; mov rdx, area; mov rax, [rdx]; mov [rcx], rax; mov [rcx+8], rcx; mov [rdx], rdx; ret */
static uint64_t read_and_overwrite(struct request *request, uint64_t area)
{
	uint64_t context = info.context + CYCLESCOPE_CONTEXT_AT;
	uint8_t *code = request->code;

	memcpy(code, "\x48\xb9", 2);
	memcpy(code + 2, &context, 8);
	memcpy(code + 10, "\x48\xba", 2);
	memcpy(code + 12, &area, 8);
	memcpy(code + 20, "\x48\x8b\x02\x48\x89\x01\x48\x89\x49\x08\x48\x89\x12\xc3", 14);
	request->piece.bytes = 34;
	demand(!answer(request) && request->run.outcome.status == CYCLESCOPE_DONE, "a look at an area");
	return ((struct cyclescope_sample *)request->samples)->start;
}

/* A selector of an LDT would be loaded while no LDT is mapped. */
static void ldt_selector(void)
{
	struct user_desc entry = { .limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1, .useable = 1 };
	struct request request;
	uint16_t before;

	make(&request, open_device(), 1);
	demand(!syscall(SYS_modify_ldt, 1, &entry, sizeof(entry)), "an LDT");
	asm volatile("mov %%ds, %0" : "=r"(before));
	asm volatile("mov %0, %%ds" : : "r"((uint16_t)7));
	int answered = answer(&request);
	asm volatile("mov %0, %%ds" : : "r"(before));
	demand(answered == EINVAL, "EINVAL with a selector of the LDT");
	demand(works(request.file, 1), "a valid run");
}

static int set_areas(int file, struct cyclescope_area *list, uint32_t count, uint32_t flags)
{
	struct cyclescope_areas areas = {
		.size = sizeof(areas), .version = CYCLESCOPE_VERSION, .flags = flags, .areas = count,
		.area_list = (uintptr_t)list,
	};

	errno = 0;
	return ioctl(file, CYCLESCOPE_SET_AREAS, &areas) ? errno : 0;
}

#define AREAS	3

/* Written areas are refilled, completely if requested, with the given contents. */
static void areas(void)
{
	struct cyclescope_area list[AREAS] = { { .bytes = 16 * PAGE }, { .bytes = 64 * PAGE }, { .bytes = 16 * PAGE } };
	struct cyclescope_fill fills[AREAS] = {};
	uint8_t *content = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct request request;

	memset(content, 9, 64 * PAGE);
	make(&request, open_device(), 1);
	demand(!set_areas(request.file, list, AREAS, 0), "areas");
	request.run.fill_list = (uintptr_t)fills;
	request.run.fills = AREAS;
	for (int area = 0; area < AREAS; area++) {
		uint64_t at = list[area].address + 0x5008, other = list[area].address + 0x9010;
		struct cyclescope_fill *fill = &fills[area];

		demand(read_and_overwrite(&request, at) == 0, "zeros");
		*fill = (struct cyclescope_fill){ .flags = CYCLESCOPE_FILL_ALL, .word = 7 };
		demand(read_and_overwrite(&request, at) == 7, "the fill");
		fill->flags = 0;
		demand(read_and_overwrite(&request, at) == at, "what was written last");
		*fill = (struct cyclescope_fill){ .flags = CYCLESCOPE_FILL_WRITTEN, .word = 8 };
		demand(read_and_overwrite(&request, at) == 8, "the fill of a page that was written to");
		demand(read_and_overwrite(&request, other) == 7, "the old fill elsewhere");
		*fill = (struct cyclescope_fill){ .flags = CYCLESCOPE_FILL_ALL, .content = (uintptr_t)content };
		demand(read_and_overwrite(&request, at) == 0x0909090909090909, "bytes from here");
		demand(read_and_overwrite(&request, other) == 0x0909090909090909, "bytes from here everywhere");
		fill->flags = 0;
	}
	demand(read_and_overwrite(&request, list[1].address + 60 * PAGE) == 0x0909090909090909, "the larger area's end");
	demand(works(request.file, 1) == false, "a run that knows of no areas is refused");
	demand(!set_areas(request.file, NULL, 0, 0), "no areas");
	demand(works(request.file, 1), "a valid run");
}

/* Invalid lists of areas, and fills that don't fit. All of them are refused; a valid one
 * afterwards is accepted. */
static void wrong_areas(void)
{
	struct cyclescope_area list[32] = {}, good[2] = { { .bytes = PAGE }, { .bytes = PAGE } };
	struct cyclescope_fill fills[3] = {};
	struct request request;
	int file = open_device();
	static const struct {
		uint64_t bytes;
		int error;
	} wrong[] = {
		{ 0, EINVAL }, { 1, EINVAL }, { PAGE + 1, EINVAL }, { ~0ull, EINVAL }, { ~0ull << 12, ENOSPC },
		{ 1ull << 63, ENOSPC }, { 1ull << 40, ENOSPC },
	};

	make(&request, file, 1);
	for (size_t index = 0; index < sizeof(wrong) / sizeof(*wrong); index++) {
		list[0].bytes = PAGE;
		list[1].bytes = wrong[index].bytes;
		demand(set_areas(file, list, 2, 0) == wrong[index].error, "a wrong size is refused");
		demand(works(file, 1), "a run without areas");
	}
	for (int index = 0; index < 32; index++)
		list[index].bytes = info.most_area_bytes / 2;
	demand(set_areas(file, list, 3, 0) == ENOSPC, "too many bytes");
	demand(set_areas(file, list, info.most_areas + 1, 0) == ENOSPC, "too many areas");
	demand(set_areas(file, list, ~0u, 0) == ENOSPC, "far too many areas");
	demand(set_areas(file, list, 1, 1) == EINVAL, "an unknown flag");
	demand(set_areas(file, (void *)KERNEL_ADDRESS, 2, 0) == EFAULT, "a list in the kernel");
	demand(set_areas(file, NULL, 2, 0) == EFAULT, "no list");
	for (int turn = 0; turn < 20; turn++) {
		demand(!set_areas(file, list, 2, 0), "as many bytes as there may be");
		demand(!set_areas(file, good, 2, 0), "others instead");
	}
	request.run.fill_list = (uintptr_t)fills;
	for (request.run.fills = 0; request.run.fills < 4; request.run.fills++)
		demand(answer(&request) == (request.run.fills == 2 ? 0 : EINVAL), "as many fills as areas");
	request.run.fills = 2;
	fills[1].flags = 4;
	demand(answer(&request) == EINVAL, "an unknown flag of a fill");
	fills[1] = (struct cyclescope_fill){ .reserved = 1 };
	demand(answer(&request) == EINVAL, "something reserved in a fill");
	fills[1] = (struct cyclescope_fill){ .flags = CYCLESCOPE_FILL_ALL, .content = KERNEL_ADDRESS };
	demand(answer(&request) == EFAULT, "bytes of the kernel");
	fills[1].content = 16;
	demand(answer(&request) == EFAULT, "bytes of nothing");
	fills[1].content = 0;
	request.run.fill_list = 16;
	demand(answer(&request) == EFAULT, "no list of fills");
	request.run.fill_list = (uintptr_t)fills;
	demand(!answer(&request), "a valid run");
	/* From the first area's end into the unmapped page. */
	demand(good[1].address - good[0].address > PAGE, "areas lie apart");
	good[0].address += PAGE;
	memcpy(request.code, "\x48\xba", 2);
	memcpy(request.code + 2, &good[0].address, 8);
	memcpy(request.code + 10, "\x48\x89\x12\xc3", 4);
	request.piece.bytes = 14;
	demand(!answer(&request) && request.run.outcome.status == CYCLESCOPE_FAULT && request.run.outcome.vector == 14 &&
	       request.run.outcome.cr2 == good[0].address, "a page fault behind an area");
}

/* For `rmmod` during a run. */
static void endure(void)
{
	struct request request;

	make(&request, open_device(), 1);
	long_run(&request, 3000);
	demand(!answer(&request) && request.run.outcome.status == CYCLESCOPE_DEADLINE, "a run of three seconds");
}

static const struct test tests[] = {
	{ "values", values }, { "memory", memory }, { "random", random_requests }, { "crowd", crowd },
	{ "threads", threads }, { "taken-away", taken_away }, { "processes", processes },
	{ "short-slices", short_slices }, { "areas", areas }, { "wrong-areas", wrong_areas }, { "ldt-selector", ldt_selector },
	{ "endure", endure },
};

int main(int count, char **words)
{
	return run_test(tests, sizeof(tests) / sizeof(*tests), count, words);
}
