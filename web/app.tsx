import type { ComponentChild } from 'preact';
import { useEffect } from 'preact/hooks';
import { about, logOut } from './about.ts';
import { needsKey } from './api.ts';
import { Empty } from './components/basics.tsx';
import { Icon, type IconName } from './components/icons.tsx';
import { Toasts } from './components/toast.tsx';
import { connection, snapshot, watchedJob } from './live.ts';
import { go, path } from './router.ts';
import { shownTheme, switchTheme } from './theme.ts';
import { AlertsView, useFiringAlerts } from './views/alerts.tsx';
import { CostView } from './views/cost.tsx';
import { HostsView } from './views/hosts.tsx';
import { JobView } from './views/job.tsx';
import { JobsView } from './views/jobs.tsx';
import { LoginView } from './views/login.tsx';
import { NewJobView } from './views/new-job.tsx';
import { SettingsView } from './views/settings.tsx';
import { WebhooksView } from './views/webhooks.tsx';
import { WorkersView } from './views/workers.tsx';

interface Place {
  to: string;
  label: string;
  icon: IconName;
  view: () => ComponentChild;
}

const PLACES: Place[] = [
  { to: '/', label: 'Jobs', icon: 'jobs', view: () => <JobsView /> },
  { to: '/hosts', label: 'Hosts', icon: 'hosts', view: () => <HostsView job={null} /> },
  { to: '/workers', label: 'Workers', icon: 'workers', view: () => <WorkersView /> },
  { to: '/cost', label: 'Cost', icon: 'cost', view: () => <CostView /> },
  { to: '/webhooks', label: 'Webhooks', icon: 'webhooks', view: () => <WebhooksView /> },
  { to: '/alerts', label: 'Alerts', icon: 'alerts', view: () => <AlertsView /> },
  { to: '/settings', label: 'Settings', icon: 'settings', view: () => <SettingsView /> },
];

/** By number, or by name. */
const JOB_PATH = /^\/jobs\/([\w.-]+)(?:\/(.*))?$/;

function viewOf(at: string): ComponentChild {
  const [, jobId, part = ''] = JOB_PATH.exec(at) ?? [];
  if (jobId !== undefined) return <JobView id={jobId} part={part} />;
  if (at === '/new') return <NewJobView />;
  const place = PLACES.find(({ to }) => to === at || (to === '/' && at === '/jobs'));
  if (place) return place.view();
  return (
    <Empty title="No such page.">
      <a href="/">All jobs</a>
    </Empty>
  );
}

export function App() {
  const at = path.value;
  useEffect(() => {
    // The view of a job watches it, by its number, and names itself.
    if (JOB_PATH.test(at)) return;
    watchedJob.value = null;
    const label = at === '/new' ? 'New job' : PLACES.find(({ to }) => to === at)?.label;
    document.title = label === undefined ? 'Seine' : `${label} · Seine`;
  }, [at]);
  useShortcuts();
  if (needsKey.value) return <LoginView />;
  return (
    <div class="app">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Sidebar at={at} />
      <main id="main" tabIndex={-1}>
        {viewOf(at)}
      </main>
      <Toasts />
    </div>
  );
}

function Sidebar({ at }: { at: string }) {
  const running = snapshot.value?.jobs.filter(({ status }) => status === 'running').length ?? 0;
  const isDark = shownTheme.value === 'dark';
  const badges: Record<string, number> = { '/': running, '/alerts': useFiringAlerts() };
  return (
    <header class="sidebar">
      <a class="brand" href="/" aria-label="Seine: all jobs">
        <img src="/assets/icon.svg" alt="" width="26" height="26" />
        <span>Seine</span>
      </a>
      <nav aria-label="Views">
        {PLACES.map(({ to, label, icon }) => {
          const isHere =
            to === '/' ? at === '/' || at.startsWith('/jobs') || at === '/new' : at.startsWith(to);
          return (
            <a key={to} href={to} class="nav" aria-current={isHere ? 'page' : undefined}>
              <Icon name={icon} />
              <span>{label}</span>
              {badges[to] ? (
                <span class={to === '/alerts' ? 'badge badge-bad' : 'badge'}>{badges[to]}</span>
              ) : null}
            </a>
          );
        })}
      </nav>
      <div class="sidebar-foot">
        <Connection />
        <button
          type="button"
          class="icon-button"
          onClick={switchTheme}
          aria-label={isDark ? 'Light colours' : 'Dark colours'}
        >
          <Icon name={isDark ? 'sun' : 'moon'} />
        </button>
        {about.value?.key_id ? (
          <button type="button" class="link" onClick={() => void logOut()}>
            Log out
          </button>
        ) : null}
      </div>
    </header>
  );
}

const CONNECTION = { connecting: 'Connecting', live: 'Live', lost: 'No connection', paused: 'Paused' };

function Connection() {
  const state = connection.value;
  return (
    <span class={`connection connection-${state}`} role="status">
      {CONNECTION[state]}
    </span>
  );
}

/** `g` and a letter lead to a view, `/` to the search field, as in many web programs. */
function useShortcuts(): void {
  useEffect(() => {
    let isAfterG = false;
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.metaKey || event.ctrlKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
        return;
      if (event.key === '/') {
        const field = document.querySelector<HTMLInputElement>('input[type=search]');
        if (field) {
          event.preventDefault();
          field.focus();
        }
      } else if (isAfterG) {
        const place = PLACES.find(({ label }) => label[0]!.toLowerCase() === event.key);
        if (place) go(place.to);
      } else if (event.key === 'n') go('/new');
      isAfterG = event.key === 'g';
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}
