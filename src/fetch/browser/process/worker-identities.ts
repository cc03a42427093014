/** A message of the DevTools protocol, as far as it matters here. */
export interface ProtocolMessage {
  id?: number;
  sessionId?: string;
  method?: string;
  params?: object;
}

interface AttachedEvent {
  sessionId: string;
  targetInfo?: { targetId: string; type: string };
}

interface Connection {
  /** The page that it belongs to; that of a worker is the one that started it. */
  page: string;
  isWorker: boolean;
}

/**
 * Web workers say the same of themselves as their page. What is set for a page holds for its frames, but a worker would
 * name the languages and brands of Chromium itself: each has to be told, before its first line runs. Playwright stops
 * workers at their start and lets them go on; what is set here goes out right before that, on the same pipe, so that
 * nothing can come in between.
 */
export class WorkerIdentities {
  readonly #connections = new Map<string, Connection>();
  /** By page: the parameters of `Emulation.setUserAgentOverride`. */
  readonly #overrides = new Map<string, object>();

  /** What has to be sent before a message. */
  before({ sessionId, method, params }: ProtocolMessage): ProtocolMessage | null {
    const connection = sessionId === undefined ? undefined : this.#connections.get(sessionId);
    if (connection === undefined) return null;
    if (method === 'Emulation.setUserAgentOverride' && params !== undefined && !connection.isWorker)
      this.#overrides.set(connection.page, params);
    const override = this.#overrides.get(connection.page);
    if (method !== 'Runtime.runIfWaitingForDebugger' || !connection.isWorker || override === undefined)
      return null;
    return {
      sessionId: sessionId!,
      method: 'Emulation.setUserAgentOverride',
      params: override,
    };
  }

  /** Notes what came. */
  note({ sessionId, method, params }: ProtocolMessage): void {
    if (method === 'Target.attachedToTarget') this.#attach(params as AttachedEvent, sessionId);
    else if (method === 'Target.detachedFromTarget') this.#detach((params as AttachedEvent).sessionId);
  }

  #attach({ sessionId, targetInfo }: AttachedEvent, from: string | undefined): void {
    const isWorker = targetInfo?.type === 'worker';
    const page = isWorker ? this.#connections.get(from ?? '')?.page : targetInfo?.targetId;
    if (page !== undefined) this.#connections.set(sessionId, { page, isWorker });
  }

  #detach(sessionId: string): void {
    const connection = this.#connections.get(sessionId);
    this.#connections.delete(sessionId);
    if (connection === undefined || connection.isWorker) return;
    const left = [...this.#connections].filter(([, { page }]) => page === connection.page);
    if (left.some(([, { isWorker }]) => !isWorker)) return;
    // Of a page that is gone, its workers are too; not each of them says so.
    for (const [id] of left) this.#connections.delete(id);
    this.#overrides.delete(connection.page);
  }
}
