// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/crypto/bcrypt"

	"glimpse/replica/snapshot"
)

// The configuration in deploy/nats makes a cluster in which a writer can write,
// and a replica can read what it needs and do nothing else.
func TestDeployedConfiguration(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	urls := startDeployed(t)
	writer, replica := login(t, urls, "writer"), login(t, urls, "replica")
	made := publishAndUpload(ctx, t, writer)
	if _, err := nats.Connect(urls, nats.UserInfo("replica", "wrong"), nats.RootCAs("ca.crt")); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("connect with a wrong password: got %v, want ErrAuthorization", err)
	}

	s, err := replica.Stream(ctx, "glimpse")
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1}) // as stream.Tail does
	if err != nil {
		t.Fatal(err)
	}
	if message, err := consumer.Next(jetstream.FetchMaxWait(time.Minute)); err != nil || string(message.Data()) != "block" {
		t.Errorf("read the stream as a replica: got %v, %v", message, err)
	}
	store, err := snapshot.OpenStore(ctx, replica, "glimpse", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "db")
	if err := store.Download(ctx, m, dir, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "1.sst")); !bytes.Equal(got, made) || err != nil {
		t.Errorf("download as a replica: got %d bytes, %v, want %d", len(got), err, len(made))
	}
	refusesReplica(t, replica, m)
}

// publishAndUpload does what a writer does and returns what was uploaded.
func publishAndUpload(ctx context.Context, t *testing.T, writer jetstream.JetStream) []byte {
	t.Helper()
	config := jetstream.StreamConfig{Name: "glimpse", Subjects: []string{"glimpse.blocks"}, Replicas: 3, AllowDirect: true}
	if _, err := writer.CreateStream(ctx, config); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Publish(ctx, "glimpse.blocks", []byte("block")); err != nil {
		t.Fatal(err)
	}
	store, err := snapshot.MakeStore(ctx, writer, "glimpse", 3, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir, data := t.TempDir(), bytes.Repeat([]byte("table"), 1<<18)
	if err := os.WriteFile(filepath.Join(dir, "1.sst"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Upload(ctx, dir, snapshot.Manifest{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := store.Drop(ctx, 2); err != nil {
		t.Errorf("drop snapshots as the writer: %v", err)
	}
	return data
}

// refusesReplica tries what a replica must not do. A request without permission
// is not answered, and the server says so beside it.
func refusesReplica(t *testing.T, replica jetstream.JetStream, m *snapshot.Manifest) {
	t.Helper()
	tests := []struct {
		name string
		do   func(context.Context) error
	}{
		{"publish a block", func(ctx context.Context) error {
			_, err := replica.Publish(ctx, "glimpse.blocks", []byte("false"))
			return err
		}},
		{"delete the stream", func(ctx context.Context) error { return replica.DeleteStream(ctx, "glimpse") }},
		{"make a stream", func(ctx context.Context) error {
			_, err := replica.CreateStream(ctx, jetstream.StreamConfig{Name: "other"})
			return err
		}},
		{"replace a chunk", func(ctx context.Context) error {
			chunks, err := snapshot.OpenBucket(ctx, replica, "glimpse-chunks")
			if err != nil {
				t.Fatal(err)
			}
			return chunks.Put(ctx, m.Files[0].Chunks[0].Sum.String(), []byte("false"))
		}},
		{"delete a chunk", func(ctx context.Context) error {
			chunks, err := snapshot.OpenBucket(ctx, replica, "glimpse-chunks")
			if err != nil {
				t.Fatal(err)
			}
			return chunks.Delete(ctx, m.Files[0].Chunks[0].Sum.String())
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := tt.do(ctx); err == nil {
				t.Error("got no error, want a refusal")
			}
		})
	}
}

func login(t *testing.T, urls, user string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(urls, nats.UserInfo(user, user+" password"), nats.RootCAs("ca.crt"),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // refusals are looked at where they happen
	if err != nil {
		t.Fatalf("connect as %s: %v", user, err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// startDeployed starts three servers of the deployed configuration and returns
// where they are. It leaves the test in their directory.
func startDeployed(t *testing.T) string {
	t.Helper()
	conf, err := os.ReadFile(filepath.Join("..", "..", "deploy", "nats", "server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	users := ""
	for _, user := range []string{"writer", "replica", "system"} {
		hash, err := bcrypt.GenerateFromPassword([]byte(user+" password"), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		users += fmt.Sprintf("%s_PASSWORD: %q\n", strings.ToUpper(user), hash)
	}
	writeCertificates(t)
	if err := errors.Join(os.WriteFile("server.conf", conf, 0o600), os.WriteFile("users.conf", []byte(users), 0o600)); err != nil {
		t.Fatal(err)
	}
	addrs := freeAddrs(t, 9)
	t.Setenv("NATS_ROUTES", fmt.Sprintf("[tls://%s, tls://%s, tls://%s]", addrs[3], addrs[4], addrs[5]))
	var servers []*natsserver.Server
	for i := range 3 {
		t.Setenv("NATS_NAME", fmt.Sprintf("nats-%d", i+1))
		t.Setenv("NATS_LISTEN", addrs[i])
		t.Setenv("NATS_CLUSTER", addrs[3+i])
		t.Setenv("NATS_MONITOR", addrs[6+i])
		t.Setenv("NATS_STORE", filepath.Join(dir, fmt.Sprint(i)))
		o, err := natsserver.ProcessConfigFile("server.conf")
		if err != nil {
			t.Fatal(err)
		}
		if !o.SyncAlways || o.MaxPayload != 8_000_000 && o.MaxPayload != 8<<20 {
			t.Errorf("configuration: got sync always %v and messages of up to %d", o.SyncAlways, o.MaxPayload)
		}
		o.NoLog, o.NoSigs = true, true
		s, err := natsserver.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	waitForLeader(t, servers)
	return fmt.Sprintf("tls://%s,tls://%s,tls://%s", addrs[0], addrs[1], addrs[2])
}

func waitForLeader(t *testing.T, servers []*natsserver.Server) {
	t.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for {
		for _, s := range servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(servers) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("no server leads all three after 30 s")
		}
	}
}

func freeAddrs(t *testing.T, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all are held until all are found
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// writeCertificates makes what the commands in deploy/nats/README.md make.
func writeCertificates(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "glimpse NATS"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "nats-1"},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	writePEM(t, "ca.crt", "CERTIFICATE", sign(t, ca, ca, key))
	writePEM(t, "server.crt", "CERTIFICATE", sign(t, server, ca, key))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, "server.key", "PRIVATE KEY", der)
}

func sign(t *testing.T, certificate, parent *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func writePEM(t *testing.T, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
