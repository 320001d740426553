/* serve: an HTTP server that responds to every request with 200 and "touchstone".
 *
 * It listens only on 127.0.0.1, or with --any on all addresses. Then it writes "ready port=N", and serves one connection at a
 * time until SIGTERM. */
#include "probe.h"

static const char response[] =
	"HTTP/1.1 200 OK\r\n"
	"Content-Type: text/plain\r\n"
	"Content-Length: 11\r\n"
	"Connection: close\r\n"
	"\r\n"
	"touchstone\n";

static int listen_on(bool any, uint64_t port, uint64_t *bound)
{
	const int yes = 1;
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = big_endian((uint16_t)port),
		.sin_addr.s_addr = big_endian32(any ? INADDR_ANY : INADDR_LOOPBACK),
	};
	long fd = sys_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);
	if (fd < 0)
		die(EXIT_FAILED, "serve", "make a socket", NULL, fd);
	long e;
	if ((e = sys_setsockopt((int)fd, SO_REUSEADDR, &yes, sizeof yes)) < 0 ||
	    (e = sys_bind((int)fd, &addr)) < 0 ||
	    (e = sys_listen((int)fd, 128)) < 0 ||
	    (e = sys_getsockname((int)fd, &addr)) < 0)
		die(EXIT_FAILED, "serve", "listen on", any ? "0.0.0.0" : "127.0.0.1", e);
	*bound = big_endian(addr.sin_port);
	return (int)fd;
}

/* The timeout for a silent client, so that other clients do not wait forever. */
enum { PATIENCE_S = 5 };

static bool readable(int fd)
{
	struct pollfd wanted = {.fd = fd, .events = POLLIN};
	const struct __kernel_timespec limit = {.tv_sec = PATIENCE_S};
	long n;
	do
		n = sys_poll(&wanted, 1, &limit);
	while (n == -EINTR);
	return n > 0;
}

/* Reads to the empty line at the end of a request's header. It polls before it reads, because a runsc of 2022 treats
 * SO_RCVTIMEO as nonblocking mode. */
static bool read_request(int fd)
{
	static const char end[] = "\r\n\r\n";
	char buf[1024];
	size_t matched = 0, total = 0;
	while (total < 1 << 16 && readable(fd)) {
		long n = sys_read(fd, buf, sizeof buf);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return false;
		total += (size_t)n;
		for (long i = 0; i < n; i++) {
			matched = buf[i] == end[matched] ? matched + 1 : buf[i] == end[0];
			if (matched == sizeof end - 1)
				return true;
		}
	}
	return false;
}

/* Errors of a client are ignored. */
static void answer(int fd)
{
	if (read_request(fd))
		sys_send(fd, response, sizeof response - 1);
	sys_close(fd);
}

void command_serve(char **argv)
{
	bool any = false;
	uint64_t port = 0;
	const struct option options[] = {
		{"--any", OPTION_FLAG, &any, 0, 0},
		{"--port", OPTION_NUMBER, &port, 0, 65535},
	};
	parse_all("serve", argv, options, COUNT(options));
	exit_on_sigterm(false);
	int fd = listen_on(any, port, &port);
	put(&out, "ready port=");
	put_number(&out, port);
	put(&out, "\n");
	flush(&out);
	for (;;) {
		long client = sys_accept(fd);
		if (client >= 0)
			answer((int)client);
		else if (client != -EINTR && client != -ECONNABORTED)
			die(EXIT_FAILED, "serve", "accept a connection", NULL, client);
	}
}
