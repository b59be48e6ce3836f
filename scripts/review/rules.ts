import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { EvaluatorError } from '../../guest/errors.ts';
import { encodeCanonical } from '../../guest/wire/canonical.ts';
import { digest, sha256Hex } from '../../guest/wire/digest.ts';
import { parseRulesBundle, type RulesBundle } from '../../guest/wire/review-inputs.ts';

function markdownFiles(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
      .map((entry) => join(entry.parentPath, entry.name));
  } catch (cause) {
    throw new EvaluatorError('usage', `--rules ${directory}: not a folder that can be read`, { cause });
  }
}

/**
 * The rules of a folder as one bundle: its Markdown files by path. The revision is named by their digest.
 * @returns the exact bytes. @throws usage, rules_invalid, schema_invalid.
 */
export function bundleRules(directory: string): Buffer {
  const files = markdownFiles(directory)
    .map((file): RulesBundle['files'][number] => {
      const content = readFileSync(file);
      return {
        path: relative(directory, file).split(sep).join('/'),
        length: content.length,
        sha256: sha256Hex(content),
        content_b64: content.toString('base64'),
      };
    })
    .sort((one, other) => (one.path < other.path ? -1 : 1));
  if (files.length === 0) {
    throw new EvaluatorError('usage', `--rules ${directory}: has no .md file`);
  }
  const revisionId = `local-${digest(files).slice(0, 16)}`;
  const bytes = encodeCanonical({ schema_version: 1, revision_id: revisionId, files });
  parseRulesBundle(bytes, { snapshot_sha256: sha256Hex(bytes), revision_id: revisionId });
  return bytes;
}
