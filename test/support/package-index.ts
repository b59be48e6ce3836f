import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { sha256Hex } from '../../guest/wire/digest.ts';
import type { PackageIndex } from '../../guest/wire/package-index.ts';
import { serverIdentity } from './key-server.ts';
import { type RawEntry, rawZip } from './raw-zip.ts';

/** A wheel of these files, with the one that says that it is a wheel. */
export function wheel(
  name: string,
  version: string,
  files: Readonly<Record<string, string>>,
  more: RawEntry[] = [],
): Buffer {
  const info = `${name}-${version}.dist-info`;
  const text = { ...files, [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\n' };
  return rawZip([
    ...Object.entries(text).map(
      ([path, data]): RawEntry => ({ name: path, data: Buffer.from(data), method: 8 }),
    ),
    ...more,
  ]);
}

/** A file as an index lists it; `bytes` are what is sent for it. */
export interface IndexedFile {
  filename: string;
  bytes: Buffer;
  /** By default the bytes' own. */
  sha256?: string;
  yanked?: boolean | string;
  /** In place of the double's own. */
  url?: string;
}

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body: Buffer | string;
}

export interface IndexDouble {
  /** The mechanism's section that names it. */
  section: PackageIndex;
  requests: { path: string; accept: string; authorization: string | undefined }[];
  /** In place of what would be answered at this path. */
  answers: Map<string, Answer>;
}

/** `NAME==VERSION` with the hash of this file. */
export const pin = (name: string, version: string, ...files: Buffer[]) =>
  `${[`${name}==${version}`, ...files.map((bytes) => `--hash=sha256:${sha256Hex(bytes)}`)].join(' ')}\n`;

/** A simple index with JSON pages (PEP 691) on loopback; gone when the test is. */
export async function startIndexDouble(
  projects: Readonly<Record<string, readonly IndexedFile[]>>,
  names = Object.keys(projects),
): Promise<IndexDouble> {
  const requests: IndexDouble['requests'] = [];
  const answers: IndexDouble['answers'] = new Map();
  for (const [name, files] of Object.entries(projects)) {
    const listed = files.map(({ filename, bytes, sha256, yanked, url }) => ({
      filename,
      url: url ?? `../../files/${filename}#sha256=x`,
      hashes: { sha256: sha256 ?? sha256Hex(bytes) },
      yanked: yanked ?? false,
      'requires-python': '>=3.8',
      size: bytes.length,
    }));
    const page = { meta: { 'api-version': '1.1' }, name, versions: [], files: listed };
    answers.set(`/simple/${name}/`, {
      status: 200,
      headers: { 'content-type': 'application/vnd.pypi.simple.v1+json' },
      body: JSON.stringify(page),
    });
    for (const { filename, bytes } of files) answers.set(`/files/${filename}`, { status: 200, body: bytes });
  }
  const identity = await serverIdentity('127.0.0.1');
  const server = createServer(
    { cert: identity.certificatePem, key: identity.keyPem },
    (request, response) => {
      const path = request.url ?? '';
      requests.push({
        path,
        accept: request.headers.accept ?? '',
        authorization: request.headers.authorization,
      });
      const { status, headers, body } = answers.get(path) ?? { status: 404, body: 'no' };
      response.writeHead(status, headers);
      response.end(body);
    },
  );
  server.on('tlsClientError', (_: unknown, socket: { destroy(): void }) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo;
  return {
    section: {
      index: `https://127.0.0.1:${port}/simple/`,
      ca_pem: identity.caPem,
      names,
      max_bytes: 1_000_000,
    },
    requests,
    answers,
  };
}
