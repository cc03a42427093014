import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface LambdaErrors {
  endpoint: string;
  close(): Promise<void>;
}

/** What AWS says of a function that cannot be used, by its name: `missing`, `denied` or `unsigned`. */
export async function startLambdaErrors(): Promise<LambdaErrors> {
  const errors: Record<string, [status: number, type: string]> = {
    missing: [404, 'ResourceNotFoundException'],
    denied: [403, 'AccessDeniedException'],
    unsigned: [403, 'UnrecognizedClientException'],
  };
  const server = createServer((request, response) => {
    const name = /functions\/([\w-]+)/.exec(request.url ?? '')?.[1] ?? '';
    const [status, type] = errors[name] ?? errors.missing!;
    response.writeHead(status, { 'content-type': 'application/json', 'x-amzn-errortype': type });
    response.end(JSON.stringify({ Message: `it is ${name}` }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
