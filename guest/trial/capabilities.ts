/** What apt, sshd, postgres, nginx and su work with; everything else is dropped (spec/03). */
export const BASE_CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'SETGID',
  'SETUID',
  'SETPCAP',
  'NET_BIND_SERVICE',
  'SYS_CHROOT',
] as const;

/**
 * What a task may name beyond the base. Never SYS_ADMIN, SYS_MODULE, SYS_PTRACE, SYS_RAWIO, NET_ADMIN, BPF
 * or DAC_READ_SEARCH: each of them reaches beyond the container.
 */
export const OPTIONAL_CAPABILITIES = [
  'NET_RAW',
  'SYS_NICE',
  'SYS_RESOURCE',
  'AUDIT_WRITE',
  'MKNOD',
  'SETFCAP',
] as const;
