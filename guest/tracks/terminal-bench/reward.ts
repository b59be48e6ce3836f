import { parseForeignJson } from '../../wire/foreign-json.ts';

const MAX_TEXT_BYTES = 64;
const JSON_LIMITS = { maxBytes: 4096, maxDepth: 2 };
/** A decimal in [0,1] on one line; a single final newline is what `echo` writes. */
const DECIMAL = /^(?:[01](?:\.[0-9]+)?|\.[0-9]+)\n?$/;

/** What a verifier left: the bytes of regular files, null where there is none. */
export interface RewardFiles {
  /** /logs/verifier/reward.txt */
  txt: Buffer | null;
  /** /logs/verifier/reward.json */
  json: Buffer | null;
}

function inRange(value: number): number {
  return value > 0 && value <= 1 ? value : 0;
}

function parseText(bytes: Buffer): number {
  const text = bytes.length <= MAX_TEXT_BYTES ? bytes.toString('latin1') : '';
  return DECIMAL.test(text) ? inRange(Number(text)) : 0;
}

function parseJson(bytes: Buffer): number {
  let value: unknown;
  try {
    value = parseForeignJson(bytes, JSON_LIMITS);
  } catch {
    return 0;
  }
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return 0;
  const reward = 'reward' in value ? value.reward : null;
  return typeof reward === 'number' ? inRange(reward) : 0;
}

/**
 * The reward of a verified rep, in [0,1]. Anything but exactly one well-formed file is 0: a verifier that
 * has run always gives a reward, so nothing here throws (spec/03, Reward).
 */
export function parseReward(files: RewardFiles): number {
  if (files.txt !== null && files.json !== null) return 0;
  if (files.txt !== null) return parseText(files.txt);
  return files.json === null ? 0 : parseJson(files.json);
}
