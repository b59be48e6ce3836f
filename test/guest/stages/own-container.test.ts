import { expect, it } from 'vitest';
import { containerOf } from '../../../guest/stages/own-container.ts';

const ID = 'b45c2deb4d6d5c8394df1ae8ce8d5348b08996dae5183758e9fc20a3452cda80';
const line = (root: string, at: string) =>
  `163 155 254:0 ${root} ${at} ro,relatime - ext4 /dev/vda rw,discard\n`;
const file = `/var/lib/docker/containers/${ID}/hostname`;
const other = line('/sysroot', '/');

it('names the container whose hostname is mounted over its own', () => {
  expect(containerOf(`${other}${line(file, '/etc/hostname')}${other}`)).toBe(ID);
});

it.each([
  ['nothing of a container is mounted', other],
  [
    'the engine copies from one on this machine',
    line(file, '/var/lib/docker/overlay2/ab/merged/etc/hostname'),
  ],
  ['the whole machine is mounted below another place', line(file, '/host/etc/hostname')],
  ['another file has its place', line('/run/hostname', '/etc/hostname')],
  ['there is no id', line('/var/lib/docker/containers/b45c/hostname', '/etc/hostname')],
  ['mountinfo is empty', ''],
])('names none where %s', (_, mountinfo) => {
  expect(containerOf(mountinfo)).toBe(null);
});
