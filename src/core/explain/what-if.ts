import { SeineError } from '../errors.ts';
import { suggestion } from '../text/nearest-name.ts';
import type { Change } from './predict.ts';
import { SLOT_STATES, type SlotState } from './slot-states.ts';

/** `workers=+8`, `workers=16`, `rate:shop.example=8`, `parallel:shop.example=4`, `store=2x`. */
export function parseChange(text: string, workers: number): Change {
  const equals = text.lastIndexOf('=');
  const name = equals < 0 ? text : text.slice(0, equals);
  const value = equals < 0 ? '' : text.slice(equals + 1);
  const [kind, ...rest] = name.split(':');
  const host = rest.join(':');
  if (name === 'workers') {
    const count = numberIn(/^\+?(\d{1,6})$/, value, text) + (value.startsWith('+') ? workers : 0);
    if (count > 0) return { kind: 'workers', workers: count };
  } else if ((kind === 'rate' || kind === 'parallel') && host !== '') {
    const amount = numberIn(/^(\d{1,6}(?:\.\d{1,6})?)$/, value, text);
    if (amount > 0)
      return kind === 'rate' ? { kind, host, rate: amount } : { kind, host, parallel: Math.ceil(amount) };
  } else {
    const states: readonly string[] = SLOT_STATES;
    if (!states.includes(name))
      throw new SeineError(`--what-if: there is no '${name}'${suggestion(name, ['workers', ...states])}`, {
        hint: HINT,
      });
    const factor = numberIn(/^(\d{1,6}(?:\.\d{1,6})?)x$/, value, text);
    if (factor > 0) return { kind: 'speed', state: name as SlotState, factor };
  }
  throw notUnderstood(text);
}

const HINT = 'like workers=+8, rate:shop.example=8, parallel:shop.example=4 or store=2x (twice as fast)';

function numberIn(pattern: RegExp, value: string, text: string): number {
  const found = pattern.exec(value)?.[1];
  if (found === undefined) throw notUnderstood(text);
  return Number(found);
}

function notUnderstood(text: string): SeineError {
  return new SeineError(`--what-if: '${text}' is not a change`, { hint: HINT });
}
