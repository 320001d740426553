package debian

import (
	"bufio"
	"fmt"
	"io"
)

// The clip shows a camera that pans over a still texture, with moving squares of another texture. The texture is soft enough for
// compression and rich enough to give the decoder work.
const (
	clipWidth, clipHeight = 1920, 1080
	clipRate              = 30 // frames/s
	textureSize           = 2048
)

// writePattern writes the clip's frames as YUV4MPEG2, 8 bits, 4:2:0. It uses integer arithmetic only, so the result is the same on
// every machine.
func writePattern(w io.Writer, frames int) error {
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := fmt.Fprintf(out, "YUV4MPEG2 W%d H%d F%d:1 Ip A1:1 C420jpeg\n", clipWidth, clipHeight, clipRate); err != nil {
		return err
	}
	texture := makeTexture()
	luma := make([]byte, clipWidth*clipHeight)
	chroma := make([]byte, clipWidth/2*clipHeight/2)
	for t := range frames {
		drawLuma(luma, texture, t)
		if _, err := fmt.Fprintf(out, "FRAME\n%s", luma); err != nil {
			return err
		}
		for plane := range 2 {
			drawChroma(chroma, plane, t)
			if _, err := out.Write(chroma); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// makeTexture computes noise (xorshift32, Marsaglia 2003) and softens it.
func makeTexture() []byte {
	noise := make([]byte, textureSize*textureSize)
	state := uint32(2463534242)
	for i := range noise {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		noise[i] = byte(state >> 24)
	}
	soft := make([]byte, len(noise))
	mask := len(noise) - 1
	for i := range soft {
		sum := 0
		for y := -2; y <= 2; y++ {
			for x := -2; x <= 2; x++ {
				sum += int(noise[(i+y*textureSize+x)&mask])
			}
		}
		soft[i] = byte(sum / 25)
	}
	return soft
}

func drawLuma(luma, texture []byte, t int) {
	const mask, square, squares = textureSize - 1, 160, 12
	for y := range clipHeight {
		row := texture[(y+t)&mask*textureSize:][:textureSize]
		line := luma[y*clipWidth:][:clipWidth]
		for x := range line {
			line[x] = 32 + row[(x+3*t)&mask]>>1 + byte((x+2*y+4*t)>>5&63)
		}
	}
	for s := range squares {
		left := (s*397 + t*(3+s)) % (clipWidth - square)
		top := (s*211 + t*(2+s%5)) % (clipHeight - square)
		for y := range square {
			row := texture[(y+s*100)&mask*textureSize:][:textureSize]
			line := luma[(top+y)*clipWidth+left:][:square]
			for x := range line {
				line[x] = 16 + byte(s*8) + row[x+s*50]>>1
			}
		}
	}
}

func drawChroma(chroma []byte, plane, t int) {
	for y := range clipHeight / 2 {
		line := chroma[y*clipWidth/2:][:clipWidth/2]
		for x := range line {
			if plane == 0 {
				line[x] = byte(96 + (x+t)>>4&63)
			} else {
				line[x] = byte(96 + (y+2*t)>>4&63)
			}
		}
	}
}
