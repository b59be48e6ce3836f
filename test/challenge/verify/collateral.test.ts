import { beforeAll, describe, expect, it } from 'vitest';
import { type Identity, issueCertificate, issueCrl, pemChain } from '../../../simulator/certificates.ts';
import { type Collateral, signDocument } from '../../../simulator/collateral.ts';
import type { Platform } from '../../../simulator/platform.ts';
import { deriveKey } from '../../../simulator/seed.ts';
import { evidenceOf, outcomeOf, REPORT_DATA, withQeIdentity, withTcbInfo } from '../../support/evidence.ts';
import { NOW_MS, testPlatform } from '../../support/valid-result.ts';

const DAY_MS = 86_400_000;
const at = (days: number) => new Date(NOW_MS + days * DAY_MS);
const TCB_SIGNING = 'CN=Intel SGX TCB Signing, O=Intel Corporation, L=Santa Clara, ST=CA, C=US';
const PLATFORM_CA = 'CN=Intel SGX PCK Platform CA, O=Intel Corporation, L=Santa Clara, ST=CA, C=US';

let platform: Platform;
beforeAll(async () => {
  platform = await testPlatform();
});
const given = (change: Partial<Record<keyof Collateral | string, unknown>>) =>
  outcomeOf(evidenceOf(platform, { collateral: { ...platform.collateral, ...change } }));

type Request = Parameters<typeof issueCertificate>[0];
function certificate(
  request: Partial<Request> & Pick<Request, 'subject' | 'issuer' | 'role'>,
): Promise<Identity> {
  return issueCertificate({
    key: deriveKey(platform.seed, 'forged'),
    serial: '1faa',
    notBefore: at(-1),
    notAfter: at(100),
    extensions: [],
    ...request,
  });
}

/** Collateral whose TCB info and QE identity are signed by `signer`, under the chain given. */
function signedBy(signer: Identity, ...above: Identity[]): Partial<Collateral> {
  const { tcb_info, qe_identity } = platform.collateral;
  const chain = pemChain(signer, ...above);
  return {
    tcb_info_issuer_chain: chain,
    tcb_info_signature: signDocument({ tcbSigning: signer }, tcb_info),
    qe_identity_issuer_chain: chain,
    qe_identity_signature: signDocument({ tcbSigning: signer }, qe_identity),
  };
}

