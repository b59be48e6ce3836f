/** True for the pinned model, and for the pin with a date behind it. */
export function isPinnedModel(returned: string, pinned: string): boolean {
  if (!returned.startsWith(pinned)) return false;
  return /^(?:-\d{8}|-\d{4}-\d{2}-\d{2})?$/.test(returned.slice(pinned.length));
}
