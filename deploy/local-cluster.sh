#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A whole set-up on loopback: three NATS servers in a cluster, one writer, three
# replicas, and a proxy that spreads requests over them. Needs Go and nothing
# else. Prints where everything is, and stops all of it on Ctrl-C.
#
#   deploy/local-cluster.sh [DIR]
#
# DIR holds stores and logs; without it they are in a temporary directory that is
# deleted at the end. BASE_PORT is the first of 18 ports, 14200 unless it is set.
# REPLICAS is how many replicas there are, 3 unless it is set; each has two ports.
# GLIMPSE is a program to use in place of one that is built. WRITER_FLAGS and
# REPLICA_FLAGS are added to the commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

replicas=${REPLICAS:-3}
base=${BASE_PORT:-14200}
read -r -a writer_flags <<<"${WRITER_FLAGS:-}"
read -r -a replica_flags <<<"${REPLICA_FLAGS:-}"
temporary=
if (($# > 0)); then
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
else
  dir=$(mktemp -d)
  temporary=$dir
fi
mkdir -p "$dir/bin" "$dir/log"

# Replicas and writer go first, while there is a NATS to say goodbye to.
declare -a started=()
declare -A process=()
stop() {
  trap - EXIT INT TERM
  local i
  for ((i = ${#started[@]} - 1; i >= 0; i--)); do
    kill -TERM "${started[i]}" 2>/dev/null || true
    wait "${started[i]}" 2>/dev/null || true
  done
  if [[ -n $temporary ]]; then
    rm -rf -- "$temporary"
  fi
}
trap stop EXIT
trap 'exit 130' INT TERM

# start NAME COMMAND... runs a command in the background. It is in a process group
# of its own, so that Ctrl-C reaches it through stop and in its turn.
start() {
  local name=$1
  shift
  set -m
  "$@" >"$dir/log/$name.log" 2>&1 &
  set +m
  started+=("$!")
  process[$name]=$!
}

# wait_for NAME URL waits until a URL answers with success.
wait_for() {
  local name=$1 url=$2 i
  for ((i = 0; i < 600; i++)); do
    if curl -fsS -o /dev/null "$url" 2>/dev/null; then
      return 0
    fi
    if ! kill -0 "${process[$name]}" 2>/dev/null; then
      break
    fi
    sleep 0.1
  done
  echo "$name is not ready; the end of its log:" >&2
  tail -n 20 "$dir/log/$name.log" >&2
  return 1
}

go build -o "$dir/bin/nats-server" github.com/nats-io/nats-server/v2
glimpse=${GLIMPSE:-$dir/bin/glimpse}
if [[ -z ${GLIMPSE:-} ]]; then
  go build -o "$glimpse" ./cmd/glimpse
fi
go build -o "$dir/bin/roundrobin" ./deploy/roundrobin

port=$base
next_port() { port=$((port + 1)); }

declare -a nats=() routes=() monitors=() clients=() clusters=()
for i in 0 1 2; do
  clients[i]=$port && next_port
  clusters[i]=$port && next_port
  monitors[i]=$port && next_port
  nats+=("nats://127.0.0.1:${clients[i]}")
  routes+=("nats-route://127.0.0.1:${clusters[i]}")
done
join() {
  local IFS=,
  echo "$*"
}
for i in 0 1 2; do
  cat >"$dir/nats$i.conf" <<CONF
server_name: nats$i
listen: "127.0.0.1:${clients[i]}"
http: "127.0.0.1:${monitors[i]}"
max_payload: 8MB
jetstream { store_dir: "$dir/nats$i", sync_interval: always }
cluster { name: glimpse, listen: "127.0.0.1:${clusters[i]}", routes: [$(join "${routes[@]}")] }
CONF
  start "nats$i" "$dir/bin/nats-server" -c "$dir/nats$i.conf"
done
for i in 0 1 2; do
  wait_for "nats$i" "http://127.0.0.1:${monitors[i]}/healthz"
done
servers=$(join "${nats[@]}")

writer_http=$port && next_port
writer_ops=$port && next_port
start writer "$glimpse" dev --datadir "$dir/writer" --publish "$servers" --nats.copies 3 \
  --http.port "$writer_http" --ws.port 0 --ops.port "$writer_ops" --dev.feed-port 0 "${writer_flags[@]}"
wait_for writer "http://127.0.0.1:$writer_ops/readyz"

declare -a replica_https=() replica_opses=()
for ((i = 0; i < replicas; i++)); do
  replica_https[i]=$port && next_port
  replica_opses[i]=$port && next_port
  start "replica$i" "$glimpse" replica --datadir "$dir/replica$i" --nats "$servers" --writer "http://127.0.0.1:$writer_http" \
    --http.port "${replica_https[i]}" --ws.port 0 --ops.port "${replica_opses[i]}" "${replica_flags[@]}"
  wait_for "replica$i" "http://127.0.0.1:${replica_opses[i]}/readyz"
done

declare -a urls=()
for p in "${replica_https[@]}"; do
  urls+=("http://127.0.0.1:$p")
done
start proxy "$dir/bin/roundrobin" -listen "127.0.0.1:$port" "${urls[@]}"

echo "nats      $servers"
echo "writer    http://127.0.0.1:$writer_http   operations http://127.0.0.1:$writer_ops"
for ((i = 0; i < replicas; i++)); do
  echo "replica $i http://127.0.0.1:${replica_https[i]}   operations http://127.0.0.1:${replica_opses[i]}"
done
echo "proxy     http://127.0.0.1:$port"
echo "logs      $dir/log"
echo "Ctrl-C stops all of them."

# Whichever ends first ends all.
wait -n "${started[@]}" || true
echo "one of the processes ended; see $dir/log" >&2
exit 1
