import { addTry, type Score, WORKS } from '../../core/escalation/score.ts';
import { fingerprint } from '../../core/url/fingerprint.ts';

/** Refusals in a row after which an identity is not used any more at its host. */
export const REFUSALS_MAX = 3;
/** Identities that a host sees at a time: some of one household, not a crowd. */
const ACTIVE_MAX = 3;

interface IdentityState {
  id: string;
  score?: Score;
  refusals: number;
}

export interface HostIdentities {
  active: IdentityState[];
  /** Identities that this host has seen so far. */
  made: number;
}

export function noIdentities(): HostIdentities {
  return { active: [], made: 0 };
}

/** The one that fares best at this host, or another than that. New ones are made as they are needed. */
export function pickIdentity(host: HostIdentities, name: string, other: boolean): string {
  const wanted = other ? 2 : 1;
  while (host.active.length < wanted) {
    host.made++;
    const id = `${fingerprint(name, 'identity', 0x1d).toString(36).slice(-7)}-${host.made}`;
    host.active.push({ id, refusals: 0 });
  }
  const ranked = host.active.toSorted((a, b) => rateOf(b) - rateOf(a));
  return ranked[wanted - 1]!.id;
}

/** One that has not been tried may be the best of all. */
function rateOf({ score }: IdentityState): number {
  return score?.rate ?? 1;
}

/** True when the identity is retired with this. */
export function noteIdentity(host: HostIdentities, id: string, success: boolean, now: number): boolean {
  const state = host.active.find((each) => each.id === id);
  if (!state) return false;
  state.score = addTry(state.score, success, now);
  state.refusals = success ? 0 : state.refusals + 1;
  const retired = state.refusals >= REFUSALS_MAX && state.score.rate < WORKS;
  if (retired) host.active = host.active.filter((each) => each !== state);
  if (host.active.length > ACTIVE_MAX) host.active.splice(ACTIVE_MAX);
  return retired;
}
