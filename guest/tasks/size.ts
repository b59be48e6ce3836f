const SIZE = /^([1-9][0-9]{0,6})(K|M|G)B?$/i;

/**
 * Mebibytes of a size such as `2G`, `512M` or `2048K`, as task.toml writes them (binary units).
 * @returns null when the text is no such size, is no whole number of MiB or is above 16 TiB.
 */
export function parseSizeMb(text: string): number | null {
  const match = SIZE.exec(text.trim());
  if (!match) return null;
  const count = Number(match[1]);
  const unit = match[2]?.toUpperCase();
  const mb = unit === 'G' ? count * 1024 : unit === 'M' ? count : count / 1024;
  return Number.isInteger(mb) && mb <= 16 * 1024 * 1024 ? mb : null;
}
