package finding

import "slices"

// where gives the items that match.
func where[T any](items []T, match func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(items), func(item T) bool { return !match(item) })
}

// place is the first matching item of a list. Without one it appends the addition.
func place[T any](items *[]T, match func(*T) bool, addition T) *T {
	for i := range *items {
		if match(&(*items)[i]) {
			return &(*items)[i]
		}
	}
	*items = append(*items, addition)
	return &(*items)[len(*items)-1]
}
