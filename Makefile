# What CI runs is here, and nothing else is. `make check` is all of it but the
# end-to-end targets.

GO             ?= go
BUILD          := build
FUZZTIME       ?= 30000x
FOLLOW_BLOCKS  ?= 200
CHAIN_BLOCKS   ?= 2000
KILLS          ?= 50
REPLICA_BLOCKS ?= 1800
REPLICA_READS  ?= 20000
STATICCHECK    := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build test lint race fuzz bench bench-smoke bench-peers bench-peers-smoke bench-peers-build memory latency follow-latency replica-latency replica-scale hostile e2e e2e-geth e2e-kill e2e-clients e2e-follow e2e-replica e2e-opgeth anvil geth check clean

build:
	$(GO) build -o $(BUILD)/glimpse ./cmd/glimpse

test:
	$(GO) test ./...

check: test lint race fuzz

# The tools come through Go modules, so nothing has to be installed.
lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'ed: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod tidy -diff

# But for the black-box tests, whose races would be in other processes.
race:
	$(GO) test -race $$($(GO) list ./... | grep -v '/test$$')

# Every fuzz target there is, for $(FUZZTIME) each: a number of runs, because a
# time can end in the middle of one, which go test reports as a failure.
fuzz:
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

# The figures of docs/performance.md. The generated stores are big; see there.
bench:
	$(GO) test -run '^$$' -bench . -benchmem -count 6 -timeout 60m ./archive ./evm ./jsonrpc ./merkle ./ops ./pending

# Each benchmark once, so that they cannot rot.
bench-smoke:
	$(GO) test -run '^$$' -bench . -benchtime 1x ./archive ./evm ./jsonrpc ./merkle ./ops ./pending

# glimpse beside geth, anvil and the least that a server can do, on one chain;
# rewrites its part of docs/performance.md. It wants a quiet machine and half an
# hour. PEERS takes flags: with -data DIR a second run does not load the chain
# anew, and -help tells of the others.
bench-peers: bench-peers-build
	$(BENCH_PEERS) -out docs $(PEERS)

# The same program on a chain of a few blocks, so that it cannot rot. What it
# measures means nothing.
bench-peers-smoke: bench-peers-build
	@mkdir -p $(BUILD)/peers && cp docs/performance.md $(BUILD)/peers
	$(BENCH_PEERS) -out $(BUILD)/peers -blocks 160 -contracts 50 -slots 3000 -large 4 -anvil-blocks 8 \
		-rounds 1 -seconds 100ms -warmup 20ms -connections 1,32 -growth 1000 $(PEERS)

bench-peers-build: build geth anvil
	$(GO) build -o $(BUILD)/bench-peers ./bench/peers

# anvil itself and not npm's starter of it, which is what would be measured.
BENCH_PEERS = $(BUILD)/bench-peers -anvil $$(echo e2e/anvil/node_modules/@foundry-rs/anvil-*/bin/anvil)

# Resident memory of serve on a store of three million slots.
memory:
	GLIMPSE_MEMORY_SLOTS=3000000 $(GO) test -run '^TestServeMemory$$' -v -count 1 -timeout 30m ./test

# From an accepted transaction to its effect on pending, 200 of them.
latency:
	GLIMPSE_LATENCY_SENDS=200 $(GO) test -run '^TestPreconfirmationLatency$$' -v -count 1 -timeout 30m ./test

# From a flashblock leaving its publisher to a read on a follower, 300 of them.
follow-latency:
	GLIMPSE_LATENCY_FLASHBLOCKS=300 $(GO) test -run '^TestFollowLatency$$' -v -count 1 -timeout 30m ./test

# From a deployment on the writer's own pending to the same on two replicas, 300 of
# them.
replica-latency:
	GLIMPSE_REPLICA_DEPLOYMENTS=300 $(GO) test -run '^TestReplicaLatency$$' -v -count 1 -timeout 30m ./test

