// Package must ends a test at the first error of calls that its subject does not answer for, such as the writing of a file.
package must

import "testing"

// Do ends the test if there is an error. The failure has the line of the caller.
func Do(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
