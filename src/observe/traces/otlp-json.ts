import { VERSION } from '../../core/identity/identity.ts';
import type { Span } from '../../core/traces/batch-spans.ts';

/** Traces as OTLP writes them in JSON (opentelemetry-proto 1.x): ids as hex, times as decimal strings of nanoseconds. */

const KINDS = { internal: 1, client: 3, producer: 4, consumer: 5 } as const;
const STATUS_ERROR = 2;
const NANOS = 1_000_000n;

interface KeyValue {
  key: string;
  value: { stringValue: string } | { boolValue: boolean } | { intValue: string } | { doubleValue: number };
}

export interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: KeyValue[];
  status: { code?: number; message?: string };
}

/** `id`: as many hex digits as it says, at random. */
export function toOtlpSpans(spans: readonly Span[], id: (digits: number) => string): OtlpSpan[] {
  const traceId = id(32);
  const ids = spans.map(() => id(16));
  return spans.map(({ name, kind, parent, from, to, attributes, error }, index) => ({
    traceId,
    spanId: ids[index]!,
    ...(parent === null ? {} : { parentSpanId: ids[parent]! }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanosOf(from),
    endTimeUnixNano: nanosOf(Math.max(from, to)),
    ...(attributes.length === 0 ? {} : { attributes: attributes.map(toKeyValue) }),
    status: error === null ? {} : { code: STATUS_ERROR, message: error },
  }));
}

export function toOtlpRequest(
  spans: readonly OtlpSpan[],
  attributes: readonly [name: string, value: string][],
) {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributes.map(toKeyValue) },
        scopeSpans: [{ scope: { name: 'seine', version: VERSION }, spans }],
      },
    ],
  };
}

/** Microseconds are kept: the clock has them. */
function nanosOf(ms: number): string {
  const whole = Math.floor(ms);
  return String(BigInt(whole) * NANOS + BigInt(Math.round((ms - whole) * 1_000)) * 1_000n);
}

function toKeyValue([key, value]: readonly [string, string | number | boolean]): KeyValue {
  if (typeof value === 'string') return { key, value: { stringValue: value.toWellFormed() } };
  if (typeof value === 'boolean') return { key, value: { boolValue: value } };
  return { key, value: Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value } };
}
