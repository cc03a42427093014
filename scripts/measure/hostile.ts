import { CASES, type ListedCase } from '../../src/sites/hostile/behaviours.ts';
import { startHostileProcess } from '../../test/support/hostile/hostile-process.ts';
import { BUDGET_MS } from '../../test/support/hostile/hostile-setup.ts';
import { type CaseFacts, complaintsOf, shareKept } from '../../test/support/hostile/hostile-visits.ts';
import { startHostileWorker } from '../../test/support/hostile/hostile-worker.ts';
import { readOptions } from '../read-options.ts';
import { replaceBetween } from '../replace-between.ts';

const KEPT_MIN = 0.9;
/** For a machine that does nothing else. */
const LATE_MS_MAX = 1_000;
const PEAK_MB_MAX = 150;

const { values } = readOptions({
  start: 'npx node scripts/measure/hostile.ts',
  about: `Visits the hostile web with a worker and says how it took it.`,
  options: {
    write: { flag: true, does: 'put the result into docs/reliability.md' },
  },
});
const web = await startHostileProcess();
const good = await startHostileProcess();
const worker = await startHostileWorker();

const all: { each: ListedCase; facts: CaseFacts; complaints: string[] }[] = [];
for (const each of CASES) {
  const facts = await worker.visit({ url: web.url, base: each.base, media: false });
  const complaints = complaintsOf(each, facts, { lateMs: LATE_MS_MAX, peakMb: PEAK_MB_MAX });
  all.push({ each, facts, complaints });
  process.stderr.write(complaints.length === 0 ? '.' : `\n${each.base} ${complaints.join(', ')}\n`);
}
const throughput = await worker.measure({
  good: good.url,
  hostile: web.url,
  bases: CASES.map(({ base }) => base),
  pages: 250,
});
const { code, stderr } = await worker.close();
await web.close();
await good.close();
process.stderr.write(`\n${stderr}`);

const kept = shareKept(throughput);
const wrong = all.filter(({ complaints }) => complaints.length > 0).length;
const proven = wrong === 0 && code === 0 && stderr === '' && kept >= KEPT_MIN;
const text = [summaryTable(), '', caseTable()].join('\n');
process.stdout.write(`${text}\n`);
if (values.write) replaceBetween('docs/reliability.md', 'hostile', text);
process.exitCode = proven ? 0 : 1;

function summaryTable(): string {
  const longest = Math.max(...all.map(({ facts }) => facts.tookMs));
  const most = Math.max(...all.map(({ facts }) => facts.peakMb));
  return [
    '| cases | ended wrongly | crashes | longest batch | bound | most memory | bound | throughput kept by a good host | bound |',
    '|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
    `| ${all.length} | ${wrong} | ${code === 0 ? 0 : 1} | ${Math.round(longest)} ms | ${BUDGET_MS + LATE_MS_MAX} ms | +${Math.round(most)} MB | +${PEAK_MB_MAX} MB | ${Math.round(kept * 100)} % | ${KEPT_MIN * 100} % |`,
  ].join('\n');
}

function caseTable(): string {
  const rows = all.map(({ each, facts }) => {
    const endings = [...new Set(facts.endings)].map((ending) => `\`${ending}\``).join(', ');
    const again = facts.again === null ? '' : `, then \`${facts.again}\``;
    const what = `${each.what.replaceAll('|', '\\|')}${each.why ? ` ${each.why}` : ''}`;
    return `| \`${each.base}\` | ${what} | ${endings}${again} | ${Math.round(facts.tookMs)} ms | +${Math.round(facts.peakMb)} MB |`;
  });
  return [
    '| path | what the server does, and why it ends so | ends as | longest batch | memory |',
    '|---|---|---|--:|--:|',
    ...rows,
  ].join('\n');
}
