package web

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// colours is the number of colours in the style sheet: the classes c1 to c9.
const colours = 9

// Colour is the class with the colour of the series with an index.
func Colour(series int) string { return fmt.Sprintf("c%d", series%colours+1) }

// Num spells a coordinate.
func Num(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// Shape is the path of a series' mark around a point. Shapes repeat after six series and colours after nine, so no two of
// twelve series have the same mark.
func Shape(series int, x, y, r float64) string {
	point := func(dx, dy float64) string { return Num(x+dx*r) + " " + Num(y+dy*r) }
	switch series % 6 {
	case 0: // circle
		return fmt.Sprintf("M%sa%s %s 0 1 0 %s 0a%s %s 0 1 0 -%s 0z", point(-1, 0), Num(r), Num(r), Num(2*r), Num(r), Num(r), Num(2*r))
	case 1: // square
		return "M" + point(-.9, -.9) + "L" + point(.9, -.9) + "L" + point(.9, .9) + "L" + point(-.9, .9) + "z"
	case 2: // triangle
		return "M" + point(0, -1.1) + "L" + point(1.1, .9) + "L" + point(-1.1, .9) + "z"
	case 3: // diamond
		return "M" + point(0, -1.25) + "L" + point(1.25, 0) + "L" + point(0, 1.25) + "L" + point(-1.25, 0) + "z"
	case 4: // inverted triangle
		return "M" + point(0, 1.1) + "L" + point(1.1, -.9) + "L" + point(-1.1, -.9) + "z"
	default: // hourglass
		return "M" + point(-1, -1.1) + "L" + point(1, -1.1) + "L" + point(-1, 1.1) + "L" + point(1, 1.1) + "z"
	}
}

// Shorten cuts a name to a number of characters. The title of its place has the whole name.
func Shorten(name string, width int) string {
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	return string([]rune(name)[:width-1]) + "…"
}
