import { describe, expect, it } from 'vitest';
import { baseImages } from '../../../scripts/tasks/dockerfile.ts';

describe('baseImages', () => {
  it('names what is built on, not the stages', () => {
    const text = `# FROM nothing:1
from --platform=linux/amd64 debian:13-slim AS build
RUN echo FROM here
FROM ubuntu:24.04
COPY --from=build /x /x
FROM build
FROM debian:13-slim as again
`;
    expect(baseImages(text)).toEqual(['debian:13-slim', 'ubuntu:24.04']);
  });
});
