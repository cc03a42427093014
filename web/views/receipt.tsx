import type { Receipt } from '../../src/core/cost/receipt.ts';
import { Panel, Status, Text } from '../components/basics.tsx';
import { Table } from '../components/table.tsx';
import { count, duration, percent, usd } from '../format.ts';

/** What a job was quoted, what it came to, and what became of every URL. */

const ITEM_WORDS: Record<string, string> = {
  lambdaCalls: 'Lambda calls',
  lambdaGbSeconds: 'Lambda GB-seconds',
  lambdaArmGbSeconds: 'Lambda GB-seconds (arm)',
  lambdaStorageGbSeconds: 'Lambda storage, GB-seconds',
  s3Puts: 'S3 PUT requests',
  egressGb: 'Data sent, GB',
  proxyGb: 'Through proxies, GB',
  apiCalls: 'Calls of scraping APIs',
  machineHours: 'Machine hours',
  browserSeconds: 'Browser seconds',
};

const REASONS_MAX = 12;

export function ReceiptPanels({ receipt }: { receipt: Receipt }) {
  const { bill, quote, overQuote, seconds } = receipt;
  return (
    <>
      <Panel title="Bill" aside={<span class="dim">worked for {duration(seconds)}</span>} flush>
        <Table
          kind="compact"
          columns={['Item', { title: 'Quantity', number: true }, { title: 'Dollars', number: true }]}
        >
          {bill.items.map(({ item, quantity, dollars }) => (
            <tr key={item}>
              <td class="main-cell">{ITEM_WORDS[item] ?? item}</td>
              <td class="number">{quantityText(quantity)}</td>
              <td class="number">{usd(dollars)}</td>
            </tr>
          ))}
          <tr class="total">
            <td class="main-cell strong">Total</td>
            <td />
            <td class="number strong">{usd(bill.dollars)}</td>
          </tr>
        </Table>
        <p class="dim small receipt-note">
          {quote ? (
            quoteText(quote, overQuote)
          ) : (
            <>
              There was no quote: <code>seine forecast</code> gives one before a run.
            </>
          )}
        </p>
      </Panel>
      <UrlAccount receipt={receipt} />
      {receipt.reasons.length > 0 ? <Reasons receipt={receipt} /> : null}
    </>
  );
}

function quoteText({ dollars }: NonNullable<Receipt['quote']>, over: number | null): string {
  const compared =
    over === null ? '' : `: ${percent(Math.abs(over))} ${over > 0 ? 'more' : 'less'} was spent`;
  return `Quoted ${usd(dollars.p50)}, with 90 % certainty within ${usd(dollars.p90)}${compared}.`;
}

function quantityText(quantity: number): string {
  if (quantity === 0 || quantity >= 100) return count(quantity);
  return quantity < 0.001 ? '< 0.001' : String(Number(quantity.toPrecision(3)));
}

function UrlAccount({ receipt: { urls, addsUp } }: { receipt: Receipt }) {
  const { accepted, done, unchanged, skipped, dead, waiting, duplicates, rejected, dropped } = urls;
  const rows = [
    ['Done', done],
    ['Unchanged', unchanged],
    ['Skipped', skipped],
    ['Failed for good', dead],
    ['Waiting', waiting],
  ] as const;
  const others = [
    [duplicates, 'already known'],
    [rejected, 'unusable'],
    [dropped, 'refused as traps'],
  ] as const;
  const left = others.flatMap(([number, words]) => (number > 0 ? [`${count(number)} ${words}`] : []));
  return (
    <Panel title="Every URL" aside={<Status value={addsUp ? 'adds up' : 'does not add up'} />} flush>
      <Table kind="compact">
        {rows.map(([label, number]) => (
          <tr key={label}>
            <td class="main-cell">{label}</td>
            <td class="number">{count(number)}</td>
          </tr>
        ))}
        <tr class="total">
          <td class="main-cell strong">Accepted</td>
          <td class="number strong">{count(accepted)}</td>
        </tr>
      </Table>
      {left.length > 0 ? <p class="dim small receipt-note">Not accepted: {left.join(', ')}.</p> : null}
    </Panel>
  );
}

function Reasons({ receipt: { reasons } }: { receipt: Receipt }) {
  const shown = [...reasons].sort((one, other) => other.count - one.count).slice(0, REASONS_MAX);
  return (
    <Panel title="Skipped and failed, by reason" flush>
      <Table kind="compact">
        {shown.map(({ state, code, count: number }) => (
          <tr key={`${state} ${code}`}>
            <td class="main-cell">
              <Text value={code} class="mono" />
            </td>
            <td>
              <Status value={state} />
            </td>
            <td class="number">{count(number)}</td>
          </tr>
        ))}
      </Table>
    </Panel>
  );
}
