/* The workers of files with Blogbench's own mixture, see files.c. The sizes, numbers and orders are Blogbench's 1.1, written
 * anew:
 *
 *   a writer       makes a directory, and in it 1 to FILES_MAX articles and 1 to FILES_MAX pictures, each from the last number to 1
 *   a reader       reads a random blog: in half of the cases its comments first, then picture and article 1, 2, … up to the first
 *                  article that does not exist
 *   the rewriter   replaces a random article, and in half of the cases a random picture before it
 *   a commenter    writes 1 to FILES_MAX comments to a random blog, in the same order as a writer
 *
 * No worker pauses, since Blogbench's pauses are compiled out: its code tests other names than its header defines. A reader counts a blog
 * that is still being written too.
 *
 * There are three differences. Blogs start at 0 again when there are too many for the space, and the files of an old blog are
 * replaced. Temporary files belong to their worker, so that no file is torn. A worker that finds no blog waits for PAUSE_MS and not
 * for a second. */
#include "files.h"

/* The state that all workers share. */
static struct {
	uint64_t started; /* the number of all blogs that writers have begun */
} *blogs;

static uint64_t places;

void start_blogbench(uint64_t most)
{
	places = most;
	blogs = shared_memory("files", sizeof *blogs);
}

unsigned blogbench_blogs(void) { return (unsigned)(blogs->started < places ? blogs->started : places); }

static struct name blog_at(uint64_t number) { return blog_name('b', (unsigned)(number % places)); }

static unsigned size_between(struct worker *w, unsigned min, unsigned max) { return min + random_below(&w->seed, max - min); }

/* Finds a random blog, except the newest. Returns false without one. */
static bool find_blog(struct worker *w, struct name *found)
{
	uint64_t started = __atomic_load_n(&blogs->started, __ATOMIC_RELAXED);
	if (started < 2)
		return false;
	*found = blog_at(random_next(&w->seed) % (started - 1));
	return true;
}

/* Waits for a blog. Returns false if the time is over. */
static bool next_blog(struct worker *w, struct name *found)
{
	for (; !over(); pause())
		if (find_blog(w, found))
			return true;
	return false;
}

typedef struct name naming(struct name blog, unsigned number);

static long put_one(struct worker *w, struct name blog, naming *named, unsigned number, unsigned min, unsigned max, unsigned counter)
{
	long e = put_file(w, blog, named(blog, number), size_between(w, min, max));
	if (e == 0)
		w->counts[counter]++;
	return e;
}

/* Writes 1 to FILES_MAX files, or fewer if the time is over. */
static long put_many(struct worker *w, struct name blog, naming *named, unsigned min, unsigned max, unsigned counter)
{
	long e = 0;
	for (unsigned n = 1 + random_below(&w->seed, FILES_MAX); e == 0 && n > 0 && !over(); n--)
		e = put_one(w, blog, named, n, min, max, counter);
	return e;
}

static long failed_to(struct worker *w, const char *what, long error)
{
	w->failed = what;
	return error;
}

long write_blogbench(struct worker *w)
{
	while (!over()) {
		struct name blog = blog_at(__atomic_fetch_add(&blogs->started, 1, __ATOMIC_RELAXED));
		long e = sys_mkdir(blog.text, 0700);
		if (e < 0 && e != -EEXIST)
			return failed_to(w, "make a blog", e);
		if ((e = put_many(w, blog, article_name, ARTICLE_MIN, ARTICLE_MAX, ARTICLES_WRITTEN)) < 0)
			return failed_to(w, "write an article", e);
		if ((e = put_many(w, blog, picture_name, PICTURE_MIN, PICTURE_MAX, PICTURES_WRITTEN)) < 0)
			return failed_to(w, "write a picture", e);
		if (!over())
			w->counts[BLOGS_WRITTEN]++;
	}
	return 0;
}

long rewrite_blogbench(struct worker *w)
{
	struct name blog;
	while (next_blog(w, &blog)) {
		long e = 0;
		if (random_below(&w->seed, 2) == 0)
			e = put_one(w, blog, picture_name, 1 + random_below(&w->seed, FILES_MAX), PICTURE_MIN, PICTURE_MAX, PICTURES_WRITTEN);
		if (e == 0)
			e = put_one(w, blog, article_name, 1 + random_below(&w->seed, FILES_MAX), ARTICLE_MIN, ARTICLE_MAX, ARTICLES_REWRITTEN);
		if (e < 0 && !missed(w, e))
			return failed_to(w, "rewrite a file of a blog", e);
	}
	return 0;
}

long comment_blogbench(struct worker *w)
{
	struct name blog;
	while (next_blog(w, &blog)) {
		long e = put_many(w, blog, comments_name, BLOGBENCH_COMMENT_MIN, BLOGBENCH_COMMENT_MAX, COMMENTS_WRITTEN);
		if (e < 0 && !missed(w, e))
			return failed_to(w, "write a comment", e);
	}
	return 0;
}

/* Reads file 1, 2, … up to the first that does not exist, and a picture before each if pictures is set. */
static long read_many(struct worker *w, struct name blog, naming *named, unsigned counter, bool pictures)
{
	for (unsigned n = 1; !over(); n++) {
		long e = pictures ? read_file(w, picture_name(blog, n)) : -ENOENT;
		if (e == 0)
			w->counts[PICTURES_READ]++;
		else if (e != -ENOENT)
			return e;
		if ((e = read_file(w, named(blog, n))) < 0)
			return e == -ENOENT ? 0 : e;
		w->counts[counter]++;
	}
	return 0;
}

long read_blogbench(struct worker *w)
{
	struct name blog;
	while (next_blog(w, &blog)) {
		long e = 0;
		if (random_below(&w->seed, 2) == 0)
			e = read_many(w, blog, comments_name, COMMENTS_READ, false);
		if (e == 0)
			e = read_many(w, blog, article_name, ARTICLES_READ, true);
		if (e < 0)
			return e;
		if (!over())
			w->counts[BLOGS_READ]++;
	}
	return 0;
}
