/** A message of the DevTools protocol, as far as it matters here. */
export interface ProtocolMessage {
  id?: number;
  sessionId?: string;
  method?: string;
  params?: object;
}

interface Attached {
  sessionId: string;
  targetInfo?: { targetId: string; type: string };
}

interface Session {
  /** The page that it belongs to; that of a worker is the one that started it. */
  page: string;
  isWorker: boolean;
}

/** Playwright counts its messages from 1. */
const FIRST_ID = 1_000_000_000;

/**
 * Web workers say the same of themselves as their page. What is set for a page holds for its frames, but a worker would
 * name the languages and brands of Chromium itself: each has to be told, before its first line runs. Playwright stops
 * workers at their start and lets them go on; what is set here goes out right before that, on the same pipe, so that
 * nothing can come in between.
 */
export class WorkerIdentities {
  readonly #sessions = new Map<string, Session>();
  /** By page: the parameters of `Emulation.setUserAgentOverride`. */
  readonly #overrides = new Map<string, object>();
  #nextId = FIRST_ID;

  /** What has to be sent before a message. */
  before({ sessionId, method, params }: ProtocolMessage): ProtocolMessage | null {
    const session = sessionId === undefined ? undefined : this.#sessions.get(sessionId);
    if (session === undefined) return null;
    if (method === 'Emulation.setUserAgentOverride' && params !== undefined && !session.isWorker)
      this.#overrides.set(session.page, params);
    const override = this.#overrides.get(session.page);
    if (method !== 'Runtime.runIfWaitingForDebugger' || !session.isWorker || override === undefined)
      return null;
    return {
      id: this.#nextId++,
      sessionId: sessionId!,
      method: 'Emulation.setUserAgentOverride',
      params: override,
    };
  }

  /** Notes what came. Says whether it answers a message from here, which is for no one else. */
  isAnswer({ id, sessionId, method, params }: ProtocolMessage): boolean {
    if (id !== undefined) return id >= FIRST_ID;
    if (method === 'Target.attachedToTarget') this.#attach(params as Attached, sessionId);
    else if (method === 'Target.detachedFromTarget') this.#detach((params as Attached).sessionId);
    return false;
  }

  #attach({ sessionId, targetInfo }: Attached, from: string | undefined): void {
    const isWorker = targetInfo?.type === 'worker';
    const page = isWorker ? this.#sessions.get(from ?? '')?.page : targetInfo?.targetId;
    if (page !== undefined) this.#sessions.set(sessionId, { page, isWorker });
  }

  #detach(sessionId: string): void {
    const session = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    if (session === undefined || session.isWorker) return;
    for (const { page } of this.#sessions.values()) if (page === session.page) return;
    this.#overrides.delete(session.page);
  }
}
