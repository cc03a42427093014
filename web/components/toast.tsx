import { signal } from '@preact/signals';
import { visible } from '../format.ts';

/** What was done, or why it was not, for a few seconds. */

const shown = signal<{ text: string; isBad: boolean; id: number }[]>([]);
const SHOWN_MS = 6_000;
let last = 0;

export function tell(text: string, isBad = false): void {
  const id = ++last;
  shown.value = [...shown.value.slice(-3), { text, isBad, id }];
  setTimeout(() => {
    shown.value = shown.value.filter((one) => one.id !== id);
  }, SHOWN_MS);
}

/** Does something that can be refused, and says how it went. */
export async function attempt(done: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    tell(done);
    return true;
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), true);
    return false;
  }
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map(({ text, isBad, id }) => (
        <p key={id} class={isBad ? 'toast bad' : 'toast'}>
          {visible(text)}
        </p>
      ))}
    </div>
  );
}
