// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"glimpse/replica/replicatest"
	"glimpse/replica/stream"
)

// Writer and replica reach servers that want to know who they are, and that they
// want to know; what is wrong is said, and they go on trying.
func TestLinks(t *testing.T) {
	t.Parallel()
	certificate, authorities := selfSigned(t)
	operator := newOperator(t)
	other := newOperator(t)
	secure := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	password := func(o *server.Options) { o.Username, o.Password = "writer", "secret" }
	encrypted := func(o *server.Options) { o.TLSConfig, o.TLSTimeout = secure, 5 }
	tests := []struct {
		name   string
		server func(*server.Options)
		link   func(addr string) stream.Link
		want   error // of the connection; nil where blocks arrive
	}{
		{"a password in the URL", password,
			func(addr string) stream.Link { return stream.Link{URLs: "nats://writer:secret@" + addr} }, nil},
		{"a wrong password", password,
			func(addr string) stream.Link { return stream.Link{URLs: "nats://writer:guess@" + addr} }, nats.ErrAuthorization},
		{"no password", password,
			func(addr string) stream.Link { return stream.Link{URLs: "nats://" + addr} }, nats.ErrAuthorization},
		{"TLS with an authority of our own", encrypted,
			func(addr string) stream.Link { return stream.Link{URLs: "tls://" + addr, Authorities: authorities} }, nil},
		{"TLS with an authority that is not known", encrypted,
			func(addr string) stream.Link { return stream.Link{URLs: "tls://" + addr} }, new(tls.CertificateVerificationError)},
		{"TLS and a password", func(o *server.Options) { password(o); encrypted(o) },
			func(addr string) stream.Link {
				return stream.Link{URLs: "tls://writer:secret@" + addr + ",tls://writer:secret@" + addr, Authorities: authorities}
			}, nil},
		{"credentials", operator.configure,
			func(addr string) stream.Link {
				return stream.Link{URLs: "nats://" + addr, Credentials: operator.user(t)}
			}, nil},
		{"credentials of somebody else", operator.configure,
			func(addr string) stream.Link { return stream.Link{URLs: "nats://" + addr, Credentials: other.user(t)} }, nats.ErrAuthorization},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			options := server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
			tt.server(&options)
			srv := &natsServer{t: t, options: options}
			srv.start()
			t.Cleanup(srv.stop)
			connect := func() *nats.Conn {
				nc, err := tt.link(srv.server.Addr().String()).Connect(t.Name())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(nc.Close)
				return nc.Conn
			}
			w := replicatest.NewWriter(1)
			store := replicatest.NewStore(w, 0)
			sealMany(w, 3)
			p, _ := publish(t, connect(), w, fast())
			tl, _ := tail(t, connect(), w.ID, store, fast())
			if tt.want == nil {
				converge(t, w, store)
				return
			}
			for _, said := range []func() error{func() error { return p.Stats().LastError }, func() error { return tl.Stats().LastError }} {
				eventually(t, "it says what is wrong", func() bool {
					err := said()
					if verification := new(tls.CertificateVerificationError); errors.As(tt.want, &verification) {
						return errors.As(err, &verification)
					}
					return errors.Is(err, tt.want)
				})
			}
		})
	}
}

func TestLinksThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]stream.Link{
		"no URL":                         {URLs: "nats://a b"},
		"credentials that are not there": {URLs: "nats://127.0.0.1:1", Credentials: filepath.Join(t.TempDir(), "none")},
		"authorities that are not there": {URLs: "tls://127.0.0.1:1", Authorities: filepath.Join(t.TempDir(), "none")},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := l.Connect(t.Name())
			if err == nil {
				nc.Close()
				t.Error("it connects")
			}
		})
	}
}

// selfSigned returns a certificate for loopback, and a file of who signed it.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

// An operator is one of servers that know accounts by what it has signed.
type operator struct {
	claims  *jwt.OperatorClaims
	account nkeys.KeyPair
	signed  map[string]string // accounts, by their names
	system  string            // the one that servers use among themselves
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	keys, err := nkeys.CreateOperator()
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{signed: make(map[string]string)}
	account := func(limits jwt.JetStreamLimits) nkeys.KeyPair {
		own, err := nkeys.CreateAccount()
		if err != nil {
			t.Fatal(err)
		}
		claims := jwt.NewAccountClaims(public(t, own))
		claims.Limits.JetStreamLimits = limits
		if o.signed[claims.Subject], err = claims.Encode(keys); err != nil {
			t.Fatal(err)
		}
		return own
	}
	o.account = account(jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1})
	o.system = public(t, account(jwt.JetStreamLimits{}))
	o.claims = jwt.NewOperatorClaims(public(t, keys))
	if _, err := o.claims.Encode(keys); err != nil {
		t.Fatal(err)
	}
	return o
}

func public(t *testing.T, keys nkeys.KeyPair) string {
	t.Helper()
	name, err := keys.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func (o *operator) configure(options *server.Options) {
	options.TrustedOperators = []*jwt.OperatorClaims{o.claims}
	resolver := new(server.MemAccResolver)
	for name, signed := range o.signed {
		_ = resolver.Store(name, signed) // in memory, which does not fail
	}
	options.AccountResolver, options.SystemAccount = resolver, o.system
}

// user returns a file with the credentials of a user of the account.
func (o *operator) user(t *testing.T) string {
	t.Helper()
	keys, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.NewUserClaims(public(t, keys)).Encode(o.account)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := keys.Seed()
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "user.creds")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