describe('CRLs', () => {
  const crls = ['root_ca_crl', 'pck_crl'] as const;
  const issuerOf = (name: (typeof crls)[number]) =>
    name === 'root_ca_crl' ? platform.pki.root : platform.pki.platformCa;
  const crl = async (issuer: Identity, from: number, to: number, revoked: string[] = []) =>
    (await issueCrl({ issuer, thisUpdate: at(from), nextUpdate: at(to), revoked })).toString('hex');

  it.each(crls)('%s: garbage', async (name) => {
    const whole = platform.collateral[name];
    // A date in place of its issuer's name is found only when the name is looked at.
    const misnamed = whole.replace(/550403(?:0c|13)/, '55040317');
    expect(misnamed).not.toBe(whole);
    for (const garbage of ['00', '3000', whole.slice(0, -2), 'ff'.repeat(100), misnamed]) {
      expect(await given({ [name]: garbage })).toBe('quote_chain: crl_malformed');
    }
    expect(await given({ [name]: '' })).toBe('quote_chain: collateral_malformed');
  });
  it.each(crls)('%s: expired, or not yet issued', async (name) => {
    expect(await given({ [name]: await crl(issuerOf(name), -40, -10) })).toBe('quote_chain: crl_expired');
    expect(await given({ [name]: await crl(issuerOf(name), 1, 10) })).toBe('quote_chain: crl_not_yet_valid');
  });
  it.each(crls)('%s: of another issuer', async (name) => {
    const foreign = 'quote_chain: collateral_untrusted';
    expect(await given({ [name]: await crl(platform.pki.processorCa, -1, 10) })).toBe(foreign);
    const misnamed = { key: issuerOf(name).key, certificate: platform.pki.processorCa.certificate };
    expect(await given({ [name]: await crl(misnamed, -1, 10) })).toBe(foreign);
    const namesake = await certificate({
      subject: issuerOf(name).certificate.subject,
      issuer: 'self',
      role: { ca: true, pathLength: 1 },
    });
    expect(await given({ [name]: await crl(namesake, -1, 10) })).toBe(foreign);
  });
  it.each(crls)('%s: with one byte changed', async (name) => {
    const bytes = Buffer.from(platform.collateral[name], 'hex');
    for (const offset of [40, bytes.length - 1]) {
      const changed = Buffer.from(bytes);
      changed[offset] = (changed[offset] ?? 0) ^ 1;
      expect(await given({ [name]: changed.toString('hex') })).toMatch(
        /^quote_chain: (?:crl_|collateral_untrusted)/,
      );
    }
  });
  it('a revoked PCK certificate, CA, TCB signer', async () => {
    const { pki } = platform;
    const revoked = 'quote_chain: certificate_revoked';
    expect(
      await given({ pck_crl: await crl(pki.platformCa, -1, 10, [pki.pck.certificate.serialNumber]) }),
    ).toBe(revoked);
    for (const { certificate: victim } of [pki.platformCa, pki.root]) {
      expect(await given({ root_ca_crl: await crl(pki.root, -1, 10, [victim.serialNumber]) })).toBe(revoked);
    }
    const signer = pki.tcbSigning.certificate.serialNumber;
    expect(await given({ root_ca_crl: await crl(pki.root, -1, 10, [signer]) })).toBe(
      'quote_chain: collateral_untrusted',
    );
    expect(await outcomeOf(evidenceOf(await testPlatform({ faults: [{ name: 'pck-revoked' }] })))).toBe(
      revoked,
    );
  });
  it('for the other PCK CA', async () => {
    const { pki } = platform;
    const change = {
      pck_crl: pki.processorCrl.toString('hex'),
      pck_crl_issuer_chain: pemChain(pki.processorCa, pki.root),
    };
    expect(await given(change)).toBe('quote_chain: crl_foreign');
    const { pck_crl_issuer_chain } = change;
    expect(await given({ pck_crl_issuer_chain })).toBe('quote_chain: crl_foreign');
  });
});

describe('who signed the TCB info', () => {
  it('another certificate under the same root', async () => {
    const other = await certificate({
      subject: TCB_SIGNING.replace('TCB Signing', 'Something Else'),
      issuer: platform.pki.root,
      role: { ca: false },
    });
    expect(await given(signedBy(other, platform.pki.root))).toBe('quote_chain: collateral_untrusted');
  });
  it("the platform's own PCK certificate", async () => {
    const { pck, platformCa, root } = platform.pki;
    expect(await given(signedBy(pck, platformCa, root))).toBe('quote_chain: collateral_untrusted');
  });
  it('a namesake under a root of its own, or under a PCK CA', async () => {
    const { pki } = platform;
    const root = await certificate({ subject: 'CN=Root', issuer: 'self', role: { ca: true, pathLength: 1 } });
    const signer = await certificate({ subject: TCB_SIGNING, issuer: root, role: { ca: false } });
    expect(await given(signedBy(signer, root))).toBe('quote_chain: collateral_untrusted');
    expect(await given(signedBy(signer, pki.root))).toBe('quote_chain: collateral_untrusted');
    const below = await certificate({ subject: TCB_SIGNING, issuer: pki.platformCa, role: { ca: false } });
    expect(await given(signedBy(below, pki.root))).toBe('quote_chain: collateral_untrusted');
  });
  it('nobody: a signature of other bytes', async () => {
    const { tcb_info_signature, qe_identity_signature } = platform.collateral;
    const code = 'quote_chain: collateral_signature_invalid';
    expect(await given({ tcb_info_signature: qe_identity_signature })).toBe(code);
    expect(await given({ qe_identity_signature: tcb_info_signature })).toBe(code);
    expect(await given({ tcb_info: platform.collateral.tcb_info.replace('UpToDate', 'OutOfDate') })).toBe(
      code,
    );
  });
  it('an expired signer', async () => {
    const late = await certificate({
      subject: TCB_SIGNING,
      issuer: platform.pki.root,
      role: { ca: false },
      notBefore: at(-100),
      notAfter: at(-1),
    });
    expect(await given(signedBy(late, platform.pki.root))).toBe('quote_chain: collateral_untrusted');
  });
});

