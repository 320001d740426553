package web

import "sync"

// mostCached is the size of the cache in bytes.
const mostCached = 64 << 20

// cache keeps content by keys. The oldest content leaves it first.
type cache struct {
	mu      sync.Mutex
	content map[string][]byte
	keys    []string // in the order of their entry
	size    int
}

func (c *cache) get(key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	content, ok := c.content[key]
	return content, ok
}

// put adds content, unless it would take a large part of the cache.
func (c *cache) put(key string, content []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.content == nil {
		c.content = map[string][]byte{}
	}
	if _, ok := c.content[key]; ok || len(content) > mostCached/4 {
		return
	}
	c.content[key] = content
	c.keys = append(c.keys, key)
	c.size += len(content)
	for c.size > mostCached {
		c.size -= len(c.content[c.keys[0]])
		delete(c.content, c.keys[0])
		c.keys = c.keys[1:]
	}
}
