import { reviewRoutes } from '../../guest/wire/assignment.ts';

/** Every address of an assignment: those that a guest knows beforehand, and those the assignment names. */
export function reviewPaths(assignmentId: string) {
  const known = reviewRoutes(assignmentId);
  return {
    ...known,
    artifact: `${known.assignment}/artifact`,
    rules: `${known.assignment}/rules`,
    corpus: `${known.assignment}/corpus`,
    state: `${known.assignment}/state`,
  };
}