it('an intermediate that is no CA', async () => {
  const { pki } = platform;
  const fake = await certificate({
    subject: PLATFORM_CA,
    issuer: pki.root,
    key: pki.platformCa.key,
    role: { ca: false },
  });
  const quote = platform.quote(REPORT_DATA, { version: 4 });
  // The chain lies at the end; the lengths before it are of 4 bytes each.
  const oldChain = Buffer.from(pemChain(pki.pck, pki.platformCa, pki.root));
  const newChain = Buffer.from(pemChain(pki.pck, fake, pki.root));
  const grown = newChain.length - oldChain.length;
  const head = Buffer.from(quote.subarray(0, quote.length - oldChain.length));
  for (const offset of [632, 766, head.length - 4]) {
    head.writeUInt32LE(head.readUInt32LE(offset) + grown, offset);
  }
  const quoteBytes = Buffer.concat([head, newChain]);
  expect(await outcomeOf(evidenceOf(platform, { quoteBytes }))).toBe('quote_chain: certificate_not_ca');
});

describe('what the documents say', () => {
  const outcome = (collateral: Collateral) => outcomeOf(evidenceOf(platform, { collateral }));
  it('expired', async () => {
    const expired = await testPlatform({ faults: [{ name: 'tcb-expired' }] });
    expect(await outcomeOf(evidenceOf(expired))).toBe('quote_chain: collateral_expired');
  });
  it.each(['issueDate', 'nextUpdate'])('an unreadable %s never means "not expired"', async (field) => {
    for (const value of ['never', '', null, 5]) {
      const edit = (document: Record<string, unknown>) => {
        document[field] = value;
      };
      expect(await outcome(withTcbInfo(platform, edit))).toBe('quote_chain: collateral_malformed');
      expect(await outcome(withQeIdentity(platform, edit))).toBe('quote_chain: collateral_malformed');
    }
  });
  it('another platform type', async () => {
    const collateral = withTcbInfo(platform, (info) => {
      info.fmspc = '000000000000';
    });
    expect(await outcome(collateral)).toBe('quote_chain: tcb_fmspc_mismatch');
  });
  it('another PCE', async () => {
    const collateral = withTcbInfo(platform, (info) => {
      info.pceId = '0001';
    });
    expect(await outcome(collateral)).toBe('quote_chain: tcb_fmspc_mismatch');
  });
  it('a revoked TCB level', async () => {
    const collateral = withTcbInfo(platform, (info) => {
      for (const level of info.tcbLevels as { tcbStatus: string }[]) level.tcbStatus = 'Revoked';
    });
    expect(await outcome(collateral)).toBe('quote_chain: tcb_revoked');
  });
  it('no level that the platform reaches', async () => {
    const collateral = withTcbInfo(platform, (info) => {
      for (const level of info.tcbLevels as { tcb: { pcesvn: number } }[]) level.tcb.pcesvn = 999;
    });
    expect(await outcome(collateral)).toBe('quote_chain: tcb_level_unmatched');
  });
  it('for SGX', async () => {
    const sgx = withTcbInfo(platform, (info) => {
      info.id = 'SGX';
    });
    expect(await outcome(sgx)).toBe('quote_chain: collateral_malformed');
    const qe = withQeIdentity(platform, (identity) => {
      identity.id = 'QE';
    });
    expect(await outcome(qe)).toBe('quote_chain: collateral_malformed');
  });
  it('another quoting enclave', async () => {
    const collateral = withQeIdentity(platform, (identity) => {
      identity.mrsigner = '00'.repeat(32);
    });
    expect(await outcome(collateral)).toBe('quote_chain: qe_identity_mismatch');
  });
});

