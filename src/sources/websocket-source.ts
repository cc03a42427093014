import type { Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Dispatcher, WebSocket } from 'undici';
import { messageOf, SeineError } from '../core/errors.ts';
import { MESSAGES_ROUTE } from '../core/job-schema/job.ts';
import type { WebSocketSourceSpec } from '../core/job-schema/websocket.ts';
import { LIMITS } from '../core/limits.ts';
import { type Message, messagesUrl, packMessages, toMessage, valueAt } from '../core/messages/messages.ts';
import type { AddressCheck } from '../core/url/address-guard.ts';
import type { Source, SourceRow } from '../ports/source.ts';

/** Messages of one task. */
const CHUNK_MESSAGES = 200;
const CHUNK_CHARACTERS = 256 * 1024;
/** What has come is passed on at least so often. */
const CHUNK_MS = 1_000;
/** Messages that wait for the store; then the connection is closed until there is room. */
const WAITING_MAX = 20_000;
const WAITING_CHARACTERS_MAX = 64 * 1024 * 1024;
const CONNECT_MS = 20_000;
const GOOD_BYE_MS = 1_000;
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000, 20_000];

interface SocketOptions {
  /** As for servers of source files. */
  isAllowed: AddressCheck;
  pausesMs?: readonly number[];
  waitingMax?: number;
}

/** Where to go on. */
interface Position {
  count: number;
  last: string | null;
}

/** How a connection ended. `isComplete`: the server said that this was all. */
interface Ending {
  isComplete: boolean;
  reason: string;
}

/** Its messages, a task for some of them. It connects again when the connection breaks, and goes on where it can. */
export function websocketSource(spec: WebSocketSourceSpec, options: SocketOptions): Source {
  const name = messagesUrl(spec.websocket, 0, 0).replace(/^http/, 'ws').replace(/\?.*$/, '');
  return {
    name,
    priority: spec.priority,
    isLive: true,
    rows: (from, { signal } = {}) => readMessages(name, spec, options, from, signal),
  };
}

async function* readMessages(
  name: string,
  spec: WebSocketSourceSpec,
  { isAllowed, pausesMs = PAUSES_MS, waitingMax = WAITING_MAX }: SocketOptions,
  from: string | null,
  signal: AbortSignal | undefined,
): AsyncIterable<SourceRow> {
  const at: Position = from === null ? { count: 0, last: null } : JSON.parse(from);
  let refusal: SeineError | null = null;
  const refused = (hostname: string) => {
    refusal = new SeineError(`the WebSocket is at a private address: ${hostname}`, {
      hint: 'SEINE_ALLOW_PRIVATE=never refuses it; set SEINE_ALLOW_PRIVATE=job if jobs may use the own network',
    });
    return refusal;
  };
  const sockets = new Set<Socket>();
  let failure: Error | null = null;
  const { openGuardedConnections, open } = await loadWebSockets();
  const connections = openGuardedConnections({
    ...{ isAllowed, refused, connectMs: CONNECT_MS },
    limits: { webSocket: { maxPayloadSize: LIMITS.recordBytesMax * 4 } },
    onConnect(error, socket) {
      failure = error;
      if (socket) sockets.add(socket.once('close', () => sockets.delete(socket)));
    },
  });
  let failures = 0;
  try {
    while (at.count < spec.limit) {
      const socket = new MessageSocket(spec, at.last, (url) => open(url, connections), waitingMax);
      const before = at.count;
      yield* chunksOf(socket, spec, at, signal);
      socket.close();
      const { isComplete, reason } = await endedWithin(socket, sockets);
      signal?.throwIfAborted();
      if (refusal) throw refusal;
      if (at.count >= spec.limit || isComplete || socket.isIdle) return;
      failures = at.count > before ? 0 : failures + 1;
      const wait = pausesMs[failures];
      if (wait === undefined)
        throw new SeineError(`cannot read ${name}: ${failure ? messageOf(failure) : reason}`, {
          hint: 'run `seine resume` when the server works again',
        });
      await pause(wait, undefined, { signal });
    }
  } finally {
    for (const socket of sockets) socket.destroy();
    await connections.destroy();
  }
}

/** All of undici, which takes 70 ms of CPU to load: only for jobs that read a WebSocket. */
async function loadWebSockets() {
  const [{ openGuardedConnections }, { WebSocket }] = await Promise.all([
    import('../network/guarded-connections.ts'),
    import('undici'),
  ]);
  const open = (url: string, dispatcher: Dispatcher) => new WebSocket(url, { dispatcher });
  return { openGuardedConnections, open };
}

/** A server that does not answer a good-bye is not waited for. */
async function endedWithin(socket: MessageSocket, sockets: ReadonlySet<Socket>): Promise<Ending> {
  const timer = setTimeout(() => {
    for (const one of sockets) one.destroy();
  }, GOOD_BYE_MS);
  try {
    return await socket.ended;
  } finally {
    clearTimeout(timer);
  }
}

