import { SeineError } from '../../core/errors.ts';

/** A step of the tables from one schema version to the next. */
export interface Migration {
  /** The schema version once it has run; counts from 1 without gaps. */
  number: number;
  name: string;
  sql: string;
}

/** Those that a database of this version lacks, in order; one that a newer Seine made is refused. */
export function migrationsAfter(
  version: number,
  migrations: readonly Migration[],
  otherPlace: string,
): readonly Migration[] {
  const newest = migrations.at(-1)!.number;
  if (version > newest)
    throw new SeineError(
      `a newer Seine created the database (schema version ${version}, supported up to ${newest})`,
      { hint: `update Seine, or use another ${otherPlace}` },
    );
  return migrations.filter(({ number }) => number > version);
}
