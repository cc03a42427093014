import type { Query } from 'pg';
import { isUnprepared } from './failures.ts';

/** One statement with its values, and who waits for its answer. */
export interface Statement {
  text: string;
  values: readonly unknown[];
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

interface Answer {
  rows: unknown[];
  /** What the server says that it did, as `COMMIT`. */
  command: string;
}

/** A statement that a connection has prepared. */
export interface Prepared {
  name: string;
  /** Of its rows; null until its first answer. */
  columns: readonly Column[] | null;
}

interface Column {
  name: string;
  read(text: string): unknown;
}

/** What of the driver is used beneath its queries. */
interface Wire {
  stream: { cork(): void; uncork(): void };
  parse(message: { text: string; name: string }): void;
  bind(message: {
    statement: string;
    values: readonly unknown[];
    valueMapper(value: unknown): string | Buffer | null;
  }): void;
  describe(message: { type: 'P'; name: string }): void;
  execute(message: object): void;
  sync(): void;
}

interface RowDescription {
  fields: readonly { name: string; dataTypeID: number }[];
}

interface GroupParts {
  statements: readonly Statement[];
  /** By text, of this connection. */
  prepared: Map<string, Prepared>;
  timeoutMs: number;
  readerOf(type: number): (text: string) => unknown;
}

type Callback = (error: unknown) => void;
export type MakeGroup = (parts: GroupParts) => Query;

let prepared = 0;
/** Whoever looks at what is sent sees where a transaction ends. */
const COMMAND = /^[A-Z]+$/;

/**
 * Statements that are sent in one piece, and answered in one: the server sends nothing before it has done the last of
 * them. When one fails, it leaves out those behind it, and nothing of the group is stored: all of them fail with the same
 * error.
 */
export function statementGroups(DriverQuery: typeof Query): MakeGroup {
  class StatementGroup extends DriverQuery {
    // The names of these three are the driver's.
    callback: Callback;
    query_timeout: number;
    readonly name = undefined;
    readonly #parts: GroupParts;
    readonly #names: Prepared[] = [];
    /** Which statement is being answered. */
    #at = 0;
    #rows: unknown[] = [];
    /** Outside of a transaction nothing is stored before the end of the group, so nobody is told before. */
    #answers: Answer[] = [];

    constructor(parts: GroupParts) {
      super({ text: '' });
      this.#parts = parts;
      this.query_timeout = parts.timeoutMs;
      this.callback = (error) => {
        if (error) this.#fail(error);
      };
    }

    override submit = (connection: unknown): undefined => {
      const wire = connection as Wire;
      const known = this.#parts.prepared;
      wire.stream.cork();
      try {
        for (const { text, values } of this.#parts.statements) {
          let statement = known.get(text);
          if (!statement) {
            // Never the same name twice: whether one exists is not known after a failure.
            statement = { name: `${COMMAND.exec(text)?.[0] ?? 's'}${++prepared}`, columns: null };
            known.set(text, statement);
            wire.parse({ text, name: statement.name });
          }
          this.#names.push(statement);
          wire.bind({ statement: statement.name, values, valueMapper: toParameter });
          if (!statement.columns) wire.describe({ type: 'P', name: '' });
          wire.execute({});
        }
      } finally {
        wire.sync();
        wire.stream.uncork();
      }
      return undefined;
    };

    handleRowDescription({ fields }: RowDescription): void {
      const { readerOf } = this.#parts;
      this.#names[this.#at]!.columns = fields.map(({ name, dataTypeID }) => ({
        name,
        read: readerOf(dataTypeID),
      }));
    }

    handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
      const row: Record<string, unknown> = {};
      const columns = this.#names[this.#at]!.columns!;
      for (let index = 0; index < columns.length; index++) {
        const { name, read } = columns[index]!;
        const text = fields[index]!;
        row[name] = text === null ? null : read(text);
      }
      this.#rows.push(row);
    }

    handleCommandComplete({ text }: { text: string }): void {
      this.#names[this.#at]!.columns ??= [];
      this.#answers.push({ rows: this.#rows, command: text });
      this.#at++;
      this.#rows = [];
    }

    handleError(error: unknown): void {
      this.callback(error);
    }

    handleReadyForQuery(): void {
      const { statements } = this.#parts;
      const isWhole = this.#at === statements.length;
      if (isWhole) for (const [index, answer] of this.#answers.entries()) statements[index]!.resolve(answer);
      this.callback(isWhole ? null : new Error('Connection terminated: an answer is missing'));
    }

    #fail(error: unknown): void {
      const { statements, prepared: known } = this.#parts;
      for (const [index, { text, reject }] of statements.entries()) {
        const isAnswered = index < this.#at;
        if (!isAnswered && (isUnprepared(error) || !known.get(text)?.columns)) known.delete(text);
        reject(error);
      }
      this.#at = statements.length;
      this.#answers = [];
    }
  }
  return (parts) => new StatementGroup(parts);
}

/** As PostgreSQL reads it. Its texts have no character 0; what is sent is otherwise an error that ends the run. */
function toParameter(value: unknown): string | Buffer | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\ufffd') : value;
  if (Array.isArray(value)) return toArray(value);
  if (Buffer.isBuffer(value)) return value;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function toArray(values: readonly unknown[]): string {
  const parts = values.map((value) => {
    if (typeof value === 'number') return value;
    if (value === null || value === undefined) return 'NULL';
    if (Array.isArray(value)) return toArray(value);
    return `"${String(toParameter(value)).replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${parts.join(',')}}`;
}
