import { useEffect, useState } from 'preact/hooks';
import { ApiProblem, call } from '../api.ts';
import { Button, Choice, Failure } from '../components/basics.tsx';
import { Preview } from '../components/json.tsx';
import { attempt } from '../components/toast.tsx';
import { visible } from '../format.ts';
import { go, query, setQuery } from '../router.ts';

/** Starts a job from a form, or from a job file. What is written is checked by a dry run while it is written. */

const CHECK_MS = 350;

const EXAMPLE = `name: shop
sources:
  - https://shop.example/
follow: true
routes:
  - name: product
    match: /product/*
    select:
      title: h1
      price: .price
politeness:
  rate: 2
`;

interface Form {
  name: string;
  urls: string;
  follow: boolean;
  select: string;
  rate: string;
  pages: string;
  render: boolean;
}

export function NewJobView() {
  const mode = query.value.get('as') === 'file' ? 'file' : 'form';
  const [text, setText] = useState(EXAMPLE);
  const [form, setForm] = useState<Form>({
    name: '',
    urls: '',
    follow: true,
    select: '',
    rate: '2',
    pages: '',
    render: false,
  });
  const body = mode === 'file' ? text : jobOf(form);
  const isEmpty = mode === 'file' ? text.trim() === '' : form.urls.trim() === '';
  const answer = useDryRun(isEmpty ? null : body);
  const wrongLine = mode === 'form' ? form.select.split('\n').find(isNoField) : undefined;
  const check: Check = wrongLine === undefined ? answer : { job: null, error: new Error(noField(wrongLine)) };
  const start = () =>
    attempt('The job starts.', async () => {
      const { job_id: id } = await call<{ job_id: string }>('/jobs', sending(body));
      go(`/jobs/${id}`);
    });
  return (
    <>
      <div class="view-head">
        <div>
          <p class="crumbs">
            <a href="/">Jobs</a>
          </p>
          <h1>New job</h1>
        </div>
        <Choice
          label="Format"
          options={['form', 'file']}
          value={mode}
          onChange={(one) => setQuery({ as: one === 'file' ? 'file' : null })}
          show={(one) => (one === 'file' ? 'YAML or JSON' : 'Form')}
        />
      </div>
      <div class="split">
        <section class="panel">
          {mode === 'file' ? (
            <label>
              Job file
              <textarea
                value={text}
                spellcheck={false}
                onInput={(event) => setText(event.currentTarget.value)}
                aria-describedby="verdict"
              />
            </label>
          ) : (
            <FormFields form={form} onChange={(change) => setForm({ ...form, ...change })} />
          )}
          <div class="actions form-actions">
            {/* While it is checked it can be reached with keys, too: the server says what is wrong all the same. */}
            <Button
              kind="primary"
              icon="play"
              disabled={isEmpty || wrongLine !== undefined}
              onClick={() => void start()}
            >
              Start
            </Button>
          </div>
        </section>
        <Verdict check={check} />
      </div>
    </>
  );
}

interface Check {
  job: object | null;
  error: Error | null;
}

function Verdict({ check }: { check: Check }) {
  return (
    <section class="panel" aria-live="polite" id="verdict">
      <h2>{check.error ? 'Not valid yet' : check.job ? 'Valid' : 'Checked while you write'}</h2>
      {check.error ? <Failure error={check.error} /> : null}
      {check.error instanceof ApiProblem && check.error.errors.length > 1 ? (
        <ul class="errors">
          {check.error.errors.map(({ field, message }) => (
            <li key={field}>
              <code>{visible(field)}</code> {visible(message)}
            </li>
          ))}
        </ul>
      ) : null}
      {check.job ? (
        <>
          <p class="dim small">The whole job, with its defaults:</p>
          <Preview value={check.job} />
        </>
      ) : null}
      {check.error || check.job ? null : (
        <p class="dim small">
          Mistakes appear here, and the whole job with its defaults. Nothing is fetched before you start it.
        </p>
      )}
    </section>
  );
}

