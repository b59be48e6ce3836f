import { EvaluatorError } from '../errors.ts';

const OWN_LABELS = 'io.cvm-evaluator.';

/** Marks an image of `evaluator base`, and by inheritance every image built on one. */
export const STAND_IN_LABEL = `${OWN_LABELS}base`;
export const STAND_IN_VALUE = 'stand-in';
/** The Debian suite a stand-in was made from. */
export const SUITE_LABEL = `${OWN_LABELS}suite`;

const INHERITED = new Set([STAND_IN_LABEL, SUITE_LABEL]);

/** What the rules look at; the engine port's ImageInfo has it. */
export interface TaskImage {
  os: string;
  architecture: string;
  sizeBytes: number;
  volumes: readonly string[];
  labels: Readonly<Record<string, string>>;
}

interface ImageExpectation {
  /** As the engine writes it: `amd64`. */
  architecture: string;
  maxBytes: number;
}

/** What production VMs run, and as much of its disk as an image may take. */
export const TASK_IMAGE_EXPECTATION: ImageExpectation = { architecture: 'amd64', maxBytes: 32 * 1024 ** 3 };

/**
 * Refuses an image that no trial may be created from (spec/03, 1; spec/08, Images): a VOLUME cannot be overridden
 * at create, and a label of ours would make the sweep take an image for one of its own.
 * @param where how messages call the image: the task's name.
 * @throws image_declares_volume, image_label_reserved, image_architecture, image_too_large.
 */
export function verifyTaskImage(image: TaskImage, expected: ImageExpectation, where: string): void {
  if (image.os !== 'linux' || image.architecture !== expected.architecture)
    throw new EvaluatorError(
      'image_architecture',
      `${where}: the image is for ${image.os}/${image.architecture}, this needs linux/${expected.architecture}`,
    );
  if (image.volumes.length > 0)
    throw new EvaluatorError(
      'image_declares_volume',
      `${where}: the image declares VOLUME ${image.volumes[0]}, which nothing can override; remove it`,
    );
  const reserved = Object.keys(image.labels).find(
    (name) => name.startsWith(OWN_LABELS) && !INHERITED.has(name),
  );
  if (reserved !== undefined)
    throw new EvaluatorError(
      'image_label_reserved',
      `${where}: the image has the label ${reserved}; remove it`,
    );
  if (image.sizeBytes > expected.maxBytes)
    throw new EvaluatorError(
      'image_too_large',
      `${where}: the image has ${image.sizeBytes} bytes, at most ${expected.maxBytes} are taken`,
    );
}
