import { about } from '../about.ts';
import { Choice, Loading, Panel, Text } from '../components/basics.tsx';
import { time } from '../format.ts';
import { theme } from '../theme.ts';

const KEYS = [
  ['g j', 'jobs'],
  ['g h', 'hosts'],
  ['g w', 'workers'],
  ['g c', 'cost'],
  ['g a', 'alerts'],
  ['g s', 'settings'],
  ['n', 'new job'],
  ['/', 'search'],
];

export function SettingsView() {
  const known = about.value;
  if (!known) return <Loading />;
  const facts: [string, string][] = [
    ['Version', known.version],
    ['Node', known.node],
    ['Running since', time(known.started_at)],
    ['State', known.store ?? 'for the operator'],
    ['Pages and files', known.blobs ?? 'for the operator'],
    ['Workers', (known.dispatch ?? []).join(', ') || 'for the operator'],
    ['Private addresses', known.allow_private ? 'allowed to jobs of the API' : 'refused'],
    [
      'Access',
      known.read_only ? 'read only' : known.key_id ? `key ${known.key_id}` : 'the user of this machine',
    ],
    ['Scopes', known.scopes.join(', ')],
  ];
  return (
    <>
      <div class="view-head">
        <h1>Settings</h1>
      </div>
      <div class="grid">
        <Panel title="Server" wide>
          <dl class="fields">
            {facts.map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>
                  <Text value={value} />
                </dd>
              </div>
            ))}
          </dl>
          <p class="dim small after">
            <code>seine doctor</code> checks the machine; settings are in <code>seine.config.yaml</code> and
            in variables of the environment. <a href="/docs">Every call of the API</a>
          </p>
        </Panel>
        <ThisPage />
      </div>
    </>
  );
}

function ThisPage() {
  return (
    <Panel title="This page">
      <Choice
        label="Colours"
        options={['auto', 'dark', 'light']}
        value={theme.value}
        onChange={(one) => {
          theme.value = one;
        }}
      />
      <h3>Keys</h3>
      <dl class="fields">
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
