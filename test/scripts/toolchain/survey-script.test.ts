import { describe, expect, it } from 'vitest';
import { surveyTask } from '../../../scripts/toolchain/survey-script.ts';

const SERVED = {
  packages: new Map([
    ['pytest==8.4.1', { needs: [], groups: [] }],
    ['pytest-json-ctrf==0.3.5', { needs: [], groups: [] }],
  ]),
  apt: new Map([['curl', { groups: [] }]]),
};
const USUAL = `#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
uvx \\
  -p 3.13 \\
  -w pytest==8.4.1 \\
  -w pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
`;

describe('surveyTask', () => {
  it('finds nothing missing in the usual script on a Python image', () => {
    expect(surveyTask(USUAL, 'FROM python:3.13-slim-bookworm\n', SERVED)).toEqual({
      unserved: [],
      image: 'python',
    });
  });

  it('says when no Python is named for the image', () => {
    const bare = surveyTask(USUAL, 'FROM ubuntu:24.04\n', SERVED);
    expect(bare.image).toBe('no python named');
    const installed = 'FROM ubuntu:24.04\nRUN apt-get update && apt-get install -y \\\n  python3 git\n';
    expect(surveyTask(USUAL, installed, SERVED).image).toBe('python');
  });

  it.each([
    ['uvx -w numpy==2.3.0 pytest', ['python numpy==2.3.0']],
    ['uvx --with=pytest==8.0.0,rich pytest', ['python pytest==8.0.0', 'python rich']],
    ['pip install PyTest_Json.Ctrf==0.3.5 psutil==7.0.0', ['python psutil==7.0.0']],
    ['uv pip install mailman', ['python mailman']],
    ['uv add pytest==8.4.1 x==1', ['python x==1']],
    ['apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y expect curl', ['apt expect']],
    ['git clone https://example.com/a.git && cd a', ['address https://example.com/a.git']],
    ['curl -s http://localhost:8080/x', []],
    ['# apt-get install -y gcc', []],
  ])('reads %j', (line, unserved) => {
    expect(surveyTask(`${line}\n`, 'FROM python:3.13\n', SERVED).unserved).toEqual(unserved);
  });

  it('counts a Debian package as there when the Dockerfile installs it', () => {
    const dockerfile = 'FROM python:3.13\nRUN apt-get install -y gcc=4:12.2.0-3\n';
    expect(surveyTask('apt-get install -y gcc\n', dockerfile, SERVED).unserved).toEqual([]);
  });
});
