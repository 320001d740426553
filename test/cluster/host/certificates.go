package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lifetime of the certificates. They are valid from an hour ago on, because the clock of a virtual machine may step back.
const lifetime = 365 * 24 * time.Hour

// certificates writes a certificate authority (ca.crt, ca.key) and the key pair of service accounts (sa.pub, sa.key) to dir. For each of subjects,
// FILE=COMMON_NAME[/ORGANIZATION][@HOST,…], it writes a certificate and its key, and FILE.kubeconfig for https://SERVER. With hosts the
// certificate is also a server's.
func certificates(dir, server string, subjects []string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	a, err := newAuthority(filepath.Join(dir, "ca"))
	if err != nil {
		return err
	}
	if err := writeAccounts(filepath.Join(dir, "sa")); err != nil {
		return err
	}
	for _, text := range subjects {
		file, template, err := parseSubject(text)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, file)
		if err := a.issue(path, template); err != nil {
			return err
		}
		config := fmt.Sprintf(kubeconfig, server, a.file+".crt", path+".crt", path+".key")
		if err := os.WriteFile(path+".kubeconfig", []byte(config), 0o600); err != nil {
			return err
		}
	}
	return nil
}

const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "cluster",
"clusters": [{"name": "cluster", "cluster": {"server": "https://%s", "certificate-authority": %q}}],
"users": [{"name": "user", "user": {"client-certificate": %q, "client-key": %q}}],
"contexts": [{"name": "cluster", "context": {"cluster": "cluster", "user": "user"}}]}
`

// parseSubject returns the name of the files and the properties of a certificate.
func parseSubject(text string) (file string, template *x509.Certificate, err error) {
	file, subject, found := strings.Cut(text, "=")
	subject, hosts, serves := strings.Cut(subject, "@")
	name, organization, _ := strings.Cut(subject, "/")
	if !found || file == "" || name == "" || filepath.Base(file) != file {
		return "", nil, fmt.Errorf("the subject %q is not FILE=COMMON_NAME[/ORGANIZATION][@HOST,…]", text)
	}
	template = &x509.Certificate{
		Subject:  pkix.Name{CommonName: name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if organization != "" {
		template.Subject.Organization = []string{organization}
	}
	if !serves {
		return file, template, nil
	}
	template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	for host := range strings.SplitSeq(hosts, ",") {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return file, template, nil
}

// An authority issues certificates.
type authority struct {
	file        string // the path of its certificate and key, without their endings
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      int64
}

// newAuthority makes an authority whose certificate it signs itself.
func newAuthority(file string) (*authority, error) {
	a := &authority{file: file, certificate: &x509.Certificate{
		Subject: pkix.Name{CommonName: "cluster"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}}
	return a, a.issue(file, a.certificate)
}

// issue writes PATH.crt and PATH.key. The first certificate is the authority's own.
func (a *authority) issue(path string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if a.key == nil {
		a.key = key
	}
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = template.NotBefore.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return err
	}
	if err := writePEM(path+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(path+".key", key)
}

// writeAccounts writes the key pair that signs the tokens of service accounts.
func writeAccounts(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := writePEM(path+".pub", "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(path+".key", key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
