import { describe, expect, it } from 'vitest';
import { requestsOf, unservedOf } from '../../../scripts/toolchain/survey-script.ts';

const SERVED = {
  packages: new Map([
    ['pytest==8.4.1', { needs: [], groups: [] }],
    ['pytest-json-ctrf==0.3.5', { needs: [], groups: [] }],
  ]),
  others: [
    {
      interpreter: {
        python: '3.12',
        version: '3.12.1',
        artifact: 'a:b:1:jar:c',
        sha256: 'a'.repeat(64),
        group: 'python3.12',
      },
      packages: new Map([['mailman==3.3.8', { needs: [], groups: [] }]]),
    },
  ],
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

describe('unservedOf', () => {
  it('finds nothing missing in the usual script, whatever the image', () => {
    expect(unservedOf(USUAL, 'FROM python:3.13-slim-bookworm\n', SERVED)).toEqual([]);
    expect(unservedOf(USUAL, 'FROM scratch\n', SERVED)).toEqual([]);
  });

  it('wants a Python in an image that pip installs into', () => {
    const script = 'pip install pytest==8.4.1\n';
    expect(unservedOf(script, 'FROM ubuntu:24.04\n', SERVED)).toEqual(['an image with python3']);
    const installed = 'FROM ubuntu:24.04\nRUN apt-get update && apt-get install -y \\\n  python3 git\n';
    expect(unservedOf(script, installed, SERVED)).toEqual([]);
    expect(unservedOf('uv pip install pytest==8.4.1\n', 'FROM ubuntu:24.04\n', SERVED)).toEqual([]);
  });

  it.each([
    ['uvx -w numpy==2.3.0 pytest', ['python numpy==2.3.0']],
    ['uvx --with=pytest==8.0.0,rich pytest', ['python pytest==8.0.0', 'python rich']],
    ['uvx -p 3.11 -w pytest==8.4.1 pytest', ['Python 3.11']],
    ['uv venv --python=3.12 .tb', []],
    ['uv venv -p 3.12.2 .tb', ['Python 3.12.2']],
    ['uv venv -p 3.12 .tb && uv pip install mailman==3.3.8 numpy==2.3.1', ['python numpy==2.3.1']],
    ['uvx -p 3.13 -w mailman==3.3.8 pytest', ['python mailman==3.3.8']],
    ['uvx -p 3.12 -w pytest==8.4.1 pytest', ['python pytest==8.4.1']],
    ['uvx -p 3.13.5 -w pytest==8.4.1 pytest', []],
    ['pip install PyTest_Json.Ctrf==0.3.5 psutil==7.0.0', ['python psutil==7.0.0']],
    ['uv pip install mailman', ['python mailman']],
    ['uv add pytest==8.4.1 x==1', ['python x==1']],
    ['apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y expect curl', ['apt expect']],
    ['git clone https://example.com/a.git && cd a', ['address https://example.com/a.git']],
    ['curl -s http://localhost:8080/x', []],
    ['# apt-get install -y gcc', []],
  ])('reads %j', (line, unserved) => {
    expect(unservedOf(`${line}\n`, 'FROM python:3.13\n', SERVED)).toEqual(unserved);
  });

  it('counts a Debian package as there when the Dockerfile installs it', () => {
    const dockerfile = 'FROM python:3.13\nRUN apt-get install -y gcc=4:12.2.0-3\n';
    expect(unservedOf('apt-get install -y gcc\n', dockerfile, SERVED)).toEqual([]);
  });
});

describe('requestsOf', () => {
  it('lists what a script asks for, served or not', () => {
    expect(requestsOf(`${USUAL}apt-get install -y expect\nuvx -w torch pytest\n`)).toEqual({
      python: ['pytest==8.4.1', 'pytest-json-ctrf==0.3.5', 'torch'],
      apt: ['curl', 'expect'],
      interpreters: ['3.13'],
    });
  });
});
