package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"
)

// interval is the time between two requests of await.
const interval = 100 * time.Millisecond

// await requests a URL until a server with a certificate of the authority answers with 200. kubectl would take a second of CPU time for each
// request in an emulated machine.
func await(url, authority string) error {
	text, err := os.ReadFile(authority)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s has no certificate", authority)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for {
		response, err := client.Get(url) //nolint:noctx // it ends with the process
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		time.Sleep(interval)
	}
}