interface FieldsProps {
  form: Form;
  onChange: (change: Partial<Form>) => void;
}

function FormFields({ form, onChange }: FieldsProps) {
  return (
    <div class="form">
      <label>
        URLs, one on each line; <code>sitemap:https://…</code> reads the sitemaps of a site
        <textarea
          class="short"
          value={form.urls}
          placeholder="https://shop.example/"
          spellcheck={false}
          onInput={(event) => onChange({ urls: event.currentTarget.value })}
        />
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={form.follow}
          onChange={(event) => onChange({ follow: event.currentTarget.checked })}
        />
        Follow links on the same host
      </label>
      <label class="check">
        <input
          type="checkbox"
          checked={form.render}
          onChange={(event) => onChange({ render: event.currentTarget.checked })}
        />
        Render pages in a browser
      </label>
      <label>
        Fields of records, as <code>name = CSS selector</code>
        <textarea
          class="short"
          value={form.select}
          placeholder={'title = h1\nprice = .price'}
          spellcheck={false}
          onInput={(event) => onChange({ select: event.currentTarget.value })}
        />
      </label>
      <NumberFields form={form} onChange={onChange} />
    </div>
  );
}

function NumberFields({ form, onChange }: FieldsProps) {
  return (
    <div class="columns">
      <label>
        Name
        <input
          value={form.name}
          placeholder="job"
          onInput={(event) => onChange({ name: event.currentTarget.value })}
        />
      </label>
      <label>
        Requests/s for a host
        <input
          type="number"
          min="0.01"
          step="any"
          value={form.rate}
          onInput={(event) => onChange({ rate: event.currentTarget.value })}
        />
      </label>
      <label>
        Pages at most
        <input
          type="number"
          min="1"
          value={form.pages}
          placeholder="all"
          onInput={(event) => onChange({ pages: event.currentTarget.value })}
        />
      </label>
    </div>
  );
}

const FIELD_LINE = /^\s*([^=]+?)\s*=\s*(.+?)\s*$/;

const isNoField = (line: string) => line.trim() !== '' && !FIELD_LINE.test(line);

const noField = (line: string) =>
  `"${line.trim().slice(0, 60)}" is not a field: write its name, = and a CSS selector, as in title = h1`;

function jobOf({ name, urls, follow, select, rate, pages, render }: Form): object {
  const fields = select.split('\n').flatMap((line) => {
    const [, field, selector] = FIELD_LINE.exec(line) ?? [];
    return field !== undefined && selector !== undefined ? [[field, selector]] : [];
  });
  return {
    ...(name.trim() === '' ? {} : { name: name.trim() }),
    sources: urls
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== ''),
    follow,
    ...(fields.length > 0 || render
      ? {
          routes: [
            {
              name: 'page',
              ...(fields.length > 0 ? { select: Object.fromEntries(fields) } : {}),
              ...(render ? { fetcher: 'browser' } : {}),
            },
          ],
        }
      : {}),
    politeness: { rate: Number(rate) || 1 },
    ...(pages === '' ? {} : { limits: { pages: Number(pages) } }),
  };
}

/** JSON is YAML, too. */
const sending = (body: unknown) =>
  ({ method: 'POST', body, ...(typeof body === 'string' ? { type: 'application/yaml' } : {}) }) as const;

function useDryRun(body: unknown): Check {
  const [state, setState] = useState<Check>({ job: null, error: null });
  const key = typeof body === 'string' ? body : JSON.stringify(body);
  useEffect(() => {
    if (body === null) {
      setState({ job: null, error: null });
      return;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      call<{ job: object }>('/jobs?dry_run=1', { ...sending(body), signal: abort.signal }).then(
        ({ job }) => setState({ job, error: null }),
        (error: Error) => abort.signal.aborted || setState({ job: null, error }),
      );
    }, CHECK_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  return state;
}
