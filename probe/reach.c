/* reach: connects to a TCP port, and retries until the connection is accepted.
 *
 * A benchmark uses it to wait for a server in another container and the network between them. It closes the accepted
 * connection without sending data and exits. It fails if no connection is accepted within --ms. */
#include "probe.h"

/* The pause between two attempts: short compared to the start of a server, long compared to one attempt. */
enum { PAUSE_NS = 1000000 };

/* The timeout of one attempt. A network that is not up yet drops the first packet, and the kernel sends the next one
 * only after a second. */
enum { ATTEMPT_NS = 250000000 };

static struct __kernel_timespec timespec_of(uint64_t ns)
{
	return (struct __kernel_timespec){.tv_sec = (int64_t)(ns / 1000000000), .tv_nsec = (int64_t)(ns % 1000000000)};
}

/* Parses four decimal numbers, separated by points. */
static bool parse_address(const char *text, uint32_t *address)
{
	*address = 0;
	for (int part = 0; part < 4; part++) {
		if (part > 0 && *text++ != '.')
			return false;
		unsigned n = 0, digits = 0;
		for (; *text >= '0' && *text <= '9'; text++, digits++)
			n = digits < 3 ? n * 10 + (unsigned)(*text - '0') : 256;
		if (digits == 0 || n > 255)
			return false;
		*address = *address << 8 | n;
	}
	return !*text;
}

/* Makes one attempt with a timeout. Returns 0 if the connection was accepted. */
static long attempt(const struct sockaddr_in *addr, uint64_t ns)
{
	long fd = sys_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		die(EXIT_FAILED, "reach", "make a socket", NULL, fd);
	long e = sys_connect((int)fd, addr);
	if (e == -EINPROGRESS) {
		struct pollfd wanted = {.fd = (int)fd, .events = POLLOUT};
		const struct __kernel_timespec limit = timespec_of(ns);
		int error = 0;
		if ((e = sys_poll(&wanted, 1, &limit)) == 0)
			e = -ETIMEDOUT;
		else if (e > 0 && (e = sys_getsockopt((int)fd, SO_ERROR, &error, sizeof error)) >= 0)
			e = -error;
	}
	sys_close((int)fd);
	return e;
}

void command_reach(char **argv)
{
	char *address = NULL;
	uint64_t port = 0, ms = 1000;
	const struct option options[] = {
		{"--address", OPTION_TEXT, &address, 0, 0},
		{"--port", OPTION_NUMBER, &port, 1, 65535},
		{"--ms", OPTION_NUMBER, &ms, 1, MS_MAX},
	};
	parse_all("reach", argv, options, COUNT(options));
	if (!address)
		usage("reach", "--address is missing", NULL);
	if (!port)
		usage("reach", "--port is missing", NULL);
	uint32_t ip;
	if (!parse_address(address, &ip))
		usage("reach", "--address must be an IPv4 address, not", address);
	const struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = big_endian((uint16_t)port),
		.sin_addr.s_addr = big_endian32(ip),
	};
	const uint64_t end = now_ns() + ms * 1000000;
	long e = -ETIMEDOUT;
	for (uint64_t now; (now = now_ns()) < end;) {
		long last = attempt(&addr, end - now < ATTEMPT_NS ? end - now : ATTEMPT_NS);
		if (last == 0)
			sys_exit(EXIT_OK);
		if (last != -ETIMEDOUT && last != -EINTR) /* an error before the timeout is more informative */
			e = last;
		const struct __kernel_timespec pause = timespec_of(PAUSE_NS);
		sys_poll(NULL, 0, &pause);
	}
	die(EXIT_FAILED, "reach", "connect in time to", address, e);
}
