import { z } from 'zod';

/** A table of the user that records are written into, in the transaction that settles their page. */

const identifier = /^[A-Za-z_][A-Za-z0-9_$]{0,62}$/;

export const sink = z
  .strictObject({
    table: z
      .string()
      .regex(
        /^(?:[A-Za-z_][A-Za-z0-9_$]{0,62}\.)?[A-Za-z_][A-Za-z0-9_$]{0,62}$/,
        'must look like products or public.products',
      )
      .describe('Table in the database of the store, such as `public.products`. Without a schema: `public`.'),
    columns: z
      .record(z.string().regex(identifier, 'must be the name of a column'), z.string().min(1))
      .refine((columns) => Object.keys(columns).length > 0, 'needs at least one column')
      .describe(
        'Column, and the field of the record that it gets: `amount: price.amount`. `@key` is the key of the record, by default its URL; `@job` is the name of the job; `@record` is the whole record.',
      ),
    key: z
      .array(z.string().regex(identifier, 'must be the name of a column'))
      .min(1)
      .describe(
        'Columns that identify a row. They need a primary key or a unique index; a row that exists is updated.',
      ),
    route: z.string().min(1).optional().describe('Only records of this route. Default: all.'),
  })
  .refine(
    ({ columns, key }) => key.every((name) => Object.hasOwn(columns, name)),
    'key names a column that is not among `columns`',
  )
  .optional()
  .describe(
    'Writes records into a table of your own, in the transaction that settles their page. PostgreSQL only.',
  );

export type SinkSpec = NonNullable<z.output<typeof sink>>;
