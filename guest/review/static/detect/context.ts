import type { FindingCode } from '../../../wire/review-decision.ts';
import type { Fact } from '../facts.ts';

/** What the rules and the corpus know, as the detectors need it. */
export interface Knowledge {
  /** Host names, lower case; `*.example.org` for all below. */
  allowedHosts: readonly string[];
  /** Names of known tasks, lower case. */
  taskIds: ReadonlySet<string>;
  /** SHA-256 of known instructions, hex. */
  instructionDigests: ReadonlySet<string>;
  /** SHA-256 of normalised fragments of public solutions, hex. */
  fragments: ReadonlySet<string>;
}

/** Findings that one fact is. */
export type Detector = (fact: Fact, knowledge: Knowledge) => readonly FindingCode[];
