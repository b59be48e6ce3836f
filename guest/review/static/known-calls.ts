import { fromBase32, fromBase64, fromHex, inflate, rot13 } from './decode.ts';
import { concat, listValue, mapTexts, numberValue, oneOf, textValue, UNKNOWN, type Value } from './value.ts';

interface Call {
  /** Dotted, as far as it is known; the last part is the method. */
  callee: string;
  receiver: Value;
  args: readonly Value[];
}

type Known = (call: Call) => Value;

const first = ({ args }: Call): Value => args[0] ?? UNKNOWN;
const decode =
  (how: (text: string) => string | null): Known =>
  (call) => {
    const encoded = first(call);
    return { ...mapTexts(encoded, how), decoded: encoded.decoded || encoded.texts.length > 0 };
  };
const onReceiver =
  (edit: (text: string) => string | null): Known =>
  (call) =>
    mapTexts(call.receiver, edit);

function fromCodes(codes: readonly Value[]): Value {
  const numbers = codes.map(({ number }) => number);
  if (numbers.length === 0 || numbers.length > 65_536 || numbers.some((one) => one === null)) return UNKNOWN;
  const text = numbers.map((one) => String.fromCodePoint(Math.min(Math.max(one ?? 0, 0), 0x10ffff))).join('');
  return { ...textValue(text), decoded: true };
}

function joined(separator: Value, items: Value): Value {
  return items.items === null ? UNKNOWN : concat(items.items, separator.texts[0] ?? '');
}

const byEncoding: Known = (call) => {
  const encoding = call.args[1]?.texts[0]?.toLowerCase().replaceAll(/[-_]/g, '') ?? '';
  if (/^base64(?:codec|url)?$/.test(encoding)) return decode(fromBase64)(call);
  if (/^(?:hex|hexcodec)$/.test(encoding)) return decode(fromHex)(call);
  if (encoding === 'rot13') return decode(rot13)(call);
  if (/^(?:zlib|zip)/.test(encoding)) return decode(inflate)(call);
  return first(call);
};

const receiverByEncoding: Known = ({ callee, receiver, args }) =>
  byEncoding({ callee, receiver: UNKNOWN, args: [receiver, ...args] });

const pathJoin: Known = ({ args }) =>
  args.reduce((base, part) => {
    if (part.texts[0]?.startsWith('/') || base.texts.length === 0) return part;
    return concat([base, part], base.texts[0]?.endsWith('/') ? '' : '/');
  }, UNKNOWN);

const stringOf: Known = (call) => {
  const value = first(call);
  return value.number === null ? value : { ...value, texts: [String(value.number)], number: null };
};

/** By the whole name. */
const BY_NAME: Readonly<Record<string, Known>> = {
  'base64.b64decode': decode(fromBase64),
  'base64.standard_b64decode': decode(fromBase64),
  'base64.urlsafe_b64decode': decode(fromBase64),
  'base64.decodebytes': decode(fromBase64),
  'base64.decodestring': decode(fromBase64),
  'base64.b32decode': decode(fromBase32),
  'base64.b16decode': decode(fromHex),
  'binascii.a2b_base64': decode(fromBase64),
  'binascii.unhexlify': decode(fromHex),
  'binascii.a2b_hex': decode(fromHex),
  'bytes.fromhex': decode(fromHex),
  'bytearray.fromhex': decode(fromHex),
  'zlib.decompress': decode(inflate),
  'gzip.decompress': decode(inflate),
  'zlib.inflateSync': decode(inflate),
  'zlib.inflateRawSync': decode(inflate),
  'zlib.gunzipSync': decode(inflate),
  'zlib.unzipSync': decode(inflate),
  atob: decode(fromBase64),
  decodeURIComponent: decode((text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return null;
    }
  }),
  unescape: decode((text) => unescape(text)),
  'codecs.decode': byEncoding,
  'Buffer.from': byEncoding,
  'String.fromCharCode': ({ args }) => fromCodes(args),
  'String.fromCodePoint': ({ args }) => fromCodes(args),
  chr: (call) => fromCodes(call.args.slice(0, 1)),
  bytes: (call) => (first(call).items ? fromCodes(first(call).items ?? []) : first(call)),
  bytearray: (call) => (first(call).items ? fromCodes(first(call).items ?? []) : first(call)),
  str: stringOf,
  String: stringOf,
  int: (call) => {
    const base = call.args[1]?.number ?? 10;
    const number = Number.parseInt(first(call).texts[0] ?? '', base);
    return first(call).number !== null ? first(call) : Number.isNaN(number) ? UNKNOWN : numberValue(number);
  },
  ord: (call) => {
    const code = first(call).texts[0]?.codePointAt(0);
    return code === undefined ? UNKNOWN : numberValue(code);
  },
  list: (call) => characters(first(call)),
  tuple: first,
  reversed: (call) => reverse(first(call)),
  'os.path.join': pathJoin,
  'posixpath.join': pathJoin,
  'path.join': pathJoin,
  'path.resolve': pathJoin,
  'path.posix.join': pathJoin,
  'pathlib.Path': pathJoin,
  'pathlib.PurePath': pathJoin,
  'pathlib.PosixPath': pathJoin,
  Path: pathJoin,
  'os.path.expanduser': first,
  'os.path.abspath': first,
  'os.path.realpath': first,
  'os.path.normpath': first,
  'os.fspath': first,
  compile: first,
};

