/* Failures: one line on standard error, and an exit code. */
#include "probe.h"

/* The names of usual errors. Other errors are shown only by number. */
static const char *error_name(long number)
{
#define NAME(e) \
	case e: \
		return #e;
	switch (number) {
		NAME(E2BIG)
		NAME(EACCES)
		NAME(EADDRINUSE)
		NAME(EADDRNOTAVAIL)
		NAME(EAFNOSUPPORT)
		NAME(EAGAIN)
		NAME(EBADF)
		NAME(EBUSY)
		NAME(ECHILD)
		NAME(ECONNREFUSED)
		NAME(EDQUOT)
		NAME(EEXIST)
		NAME(EFAULT)
		NAME(EFBIG)
		NAME(EHOSTUNREACH)
		NAME(EINTR)
		NAME(EINVAL)
		NAME(EIO)
		NAME(EISDIR)
		NAME(ELOOP)
		NAME(EMFILE)
		NAME(EMLINK)
		NAME(ENAMETOOLONG)
		NAME(ENETUNREACH)
		NAME(ENFILE)
		NAME(ENODATA)
		NAME(ENODEV)
		NAME(ENOENT)
		NAME(ENOEXEC)
		NAME(ENOKEY)
		NAME(ENOMEM)
		NAME(ENOSPC)
		NAME(ENOSYS)
		NAME(ENOTDIR)
		NAME(ENOTEMPTY)
		NAME(ENOTTY)
		NAME(EOPNOTSUPP)
		NAME(EPERM)
		NAME(EPIPE)
		NAME(EROFS)
		NAME(ESRCH)
		NAME(ESTALE)
		NAME(ETIMEDOUT)
		NAME(ETXTBSY)
		NAME(EUSERS)
		NAME(EXDEV)
	}
#undef NAME
	return "error";
}

void put_error(struct sink *s, long error)
{
	put(s, error_name(-error));
	put(s, " (");
	put_number(s, (uint64_t)-error);
	put(s, ")");
}

void die(int code, const char *command, const char *what, const char *subject, long error)
{
	put(&err, command);
	put(&err, ": ");
	put(&err, what);
	if (subject) {
		put(&err, " ");
		put(&err, subject);
	}
	if (error) {
		put(&err, ": ");
		put_error(&err, error);
	}
	put(&err, "\n");
	flush(&err);
	sys_exit(code);
}

void usage(const char *command, const char *what, const char *subject)
{
	die(EXIT_USAGE, command, what, subject, 0);
}