async function* chunksOf(
  socket: MessageSocket,
  spec: WebSocketSourceSpec,
  at: Position,
  signal: AbortSignal | undefined,
): AsyncIterable<SourceRow> {
  for (;;) {
    const texts = await socket.next(spec.limit - at.count, signal);
    if (texts === null) return;
    const messages: Message[] = [];
    const first = at.count + 1;
    for (const text of texts) {
      at.count++;
      const place = `message ${at.count}`;
      const made = text === null ? 'a message is binary' : toMessage(text, spec.key);
      if (typeof made === 'string') {
        yield { place, position: JSON.stringify(at), row: { reason: made } };
        continue;
      }
      messages.push(made.message);
      at.last = (spec.cursor && valueAt(made.value, spec.cursor)) || at.last;
    }
    if (messages.length === 0) continue;
    const url = messagesUrl(spec.websocket, first, at.count);
    const row = { url, meta: packMessages(messages), route: MESSAGES_ROUTE };
    yield { place: `messages ${first} to ${at.count}`, position: JSON.stringify(at), row };
  }
}

/** One connection, with what has come and was not taken yet. */
class MessageSocket {
  readonly ended: Promise<Ending>;
  /** No message came for as long as the job says. */
  isIdle = false;
  readonly #socket: WebSocket;
  readonly #idleMs: number;
  #waiting: (string | null)[] = [];
  #characters = 0;
  /** Closed by us, because too much waits: there is more to come. */
  #isFull = false;
  #isOver = false;
  #wake: () => void = () => {};

  constructor(
    spec: WebSocketSourceSpec,
    last: string | null,
    open: (url: string) => WebSocket,
    waitingMax: number,
  ) {
    const filled = (text: string) => text.replaceAll('{last}', last ?? '');
    this.#idleMs = spec.idleSeconds * 1_000;
    this.#socket = open(spec.websocket.replaceAll('{last}', encodeURIComponent(last ?? '')));
    this.#socket.addEventListener('open', () => {
      for (const message of spec.send)
        this.#socket.send(filled(typeof message === 'string' ? message : JSON.stringify(message)));
    });
    this.#socket.addEventListener('message', ({ data }) => {
      if (this.#isFull) return;
      const text = typeof data === 'string' ? data : null;
      this.#waiting.push(text);
      this.#characters += text?.length ?? 0;
      // What comes meanwhile is lost where the server cannot go on: better than the memory of the process.
      this.#isFull = this.#waiting.length >= waitingMax || this.#characters >= WAITING_CHARACTERS_MAX;
      if (this.#isFull) this.close();
      this.#wake();
    });
    this.ended = new Promise((resolve) => {
      this.#socket.addEventListener('close', ({ code, reason }) => {
        this.#isOver = true;
        this.#wake();
        const said = reason === '' ? '' : ` (${reason})`;
        const isComplete = code === 1000 && !this.#isFull;
        resolve({ isComplete, reason: `the connection closed with code ${code}${said}` });
      });
    });
  }

  /** The next messages, together; null when no more come. Null stands for one that is no text. */
  async next(max: number, signal: AbortSignal | undefined): Promise<(string | null)[] | null> {
    if (max <= 0) return null;
    const idleAt = performance.now() + this.#idleMs;
    while (this.#waiting.length === 0) {
      if (this.#isOver || signal?.aborted) return null;
      this.isIdle = performance.now() >= idleAt;
      if (this.isIdle) return null;
      await this.#changed(Math.max(1, idleAt - performance.now()), signal);
    }
    const until = performance.now() + CHUNK_MS;
    const enough = Math.min(max, CHUNK_MESSAGES);
    while (this.#waiting.length < enough && !this.#isOver && !signal?.aborted && performance.now() < until)
      await this.#changed(Math.max(1, until - performance.now()), signal);
    const taken = this.#waiting.splice(0, this.#fitting(enough));
    for (const text of taken) this.#characters -= text?.length ?? 0;
    return taken;
  }

  close(): void {
    if (this.#socket.readyState < this.#socket.CLOSING) this.#socket.close(1000);
  }

  /** As many as one task takes. */
  #fitting(max: number): number {
    let characters = 0;
    const end = this.#waiting.findIndex((text) => {
      characters += text?.length ?? 0;
      return characters > CHUNK_CHARACTERS;
    });
    return Math.max(1, Math.min(max, end === -1 ? this.#waiting.length : end));
  }

  async #changed(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const stop = new AbortController();
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const signals = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
    await Promise.race([woken, pause(ms, undefined, { signal: signals }).catch(() => {})]);
    stop.abort();
  }
}
