# Main process of a trial container (spec/03):   busybox sh entry.sh hold COMMITMENT
# of a `live` one, which has one life only:      busybox sh entry.sh serve COMMITMENT
# and, as an exec in that one:                   busybox sh entry.sh live COMMITMENT
# COMMITMENT is the SHA-256 of a random top-level path that nobody in the container knows until the tests
# are uploaded below it, so no agent can plant a directory that starts a second life.
B=/opt/evaluator/busybox
MODE=$1
COMMITMENT=$2

hold() {
  trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE
  # A fork that fails (pids limit) ends this shell; the trap turns it into a sleep without a fork.
  trap 'exec $B sleep 2147483647' EXIT
  while :; do
    $B sleep 2147483647 &
    wait
  done
}

find_tests() {
  for d in /.evaluator-*; do
    [ -d "$d" ] && [ ! -L "$d" ] || continue
    sum=$(printf %s "$d" | $B sha256sum)
    if [ "${sum%% *}" = "$COMMITMENT" ]; then
      DIR=$d
      return 0
    fi
  done
  return 1
}

# clear PATH: deletes it, or moves out of the way what is nested too deeply to be deleted by its name.
clear() {
  $B rm -rf "$1"
  if [ -e "$1" ] || [ -L "$1" ]; then
    $B mkdir -p "$DIR/cleared"
    $B mv "$1" "$DIR/cleared/${1##*/}"
  fi
}

fresh_logs() {
  if [ -L /logs ] || [ ! -d /logs ]; then
    clear /logs
    $B mkdir /logs
  fi
  clear /logs/verifier
  $B mkdir /logs/verifier
  $B chmod 0755 /logs /logs/verifier
}

# place: what was carried over (verifier mode artifact) takes the place of the image's own.
place() {
  [ -f "$DIR/artifacts.paths" ] || return 0
  while IFS= read -r path; do
    clear "$path"
    [ -e "$DIR/artifacts$path" ] || continue
    $B mkdir -p "${path%/*}/" && $B mv "$DIR/artifacts$path" "$path" || return 1
  done <"$DIR/artifacts.paths"
}

verify() {
  place || exit 104
  clear /tests
  clear /etc/ld.so.preload
  fresh_logs
  . "$DIR/env" || exit 101
  $B mv "$DIR/tests" /tests || exit 101
  $B rm -rf "$DIR" 2>/dev/null
  cd "$EVALUATOR_WORKDIR" || exit 102
  unset EVALUATOR_WORKDIR
  # The image's variables stay, but for those that would have our own programs load or read something else.
  unset LD_PRELOAD LD_AUDIT GCONV_PATH OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES BASH_ENV ENV TCLLIBPATH \
    PYTHONHOME PYTHONSTARTUP PYTEST_ADDOPTS PYTEST_PLUGINS
  PATH=/opt/evaluator/front:/opt/evaluator/front/shell:$PATH
  export PATH
  # Our own bash, whatever its first line says: /bin/bash may be the agent's.
  /opt/evaluator/front/bash /tests/test.sh </dev/null >/logs/verifier/test-output.txt 2>&1
  # 100: test.sh was run and has ended, whatever it returned. Anything else is not a verification.
  exit 100
}

# A live container gets its tests while it runs: a holder that is slow to start must not take them for a second life.
[ "$MODE" != serve ] || hold

if find_tests; then
  verify
elif [ "$MODE" = hold ]; then
  hold
fi
exit 103
