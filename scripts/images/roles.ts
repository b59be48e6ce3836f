/** The two images; their allowlists are disjoint (spec/06). */
export const IMAGE_ROLES = ['eval', 'review'] as const;
export type ImageRole = (typeof IMAGE_ROLES)[number];

export interface ImageParts {
  /** Everything it imports, and nothing else of the source, is in the image. */
  entry: string;
  dockerfile: string;
  /** Files that are read, not imported. */
  data: readonly string[];
  /** Whether baked tasks are part of the image, sealed. */
  tasks: 'sealed cache' | 'none';
  /** The name under which an engine gets it. */
  tag: string;
}

export const IMAGES: Readonly<Record<ImageRole, ImageParts>> = {
  eval: {
    entry: 'guest/eval.ts',
    dockerfile: 'Dockerfile.eval',
    data: ['LICENSE', 'guest/mechanism.yaml', 'package.json'],
    tasks: 'sealed cache',
    tag: 'cvm-evaluator/eval:local',
  },
  review: {
    entry: 'guest/review.ts',
    dockerfile: 'Dockerfile.review',
    data: ['LICENSE', 'package.json'],
    tasks: 'none',
    tag: 'cvm-evaluator/review:local',
  },
};

/** Where the images keep source and packages. */
export const APP_DIRECTORY = '/opt/cvm-evaluator';
