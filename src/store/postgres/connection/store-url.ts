import { readFileSync } from 'node:fs';
import { messageOf, SeineError } from '../../../core/errors.ts';

/** Where the tables are, and how to get there. */
export interface StorePlace {
  /** For the driver, with the password and without what is ours; never written anywhere. */
  url: string;
  /** Schema of the tables: other things may live in the same database. */
  schema: string;
  /** `postgres://user@host:port/database`, for messages. */
  shown: string;
}

const SCHEMA_DEFAULT = 'seine';

/** Reads `postgres://user@host:port/database?schema=name`; the password may come from a file. */
export function parseStoreUrl(text: string, passwordFile: string | null = null): StorePlace {
  let url: URL;
  try {
    url = new URL(text);
  } catch (error) {
    throw new SeineError('the store is not a valid URL', {
      hint: 'use postgres://user@host:5432/database',
      cause: error,
    });
  }
  const schema = url.searchParams.get('schema') ?? SCHEMA_DEFAULT;
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new SeineError(`'${schema}' is not a valid schema name`, {
      hint: 'use lower-case letters, digits and _',
    });
  }
  url.searchParams.delete('schema');
  const password = readPassword(passwordFile);
  if (password !== null) url.password = encodeURIComponent(password);
  return { url: url.href, schema, shown: shownUrl(url) };
}

/** The same without its password and options. */
function shownUrl(given: URL): string {
  const { username, host, pathname } = given;
  return `postgres://${username === '' ? '' : `${username}@`}${host}${pathname}`;
}

function readPassword(file: string | null): string | null {
  if (file === null) return null;
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new SeineError(`cannot read the password of the store from ${file}: ${messageOf(error)}`, {
      hint: 'check SEINE_STORE_PASSWORD_FILE',
      cause: error,
    });
  }
}
