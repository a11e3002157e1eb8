// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrNotFound is the answer of Objects that do not have an object.
var ErrNotFound = errors.New("no such object")

// Objects are values under names. A Store needs two of them, one for chunks and
// one for manifests; Bucket is one in JetStream.
type Objects interface {
	// Put stores data under name, and replaces what was there.
	Put(ctx context.Context, name string, data []byte) error

	// Get returns the data under name. The error wraps ErrNotFound where there
	// is none. Of an object that is bigger than limit it may return an error, or
	// more than limit, but not all of it. The caller owns the result.
	Get(ctx context.Context, name string, limit int64) ([]byte, error)

	// List returns the names of all objects and how big each is.
	List(ctx context.Context) (map[string]int64, error)

	// Delete takes an object away. That it is not there is no error.
	Delete(ctx context.Context, name string) error
}

// messageBytes is how much of an object one message carries. Servers take
// messages of up to 1 MiB where they are not told otherwise.
const messageBytes = 512 << 10

// objectTimeout bounds the wait for the next piece of an object that is read: a
// client that asks for one whose messages are gone is never answered. A whole one is
// written within three times that.
const objectTimeout = 10 * time.Second

// OpenStore returns the Store whose buckets are NAME-chunks and NAME-manifests.
// The error wraps ErrNotFound where they were never made.
func OpenStore(ctx context.Context, js jetstream.JetStream, name string, o Options) (*Store, error) {
	chunks, err := OpenBucket(ctx, js, name+"-chunks")
	if err != nil {
		return nil, err
	}
	manifests, err := OpenBucket(ctx, js, name+"-manifests")
	if err != nil {
		return nil, err
	}
	return NewStore(chunks, manifests, o), nil
}

// MakeStore is OpenStore for those who upload: it makes what is not there, with
// this many copies in a cluster.
func MakeStore(ctx context.Context, js jetstream.JetStream, name string, replicas int, o Options) (*Store, error) {
	chunks, err := MakeBucket(ctx, js, name+"-chunks", replicas)
	if err != nil {
		return nil, err
	}
	manifests, err := MakeBucket(ctx, js, name+"-manifests", replicas)
	if err != nil {
		return nil, err
	}
	return NewStore(chunks, manifests, o), nil
}

// A Bucket is an object store in JetStream. It is safe for concurrent use.
type Bucket struct {
	name    string
	objects jetstream.ObjectStore
	stream  jetstream.Stream
	timeout time.Duration
}

// OpenBucket returns the bucket of this name. The error wraps ErrNotFound where
// there is none.
func OpenBucket(ctx context.Context, js jetstream.JetStream, name string) (*Bucket, error) {
	objects, err := js.ObjectStore(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", name, bucketError(err))
	}
	return newBucket(ctx, js, name, objects)
}

// MakeBucket returns the bucket of this name, which is made if there is none,
// with this many copies in a cluster.
func MakeBucket(ctx context.Context, js jetstream.JetStream, name string, replicas int) (*Bucket, error) {
	objects, err := js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket:      name,
		Description: "copies of a glimpse store",
		Replicas:    replicas,
	})
	if err != nil {
		return nil, fmt.Errorf("make bucket %s: %w", name, err)
	}
	return newBucket(ctx, js, name, objects)
}

func newBucket(ctx context.Context, js jetstream.JetStream, name string, objects jetstream.ObjectStore) (*Bucket, error) {
	stream, err := js.Stream(ctx, "OBJ_"+name)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", name, err)
	}
	return &Bucket{name, objects, stream, objectTimeout}, nil
}

func bucketError(err error) error {
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}

// Put implements Objects.
func (b *Bucket) Put(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 3*b.timeout)
	defer cancel()
	meta := jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: messageBytes}}
	_, err := b.objects.Put(ctx, meta, bytes.NewReader(data))
	return err
}

// countMessages says whether an object that did not arrive is there at all.
func (b *Bucket) countMessages(ctx context.Context, o *jetstream.ObjectInfo) error {
	subject := fmt.Sprintf("$O.%s.C.%s", b.name, o.NUID)
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return err
	}
	if got := info.State.Subjects[subject]; got != uint64(o.Chunks) {
		return fmt.Errorf("%w: %d messages of it are left, want %d", ErrDamaged, got, o.Chunks)
	}
	return nil
}

// List implements Objects.
func (b *Bucket) List(ctx context.Context) (map[string]int64, error) {
	infos, err := b.objects.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, err
	}
	sizes := make(map[string]int64, len(infos))
	for _, info := range infos {
		sizes[info.Name] = int64(info.Size)
	}
	return sizes, nil
}

// Delete implements Objects. It also takes away the mark that an object was
// there: a name here is used once, and marks would pile up for ever.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := b.objects.Delete(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return err
	}
	mark := fmt.Sprintf("$O.%s.M.%s", b.name, base64.URLEncoding.EncodeToString([]byte(name)))
	return b.stream.Purge(ctx, jetstream.WithPurgeSubject(mark))
}
