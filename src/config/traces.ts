import { SeineError } from '../core/errors.ts';

/** Where traces go and how many, by the variables that OpenTelemetry has named for all programs. */
export interface TraceSettings {
  /** Of `/v1/traces`. */
  url: string;
  headers: Record<string, string>;
  /** Share of batches that are traced, 0 to 1. */
  share: number;
  attributes: [name: string, value: string][];
  timeoutMs: number;
}

const TIMEOUT_MS = 10_000;

/** Null when nobody asked for traces. */
export function tracesOf(env: NodeJS.ProcessEnv): TraceSettings | null {
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || null;
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT || null;
  if ((own === null && base === null) || env.OTEL_SDK_DISABLED === 'true') return null;
  if (env.OTEL_TRACES_EXPORTER === 'none' || env.OTEL_TRACES_SAMPLER?.endsWith('always_off')) return null;
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/json';
  if (!/^http\/(json|protobuf)$/.test(protocol))
    throw new SeineError(`traces are sent over http/json, not over ${protocol}`, {
      hint: 'set OTEL_EXPORTER_OTLP_PROTOCOL=http/json and the port of OTLP over HTTP, usually 4318',
    });
  const url = own ?? `${base!.replace(/\/+$/, '')}/v1/traces`;
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new SeineError('OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL', {
      hint: 'set it to the address of a collector: http://127.0.0.1:4318',
    });
  const timeout = Number(env.OTEL_EXPORTER_OTLP_TIMEOUT);
  return {
    url,
    headers: {
      ...Object.fromEntries(pairsOf(env.OTEL_EXPORTER_OTLP_HEADERS)),
      ...Object.fromEntries(pairsOf(env.OTEL_EXPORTER_OTLP_TRACES_HEADERS)),
    },
    share: shareOf(env),
    attributes: [
      ...pairsOf(env.OTEL_RESOURCE_ATTRIBUTES).filter(([name]) => name !== 'service.name'),
      ['service.name', serviceNameOf(env)],
    ],
    timeoutMs: timeout > 0 ? timeout : TIMEOUT_MS,
  };
}

function serviceNameOf(env: NodeJS.ProcessEnv): string {
  const named = pairsOf(env.OTEL_RESOURCE_ATTRIBUTES).find(([name]) => name === 'service.name');
  return env.OTEL_SERVICE_NAME || (named?.[1] ?? 'seine');
}

/** `name=value,other=value`; values are percent-encoded. */
function pairsOf(text = ''): [name: string, value: string][] {
  return text.split(',').flatMap((part): [string, string][] => {
    const at = part.indexOf('=');
    if (at < 1) return [];
    try {
      return [[part.slice(0, at).trim(), decodeURIComponent(part.slice(at + 1).trim())]];
    } catch {
      return [];
    }
  });
}

function shareOf(env: NodeJS.ProcessEnv): number {
  if (!env.OTEL_TRACES_SAMPLER?.endsWith('traceidratio')) return 1;
  const share = Number(env.OTEL_TRACES_SAMPLER_ARG ?? 1);
  return share >= 0 && share <= 1 ? share : 1;
}
