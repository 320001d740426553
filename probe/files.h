/* The interface between the layout of the blogs (files.c) and the workers (files_workers.c). */
#pragma once

#include "probe.h"

enum {
	BLOGS = 32, /* per writer */
	ARTICLES = 8, /* per blog */
	ARTICLE_MIN = 1 << 10,
	ARTICLE_MAX = 32 << 10,
	COMMENT_MIN = 64,
	COMMENT_MAX = 512,
	COMMENTS_MAX = 8 << 10, /* a file of comments is truncated at this size */
	WRITE_SIZE = 8 << 10,
	READ_SIZE = 64 << 10,
	PAUSE_MS = 10,

	/* Of Blogbench: files_blogbench.c. Articles have the sizes above. */
	FILES_MAX = 100, /* of each kind, per blog */
	PICTURE_MIN = 8 << 10,
	PICTURE_MAX = 64 << 10,
	BLOGBENCH_COMMENT_MIN = 2 << 10,
	BLOGBENCH_COMMENT_MAX = 10 << 10,
	BLOG_MAX = FILES_MAX * (ARTICLE_MAX + PICTURE_MAX + BLOGBENCH_COMMENT_MAX), /* bytes per blog */
};

/* The counters of a worker. */
enum {
	BLOGS_WRITTEN,
	ARTICLES_WRITTEN,
	ARTICLES_REWRITTEN,
	COMMENTS_WRITTEN,
	BLOGS_READ,
	ARTICLES_READ,
	COMMENTS_READ,
	MISSES,
	BYTES_READ,
	BYTES_WRITTEN,
	PICTURES_WRITTEN,
	PICTURES_READ,
};

/* A path in the working directory, which is the current directory. */
struct name {
	char text[40];
	unsigned len;
};

struct name name_number(struct name n, unsigned number);
struct name blog_name(char kind, unsigned number); /* kind b: a blog; x: one being removed, by writer */
struct name article_name(struct name blog, unsigned article);
struct name comments_name(struct name blog, unsigned article);
struct name temporary_name(struct name blog, unsigned worker);
struct name picture_name(struct name blog, unsigned picture);

/* Removes a blog with its files. */
long remove_blog(const char *path);

/* The preparations of the workers before the start. */
void fill_content(struct worker *w);
long make_blogs(struct worker *w);

/* The work until the time is over; blogs is the number of all blogs. */
long write_blogs(struct worker *w);
long rewrite_articles(struct worker *w, unsigned blogs);
long append_comments(struct worker *w, unsigned blogs);
long read_blogs(struct worker *w, unsigned blogs);

/* Blogbench's own mixture. places is the largest number of blogs; start_blogbench runs before the workers exist. blogbench_blogs
 * is the number of the blogs that exist at the end. */
void start_blogbench(uint64_t places);
unsigned blogbench_blogs(void);
long write_blogbench(struct worker *w);
long rewrite_blogbench(struct worker *w);
long comment_blogbench(struct worker *w);
long read_blogbench(struct worker *w);

/* The parts of the work that both mixtures have. put_file writes size bytes to a temporary file in the blog and renames it; it returns
 * -ENOENT without the blog. read_file reads a file and checks its length; it returns -ENOENT without the file. missed counts a miss
 * and returns true if the error is no failure. */
long put_file(struct worker *w, struct name blog, struct name file, unsigned size);
long read_file(struct worker *w, struct name file);
bool missed(struct worker *w, long error);
void pause(void);
