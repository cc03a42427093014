import { openFolder } from '../../../app/folder.ts';
import { SeineError } from '../../../core/errors.ts';
import {
  KEY_WEIGHT_MAX,
  KEY_WEIGHT_MIN,
  type KeyLimits,
  SCOPES,
  type Scope,
} from '../../../core/keys/api-key.ts';
import { suggestion } from '../../../core/text/nearest-name.ts';
import type { ApiKey, KeyStore } from '../../../ports/store/key-store.ts';
import { createKey } from '../../../server/keys/manage-keys.ts';
import { type Command, type Context, print, printJson } from '../../context.ts';

const ACTIONS = { create, list, revoke };

export const keysCommand: Command = async (context) => {
  const [action = '', ...rest] = context.parsed.args;
  if (!Object.hasOwn(ACTIONS, action))
    throw new SeineError(
      action === ''
        ? 'seine keys needs create, list or revoke'
        : `got '${action}' instead of create, list or revoke${suggestion(action, Object.keys(ACTIONS))}`,
      { hint: 'see `seine keys --help`' },
    );
  if (action !== 'revoke' && rest.length > 0)
    throw new SeineError(`seine keys ${action} takes no further argument, got '${rest[0]}'`, {
      hint: 'see `seine keys --help`',
    });
  // The first key is made before the first job.
  const folder = await openFolder(context.settings, { create: action === 'create' });
  try {
    await ACTIONS[action as keyof typeof ACTIONS](context, folder.store.keys);
    return 'success';
  } finally {
    await folder.close();
  }
};

const NAME_LENGTH_MAX = 100;

async function create(context: Context, keys: KeyStore): Promise<void> {
  const { values } = context.parsed;
  const { name, scope = 'read' } = values;
  if (name === undefined || name.trim() === '' || name.length > NAME_LENGTH_MAX)
    throw new SeineError(`seine keys create needs --name, of at most ${NAME_LENGTH_MAX} characters`);
  if (!SCOPES.includes(scope as Scope))
    throw new SeineError(
      `--scope must be one of ${SCOPES.join(', ')}, got '${scope}'${suggestion(scope, SCOPES)}`,
    );
  const made = await createKey(keys, { name, scope: scope as Scope, limits: limitsOf(values) }, Date.now());
  if (!made)
    throw new SeineError(`there is a key named '${name}' already`, {
      hint: 'choose another name, or revoke that key with `seine keys revoke`',
    });
  if (context.json) printJson(context, { key: made.key, ...shownKey(made.stored) });
  else {
    print(context.stdout, `${made.key}\n`);
    print(context.stderr, `this is ${made.stored.id}, with ${scope} scope; the key is not shown again\n`);
  }
}

async function list(context: Context, keys: KeyStore): Promise<void> {
  const all = await keys.list();
  for (const key of all) {
    if (context.json) printJson(context, shownKey(key));
    else {
      const state = key.revokedAt === null ? '' : ` revoked ${new Date(key.revokedAt).toISOString()}`;
      const made = new Date(key.createdAt).toISOString();
      print(context.stdout, `${key.id.padEnd(18)} ${key.scope.padEnd(6)} ${made} ${key.name}${state}\n`);
    }
  }
  if (all.length === 0 && !context.json) print(context.stdout, 'no keys yet\n');
}

async function revoke(context: Context, keys: KeyStore): Promise<void> {
  const [, wanted] = context.parsed.args;
  if (wanted === undefined)
    throw new SeineError('seine keys revoke needs the id or the name of a key', {
      hint: 'see `seine keys list`',
    });
  const all = await keys.list();
  const found =
    all.find(({ id }) => id === wanted) ??
    all.find(({ name, revokedAt }) => name === wanted && revokedAt === null);
  const revoked = found ? await keys.revoke(found.id, Date.now()) : null;
  if (!revoked)
    throw new SeineError(`no key in use has the id or name '${wanted}'`, { hint: 'see `seine keys list`' });
  if (context.json) printJson(context, shownKey(revoked));
  else print(context.stdout, `${revoked.id} (${revoked.name}) is revoked\n`);
}

function shownKey({ id, name, scope, limits, createdAt, revokedAt }: ApiKey): object {
  return {
    id,
    name,
    scope,
    limits,
    createdAt: new Date(createdAt).toISOString(),
    revokedAt: revokedAt === null ? null : new Date(revokedAt).toISOString(),
  };
}

type Limit = Exclude<keyof KeyLimits, 'weight'>;

const LIMITS: Record<Limit, string> = {
  requestsPerMinute: 'requests-per-minute',
  pagesUnderWay: 'pages-under-way',
  pagesPerDay: 'pages-per-day',
  costPerDay: 'cost-per-day',
  requestsPerDay: 'requests-per-day',
  browserSecondsPerDay: 'browser-seconds-per-day',
};

/** Any number above 0 will do; of the others only whole ones. */
const FRACTIONS: readonly Limit[] = ['costPerDay', 'browserSecondsPerDay'];

function limitsOf(values: Record<string, string>): Partial<KeyLimits> {
  const limits: Partial<KeyLimits> = {};
  for (const [name, option] of Object.entries(LIMITS) as [Limit, string][]) {
    const text = values[option];
    if (text === undefined) continue;
    const value = text === 'none' ? null : Number(text);
    const mayBeFraction = FRACTIONS.includes(name);
    const isFine = mayBeFraction || Number.isSafeInteger(value);
    const kind = mayBeFraction ? 'number' : 'whole number';
    if (value !== null && !(value > 0 && Number.isFinite(value) && isFine))
      throw new SeineError(`--${option} is not a ${kind} above 0, or none: '${text}'`);
    limits[name] = value;
  }
  if (values.weight === undefined) return limits;
  const weight = Number(values.weight);
  if (!(weight >= KEY_WEIGHT_MIN && weight <= KEY_WEIGHT_MAX))
    throw new SeineError(
      `--weight is not a number from ${KEY_WEIGHT_MIN} to ${KEY_WEIGHT_MAX}: '${values.weight}'`,
    );
  limits.weight = weight;
  return limits;
}
