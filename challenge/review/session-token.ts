import { createHmac } from 'node:crypto';

const CONTEXT = 'cvm-evaluator/review-session/v1';

/**
 * The bearer token of an assignment, `<assignment id>.<mac>`: made again from the secret whenever its owner
 * asks, so that the ledger keeps its hash alone.
 */
export function sessionToken(secret: Buffer, assignmentId: string): string {
  const mac = createHmac('sha256', secret).update(`${CONTEXT}\0${assignmentId}`).digest('hex');
  return `${assignmentId}.${mac}`;
}
