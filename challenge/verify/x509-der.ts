import forge from 'node-forge';

type Asn1 = forge.asn1.Asn1;

/** Parts of a constructed node; none of any other. */
export function parts(node: Asn1 | undefined): Asn1[] {
  return Array.isArray(node?.value) ? node.value : [];
}

/** Content of an OCTET STRING; null of any other node. */
export function octets(node: Asn1 | undefined): Buffer | null {
  if (node?.type !== forge.asn1.Type.OCTETSTRING || typeof node.value !== 'string') return null;
  return Buffer.from(node.value, 'latin1');
}

/** One DER value, and nothing after it. @throws Error when it is not that. */
export function parseDer(der: Buffer): Asn1 {
  return forge.asn1.fromDer(forge.util.createBuffer(der.toString('latin1')));
}

/** Values of the entries with this OID, in a list of (OID, ..., value). */
export function valuesOf(entries: readonly Asn1[], oid: string): (Asn1 | undefined)[] {
  return entries
    .map(parts)
    .filter(([name]) => typeof name?.value === 'string' && forge.asn1.derToOid(name.value) === oid)
    .map((entry) => entry.at(-1));
}

/**
 * The extensions of a certificate, from its DER and nothing else: both X.509 libraries look for PEM in the bytes
 * they are given, and find it inside a quote that a certificate carries.
 * @throws Error when `der` is no DER.
 */
export function certificateExtensions(der: Buffer): Asn1[] {
  const tbs = parts(parts(parseDer(der))[0]);
  const tagged = tbs.find(
    ({ tagClass, type }) => tagClass === forge.asn1.Class.CONTEXT_SPECIFIC && Number(type) === 3,
  );
  return parts(parts(tagged)[0]);
}
