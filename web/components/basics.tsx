import type { ComponentChildren } from 'preact';
import { ApiProblem } from '../api.ts';
import { visible } from '../format.ts';
import { Icon, type IconName } from './icons.tsx';

/** Small parts that every view uses. */

export function Panel(props: {
  title: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
  wide?: boolean;
  flush?: boolean;
}) {
  return (
    <section class={`panel${props.wide ? ' wide' : ''}${props.flush ? ' flush' : ''}`}>
      <header class="panel-head">
        <h2>{props.title}</h2>
        {props.aside === undefined ? null : <div class="panel-aside">{props.aside}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** Longer values, as "≥ 23 h 59 min" or a date, are as small as their box needs. */
const STAT_CHARACTERS = 9;

export function Stat(props: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: 'good' | 'bad' | 'warn' | undefined;
  children?: ComponentChildren;
}) {
  const characters = typeof props.value === 'string' ? props.value.length : 0;
  const fit =
    characters > STAT_CHARACTERS ? { class: 'stat-value long', style: { '--characters': characters } } : null;
  return (
    <div class={`stat${props.tone ? ` tone-${props.tone}` : ''}`}>
      <dt>{props.label}</dt>
      <dd>
        <span class="stat-value" {...fit}>
          {props.value}
        </span>
        {props.note === undefined ? null : <span class="stat-note">{props.note}</span>}
        {props.children}
      </dd>
    </div>
  );
}

const TONES: Record<string, string> = {
  running: 'live',
  queued: 'wait',
  completed: 'good',
  succeeded: 'good',
  fetched: 'good',
  delivered: 'good',
  ok: 'good',
  resolved: 'good',
  'adds up': 'good',
  'does not add up': 'bad',
  failed: 'bad',
  lost: 'bad',
  firing: 'bad',
  failing: 'bad',
  banned: 'bad',
  dead: 'bad',
  resting: 'warn',
  stopped: 'warn',
  throttled: 'warn',
  skipped: 'mute',
  cancelled: 'mute',
  idle: 'mute',
  pending: 'wait',
  active: 'live',
  live: 'live',
  draining: 'warn',
  gone: 'mute',
  unchanged: 'good',
};

export function Status({ value }: { value: string }) {
  return <span class={`status status-${TONES[value] ?? 'wait'}`}>{value}</span>;
}

/** Text of strangers. */
export function Text({ value, class: name }: { value: string; class?: string }) {
  return (
    <bdi class={name} title={value.length > 60 ? visible(value.slice(0, 2_000)) : undefined}>
      {visible(value)}
    </bdi>
  );
}

/** An address, cut in its middle by the layout and never by us: the whole of it can be copied. */
export function Url({ value }: { value: string }) {
  const [, origin = '', path = value] = /^(https?:\/\/[^/]*)(.*)$/s.exec(value) ?? [];
  return (
    <bdi class="url" dir="ltr" title={visible(value.slice(0, 2_000))}>
      <span class="url-origin">{visible(origin)}</span>
      {visible(path)}
    </bdi>
  );
}

export function Button(props: {
  icon?: IconName;
  children: ComponentChildren;
  onClick?: () => void;
  kind?: 'primary' | 'danger' | 'plain';
  disabled?: boolean;
  type?: 'button' | 'submit';
  label?: string;
}) {
  return (
    <button
      type={props.type ?? 'button'}
      class={`button ${props.kind ?? ''}`}
      disabled={props.disabled ?? false}
      aria-label={props.label}
      onClick={props.onClick}
    >
      {props.icon ? <Icon name={props.icon} /> : null}
      {props.children}
    </button>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Failure({ error }: { error: Error | null }) {
  if (!error) return null;
  return (
    <div class="failure" role="alert">
      <strong>{visible(error.message)}</strong>
      {error instanceof ApiProblem && error.remedy !== '' ? <span> {error.remedy}</span> : null}
    </div>
  );
}

export function Loading() {
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  );
}

/** One of a few: pressed buttons side by side. */
export function Choice<T extends string>(props: {
  label: string;
  options: readonly T[];
  value: T;
  onChange: (value: T) => void;
  show?: (value: T) => ComponentChildren;
}) {
  return (
    <fieldset class="choice">
      <legend class="sr">{props.label}</legend>
      {props.options.map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === props.value}
          onClick={() => props.onChange(one)}
        >
          {props.show ? props.show(one) : one}
        </button>
      ))}
    </fieldset>
  );
}
