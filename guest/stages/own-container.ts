/** One line: id, parent, device, root, mount point, … (proc(5), mountinfo). */
const OWN_HOSTNAME = /^\d+ \d+ \S+ \S*\/containers\/([0-9a-f]{64})\/hostname \/etc\/hostname /m;

/**
 * The container that a process runs in, by its mountinfo; null outside of one. Docker mounts /etc/hostname from
 * the container's own folder: the only name of itself that a guest has. On the machine itself such files of
 * other containers are mounted too, elsewhere, while the engine copies from them.
 */
export function containerOf(mountinfo: string): string | null {
  return OWN_HOSTNAME.exec(mountinfo)?.[1] ?? null;
}
