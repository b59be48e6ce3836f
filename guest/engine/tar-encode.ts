const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
const EMPTY = Buffer.alloc(0);

/** What is written of one member. Times in whole seconds since 1970. */
export interface TarMember {
  /** As it stands in the archive; a directory's ends with a slash. */
  name: Buffer;
  type: '0' | '5';
  /** Permission bits. */
  mode: number;
  uid: number;
  gid: number;
  mtime: number;
  size: number;
}

/** The blocks before a member's content: a ustar header, after a PAX one where a field does not fit. */
export function encodeHeader(member: TarMember): Buffer {
  const split = splitName(member.name);
  const records: Buffer[] = [];
  if (split === null) records.push(paxRecord('path', member.name));
  const number = (key: 'size' | 'uid' | 'gid' | 'mtime', digits: number) => {
    if (member[key] < 8 ** digits) return member[key];
    records.push(paxRecord(key, Buffer.from(String(member[key]))));
    return 0;
  };
  const block = ustar(split ?? { prefix: EMPTY, name: member.name.subarray(0, NAME_BYTES) }, {
    ...member,
    size: number('size', 11),
    uid: number('uid', 7),
    gid: number('gid', 7),
    mtime: number('mtime', 11),
  });
  if (records.length === 0) return block;
  const pax = Buffer.concat(records);
  const extended = { type: 'x', mode: 0o644, uid: 0, gid: 0, mtime: 0, size: pax.length } as const;
  return Buffer.concat([
    ustar({ prefix: EMPTY, name: Buffer.from('pax-header') }, extended),
    pax,
    padding(pax.length),
    block,
  ]);
}

/** What fills up a member's last block. */
export function padding(size: number): Buffer {
  return Buffer.alloc(-size & (BLOCK_BYTES - 1));
}

/** What an archive ends with. */
export function endOfArchive(): Buffer {
  return Buffer.alloc(2 * BLOCK_BYTES);
}

type SplitName = { prefix: Buffer; name: Buffer };

/** Where ustar can cut the name, at a slash, into its two fields; null when it cannot. */
function splitName(name: Buffer): SplitName | null {
  if (name.length <= NAME_BYTES) return { prefix: EMPTY, name };
  for (let at = name.indexOf(0x2f); at > 0 && at <= PREFIX_BYTES; at = name.indexOf(0x2f, at + 1)) {
    const rest = name.subarray(at + 1);
    if (rest.length > 0 && rest.length <= NAME_BYTES) return { prefix: name.subarray(0, at), name: rest };
  }
  return null;
}

/** `LENGTH KEY=VALUE\n`, where the length counts its own digits. */
function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

type Fields = Omit<TarMember, 'name' | 'type'> & { type: '0' | '5' | 'x' };

function ustar({ prefix, name }: SplitName, { type, mode, uid, gid, mtime, size }: Fields): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  name.copy(block, 0);
  writeOctal(block, 100, 8, mode);
  writeOctal(block, 108, 8, uid);
  writeOctal(block, 116, 8, gid);
  writeOctal(block, 124, 12, size);
  writeOctal(block, 136, 12, mtime);
  block.fill(' ', 148, 156);
  block.write(type, 156);
  block.write('ustar\x0000', 257, 'latin1');
  prefix.copy(block, 345);
  writeOctal(
    block,
    148,
    7,
    block.reduce((sum, byte) => sum + byte, 0),
  );
  return block;
}

function writeOctal(block: Buffer, at: number, width: number, value: number): void {
  block.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
}
