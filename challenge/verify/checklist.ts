import { type Code, EvaluatorError } from '../../guest/errors.ts';

export type CheckStatus = 'ok' | 'failed' | 'not_checked';

/** One line of a verification: what was looked at, and what came of it. */
export interface CheckReport {
  name: string;
  status: CheckStatus;
  /** Null unless failed. */
  code: Code | null;
  /** A sentence for a person; empty when there is nothing to add. */
  detail: string;
}

/**
 * Runs one check of a list.
 * @param name must be the next name of the list: the order is part of the contract.
 * @param fallback the code of an error that carries none, so that a surprise is a refusal too.
 * @returns what `look` found; does not return when it failed.
 */
export type Check<Name extends string> = <T>(
  name: Name,
  fallback: Code,
  look: () => T | Promise<T>,
) => Promise<T>;

/** Ends a list at its first failure; never leaves `runChecklist`. */
class CheckFailed extends Error {}

function failure(name: string, fallback: Code, error: unknown): CheckReport {
  const code = error instanceof EvaluatorError ? error.code : fallback;
  const detail = error instanceof Error ? error.message : String(error);
  return { name, status: 'failed', code, detail };
}

/**
 * Walks a closed, ordered list of checks; the first failure ends it, the rest is reported as not checked.
 * @param body must call its check for each name, in order; leaving one out is an error, not a pass.
 */
export async function runChecklist<Name extends string>(
  names: readonly Name[],
  body: (check: Check<Name>) => Promise<void>,
): Promise<CheckReport[]> {
  const reports: CheckReport[] = [];
  const check: Check<Name> = async (name, fallback, look) => {
    if (names[reports.length] !== name) {
      throw new Error(`check "${name}" is out of order: "${names[reports.length] ?? 'the end'}" is due`);
    }
    try {
      const found = await look();
      reports.push({ name, status: 'ok', code: null, detail: '' });
      return found;
    } catch (error) {
      reports.push(failure(name, fallback, error));
      throw new CheckFailed(name);
    }
  };
  try {
    await body(check);
    if (reports.length !== names.length) throw new Error(`check "${names[reports.length]}" was never made`);
  } catch (error) {
    if (!(error instanceof CheckFailed)) throw error;
    const detail = `not reached: ${error.message} failed`;
    for (const name of names.slice(reports.length)) {
      reports.push({ name, status: 'not_checked', code: null, detail });
    }
  }
  return reports;
}

/** The report that failed, if any. */
export function failedCheck(reports: readonly CheckReport[]): CheckReport | undefined {
  return reports.find((report) => report.status === 'failed');
}
