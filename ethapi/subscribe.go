// SPDX-License-Identifier: Apache-2.0

package ethapi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"glimpse/chain"
	"glimpse/jsonrpc"
	"glimpse/watch"
)

// SubscriptionNamespace is what the methods of subscriptions begin with.
const SubscriptionNamespace = "eth"

// A WatchedSnapshot is a Snapshot that can be compared with the one before it.
type WatchedSnapshot interface {
	Snapshot
	watch.Snapshot
}

// A Watcher follows the snapshots that an API answers from.
type Watcher = watch.Watcher[WatchedSnapshot]

type (
	topic = watch.Topic[WatchedSnapshot]
	step  = watch.Step[WatchedSnapshot]
)

// A Notifier is an API with subscriptions.
type Notifier struct {
	*API
	watcher *Watcher
}

// Notifying returns the API with subscriptions to what w sees. They end when w
// stops.
func (a *API) Notifying(w *Watcher) *Notifier { return &Notifier{API: a, watcher: w} }

// Subscribe implements jsonrpc.Subscriber: it opens what the parameters of eth_subscribe ask for. What it tells
// begins with the snapshot that is current now. The caller closes it.
func (n *Notifier) Subscribe(ctx context.Context, params jsonrpc.Values) (jsonrpc.Subscription, *jsonrpc.Error) {
	args := arguments{rest: params}
	t := n.topic(&args)
	if err := args.done(); err != nil {
		return nil, n.wireError("eth_subscribe", err)
	}
	s, err := n.watcher.Subscribe(ctx, t)
	if err != nil {
		return nil, n.refused(err)
	}
	return &subscription{api: n.API, queue: s}, nil
}

// topic takes the kind of a subscription and what that kind needs.
func (a *API) topic(args *arguments) topic {
	v, given := args.required()
	if !given {
		return nil
	}
	kind, _ := v.Text()
	begin := subscriptions[string(kind)]
	if begin == nil {
		kinds := slices.Sorted(maps.Keys(subscriptions))
		args.refuse("kind of subscription", "want one of "+strings.Join(kinds, ", "))
		return nil
	}
	return begin(a, args)
}

// subscriptions are the kinds there are.
var subscriptions = map[string]func(*API, *arguments) topic{
	"newHeads":       func(a *API, _ *arguments) topic { return &headTopic{api: a} },
	"logs":           func(a *API, args *arguments) topic { return &logTopic{api: a, filter: args.liveFilter()} },
	"newFlashblocks": func(a *API, _ *arguments) topic { return &flashblockTopic{api: a} },
	"storage":        func(_ *API, args *arguments) topic { return args.storageTopic() },
}

// refused is the answer to who cannot subscribe.
func (a *API) refused(err error) *jsonrpc.Error {
	var why watch.Error
	if errors.As(err, &why) {
		return &jsonrpc.Error{Code: codeFailed, Message: why.Error()}
	}
	return a.wireError("eth_subscribe", err)
}

// A subscription yields notifications, each as the result member of
// eth_subscription.
type subscription struct {
	api   *API
	queue *watch.Subscription
}

var errInternal = errors.New("internal error")

// Next implements jsonrpc.Subscription. An error other than ctx's is the end, and
// its text is for the subscriber.
func (s *subscription) Next(ctx context.Context, dst []byte) ([]byte, error) {
	out, err := s.queue.Next(ctx, dst)
	var why watch.Error
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, watch.ErrSlow):
		return dst, jsonrpc.ErrSlow
	case errors.As(err, &why):
		return dst, why
	case ctx.Err() != nil:
		return dst, err
	}
	// As with calls, what is nobody's mistake is told without its text.
	s.api.config.Log.Error("subscription failed", "err", err)
	return dst, errInternal
}

// Close implements jsonrpc.Subscription.
func (s *subscription) Close() { s.queue.Close() }

// noStorage is for topics that do not ask for changes of storage.
type noStorage struct{}

func (noStorage) Storage() (a chain.Address, ok bool) { return a, false }
