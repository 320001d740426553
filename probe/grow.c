/* grow: takes more and more memory, to be stopped by a limit.
 *
 * It touches so many MiB in steps of one, and keeps them. Before the first step and after each it writes "held BYTES"
 * and a line end, unbuffered, so that the last line says how much it had when something ended it. With all of it, it
 * ends by itself, with code 0: it never takes more, whoever forgot to limit it. */
#include "probe.h"

enum { MIB = 1 << 20, PAGE = 4096 };

static void tell(uint64_t held)
{
	put(&out, "held ");
	put_number(&out, held);
	put(&out, "\n");
	flush(&out);
}

void command_grow(char **argv)
{
	uint64_t mib = 0;
	const struct option options[] = {
		{"--mib", OPTION_NUMBER, &mib, 1, 1 << 20},
	};
	parse_all("grow", argv, options, COUNT(options));
	if (!mib)
		usage("grow", "an option is missing:", "--mib");
	/* Not reserved: the kernel must not refuse now what a limit is to stop later. */
	long base = sys_mmap(mib * MIB, MAP_PRIVATE | MAP_NORESERVE);
	if (base < 0 && base > -PAGE)
		die(EXIT_FAILED, "grow", "map memory", NULL, base);
	tell(0);
	for (uint64_t held = 0; held < mib * MIB; tell(held))
		for (uint64_t end = held + MIB; held < end; held += PAGE)
			*(volatile uint64_t *)(base + (long)held) = held + 1; /* no page is like another, or empty */
	sys_exit(EXIT_OK);
}
