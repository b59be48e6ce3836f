import { parseArgs } from 'node:util';
import { newSession } from '../../guest/trial/labels.ts';
import { connectDeskEngine } from './desk-engine.ts';
import { reap } from './reap.ts';

/**
 * A process that outlives whoever works at a desk, and cleans up when they are done or gone: its parent asks it
 * with SIGTERM, or is killed and so closes the lifeline. Says which process it is, so that a later desk can tell
 * whether it lives.
 */
const { values } = parseArgs({ options: { engine: { type: 'string' }, desk: { type: 'string' } } });
const { engine = '', desk = '' } = values;
const asked = new Promise<void>((resolve) => process.once('SIGTERM', resolve));
// Of a terminal's: the parent gets it too, and asks.
process.on('SIGINT', () => undefined);
const alive = setInterval(() => undefined, 60_000);
process.stdout.write(`${JSON.stringify({ event: 'ready', owner: newSession(null).owner })}\n`);
await asked;
clearInterval(alive);
await reap(connectDeskEngine(engine), desk);
