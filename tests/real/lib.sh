# Shared by the rigs in this folder: cached installs, free ports, and processes that are ended
# only when they are surely the ones that were started here. Sourced by bash, never run.

die() { echo "${0##*/}: $*" >&2; exit 1; }
note() { echo "${0##*/}: $*" >&2; }

# Installs outlive a run: a venv takes minutes to fill and does not depend on the checkout.
test_cache() {
  local dir=${MUSTER_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster-tests}
  mkdir -p "$dir"
  (cd "$dir" && pwd)
}

# rig_dir DIR: the folder of one running rig, as an absolute path, with its usual parts.
rig_dir() {
  mkdir -p "$1"/{run,log}
  (cd "$1" && pwd)
}

# down_on_failure HERE RIG: an `up` that ends early ends what it started; the logs stay.
down_on_failure() {
  # shellcheck disable=SC2064 # the values of now
  trap "rc=\$?; [ \$rc = 0 ] || { '$1/down' '$2'; note 'the rig did not start; its logs are in $2/log'; }; exit \$rc" EXIT
}

# cached_venv NAME LOCKFILE PYTHON: prints the path of a venv that holds exactly what LOCKFILE lists.
# It is filled under another name and renamed when complete, so an interrupted install is never
# taken for a whole one. Because of the rename the console scripts in bin/ name an interpreter
# that is gone: run everything as `bin/python -m …` or `bin/python file.py`.
cached_venv() {
  local name=$1 lockfile=$2 python=$3 key home
  key=$({ "$python" -VV; readlink -f "$(command -v "$python")"; cat "$lockfile"; } | sha256sum | cut -c1-16)
  home=$(test_cache)/$name-$key
  # two runs at once: the second waits here and then finds the venv ready
  exec 9>"$(test_cache)/$name.lock"
  flock 9
  if [ ! -d "$home" ]; then
    local building=$home.partial
    rm -rf "$building"
    note "filling a venv for $name ($(grep -c == "$lockfile") packages)"
    # `set -e` does not reach into $(…), so the chain says what depends on what. Every package is
    # pinned, so the resolver has nothing to decide; it would only add what NetBox builds its
    # documentation with.
    "$python" -m venv "$building" >&2 &&
      "$building/bin/python" -m pip install -q --disable-pip-version-check --no-deps -r "$lockfile" >&2 &&
      mv "$building" "$home" || die "the venv for $name could not be filled"
  fi
  exec 9>&-
  echo "$home"
}

# free_ports N: N loopback ports that nobody listens on, held together so that all differ.
# Another process can still take one before it is used; `up` then fails, and a second one helps.
free_ports() {
  python3 - "$1" <<'PY'
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in held))
PY
}

# A process id alone is not an identity, since the kernel gives it out again. The id with the
# start time (field 22 of /proc/PID/stat, counted behind the command name) is one.
born() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# spawn RIG NAME COMMAND…: starts a service in a process group of its own and records who it is.
spawn() {
  local rig=$1 name=$2 pid
  shift 2
  # descriptor 9 may hold an install lock: no service may keep it
  setsid "$@" </dev/null >"$rig/log/$name.out" 2>&1 9>&- &
  pid=$!
  echo "$pid $(born "$pid")" >"$rig/run/$name.pid"
}

# lives RIG NAME: whether the recorded process is still that process.
lives() {
  local pid birth
  [ -r "$1/run/$2.pid" ] || return 1
  read -r pid birth <"$1/run/$2.pid"
  [ -n "$birth" ] && [ "$(born "$pid")" = "$birth" ] && [ "$(sed 's/.*) //' "/proc/$pid/stat" | cut -c1)" != Z ]
}

# halt RIG NAME: ends the recorded process and its group, first politely.
halt() {
  local pid birth
  if lives "$1" "$2"; then
    read -r pid birth <"$1/run/$2.pid"
    kill -TERM -- "-$pid" 2>/dev/null || true
    for _ in $(seq 100); do lives "$1" "$2" || break; sleep 0.1; done
    kill -KILL -- "-$pid" 2>/dev/null || true
  fi
  rm -f "$1/run/$2.pid"
}

# wait_until RIG NAME SECONDS COMMAND…: waits for COMMAND to succeed; gives up at the deadline,
# or at once when the service has ended.
wait_until() {
  local rig=$1 name=$2 deadline=$((SECONDS + $3))
  shift 3
  until "$@" >/dev/null 2>&1; do
    lives "$rig" "$name" || { note "$name ended while it started:"; tail -n 20 "$rig/log/$name.out" >&2; return 1; }
    [ "$SECONDS" -lt "$deadline" ] || { note "$name does not answer:"; tail -n 20 "$rig/log/$name.out" >&2; return 1; }
    sleep 0.2
  done
}

# debian_packages PACKAGE…: installs what is missing, and starts none of it: a package with a
# service would otherwise open ports on the machine's own network.
debian_packages() {
  local missing=() package policy=/usr/sbin/policy-rc.d ours=0 log
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || { note "needs ${missing[*]}, and this is no Debian"; return 1; }
  [ "$(id -u)" = 0 ] || { note "needs ${missing[*]}: install them, or run this as root once"; return 1; }
  log=$(mktemp)
  if [ ! -e $policy ]; then printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy; ours=1; fi
  note "installing ${missing[*]}"
  local rc=0
  # rigs install side by side, so each waits for the package manager's lock
  { apt-get -o DPkg::Lock::Timeout=300 update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}"; } \
    >"$log" 2>&1 </dev/null || rc=$?
  [ $ours = 0 ] || rm -f $policy
  [ $rc = 0 ] || { tail -n 20 "$log" >&2; }
  rm -f "$log"
  return $rc
}

# json_fields FILE KEY…: the values of some keys of a JSON object, blank-separated.
json_fields() {
  python3 -c 'import json, sys; doc = json.load(open(sys.argv[1])); print(*(doc[k] for k in sys.argv[2:]))' "$@"
}
