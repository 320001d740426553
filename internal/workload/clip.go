package workload

// The clip of the workload image: a generated pattern, 1920 × 1080, 30 frames/s, as AV1. Whoever makes the image
// checks that the clip in it is this one.
const (
	ClipPath   = "/usr/share/touchstone/clip.ivf"
	ClipFrames = 600
	// ClipMD5 is the MD5 of the decoded pictures, as dav1d gives and verifies it.
	ClipMD5 = "7cd56e11c73f3bc0d3f3664a07e6360b"
)
