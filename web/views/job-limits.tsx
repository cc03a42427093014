import { callIfThere } from '../about.ts';
import { useLoad } from '../api.ts';
import { Panel, Text } from '../components/basics.tsx';
import { duration, percent } from '../format.ts';
import type { JobNow } from '../live.ts';

interface Explained {
  /** Percent. */
  shares: Record<string, number>;
  gains: { change: string; gainPercent: number; etaSeconds: number | null }[];
  sentence: string;
}

/** Where slots work is in cool colours, what they wait for in warm ones, and that there is nothing to do in grey. */
const SHARE_TONES: Record<string, string> = {
  network: 'info',
  cpu: 'accent',
  browser: 'violet',
  archive: 'sky',
  report: 'slate',
  coldStart: 'slate',
  hostGap: 'warn',
  hostParallelism: 'orange',
  retryBackoff: 'bad',
  robots: 'pink',
  proxy: 'pink',
  browserRoom: 'violet',
  source: 'sky',
  store: 'orange',
  budget: 'bad',
  noWork: 'wait',
};

const SHARES_MAX = 7;
const GAINS_MAX = 4;

/** `hostGap` is a name for programs. */
const wordsOf = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Where the time of slots goes, the bottleneck of the job, and what changes would gain. */
export function Limits({ job }: { job: JobNow }) {
  const { data } = useLoad(
    `${job.job_id} ${job.status}`,
    (signal) => callIfThere<Explained>('/jobs/{id}/explain', `/jobs/${job.job_id}/explain`, { signal }),
    { everyMs: job.live ? 5_000 : 0 },
  );
  const shares = Object.entries(data?.shares ?? {})
    .filter(([, share]) => share > 0)
    .sort((one, other) => other[1] - one[1]);
  if (!data || shares.length === 0) return null;
  return (
    <Panel title="Bottleneck">
      <p class="sentence">
        <Text value={withUnits(data.sentence)} />
      </p>
      <Shares shares={shares} />
      {data.gains.length > 0 ? (
        <table class="gains">
          <thead>
            <tr>
              <th>With</th>
              <th class="number">Pages/s</th>
              {job.live ? <th class="number">Done in</th> : null}
            </tr>
          </thead>
          <tbody>
            {data.gains.slice(0, GAINS_MAX).map(({ change, gainPercent, etaSeconds }) => (
              <tr key={change}>
                <td>
                  <Text value={changeWords(change)} />
                </td>
                <td class={`number ${gainPercent >= 5 ? 'good' : 'dim'}`}>
                  {gainPercent >= 0 ? '+' : ''}
                  {Math.round(gainPercent)} %
                </td>
                {job.live ? (
                  <td class="number dim">{etaSeconds === null ? '' : duration(etaSeconds)}</td>
                ) : null}
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </Panel>
  );
}

/** A number and its percent sign stay on one line. */
const withUnits = (sentence: string) => sentence.replace(/(\d) %/g, '$1\u00a0%');

function Shares({ shares }: { shares: [string, number][] }) {
  return (
    <>
      <div class="share-bar" aria-hidden="true">
        {shares.map(([name, share]) => (
          <span key={name} class={`fill-${SHARE_TONES[name] ?? 'wait'}`} style={{ flexGrow: share }} />
        ))}
      </div>
      <ul class="shares">
        {shares.slice(0, SHARES_MAX).map(([name, share]) => (
          <li key={name}>
            <span class={`dot fill-${SHARE_TONES[name] ?? 'wait'}`} />
            <span>{wordsOf(name)}</span>
            <b>{percent(share / 100)}</b>
          </li>
        ))}
      </ul>
    </>
  );
}

/** A change is written as for `--what-if`: `workers=+8`, `rate:shop.example=8`, `store=2x`. */
function changeWords(change: string): string {
  const [, more] = /^workers=\+(\d+)$/.exec(change) ?? [];
  if (more !== undefined) return `${more} more ${more === '1' ? 'worker' : 'workers'}`;
  const [, kind, host, value] = /^(rate|parallel):(.+)=([\d.]+)$/.exec(change) ?? [];
  if (kind === 'rate') return `${value}/s at ${host}`;
  if (kind === 'parallel') return `${value} at once at ${host}`;
  const [, state, factor] = /^(\w+)=([\d.]+)x$/.exec(change) ?? [];
  return state === undefined ? change : `${wordsOf(state)} ${factor} times as fast`;
}
