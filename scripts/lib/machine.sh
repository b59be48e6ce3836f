# Sourced by scripts/demo and scripts/test: what a fresh Debian machine lacks is installed and started here.

say() { printf '%s\n' "$*" >&2; }

# Packages by the command each brings; needs root, and says so.
need_packages() {
  missing=
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null 2>&1 || missing="$missing ${pair#*=}"
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    say "this machine lacks:$missing; install them, or run this as root on Debian or Ubuntu"
    exit 2
  fi
  say "installing$missing"
  apt-get update -qq >&2
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

engine_answers() {
  [ -S /var/run/docker.sock ] &&
    node -e 'require("http").get({socketPath:"/var/run/docker.sock",path:"/_ping"},r=>process.exit(r.statusCode===200?0:1)).on("error",()=>process.exit(1))'
}

# Starts an engine when none answers; STARTED_ENGINE is then its process.
STARTED_ENGINE=
ensure_engine() {
  engine_answers && return 0
  need_packages dockerd=docker.io iptables=iptables
  engine_answers && return 0
  if [ "$(id -u)" != 0 ]; then
    say "no container engine answers this user at /var/run/docker.sock; start one, or run this as root"
    exit 2
  fi
  log=$(mktemp)
  say "starting dockerd (log: $log)"
  setsid dockerd >"$log" 2>&1 </dev/null &
  STARTED_ENGINE=$!
  for _ in $(seq 1 120); do
    engine_answers && return 0
    kill -0 "$STARTED_ENGINE" 2>/dev/null || break
    sleep 0.5
  done
  say "dockerd did not come up; the end of its log:"
  tail -5 "$log" >&2
  exit 5
}

stop_engine() {
  [ -n "$STARTED_ENGINE" ] || return 0
  kill "$STARTED_ENGINE" 2>/dev/null || return 0
  wait "$STARTED_ENGINE" 2>/dev/null || true
}

# Debian's packages behind the stand-in bases and the static shell; lists are refreshed once when absent.
need_lists() {
  [ -n "$(ls /var/lib/apt/lists/*_Packages* 2>/dev/null | head -1)" ] || apt-get update -qq >&2
}
