import { z } from 'zod';
import { EvaluatorError } from '../../guest/errors.ts';

const chain = z.string().max(32 * 1024);
const crl = z
  .string()
  .max(4 * 1024 * 1024)
  .regex(/^(?:[0-9a-fA-F]{2})+$/, 'must be a DER CRL in hex');
const signature = z.string().regex(/^[0-9a-fA-F]{128}$/, 'must be r and s in hex, 64 bytes');

/**
 * What Intel publishes for one platform type, in dcap-qvl's shape. A PCK chain beside it is refused: it
 * would take the place of the one in the quote.
 */
export const collateralSchema = z.strictObject({
  pck_crl_issuer_chain: chain,
  root_ca_crl: crl,
  pck_crl: crl,
  tcb_info_issuer_chain: chain,
  tcb_info: z.string().max(512 * 1024),
  tcb_info_signature: signature,
  qe_identity_issuer_chain: chain,
  qe_identity: z.string().max(64 * 1024),
  qe_identity_signature: signature,
});
export type Collateral = z.infer<typeof collateralSchema>;

/** What our own checks read of the signed documents; the rest is the library's. */
const window = { issueDate: z.iso.datetime(), nextUpdate: z.iso.datetime() };
const hexOf = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-fA-F]{${2 * bytes}}$`));
const moduleIdentitySchema = z.looseObject({
  /** `TDX_`, and the module's version in two hex digits. */
  id: z.string().max(64),
  mrsigner: hexOf(48),
  attributes: hexOf(8),
  attributesMask: hexOf(8),
  /** The newest first. */
  tcbLevels: z
    .array(
      z.looseObject({
        tcb: z.looseObject({ isvsvn: z.int() }),
        tcbStatus: z.string(),
        advisoryIDs: z.array(z.string()).optional(),
      }),
    )
    .max(256),
});
const tcbInfoSchema = z.looseObject({
  id: z.literal('TDX'),
  version: z.literal(3),
  fmspc: hexOf(6),
  pceId: hexOf(2),
  tdxModuleIdentities: z.array(moduleIdentitySchema).max(256).optional(),
  tcbLevels: z.array(z.unknown()).min(1).max(256),
  ...window,
});
export type TcbInfo = z.infer<typeof tcbInfoSchema>;
const qeIdentitySchema = z.looseObject({
  id: z.literal('TD_QE'),
  tcbLevels: z.array(z.unknown()).min(1).max(256),
  ...window,
});

function malformed(problem: string): EvaluatorError {
  return new EvaluatorError('collateral_malformed', `collateral: ${problem}`);
}

function readSchema<T>(schema: z.ZodType<T>, value: unknown, document: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw malformed(
    `${[document, ...(issue?.path ?? [])].map(String).join('.')}: ${issue?.message ?? 'invalid'}`,
  );
}

function readJson(text: string, document: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new EvaluatorError('collateral_malformed', `collateral: ${document}: not JSON`, { cause });
  }
}

/** Reads collateral: closed shape, capped lengths. @throws collateral_malformed naming the field. */
export function parseCollateral(value: unknown): Collateral {
  return readSchema(collateralSchema, value, 'collateral');
}

/** What the collateral's TCB info says; nothing about its signature. @throws collateral_malformed. */
export function readTcbInfo(collateral: Collateral): TcbInfo {
  return readSchema(tcbInfoSchema, readJson(collateral.tcb_info, 'tcb_info'), 'tcb_info');
}

/**
 * TCB info and QE identity are for TDX and valid at `nowMs`. Dates are read strictly: an unreadable one
 * would compare as "not expired" in the library.
 * @throws collateral_malformed, collateral_not_yet_valid, collateral_expired.
 */
export function verifyCollateralWindow(collateral: Collateral, nowMs: number): void {
  const documents = {
    tcb_info: readTcbInfo(collateral),
    qe_identity: readSchema(qeIdentitySchema, readJson(collateral.qe_identity, 'qe_identity'), 'qe_identity'),
  };
  for (const [name, { issueDate, nextUpdate }] of Object.entries(documents)) {
    if (nowMs < Date.parse(issueDate)) {
      throw new EvaluatorError('collateral_not_yet_valid', `collateral: ${name} is issued at ${issueDate}`);
    }
    if (nowMs > Date.parse(nextUpdate)) {
      throw new EvaluatorError(
        'collateral_expired',
        `collateral: ${name} was to be renewed by ${nextUpdate}`,
      );
    }
  }
}
