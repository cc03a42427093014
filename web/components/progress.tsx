import type { Counts } from '../api.ts';
import { count, percent } from '../format.ts';

const PARTS = [
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['skipped', 'Skipped'],
  ['running', 'Running'],
  ['waiting', 'Waiting'],
] as const;

function partsOf(counts: Counts) {
  const { succeeded, failed, skipped, running, pending } = counts;
  const values = { succeeded, failed, skipped, running, waiting: pending - running };
  return PARTS.map(([name, label]) => ({ name, label, value: values[name] }));
}

/** All tasks of a job by state, to scale. */
export function Progress({ counts, legend = false }: { counts: Counts; legend?: boolean }) {
  const parts = partsOf(counts);
  const total = Math.max(1, counts.total);
  const done = (counts.total - counts.pending) / total;
  return (
    <div class={legend ? 'progress large' : 'progress'}>
      <div
        class="progress-bar"
        role="progressbar"
        aria-label="Finished tasks"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.floor(done * 100)}
        aria-valuetext={`${percent(done)} of ${count(counts.total)}`}
      >
        {parts.map(({ name, value }) =>
          value > 0 ? (
            <span key={name} class={`part part-${name}`} style={{ flexGrow: value / total }} />
          ) : null,
        )}
      </div>
      {legend ? (
        <ul class="legend">
          {parts.map(({ name, label, value }) => (
            <li key={name}>
              <span class={`dot part-${name}`} />
              {label} <b>{count(value)}</b>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
