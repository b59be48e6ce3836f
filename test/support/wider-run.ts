import { renderComposed } from '../../compose/parse.ts';
import { run } from '../../scripts/cli/run.ts';
import { bootMachine, composedFor } from '../../scripts/run/evaluation.ts';

/** `evaluator run` on a machine that was deployed with one mount more than what is published. */
process.exitCode = await run(process.argv.slice(2), async (local) => {
  const published = await composedFor(local);
  const document = JSON.parse(renderComposed(published).toString());
  const docker_compose_file = `${document.docker_compose_file}      - /:/host:ro\n`;
  return bootMachine(local, Buffer.from(JSON.stringify({ ...document, docker_compose_file })), published);
});
