# Before the containers: an OS image that never ran the init script (before dstack 0.5.5) stops here.
for dir in /var/lib/docker /var/lib/containerd; do
  if ! grep -q "^/dev/mapper/evaluator-state $dir ext4 " /proc/mounts; then
    echo "pre-launch: $dir is not this boot's own; nothing is started" >&2
    exit 1
  fi
done
