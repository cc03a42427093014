import { hideApiKeys } from '../../core/keys/api-key.ts';
import type { Logger } from '../../ports/ambient.ts';

/** `quiet` is an older name of `error`. */
const LOG_LEVELS = ['quiet', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Level = 'error' | 'warn' | 'info' | 'debug';
type Fields = Record<string, unknown>;

interface LoggerOptions {
  level: LogLevel;
  write(text: string): void;
  now(): number;
}

const LABELS: Record<Level, string> = { error: 'error: ', warn: 'warning: ', info: '', debug: '' };

/** For people: what happened, in words. */
export function makeTextLogger({ level, write }: LoggerOptions): Logger {
  return loggerOf(level, (at, message, fields) => {
    const text = `${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`;
    // Remote text never controls the terminal.
    write(`${LABELS[at]}${hideApiKeys(text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' '))}\n`);
  });
}

/** For programs: one line of JSON for each event. */
export function makeJsonLogger(options: LoggerOptions, shared: Fields = {}): Logger {
  const { level, write, now } = options;
  const logger = loggerOf(level, (at, message, fields) => {
    const event = { time: new Date(now()).toISOString(), level: at, message, ...shared, ...fields };
    const json = JSON.stringify(event).replace(
      /[\u007f-\u009f\u2028\u2029]/g,
      (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    write(`${hideApiKeys(json)}\n`);
  });
  return { ...logger, withFields: (fields) => makeJsonLogger(options, { ...shared, ...fields }) };
}

function loggerOf(
  level: LogLevel,
  write: (at: Level, message: string, fields: Fields | undefined) => void,
): Logger {
  const shown = LOG_LEVELS.indexOf(level);
  const at = (name: Level) => (message: string, fields?: Fields) => {
    if (name === 'error' || LOG_LEVELS.indexOf(name) <= shown) write(name, message, fields);
  };
  return {
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    // Absent where it would say nothing: what it takes to say it is spared, too.
    ...(level === 'debug' ? { debug: at('debug') } : {}),
  };
}
