import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Null when there is more than that; the rest is not kept. */
export async function readBody(request: IncomingMessage, bytesMax: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= bytesMax) chunks.push(chunk);
    else chunks.length = 0;
  }
  return bytes > bytesMax ? null : Buffer.concat(chunks);
}

export function sendJson(
  reply: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  reply.writeHead(status, {
    'content-type': 'application/json',
    'x-amzn-requestid': randomUUID(),
    ...headers,
  });
  reply.end(JSON.stringify(value));
}

/** As Lambda's API says what is wrong, so that the SDK knows it by name. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, name: string, message: string) {
    super(message);
    this.status = status;
    this.name = name;
  }
}

export function sendError(reply: ServerResponse, { status, name, message }: ApiError): void {
  sendJson(reply, status, { Type: 'User', message, Message: message }, { 'x-amzn-errortype': name });
}
