// Package lists has functions of lists that package slices lacks.
package lists

import "slices"

// Filter returns the items that match, in a list of their own.
func Filter[T any](items []T, match func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(items), func(item T) bool { return !match(item) })
}

// Place returns the first matching item of a list. Without one it appends the addition and returns that. The pointer is valid until the list grows.
func Place[T any](items *[]T, match func(*T) bool, addition T) *T {
	for i := range *items {
		if match(&(*items)[i]) {
			return &(*items)[i]
		}
	}
	*items = append(*items, addition)
	return &(*items)[len(*items)-1]
}

// Convert returns the conversion of each item. The list is empty, and not nil, without items.
func Convert[T, C any](items []T, convert func(*T) C) []C {
	list := make([]C, len(items))
	for i := range items {
		list[i] = convert(&items[i])
	}
	return list
}
