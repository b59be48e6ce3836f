# Runs before the engine at every boot, sourced by the OS as root; any failure ends the boot.
# The data disk outlives a compose, and the variables are chosen by the VM's owner: neither is believed.

evaluator_fail() {
  echo "init-script: $1; the boot ends here" >&2
  exit 1
}

# (1) The OS hands this file to a shell's environment: one odd byte could set another variable.
evaluator_check_env() {
  [ -f "$1" ] || evaluator_fail "$1 is missing"
  odd=$(LC_ALL=C tr -d 'A-Za-z0-9+/=_.:\n-' <"$1" | wc -c) || evaluator_fail "$1 cannot be read"
  [ "$((odd))" -eq 0 ] || evaluator_fail "$1 has bytes that no variable of ours has"
  LC_ALL=C grep -vE '^(@ENV_NAMES@)=[A-Za-z0-9+/=_.:-]*$' "$1" >/dev/null
  # 1: no line is left; 0 is an odd line, 2 an error.
  [ "$?" -eq 1 ] || evaluator_fail "$1 has a line that is no variable of ours"
}

evaluator_check_quiet() {
  for comm in /proc/[0-9]*/comm; do
    name=
    read -r name <"$comm" 2>/dev/null || continue
    case "$name" in
    dockerd | containerd) evaluator_fail "$name runs already" ;;
    esac
  done
  # Memory of a trial must not reach a disk.
  [ "$(wc -l </proc/swaps)" -le 1 ] || evaluator_fail "swap is on"
}

# (3) A container reaches the VM's own addresses on no port; what is forwarded does not pass here.
evaluator_drop() {
  for bridge in docker0 br-+; do
    "$1" -w -I INPUT 1 -i "$bridge" -j DROP || evaluator_fail "$1 refuses a rule"
    "$1" -w -C INPUT -i "$bridge" -j DROP || evaluator_fail "$1 has lost a rule"
  done
}

# (2) Engine state of other boots is neither seen nor left behind: its key exists in this kernel alone.
evaluator_fresh_state() {
  disk=$1
  image=$disk/evaluator-state.img
  rm -rf "$image" || evaluator_fail "$image cannot be removed"
  for dir in /var/lib/docker /var/lib/containerd; do
    # The OS has put the disk's own folder here.
    while grep -q " $dir " /proc/mounts; do
      umount "$dir" || evaluator_fail "$dir cannot be unmounted"
    done
    # What an earlier boot left is not seen any more and only takes room; a link there leads elsewhere.
    [ "$(readlink -f "$disk$dir")" = "$disk$dir" ] || evaluator_fail "$disk$dir is a link"
    rm -rf "$disk$dir" || evaluator_fail "$disk$dir cannot be removed"
  done
  free=$(df -P -k "$disk" | awk 'NR == 2 { print $4 }') || evaluator_fail "$disk: its free space is unknown"
  fallocate -l "$((free / 20 * 19))K" "$image" || evaluator_fail "$disk has no room for the engine's state"
  # /dev/random waits until the kernel's generator is seeded; the key passes a pipe and is stored nowhere.
  head -c 64 /dev/random |
    cryptsetup open --batch-mode --type plain --cipher aes-xts-plain64 --key-size 512 --key-file - \
      "$image" evaluator-state || evaluator_fail "dm-crypt refuses $image"
  rm "$image" || evaluator_fail "$image cannot be removed"
  mkfs.ext4 -q /dev/mapper/evaluator-state || evaluator_fail "no file system for the engine's state"
  mkdir -p /run/evaluator-state || evaluator_fail "/run is read-only"
  mount -t ext4 /dev/mapper/evaluator-state /run/evaluator-state || evaluator_fail "the engine's state cannot be mounted"
  for dir in /var/lib/docker /var/lib/containerd; do
    own=/run/evaluator-state/${dir##*/}
    mkdir -p "$dir" && mkdir -m 711 "$own" || evaluator_fail "$own cannot be made"
    mount --bind "$own" "$dir" || evaluator_fail "$dir cannot be mounted"
    grep -q "^/dev/mapper/evaluator-state $dir ext4 " /proc/mounts || evaluator_fail "$dir is not on the new state"
  done
  umount /run/evaluator-state || evaluator_fail "/run/evaluator-state stays mounted"
}

evaluator_init() {
  PATH=/usr/sbin:/usr/bin:/sbin:/bin
  umask 077
  evaluator_check_env /dstack/.host-shared/.decrypted-env
  evaluator_check_quiet
  evaluator_drop iptables
  [ ! -e /proc/net/if_inet6 ] || evaluator_drop ip6tables
  evaluator_fresh_state /dstack/persistent
  echo "init-script: variables checked, containers kept from the VM, engine state fresh" >&2
}

# A subshell: nothing of this stays in the boot's own shell.
(evaluator_init) || exit 1
unset -f evaluator_fail evaluator_check_env evaluator_check_quiet evaluator_drop evaluator_fresh_state evaluator_init
