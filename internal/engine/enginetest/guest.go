package enginetest

import "time"

// GuestLimit is the longest time of one call to a virtual machine, also in a machine with an emulated CPU.
const GuestLimit = 3 * time.Minute

// GuestGaps are the gaps of Kata Containers with every engine.
func GuestGaps() map[string]string {
	return map[string]string{"ProcessLimit": "Kata removes the limit of processes before it starts the container in the guest"}
}
