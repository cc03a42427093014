/** Lets a loop sleep until something happens or a time comes. */
export class Wake {
  #resolve: (() => void) | null = null;
  #pending = false;

  notify(): void {
    this.#pending = true;
    this.#resolve?.();
  }

  /** At once when something has happened since the last wait. */
  async wait(ms: number): Promise<void> {
    if (!this.#pending) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#resolve = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#resolve = null;
    }
    this.#pending = false;
  }
}
