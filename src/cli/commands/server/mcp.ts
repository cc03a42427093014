import { once } from 'node:events';
import { connect } from '../../../client/client.ts';
import { SeineError } from '../../../core/errors.ts';
import { serveStdio } from '../../../server/mcp/mcp-sdk.ts';
import { makeMcpServer } from '../../../server/mcp/tools.ts';
import { readServerFile } from '../../../server/server-file.ts';
import type { Command } from '../../context.ts';

/** Tools for the server that owns the folder, over stdin and stdout. */
export const mcpCommand: Command = async ({ settings }) => {
  const connectNow = () => {
    const server = readServerFile(settings.dir);
    if (!server)
      throw new SeineError(`no server runs in ${settings.dir}`, {
        hint: 'start one with `seine serve` and the same --dir',
      });
    return connect({ url: server.url, key: server.token });
  };
  connectNow();
  const handle = serveStdio(() => makeMcpServer(connectNow));
  await once(process.stdin, 'close');
  await handle.close();
  return 'success';
};
