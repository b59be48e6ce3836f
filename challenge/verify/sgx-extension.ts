import { certificateExtensions, octets, parseDer, parts, valuesOf } from './x509-der.ts';

/** Intel's arc for what a PCK certificate says of its platform. */
const SGX_EXTENSION = '1.2.840.113741.1.13.1';
/** Its members that are read here, each an OCTET STRING. */
const MEMBERS = { ppid: 1, pceId: 3 } as const;

/**
 * A member of the SGX extension of a PCK certificate; null when the certificate has none, or more than one.
 * @throws Error when `pckDer` is no DER.
 */
export function sgxMember(pckDer: Buffer, member: keyof typeof MEMBERS): Buffer | null {
  const [extension, second] = valuesOf(certificateExtensions(pckDer), SGX_EXTENSION);
  const bytes = octets(extension);
  if (!bytes || second) return null;
  const [value, other] = valuesOf(parts(parseDer(bytes)), `${SGX_EXTENSION}.${MEMBERS[member]}`);
  return other ? null : octets(value);
}
