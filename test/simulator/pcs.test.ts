import { getCollateral, QuoteVerifier } from '@phala/dcap-qvl';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPcs } from '../../simulator/pcs.ts';
import type { Platform } from '../../simulator/platform.ts';
import { machine, NOW_SECONDS } from './machine.ts';

describe('the provisioning certification service', () => {
  let platform: Platform;
  let pcs: Awaited<ReturnType<typeof startPcs>>;
  beforeAll(async () => {
    platform = await machine();
    pcs = await startPcs({ platform, port: 0 });
  });
  afterAll(() => pcs.close());

  const get = async (path: string) => {
    const response = await fetch(`${pcs.url}${path}`);
    const chain = (header: string) => decodeURIComponent(response.headers.get(header) ?? '');
    return { status: response.status, chain, bytes: Buffer.from(await response.arrayBuffer()) };
  };

  it('serves collateral that dcap-qvl fetches and verifies with', async () => {
    const quote = platform.quote(Buffer.alloc(64, 1), { version: 4 });
    const collateral = await getCollateral(pcs.url, quote);
    expect(collateral.tcb_info).toBe(platform.collateral.tcb_info);
    expect(collateral.qe_identity).toBe(platform.collateral.qe_identity);
    expect(new QuoteVerifier(platform.rootDer).verify(quote, collateral, NOW_SECONDS).status).toBe(
      'UpToDate',
    );
  });

  it('serves the CRL of each PCK CA with its own chain, as DER and as PEM', async () => {
    const { pki, collateral } = platform;
    const der = await get('/sgx/certification/v4/pckcrl?ca=platform&encoding=der');
    expect(der.bytes).toEqual(pki.platformCrl);
    expect(der.chain('SGX-PCK-CRL-Issuer-Chain')).toBe(collateral.pck_crl_issuer_chain);
    const pem = await get('/sgx/certification/v4/pckcrl?ca=platform');
    const body = pem.bytes.toString().replace(/-----[^-]+-----|\n/g, '');
    expect(Buffer.from(body, 'base64')).toEqual(pki.platformCrl);
    const other = await get('/sgx/certification/v4/pckcrl?ca=processor&encoding=der');
    expect(other.bytes).toEqual(pki.processorCrl);
  });

  it('serves the root CRL in hex to caching clients and as DER where the root says', async () => {
    const { pki } = platform;
    const hex = (await get('/sgx/certification/v4/rootcacrl')).bytes.toString();
    expect(hex).toBe(pki.rootCrl.toString('hex'));
    expect((await get('/IntelSGXRootCA.der')).bytes).toEqual(pki.rootCrl);
  });

  it('serves TCB info and QE identity byte for byte with their chains', async () => {
    const { collateral } = platform;
    const fmspc = JSON.parse(collateral.tcb_info).fmspc as string;
    const tcb = await get(`/tdx/certification/v4/tcb?fmspc=${fmspc}`);
    expect(tcb.bytes.toString()).toContain(`"tcbInfo":${collateral.tcb_info}`);
    expect(tcb.chain('TCB-Info-Issuer-Chain')).toBe(collateral.tcb_info_issuer_chain);
    const identity = await get('/tdx/certification/v4/qe/identity');
    expect(identity.bytes.toString()).toContain(`"enclaveIdentity":${collateral.qe_identity}`);
    expect(identity.chain('SGX-Enclave-Identity-Issuer-Chain')).toBe(collateral.qe_identity_issuer_chain);
  });

  it.each([
    '/',
    '/sgx/certification/v4/pckcrl',
    '/sgx/certification/v4/pckcrl?ca=other',
    '/tdx/certification/v4/tcb?fmspc=000000000000',
    '/tdx/certification/v4/tcb',
  ])('answers 404 to %s', async (path) => {
    expect((await get(path)).status).toBe(404);
  });

  it('refuses a port that is taken', async () => {
    const taken = startPcs({ platform, port: Number(new URL(pcs.url).port) });
    await expect(taken).rejects.toMatchObject({ code: 'usage' });
  });
});
