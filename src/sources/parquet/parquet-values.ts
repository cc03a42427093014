import { isUtf8 } from 'node:buffer';
import type { ParquetParsers } from 'hyparquet';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';

/** How values of Parquet become values of JSON. */

/** Over the defaults, which fail on JSON and geometry that are damaged, and give days a time. */
export const PARSERS: ParquetParsers = {
  ...DEFAULT_PARSERS,
  timestampFromMicroseconds: (micros) => microText(micros),
  timestampFromNanoseconds: (nanos) => microText(floorDivide(nanos, 1_000n)),
  dateFromDays: (days) => isoText(new Date(days * 86_400_000))?.slice(0, 10) ?? null,
  jsonFromBytes: (bytes) => bytes && parseOrText(DEFAULT_PARSERS.stringFromBytes(bytes) as string),
  geometryFromBytes: (bytes) => bytes,
  geographyFromBytes: (bytes) => bytes,
};

/** Counts what a row weighs, so that an oversized one can be refused. */
export interface Weight {
  bytes: number;
}

export function toJsonValue(value: unknown, weight: Weight): unknown {
  weight.bytes += 8;
  switch (typeof value) {
    case 'string':
      weight.bytes += value.length;
      return value;
    case 'number':
      return Number.isFinite(value) ? value : null;
    case 'bigint':
      return toNumber(value);
    case 'boolean':
      return value;
    case 'object':
      return value === null ? null : ofObject(value, weight);
    default:
      return null;
  }
}

function ofObject(value: object, weight: Weight): unknown {
  if (value instanceof Date) return isoText(value);
  if (value instanceof Uint8Array) return toJsonValue(textOfBytes(value), weight);
  if (Array.isArray(value)) return value.map((item) => toJsonValue(item, weight));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      weight.bytes += name.length;
      return [name, toJsonValue(item, weight)];
    }),
  );
}

/** Beyond 2^53 a number would be another number. */
function toNumber(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

/** Old writers do not mark their texts. */
function textOfBytes(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isUtf8(buffer) ? buffer.toString('utf8') : buffer.toString('base64');
}

/** Dates of JavaScript end at milliseconds; microseconds that are there are written, too. */
function microText(micros: bigint): string | null {
  const rest = micros - floorDivide(micros, 1_000n) * 1_000n;
  const text = isoText(new Date(Number(floorDivide(micros, 1_000n))));
  return text === null || rest === 0n ? text : text.replace('Z', `${String(rest).padStart(3, '0')}Z`);
}

/** Times before 1970 are negative, and their fractions still count forward. */
function floorDivide(value: bigint, by: bigint): bigint {
  return value / by - (value % by < 0n ? 1n : 0n);
}

function isoText(date: Date): string | null {
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** 1999 hundredths are 19.99 and not 19.990000000000002. */
export function roundDecimal(value: unknown, scale: number): unknown {
  return typeof value === 'number' && Math.abs(value) < 1e21
    ? Number(value.toFixed(Math.min(scale, 100)))
    : value;
}
