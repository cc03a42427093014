import { visible } from '../format.ts';
import { Text } from './basics.tsx';

const LONG = 300;

/** Data as a list of fields. */
export function Json({ value }: { value: Record<string, unknown> }) {
  return (
    <dl class="fields">
      {Object.entries(value).map(([name, one]) => {
        const text = textOf(one);
        return (
          <div key={name}>
            <dt>
              <Text value={name} />
            </dt>
            {/* Long text scrolls, also by keys. */}
            <dd tabIndex={text.length > LONG ? 0 : undefined}>
              <Text value={text} />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

export function textOf(value: unknown): string {
  if (value === null || value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What changed between two states of a record. */
export function Diff({ before, after }: { before: Record<string, unknown>; after: Record<string, unknown> }) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  if (changed.length === 0) return <p class="dim small">Nothing changed.</p>;
  return (
    <dl class="diff">
      {changed.map((name) => (
        <div key={name}>
          <dt>
            <Text value={name} />
          </dt>
          <dd>
            <del>
              <Text value={textOf(before[name])} />
            </del>
            <ins>
              <Text value={textOf(after[name])} />
            </ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Data that is written out, and scrolls by keys too. */
export function Preview({ value }: { value: unknown }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
    <pre class="preview" tabIndex={0}>
      {visible(JSON.stringify(value, null, 2))}
    </pre>
  );
}
