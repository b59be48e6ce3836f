import { parentPort, workerData } from 'node:worker_threads';
import { staticFindings } from './findings.ts';
import { loadParse } from './parser.ts';
import type { AnalysisInput, AnalysisOutput } from './run.ts';
import { fingerprintsOf } from './similarity.ts';

const { members, knowledge } = workerData as AnalysisInput;
const parse = await loadParse();
parentPort?.postMessage({
  findings: staticFindings(members, { parse, knowledge }),
  fingerprints: fingerprintsOf(members),
} satisfies AnalysisOutput);
