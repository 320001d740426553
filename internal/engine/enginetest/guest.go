package enginetest

// GuestGaps are the gaps of Kata Containers with every engine.
func GuestGaps() map[string]string {
	return map[string]string{"ProcessLimit": "Kata removes the limit of processes before it starts the container in the guest"}
}
