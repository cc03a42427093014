import { spawn } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** The compiler as editors run it, over its standard streams (the Language Server Protocol), for one file. */

const COMPILER = fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url));
/** It would install types of packages with npm: ten processes that a test does not need. */
const SETTINGS = { disableAutomaticTypeAcquisition: true };
const HEAD_END = '\r\n\r\n';

interface Message {
  id?: number;
  method?: string;
  params?: { items?: unknown[] };
  result?: unknown;
}

interface Suggestion {
  label: string;
  documentation?: string | { value: string };
}

export interface LanguageServer {
  /** What an editor shows for the name at this place of the text; empty when it shows nothing. */
  hover(offset: number): Promise<string>;
  /** Names that it offers at this place, and the text it shows beside each of these. */
  complete(offset: number, names: readonly string[]): Promise<Map<string, string>>;
  close(): void;
}

export async function openLanguageServer(file: string, text: string): Promise<LanguageServer> {
  const child = spawn(process.execPath, [COMPILER, '--lsp', '--stdio'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const waiting = new Map<number, (message: Message) => void>();
  const send = (message: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}${HEAD_END}${body}`);
  };
  const ask = (method: string, params: object) =>
    new Promise<Message>((resolve, reject) => {
      const id = waiting.size + 1;
      waiting.set(id, resolve);
      child.once('exit', () => reject(new Error(`the compiler ended before it answered ${method}`)));
      send({ id, method, params });
    });
  child.setMaxListeners(0);
  readMessages(child.stdout, (message) => {
    // It asks for settings.
    if (message.method !== undefined && message.id !== undefined)
      send({ id: message.id, result: message.params?.items?.map(() => SETTINGS) ?? null });
    else if (message.id !== undefined) waiting.get(message.id)?.(message);
  });
  const uri = pathToFileURL(file).href;
  const completionItem = { documentationFormat: ['plaintext'] };
  const capabilities = {
    workspace: { configuration: true },
    textDocument: { hover: { contentFormat: ['plaintext'] }, completion: { completionItem } },
  };
  await ask('initialize', { processId: process.pid, rootUri: null, capabilities });
  send({ method: 'initialized', params: {} });
  send({
    method: 'textDocument/didOpen',
    params: { textDocument: { uri, languageId: 'typescript', version: 1, text } },
  });
  const at = (offset: number) => {
    const before = text.slice(0, offset).split('\n');
    const position = { line: before.length - 1, character: before.at(-1)!.length };
    return { textDocument: { uri }, position };
  };
  return {
    async hover(offset) {
      const { result } = await ask('textDocument/hover', at(offset));
      return (result as { contents: { value: string } } | null)?.contents.value ?? '';
    },
    async complete(offset, names) {
      const { result } = await ask('textDocument/completion', at(offset));
      const offered = ((result as { items?: Suggestion[] } | null)?.items ?? []).filter(({ label }) =>
        names.includes(label.replace('?', '')),
      );
      const texts = new Map<string, string>();
      for (const each of offered) {
        const { documentation = '' } = (await ask('completionItem/resolve', each)).result as Suggestion;
        const shown = typeof documentation === 'string' ? documentation : documentation.value;
        texts.set(each.label.replace('?', ''), shown);
      }
      return texts;
    },
    close: () => void child.kill(),
  };
}

function readMessages(stream: NodeJS.ReadableStream, take: (message: Message) => void): void {
  let rest = Buffer.alloc(0);
  stream.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const end = rest.indexOf(HEAD_END);
      if (end === -1) return;
      const from = end + HEAD_END.length;
      const to = from + Number(/Content-Length: (\d+)/i.exec(rest.toString('latin1', 0, end))![1]);
      if (rest.length < to) return;
      take(JSON.parse(rest.toString('utf8', from, to)) as Message);
      rest = rest.subarray(to);
    }
  });
}
