import type { ProtocolMessage } from './worker-identities.ts';

interface AttachedEvent {
  sessionId: string;
  targetInfo?: { targetId: string; type: string };
}

/**
 * Playwright has every page tell it of each request: half of all messages, and 8 % of the CPU of a page with twelve
 * pictures. It needs them only to know when the network is idle, so they are off for pages that are not waited for that
 * long.
 */
export class NetworkEvents {
  /** By page: the connection of Playwright, which is the first. */
  readonly #connections = new Map<string, string>();
  /** Pages whose events are off. */
  readonly #off = new Set<string>();

  /** What has to be sent so that they are as wanted; null when they are, or the page is not known. */
  change(page: string, isOn: boolean): ProtocolMessage | null {
    const sessionId = this.#connections.get(page);
    if (sessionId === undefined || isOn !== this.#off.has(page)) return null;
    if (isOn) this.#off.delete(page);
    else this.#off.add(page);
    return { sessionId, method: isOn ? 'Network.enable' : 'Network.disable', params: {} };
  }

  /** Notes what came. */
  note({ method, params }: ProtocolMessage): void {
    const { sessionId, targetInfo } = (params ?? {}) as Partial<AttachedEvent>;
    if (sessionId === undefined) return;
    if (method === 'Target.attachedToTarget' && targetInfo?.type === 'page') {
      if (!this.#connections.has(targetInfo.targetId)) this.#connections.set(targetInfo.targetId, sessionId);
    } else if (method === 'Target.detachedFromTarget')
      for (const [page, connection] of this.#connections) if (connection === sessionId) this.#forget(page);
  }

  #forget(page: string): void {
    this.#connections.delete(page);
    this.#off.delete(page);
  }
}
