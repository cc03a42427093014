/** SIGINT and SIGTERM, from the call until `close`. */
export interface Signals {
  /** Resolves with the first signal. */
  readonly first: Promise<NodeJS.Signals>;
  readonly came: boolean;
  /** Waits so long, or until a signal comes. */
  wait(ms: number): Promise<void>;
  close(): void;
}

const NAMES = ['SIGINT', 'SIGTERM'] as const;

/**
 * `secondExits`: the first signal asks to stop gently, the second ends the process at once. Without it, the watch only
 * notices: what runs meanwhile has a watch of its own.
 */
export function watchSignals({ secondExits }: { secondExits: boolean }): Signals {
  const { promise: first, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let came = false;
  let wake = () => {};
  const onSignal = (signal: NodeJS.Signals) => {
    if (came && secondExits) process.exit(130);
    came = true;
    resolve(signal);
    wake();
  };
  for (const name of NAMES) process.on(name, onSignal);
  return {
    first,
    get came() {
      return came;
    },
    async wait(ms) {
      // Not a race with `first`: each call would leave a listener on it, for as long as the process lives.
      const { promise, resolve: pass } = Promise.withResolvers<void>();
      const timer = setTimeout(pass, ms);
      wake = pass;
      if (!came) await promise;
      clearTimeout(timer);
    },
    close() {
      for (const name of NAMES) process.off(name, onSignal);
    },
  };
}
