interface Gate {
  inside: number;
  line: Set<() => void>;
}

/** So many may run at a time, by name; the others wait in line. */
export class KeyedSemaphore {
  readonly #gates = new Map<string, Gate>();

  /** Resolves when there is room, or when the signal fires; what it gives is to be called on leaving. */
  async enter(name: string, room: number, signal: AbortSignal): Promise<() => void> {
    const gate = this.#gates.get(name) ?? { inside: 0, line: new Set() };
    this.#gates.set(name, gate);
    while (gate.inside >= room && !signal.aborted) await this.#wait(gate, signal);
    gate.inside++;
    return () => this.#leave(name, gate);
  }

  async #wait(gate: Gate, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const call = () => resolve();
    gate.line.add(call);
    signal.addEventListener('abort', call, { once: true });
    await promise;
    gate.line.delete(call);
    signal.removeEventListener('abort', call);
  }

  #leave(name: string, gate: Gate): void {
    gate.inside--;
    const [next] = gate.line;
    if (next) {
      gate.line.delete(next);
      next();
    } else if (gate.inside === 0) this.#gates.delete(name);
  }
}
