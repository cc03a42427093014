import { count, counted, short } from '../format.ts';
import { Text } from './basics.tsx';

/** Counts by host and reason: the darker, the more. */

export interface HeatCell {
  host: string;
  code: string;
  count: number;
}

const HOSTS_MAX = 10;
const CODES_MAX = 10;
const LEVELS = 5;
/** So many names fit beside each other, on a narrow and on a wide screen; more are written upwards. */
const BESIDE_NARROW = 3;
const BESIDE_WIDE = 6;

export function Heatmap({ cells, linkOf }: { cells: HeatCell[]; linkOf: (cell: HeatCell) => string }) {
  const codes = topOf(cells, 'code').slice(0, CODES_MAX);
  const allHosts = topOf(cells, 'host');
  const hosts = allHosts.slice(0, HOSTS_MAX);
  const max = Math.max(...cells.map((cell) => cell.count));
  const upwards =
    codes.length > BESIDE_WIDE ? ' upwards' : codes.length > BESIDE_NARROW ? ' upwards-narrow' : '';
  const byPlace = new Map(cells.map((cell) => [`${cell.host} ${cell.code}`, cell]));
  return (
    <div class="table-box">
      <table class={`heatmap${upwards}`}>
        <thead>
          <tr>
            <th scope="col">Host</th>
            {codes.map((code) => (
              <th key={code} scope="col">
                <span>{code}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {hosts.map((host) => (
            <tr key={host}>
              <th scope="row">
                <Text value={host} />
              </th>
              {codes.map((code) => {
                const cell = byPlace.get(`${host} ${code}`);
                if (!cell) return <td key={code} />;
                const level = Math.max(1, Math.ceil((Math.log1p(cell.count) / Math.log1p(max)) * LEVELS));
                return (
                  <td key={code}>
                    <a
                      class={`heat heat-${level}`}
                      href={linkOf(cell)}
                      title={`${count(cell.count)} × ${code}`}
                    >
                      {short(cell.count)}
                    </a>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {allHosts.length > HOSTS_MAX ? (
        <p class="dim small">and {counted(allHosts.length - HOSTS_MAX, 'more host')}</p>
      ) : null}
    </div>
  );
}

function topOf(cells: HeatCell[], name: 'host' | 'code'): string[] {
  const sums = new Map<string, number>();
  for (const cell of cells) sums.set(cell[name], (sums.get(cell[name]) ?? 0) + cell.count);
  return [...sums].sort((one, other) => other[1] - one[1]).map(([key]) => key);
}
