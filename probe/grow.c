/* grow: allocates memory until a limit stops it.
 *
 * It touches --mib MiB in steps of one, and keeps them. Before the first step and after each step it writes "held BYTES"
 * and a line end, unbuffered, so that the last line shows how much it had when it was killed. With all of the memory it exits
 * with code 0. So it is bounded also without a limit. */
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
	/* MAP_NORESERVE, because the kernel must not refuse now the memory that a limit shall stop later. */
	long base = sys_mmap(mib * MIB, MAP_PRIVATE | MAP_NORESERVE);
	if (base < 0 && base > -PAGE)
		die(EXIT_FAILED, "grow", "map memory", NULL, base);
	tell(0);
	for (uint64_t held = 0; held < mib * MIB; tell(held))
		for (uint64_t end = held + MIB; held < end; held += PAGE)
			*(volatile uint64_t *)(base + (long)held) = held + 1; /* all pages differ and none is empty */
	sys_exit(EXIT_OK);
}
