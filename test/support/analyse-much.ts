import { analysePackage } from '../../guest/review/static/run.ts';
import { knowledge, membersOf } from './review-agents.ts';

/** As a process of its own: analyses 20 MB of code and prints what was found and the peak of its memory. */
const one = 'def f(a, b):\n    return [a + b for a in "xyz" if a == b]\n'.repeat(1200);
const files = Object.fromEntries(Array.from({ length: 280 }, (_, i) => [`a${i}.py`, one]));
const { findings } = await analysePackage({ members: membersOf(files), knowledge }, 120_000);
const codes = [...new Set(findings.map(({ code }) => code))];
process.stdout.write(JSON.stringify({ codes, peakRss: process.resourceUsage().maxRSS * 1024 }));
