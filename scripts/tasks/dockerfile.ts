/** The images a Dockerfile is built on: every FROM that names no earlier stage, in order. */
export function baseImages(dockerfile: string): string[] {
  const stages = new Set<string>();
  const bases: string[] = [];
  for (const line of dockerfile.split('\n')) {
    const match = /^\s*FROM\s+(?:--\S+\s+)*(\S+)(?:\s+AS\s+(\S+))?/i.exec(line);
    if (!match?.[1]) continue;
    if (!stages.has(match[1].toLowerCase()) && !bases.includes(match[1])) bases.push(match[1]);
    if (match[2]) stages.add(match[2].toLowerCase());
  }
  return bases;
}
