import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EvaluatorError } from '../guest/errors.ts';
import { pemChain } from './certificates.ts';
import type { Platform } from './platform.ts';

interface Answer {
  type: string;
  body: Buffer | string;
  /** The header that carries the issuer chain, PEM, and the chain. */
  chain?: [header: string, pem: string];
}

/** Where the root certificate says that its CRL lies, as on Intel's certificate server. */
export const ROOT_CRL_PATH = '/IntelSGXRootCA.der';

function pemCrl(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN X509 CRL-----\n${lines.join('\n')}\n-----END X509 CRL-----\n`;
}

function pckCrl(platform: Platform, query: URLSearchParams): Answer | undefined {
  const { pki } = platform;
  const ca = query.get('ca');
  if (ca !== 'platform' && ca !== 'processor') return undefined;
  const [crl, issuer] =
    ca === 'platform' ? [pki.platformCrl, pki.platformCa] : [pki.processorCrl, pki.processorCa];
  const chain: Answer['chain'] = ['SGX-PCK-CRL-Issuer-Chain', pemChain(issuer, pki.root)];
  if (query.get('encoding') === 'der') return { type: 'application/pkix-crl', body: crl, chain };
  return { type: 'application/x-pem-file', body: pemCrl(crl), chain };
}

/** A signed document is passed on byte for byte: to parse and print it again could break its signature. */
function signed(member: string, document: string, signature: string): string {
  return `{"${member}":${document},"signature":"${signature}"}`;
}

function route(platform: Platform, url: URL): Answer | undefined {
  const { collateral, pki } = platform;
  switch (url.pathname) {
    case '/sgx/certification/v4/pckcrl':
      return pckCrl(platform, url.searchParams);
    case '/sgx/certification/v4/rootcacrl':
      // A caching service answers in hex; Intel has no such path.
      return { type: 'text/plain', body: pki.rootCrl.toString('hex') };
    case ROOT_CRL_PATH:
      return { type: 'application/pkix-crl', body: pki.rootCrl };
    case '/tdx/certification/v4/tcb':
      if (url.searchParams.get('fmspc')?.toUpperCase() !== JSON.parse(collateral.tcb_info).fmspc)
        return undefined;
      return {
        type: 'application/json',
        body: signed('tcbInfo', collateral.tcb_info, collateral.tcb_info_signature),
        chain: ['TCB-Info-Issuer-Chain', collateral.tcb_info_issuer_chain],
      };
    case '/tdx/certification/v4/qe/identity':
      return {
        type: 'application/json',
        body: signed('enclaveIdentity', collateral.qe_identity, collateral.qe_identity_signature),
        chain: ['SGX-Enclave-Identity-Issuer-Chain', collateral.qe_identity_issuer_chain],
      };
    default:
      return undefined;
  }
}

/**
 * Serves the platform's collateral on 127.0.0.1 at the paths of Intel's PCS v4.
 * @param options.port 0 takes any free port.
 * @throws usage when the port cannot be had.
 */
export async function startPcs(options: {
  platform: Platform;
  port: number;
}): Promise<{ url: string; close(): Promise<void> }> {
  const { platform, port } = options;
  const server = createServer((request, response) => {
    const url = URL.parse(request.url ?? '', 'http://127.0.0.1');
    const answer = request.method === 'GET' && url ? route(platform, url) : undefined;
    if (!answer) {
      response.writeHead(404, { 'Content-Length': 0 }).end();
      return;
    }
    const bytes = Buffer.from(answer.body as Buffer);
    const [header, pem] = answer.chain ?? [];
    response.writeHead(200, {
      'Content-Type': answer.type,
      'Content-Length': bytes.length,
      ...(header && pem ? { [header]: encodeURIComponent(pem) } : {}),
    });
    response.end(bytes);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        new EvaluatorError('usage', `port ${port}: cannot listen on 127.0.0.1 (${cause.code})`, { cause }),
      ),
    );
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
