package compare

// key identifies a layer.
type key struct {
	diffID  string
	command string // that made it; empty if unknown
}

// places are the places of two layers from 0, or -1 for no layer.
type places struct{ a, b int }

// The scores of two layers as a pair. Equal content outweighs an equal command. Layers that have nothing in common are paired by their
// order if nothing else is possible.
const (
	sameContent = 1 << 20
	sameCommand = 1 << 10
)

func (k key) score(peer key) int {
	switch {
	case k.diffID == peer.diffID:
		return sameContent
	case k.command != "" && k.command == peer.command:
		return sameCommand
	default:
		return 0
	}
}

// align pairs the layers of two images in their order, so that the sum of the scores is the greatest possible (S. B. Needleman and
// C. D. Wunsch, "A general method applicable to the search for similarities in the amino acid sequence of two proteins", Journal of
// Molecular Biology 48 (1970) 443-453). Between such pairs it pairs the remaining layers by their order.
func align(a, b []key) []places {
	// best[i][j] is the greatest sum for a[i:] and b[j:].
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if s := a[i].score(b[j]); s > 0 {
				best[i][j] = max(best[i][j], s+best[i+1][j+1])
			}
		}
	}
	var pairs []places
	begin := places{}
	fill := func(end places) {
		for begin.a < end.a || begin.b < end.b {
			p := places{-1, -1}
			if begin.a < end.a {
				p.a = begin.a
				begin.a++
			}
			if begin.b < end.b {
				p.b = begin.b
				begin.b++
			}
			pairs = append(pairs, p)
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		s := a[i].score(b[j])
		switch {
		case s > 0 && best[i][j] == s+best[i+1][j+1]:
			fill(places{i, j})
			pairs = append(pairs, places{i, j})
			i, j = i+1, j+1
			begin = places{i, j}
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
	fill(places{len(a), len(b)})
	return pairs
}