const DOWNLOADS = new Set([
  'requests.get',
  'requests.post',
  'requests.request',
  'httpx.get',
  'httpx.post',
  'urllib.request.urlopen',
  'urlopen',
  'urllib2.urlopen',
  'fetch',
  'axios',
  'axios.get',
  'got',
]);

function characters(value: Value): Value {
  if (value.items !== null) return value;
  const [text] = value.texts;
  return text === undefined ? UNKNOWN : listValue([...text.slice(0, 65_536)].map(textValue));
}

function reverse(value: Value): Value {
  if (value.items !== null) return { ...value, items: value.items.toReversed() };
  return mapTexts(value, (text) => [...text].reverse().join(''));
}

const replaceAll: Known = ({ receiver, args }) => {
  const [from, to] = [args[0]?.texts[0], args[1]?.texts[0]];
  if (from === undefined || to === undefined || from === '') return UNKNOWN;
  // A part at a time, so that nothing grows beyond what a value may hold.
  return oneOf(receiver.texts.map((text) => concat(text.split(from).map(textValue), to)));
};

const formatted: Known = ({ receiver, args }) => {
  const [template] = receiver.texts;
  if (template === undefined) return UNKNOWN;
  let next = 0;
  const parts = template.split(/(\{\w*\})/).map((part) => {
    if (!/^\{\w*\}$/.test(part)) return textValue(part);
    const index = /\d/.test(part) ? Number(part.slice(1, -1)) : next++;
    return args[index] ?? UNKNOWN;
  });
  return concat(parts);
};

/** By the method's name, whatever it is called on. */
const BY_METHOD: Readonly<Record<string, Known>> = {
  // ''.join(list) and list.join('')
  join: ({ receiver, args }) =>
    receiver.items ? joined(args[0] ?? textValue(','), receiver) : joined(receiver, args[0] ?? UNKNOWN),
  decode: receiverByEncoding,
  encode: ({ receiver }) => receiver,
  toString: ({ receiver }: Call) => receiver,
  strip: onReceiver((text) => text.trim()),
  trim: onReceiver((text) => text.trim()),
  lower: onReceiver((text) => text.toLowerCase()),
  toLowerCase: onReceiver((text) => text.toLowerCase()),
  upper: onReceiver((text) => text.toUpperCase()),
  toUpperCase: onReceiver((text) => text.toUpperCase()),
  replace: replaceAll,
  replaceAll,
  format: formatted,
  concat: ({ receiver, args }) => concat([receiver, ...args]),
  split: ({ receiver, args }) => {
    const [text] = receiver.texts;
    const separator = args[0]?.texts[0];
    if (text === undefined) return UNKNOWN;
    const parts = separator === undefined ? text.trim().split(/\s+/) : text.split(separator);
    return listValue(parts.slice(0, 65_536).map(textValue));
  },
  reverse: ({ receiver }) => reverse(receiver),
  toReversed: ({ receiver }) => reverse(receiver),
  joinpath: ({ callee, receiver, args }) =>
    pathJoin({ callee, receiver: UNKNOWN, args: [receiver, ...args] }),
  resolve: ({ receiver }) => receiver,
  expanduser: ({ receiver }) => receiver,
  absolute: ({ receiver }) => receiver,
  as_posix: ({ receiver }) => receiver,
  read: ({ receiver }) => ({ ...UNKNOWN, downloaded: receiver.downloaded }),
  json: ({ receiver }) => ({ ...UNKNOWN, downloaded: receiver.downloaded }),
  text: ({ receiver }) => ({ ...UNKNOWN, downloaded: receiver.downloaded }),
};

/** What a call gives, for the calls that only make text of text. */
export function resultOf(call: Call): Value {
  if (DOWNLOADS.has(call.callee)) return { ...UNKNOWN, downloaded: true };
  const known = Object.hasOwn(BY_NAME, call.callee) ? BY_NAME[call.callee] : undefined;
  if (known) return known(call);
  const method = call.callee.slice(call.callee.lastIndexOf('.') + 1);
  const isMethod = call.callee.includes('.') && Object.hasOwn(BY_METHOD, method);
  return (isMethod ? BY_METHOD[method]?.(call) : undefined) ?? UNKNOWN;
}
