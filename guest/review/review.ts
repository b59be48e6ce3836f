import { announce } from './announce.ts';
import { fetchArtifact } from './artifact.ts';
import { readAssignment } from './assignment.ts';
import { attestReview } from './attest.ts';
import type { ReviewHost } from './config.ts';
import { weigh } from './decide.ts';
import { deliverReport } from './deliver.ts';
import { examine } from './examine.ts';
import { fetchRules } from './inputs.ts';
import { askModel } from './model-call.ts';
import { planRequest } from './request.ts';
import { inStep } from './steps.ts';

/**
 * One review, in the nine steps of spec/09. Every step fails closed, with its name and a code; nothing of the
 * submission is imported or run, and the model is asked once, after its request was announced.
 */
export async function review(host: ReviewHost): Promise<void> {
  const startedAtMs = host.nowMs();
  const order = await inStep(host, 'assignment', () => readAssignment(host));
  const agent = await inStep(host, 'artifact', () => fetchArtifact(order, host));
  const inputs = await inStep(host, 'rules', () => fetchRules(order, host));
  const examined = await inStep(host, 'findings', () => examine(agent, inputs, host));
  const planned = await inStep(host, 'announce', async () => {
    const request = planRequest(order, agent, inputs, examined, host);
    await announce(order, request, host);
    return request;
  });
  const reply = await inStep(host, 'model', () => askModel(planned, host));
  const weighed = await inStep(host, 'decide', async () => weigh(order, planned, reply, examined));
  const report = await inStep(host, 'attest', () =>
    attestReview({ order, agent, inputs, planned, reply, weighed, startedAtMs }, host),
  );
  await inStep(host, 'report', () => deliverReport(order, report, host));
}