describe('what they say of the TDX module, which the library does not read', () => {
  type Identity = {
    id: string;
    mrsigner: string;
    tcbLevels: { tcb: { isvsvn: number }; tcbStatus: string }[];
  };
  const withModule = (edit: (identity: Identity, level: Identity['tcbLevels'][number]) => void) =>
    withTcbInfo(platform, ({ tdxModuleIdentities }) => {
      const [identity] = tdxModuleIdentities as Identity[];
      if (identity?.tcbLevels[0]) edit(identity, identity.tcbLevels[0]);
    });
  const outcome = (collateral: Collateral, accepted: readonly string[] = ['UpToDate']) =>
    outcomeOf(evidenceOf(platform, { collateral, acceptedTcb: new Set(accepted) }));

  it('outdated: the platform is, too', async () => {
    const outdated = withModule((_, level) => {
      level.tcbStatus = 'OutOfDate';
    });
    expect(await outcome(outdated)).toBe('tcb_status: tcb_status_refused');
    expect(await outcome(outdated, ['OutOfDate'])).toBe('verified');
  });
  it('outdated, by its SVN', async () => {
    const older = withModule((identity, level) => {
      identity.tcbLevels.unshift({ ...level, tcb: { isvsvn: level.tcb.isvsvn + 1 } });
      level.tcbStatus = 'OutOfDate';
    });
    expect(await outcome(older)).toBe('tcb_status: tcb_status_refused');
    const below = withModule((_, level) => {
      level.tcb.isvsvn += 1;
    });
    expect(await outcome(below)).toBe('quote_chain: tcb_level_unmatched');
  });
  it('revoked, or of a status that nobody knows', async () => {
    for (const status of ['Revoked', 'Perfect']) {
      const revoked = withModule((_, level) => {
        level.tcbStatus = status;
      });
      expect(await outcome(revoked, ['UpToDate', 'Revoked'])).toBe('quote_chain: tcb_revoked');
    }
  });
  it('nothing of its version, or of another signer', async () => {
    const otherVersion = withModule((identity) => {
      identity.id = 'TDX_03';
    });
    expect(await outcome(otherVersion)).toBe('quote_chain: tcb_level_unmatched');
    const none = withTcbInfo(platform, (info) => {
      info.tdxModuleIdentities = undefined;
    });
    expect(await outcome(none)).toBe('quote_chain: tcb_level_unmatched');
    const otherSigner = withModule((identity) => {
      identity.mrsigner = '01'.repeat(48);
    });
    expect(await outcome(otherSigner)).toBe('quote_chain: seam_signer_invalid');
  });
});

describe('its shape', () => {
  it('is closed: no PCK chain beside the one in the quote', async () => {
    const chain = pemChain(platform.pki.pck, platform.pki.platformCa, platform.pki.root);
    expect(await given({ pck_certificate_chain: chain })).toBe('quote_chain: collateral_malformed');
  });
  it('is whole and bounded', async () => {
    for (const field of Object.keys(platform.collateral)) {
      expect(await given({ [field]: undefined })).toBe('quote_chain: collateral_malformed');
      expect(await given({ [field]: 'a'.repeat(5_000_001) })).toBe('quote_chain: collateral_malformed');
    }
  });
  it('has chains of exactly the certificates there should be', async () => {
    const { tcb_info_issuer_chain: chain } = platform.collateral;
    for (const text of [
      '',
      chain + chain,
      `${chain} `,
      `x${chain}`,
      chain.trimEnd(),
      chain.replace('MII', 'MI\nI'),
      chain.replaceAll('\n', '\r\n'),
    ]) {
      expect(await given({ tcb_info_issuer_chain: text })).toBe('quote_chain: collateral_untrusted');
    }
  });
});