# Reads of three replicas beside those of one, what a replica's blocks cost beside
# the writer's, and a replica that joins a store of five million slots.
replica-scale:
	GLIMPSE_REPLICA_SECONDS=5 GLIMPSE_REPLICA_SLOTS=5000000 $(GO) test -run '^TestReplicaScale$$|^TestReplicaJoins$$' -v -count 1 -timeout 30m ./test

# Clients that mean harm, with ten thousand connections where they count: what
# honest reads take meanwhile, and how much memory is resident.
hostile:
	GLIMPSE_HOSTILE_CONNECTIONS=10000 $(GO) test -run '^TestHostileClients$$' -v -count 1 -timeout 30m ./test
	GLIMPSE_HOSTILE=1 $(GO) test -run '^TestHostileClients$$' -v -count 1 -timeout 30m ./jsonrpc

e2e: e2e-geth e2e-kill e2e-clients e2e-follow e2e-replica e2e-opgeth

# A geth from its own module.
geth:
	$(GO) build -C peers/geth -o ../../$(BUILD)/geth github.com/ethereum/go-ethereum/cmd/geth

# An anvil, as npm has it.
anvil:
	@command -v npm >/dev/null || { apt-get update && apt-get install -y nodejs npm; }
	npm --prefix e2e/anvil install --no-package-lock --no-audit --no-fund --loglevel=error

ANVIL := $(CURDIR)/e2e/anvil/node_modules/.bin/anvil

# Every slot and code compared beside geth, at every block of a chain of $(CHAIN_BLOCKS).
e2e-geth: geth
	GLIMPSE_GETH=$(CURDIR)/$(BUILD)/geth GLIMPSE_CHAIN_BLOCKS=$(CHAIN_BLOCKS) $(GO) test -run 'AgainstGeth$$' -v -count 1 -timeout 30m ./test ./follow/upstream

# Imports killed at random moments, $(KILLS) times.
e2e-kill:
	GLIMPSE_KILLS=$(KILLS) $(GO) test -run '^TestKilledImportResumes$$' -v -count 1 -timeout 30m ./test

# viem, ethers, web3.js and cast, as npm has them, against glimpse dev, and against
# a glimpse that follows an anvil.
e2e-clients: anvil
	npm --prefix e2e/clients install --no-package-lock --no-audit --no-fund --loglevel=error
	GLIMPSE_CLIENTS=$(CURDIR)/e2e/clients GLIMPSE_ANVIL=$(ANVIL) $(GO) test -run '^TestClients' -v -count 1 -timeout 10m ./test

# A geth, an anvil and glimpse dev, each followed for $(FOLLOW_BLOCKS) blocks and compared.
e2e-follow: geth anvil
	GLIMPSE_GETH=$(CURDIR)/$(BUILD)/geth GLIMPSE_ANVIL=$(ANVIL) GLIMPSE_FOLLOW_BLOCKS=$(FOLLOW_BLOCKS) \
		$(GO) test -run '^TestFollow' -v -count 1 -timeout 30m ./test

# Replicas compared over $(REPLICA_BLOCKS) blocks, which at two seconds each would be
# an hour; and with everything going wrong that can, on three NATS servers that are
# processes, while $(REPLICA_READS) reads go to the replicas in turn.
e2e-replica:
	GLIMPSE_REPLICA_BLOCKS=$(REPLICA_BLOCKS) GLIMPSE_REPLICA_FAULTS=1 GLIMPSE_REPLICA_READS=$(REPLICA_READS) \
		$(GO) test -run '^TestReplicas$$|^TestReplicaFaults$$|^TestReplicaOf|^TestReplicaWithout|^TestStopping' -v -count 1 -timeout 30m ./test

# OP-Stack rules beside an op-geth from its own module.
e2e-opgeth:
	$(GO) build -C peers/opgeth -o ../../$(BUILD)/op-geth github.com/ethereum/go-ethereum/cmd/geth
	GLIMPSE_OPGETH=$(CURDIR)/$(BUILD)/op-geth $(GO) test -run AgainstOpGeth -v -count 1 -timeout 10m ./evm/opstack

clean:
	rm -rf $(BUILD)
