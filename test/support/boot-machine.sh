# Boots nothing: gives one script the surroundings that dstack gives an init script, in namespaces of its own.
# usage: unshare --mount --net --pid --fork --kill-child sh boot-machine.sh WORK SHELL
# WORK has init-script, perhaps decrypted-env, and before and after, which run in the same machine.
set -eu
work=$1
shell=$2
mount --make-rprivate /
mkdir "$work/machine"
mount -t tmpfs tmpfs "$work/machine"
cd "$work/machine"
mkdir upper layer root
mount -t overlay overlay -o "lowerdir=/,upperdir=$PWD/upper,workdir=$PWD/layer" root
mount -t proc proc root/proc
for dir in dev run tmp; do mount -t tmpfs tmpfs "root/$dir"; done
cp -a /dev/null /dev/zero /dev/random /dev/urandom /dev/loop* root/dev/
mkdir -p root/dev/mapper
[ ! -e /dev/mapper/control ] || cp -a /dev/mapper/control root/dev/mapper/
mkdir -p root/dstack/.host-shared root/dstack/persistent root/var/lib/containerd root/var/lib/docker
# The data disk, and what an earlier boot has left on it, under the engine's folders as the OS binds them.
truncate -s 96M root/run/disk.img
mkfs.ext4 -q root/run/disk.img
mount -o loop root/run/disk.img root/dstack/persistent
for name in docker containerd; do
  mkdir -p "root/dstack/persistent/var/lib/$name"
  echo planted >"root/dstack/persistent/var/lib/$name/earlier"
  mount --bind "root/dstack/persistent/var/lib/$name" "root/var/lib/$name"
done
[ ! -f "$work/decrypted-env" ] || cp "$work/decrypted-env" root/dstack/.host-shared/.decrypted-env
cp "$work/init-script" "$work/before" "$work/after" root/dstack/
[ ! -f "$work/cryptsetup" ] || install -m 755 "$work/cryptsetup" root/usr/sbin/cryptsetup
ip link set lo up
status=0
# shellcheck disable=SC2016
chroot root "$shell" -c 'set -e; cd /dstack; . ./before; . ./init-script; echo booted; . ./after' || status=$?
# Mappings and loop devices are the kernel's, not the namespace's.
if [ ! -f "$work/cryptsetup" ] && [ -e root/dev/mapper/evaluator-state ]; then
  umount root/var/lib/docker root/var/lib/containerd || true
  chroot root cryptsetup close evaluator-state || true
fi
for device in root/run/loop-*; do
  [ ! -e "$device" ] || losetup -d "/dev/${device##*/loop-}" || true
done
exit "$status"
