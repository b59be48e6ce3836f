import type { z } from 'zod';
import type { reviewTrustSchema } from '../config.ts';
import type { ReviewStore } from '../reviews.ts';
import { parseRoot } from '../verify/root.ts';
import { fileReview } from './file.ts';

/** Admits by the review in a file, believed by what it was configured with. @throws root_certificate_invalid. */
export function trustedFileReview(path: string, trust: z.infer<typeof reviewTrustSchema>): ReviewStore {
  return fileReview(path, {
    root: { publicKey: trust.root.public_key, challengeId: trust.root.challenge_id },
    allowlist: trust.allowlist,
    rootDer: parseRoot(trust.tdx_root_pem),
    acceptedTcb: new Set(trust.accepted_tcb),
    collateral: async () => trust.collateral,
  });
}
