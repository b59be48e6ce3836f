import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface ModelStandIn {
  endpoint: string;
  /** What was asked, in order. */
  asked: { headers: IncomingHttpHeaders; body: Buffer }[];
  /** How the next requests are answered. */
  answer: { status: number; body: Buffer };
  close(): Promise<void>;
}

/** A chat-completions address on this machine that always says the same. */
export async function modelStandIn(): Promise<ModelStandIn> {
  const asked: ModelStandIn['asked'] = [];
  const server = createServer(async (request, response) => {
    asked.push({ headers: request.headers, body: await buffer(request) });
    response.writeHead(one.answer.status, { 'Content-Type': 'application/json' });
    response.end(one.answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const one: ModelStandIn = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/chat/completions`,
    asked,
    answer: { status: 200, body: Buffer.alloc(0) },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return one;
}
