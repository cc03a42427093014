/** Metrics in the text format of Prometheus (version 0.0.4). `promtool check metrics` is the judge of it in tests. */

type Labels = Readonly<Record<string, string>>;

interface Sample {
  labels?: Labels;
  value: number;
  /** After the name of the metric: parts of a histogram have one. */
  suffix?: '_bucket' | '_sum' | '_count';
}

export interface Metric {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  samples: readonly Sample[];
}

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Names of hosts and jobs come from outside: so long ones would be of no use to anyone. */
const LABEL_LENGTH_MAX = 200;

export function metricsText(metrics: readonly Metric[]): string {
  const parts = metrics.filter(({ samples }) => samples.length > 0).map(metricText);
  return parts.join('');
}

function metricText({ name, type, help, samples }: Metric): string {
  const lines = samples.map(
    ({ labels = {}, value, suffix = '' }) => `${name}${suffix}${labelsText(labels)} ${valueText(value)}`,
  );
  return `# HELP ${name} ${escapeText(help)}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`;
}

function labelsText(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return parts.length === 0 ? '' : `{${parts.join(',')}}`;
}

function escapeText(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(value: string): string {
  return escapeText(value.slice(0, LABEL_LENGTH_MAX).toWellFormed()).replaceAll('"', '\\"');
}

function valueText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
