import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { COMMANDS } from '../../../src/cli/specs/commands.ts';
import { SETTINGS } from '../../../src/config/schema.ts';
import { parseJob } from '../../../src/job-file/parse-job.ts';
import { QUEUES } from '../../../src/transport/bullmq/wire.ts';
import {
  type Container,
  type Manifest,
  type PodSpec,
  ROOT,
  readCompose,
  readDockerfile,
  readKustomization,
  readManifests,
  sentToBuild,
} from '../../support/docs/deploy-files.ts';
import { read } from '../../support/docs/docs-text.ts';

type NetworkPolicy = {
  podSelector: { matchLabels: Record<string, string> };
  policyTypes: string[];
  ingress?: { ports: { port: number }[] }[];
  egress: {
    to?: { ipBlock?: { cidr: string; except: string[] } }[];
    ports?: { protocol: string; port: number }[];
  }[];
};

/** No engine is needed to see that every name in deploy/ leads to something. */

const VARIABLES = new Set<string>(
  Object.values(SETTINGS).flatMap(({ env, secret }) => (secret ? [env, `${env}_FILE`] : [env])),
);

function expectVariables(names: string[]): void {
  expect(names.filter((name) => name.startsWith('SEINE_') && !VARIABLES.has(name))).toEqual([]);
}

function expectCommand(args: string[]): void {
  const [command = '', ...rest] = args;
  expect(Object.keys(COMMANDS)).toContain(command);
  const options = rest.filter((arg) => arg.startsWith('--')).map((arg) => arg.slice(2).split('=')[0]!);
  expect(Object.keys(COMMANDS[command]!.options)).toEqual(expect.arrayContaining(options));
}

describe('the Dockerfile', () => {
  const lines = readDockerfile();
  const stages = [...new Set(lines.map(({ stage }) => stage))];

  test('copies only what is there and what the build is sent', () => {
    const sent = sentToBuild();
    for (const path of sent) expect(existsSync(join(ROOT, path)), path).toBe(true);
    const copied = lines
      .filter(({ verb, rest }) => verb === 'COPY' && !rest.startsWith('--from'))
      .flatMap(({ rest }) => rest.split(' ').slice(0, -1));
    expect(copied.length).toBeGreaterThan(5);
    expect(copied.filter((path) => !sent.includes(path))).toEqual([]);
    const { build } = JSON.parse(read('package.json')).scripts as { build: string };
    const scripts = [...build.matchAll(/node (scripts)\//g)].map(([, folder]) => folder!);
    expect(copied).toEqual(expect.arrayContaining([...scripts, 'web']));
    // Nothing is sent in vain.
    expect(sent.filter((path) => !copied.includes(path))).toEqual([]);
  });

  test('has stages that build on earlier ones, and the images run as nobody special', () => {
    expect(stages).toEqual(['build', 'http', 'browser']);
    const taken = lines.filter(({ rest }) => rest.startsWith('--from='));
    expect(taken.length).toBeGreaterThan(0);
    for (const { rest, stage } of taken)
      expect(stages.indexOf(/^--from=(\w+)/.exec(rest)![1]!)).toBeLessThan(stages.indexOf(stage));
    for (const stage of ['http', 'browser'])
      expect(lines.findLast((line) => line.stage === stage && line.verb === 'USER')?.rest).toBe('node');
    expect(lines.find(({ verb }) => verb === 'ENTRYPOINT')?.rest).toBe('["tini", "--", "seine"]');
  });

  test('has the Node that is needed, and no script or setting that does not exist', () => {
    for (const { from } of lines.filter(({ verb, stage }) => verb === 'FROM' && stage !== 'browser'))
      expect(from).toMatch(/^node:24-/);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const started = lines.flatMap(({ rest }) =>
      [...rest.matchAll(/npm run (\w+)/g)].map(([, name]) => name!),
    );
    expect(started).toContain('build');
    for (const name of started) expect(scripts).toHaveProperty(name);
    const env = lines.filter(({ verb }) => verb === 'ENV').flatMap(({ rest }) => rest.split(' '));
    expectVariables(env.map((pair) => pair.split('=')[0]!));
  });
});

describe('the compose file', () => {
  const { services, volumes, secrets, networks } = readCompose();
  const ours = Object.entries(services).filter(([, { image }]) => image.startsWith('seine'));

  test('starts commands that exist, with settings that exist', () => {
    expect(ours.map(([name]) => name)).toEqual(['coordinator', 'worker', 'worker-browser']);
    for (const [, service] of ours) {
      expectCommand(service.command!);
      expectVariables(Object.keys(service.environment!));
      expect(readDockerfile().map(({ stage }) => stage)).toContain(service.build!.target);
      expect(existsSync(join(ROOT, 'deploy', service.build!.context, service.build!.dockerfile))).toBe(true);
    }
  });

  test('declares every secret and volume that is used, and uses every one', () => {
    const all = Object.values(services);
    const usedSecrets = all.flatMap((service) => service.secrets ?? []);
    expect([...new Set(usedSecrets)].sort()).toEqual(Object.keys(secrets).sort());
    const mounted = all.flatMap((service) => service.volumes ?? []).map((volume) => volume.split(':')[0]!);
    const named = mounted.filter((name) => /^[a-z]+$/.test(name));
    expect([...new Set(named)].sort()).toEqual(Object.keys(volumes).sort());
    for (const { environment = {}, secrets: own = [] } of all)
      for (const value of Object.values(environment)) {
        const [, secret] = /^\/run\/secrets\/(\S+)$/.exec(value) ?? [];
        if (secret) expect(own).toContain(secret);
      }
    const ignored = read('.gitignore').split('\n');
    for (const { file } of Object.values(secrets)) {
      expect(file).toMatch(/^\.\/secrets\//);
      expect(read('docs/deploy.md')).toContain(file.split('/').at(-1));
    }
    expect(ignored).toContain('deploy/secrets/');
  });

  test('confines every container: no rights, a read-only root, bounds on memory and processes', () => {
    expect(Object.keys(services)).toHaveLength(5);
    for (const [name, service] of Object.entries(services)) {
      expect(service, name).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        mem_limit: expect.stringMatching(/^\d+g$/),
        pids_limit: expect.any(Number),
      });
      if (name !== 'postgres') expect(service.cap_add, name).toBeUndefined();
    }
  });

  test('has networks in which workers reach Redis and the web, and not the database', () => {
    const reach = (name: string) => services[name]!.networks!;
    expect(reach('postgres')).toEqual(['store']);
    expect(reach('redis')).toEqual(['queue']);
    expect(reach('coordinator')).toEqual(['store', 'queue', 'web']);
    for (const name of ['worker', 'worker-browser']) expect(reach(name)).toEqual(['queue', 'web']);
    expect(networks).toEqual({ store: { internal: true }, queue: { internal: true }, web: null });
  });

  test('waits for what is healthy, and gives workers no database', () => {
    for (const [service, { depends_on: needed = {}, healthcheck, stop_grace_period: grace }] of ours) {
      if (service === 'coordinator') expect(String(healthcheck?.test)).toContain(':7420/readyz');
      else expect(healthcheck?.test).toEqual(['CMD', 'seine', 'doctor']);
      expect(grace).toBe('60s');
      for (const [name, { condition }] of Object.entries(needed)) {
        expect(condition).toBe('service_healthy');
        expect(services[name]?.healthcheck).toBeDefined();
      }
    }
    for (const name of ['worker', 'worker-browser']) {
      const { environment, secrets: own } = services[name]!;
      expect(Object.keys(environment!).filter((key) => key.startsWith('SEINE_STORE'))).toEqual([]);
      expect(own ?? []).not.toContain('postgres-password');
    }
  });
});

describe('what Chromium could read in a container', () => {
  const SECRETS = ['SEINE_DISPATCH', 'SEINE_FLEET_KEY'];
  const FILES = ['SEINE_DISPATCH_FILE', 'SEINE_FLEET_KEY_FILE', 'AWS_SHARED_CREDENTIALS_FILE'];

  test('is no secret in compose: they are variables of the worker, and none is mounted', () => {
    const { secrets, env_file: files, environment } = readCompose().services['worker-browser']!;
    expect(secrets).toBeUndefined();
    expect(files).toEqual([{ path: './secrets/worker-browser.env', required: false }]);
    for (const name of FILES) expect(environment![name]).toBe('');
    for (const name of [...SECRETS, 'worker-browser.env']) expect(read('docs/deploy.md')).toContain(name);
  });

  test('is no secret in Kubernetes: they are variables of the worker, and none is mounted', () => {
    const worker = readManifests().find(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'seine-worker-browser',
    )!;
    const { initContainers, containers, volumes } = (worker.spec.template as { spec: PodSpec }).spec;
    expect(volumes.filter(({ secret }) => secret)).toEqual([]);
    const documented = [...read('docs/deploy.md').matchAll(/--from-\w+=([\w-]+)=/g)].map(([, key]) => key!);
    for (const { env = [] } of [...initContainers, ...containers]) {
      for (const name of FILES) expect(env).toContainEqual({ name, value: '' });
      const named = env.filter(({ valueFrom }) => valueFrom);
      expect(named.map(({ name }) => name)).toEqual(expect.arrayContaining(SECRETS));
      for (const { valueFrom } of named) expect(documented).toContain(valueFrom!.secretKeyRef.key);
    }
    expect(containers[0]!.lifecycle!.preStop.exec.command.slice(0, 2)).toEqual(['env', '-i']);
  });

  test('is nothing of programs that have these variables: they may be run and not read', () => {
    const locked = readDockerfile().find(({ rest }) => rest.includes('chmod 0711'))!.rest;
    for (const program of ['/usr/local/bin/node', '/usr/bin/tini', '/usr/bin/env'])
      expect(locked).toContain(program);
  });
});

describe('the Kubernetes manifests', () => {
  const manifests = readManifests();
  const named = (kind: string) => manifests.filter((manifest) => manifest.kind === kind);
  const podOf = ({ spec }: Manifest) => (spec.template as { spec: PodSpec }).spec;
  const labelsOf = ({ spec }: Manifest) => (spec.template as Manifest).metadata.labels;
  const deployments = named('Deployment');
  const containersOf = (pod: PodSpec): Container[] => [...pod.initContainers, ...pod.containers];

  test('are all in the kustomization, with their images', () => {
    const { resources, images } = readKustomization();
    const files = readdirSync(join(ROOT, 'deploy/kubernetes')).filter(
      (name) => name !== 'kustomization.yaml',
    );
    // The one is in the place of the other.
    expect([...resources, 'scaling-cpu.yaml'].sort()).toEqual(files.sort());
    expect(deployments.map(({ metadata }) => metadata.name)).toEqual([
      'seine-coordinator',
      'seine-worker-browser',
      'seine-worker-http',
    ]);
    const used = deployments.flatMap((each) => containersOf(podOf(each)).map(({ image }) => image));
    expect(images.map(({ name }) => name).sort()).toEqual([...new Set(used)].sort());
  });

  test('start commands that exist, with settings, volumes and secrets that exist', () => {
    const configs = named('ConfigMap').map(({ metadata }) => metadata.name);
    const documented = [...read('docs/deploy.md').matchAll(/--from-\w+=([\w-]+)=/g)].map(([, key]) => key!);
    for (const config of named('ConfigMap'))
      expectVariables(Object.keys(config.data!).filter((name) => !name.includes('.')));
    for (const pod of deployments.map(podOf)) {
      const volumes = pod.volumes.map(({ name }) => name);
      for (const { args, env = [], envFrom = [], volumeMounts } of containersOf(pod)) {
        expectCommand(args);
        expectVariables(env.map(({ name }) => name));
        for (const { configMapRef } of envFrom) expect(configs).toContain(configMapRef.name);
        expect(volumeMounts.map(({ name }) => name).filter((name) => !volumes.includes(name))).toEqual([]);
      }
      for (const { configMap, secret } of pod.volumes) {
        if (configMap) expect(configs).toContain(configMap.name);
        for (const { key } of secret?.items ?? []) expect(documented).toContain(key);
      }
    }
    expect(named('TriggerAuthentication')).toHaveLength(1);
    for (const { spec } of named('TriggerAuthentication'))
      for (const { key } of spec.secretTargetRef as { key: string }[]) expect(documented).toContain(key);
  });

  test('name only secret files that are mounted, and give workers no store', () => {
    const settings = named('ConfigMap').find(({ metadata }) => metadata.name === 'seine-settings')!.data!;
    for (const deployment of deployments) {
      const pod = podOf(deployment);
      const files = pod.volumes.flatMap(({ secret }) => secret?.items.map(({ path }) => path) ?? []);
      const values = containersOf(pod).flatMap(({ env = [] }) =>
        Object.values({
          ...settings,
          ...Object.fromEntries(env.map(({ name, value }) => [name, value ?? ''])),
        }),
      );
      const wanted = values.flatMap((value) => /^\/run\/secrets\/seine\/(.*)$/.exec(value)?.[1] ?? []);
      expect(wanted.length > 0).toBe(deployment.metadata.name !== 'seine-worker-browser');
      expect(wanted.filter((path) => !files.includes(path))).toEqual([]);
      expect(files.includes('store')).toBe(deployment.metadata.name === 'seine-coordinator');
    }
  });

  test('scale every worker, by its queue or by its CPU', () => {
    const workers = deployments
      .map(({ metadata }) => metadata.name)
      .filter((name) => name.includes('worker'));
    for (const kind of ['ScaledObject', 'HorizontalPodAutoscaler']) {
      const targets = named(kind).map(({ spec }) => (spec.scaleTargetRef as { name: string }).name);
      expect(targets.sort()).toEqual(workers);
    }
    // A share of the CPU is a share of what is asked for.
    for (const { spec } of deployments) expect(JSON.stringify(spec)).toMatch(/"requests":\{"cpu":/);
  });

  test('probe the server where it answers', () => {
    const [coordinator] = deployments;
    expect(podOf(coordinator!).containers[0]).toMatchObject({
      livenessProbe: { httpGet: { path: '/healthz', port: 'http' } },
      readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
    });
  });

  test('ask workers whether they answer, where they do', () => {
    const workers = deployments.slice(1);
    expect(workers).toHaveLength(2);
    for (const worker of workers) {
      const { args, livenessProbe } = podOf(worker).containers[0]!;
      const [, place] = /--metrics=(\S+?)(,|$)/.exec(args!.join(',')) ?? [];
      expect(place).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(livenessProbe?.exec?.command.at(-1)).toContain(`'http://${place}/metrics'`);
    }
  });

  test('run as nobody special, drain before they go, and check their settings first', () => {
    for (const deployment of deployments) {
      const pod = podOf(deployment);
      expect(pod.securityContext.runAsNonRoot).toBe(true);
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(60);
      expect(pod.initContainers[0]!.args[0]).toBe('doctor');
      for (const { securityContext } of containersOf(pod))
        expect(securityContext).toMatchObject({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      const { selector } = deployment.spec as { selector: { matchLabels: object } };
      expect(selector.matchLabels).toEqual(labelsOf(deployment));
      if (deployment.metadata.name.includes('worker'))
        expect(pod.containers[0]!.lifecycle!.preStop.exec.command.join(' ')).toContain('kill -TERM 1');
    }
  });

  test('let nothing in but the API, and out only to names, Redis, public addresses and, for coordinators, the database', () => {
    const policies = named('NetworkPolicy').map(({ spec }) => spec as NetworkPolicy);
    expect(policies).toHaveLength(2);
    for (const deployment of deployments) {
      const labels = Object.entries(labelsOf(deployment)!);
      const own = policies.filter(({ podSelector }) =>
        Object.entries(podSelector.matchLabels).every(([key, value]) =>
          labels.some(([name, label]) => name === key && label === value),
        ),
      );
      const ingress = own.flatMap((policy) => policy.ingress ?? []);
      const isCoordinator = deployment.metadata.name === 'seine-coordinator';
      expect(ingress.flatMap((rule) => rule.ports.map(({ port }) => port))).toEqual(
        isCoordinator ? [7420] : [],
      );
      expect(own.some(({ policyTypes }) => policyTypes.includes('Ingress'))).toBe(true);
      const egress = own.flatMap((policy) => policy.egress);
      const ports = egress.flatMap((rule) => rule.ports?.map(({ port }) => port) ?? []);
      expect(ports.includes(5432)).toBe(deployment.metadata.name === 'seine-coordinator');
      const blocks = egress.flatMap((rule) => rule.to?.flatMap(({ ipBlock }) => ipBlock ?? []) ?? []);
      expect(blocks.flatMap(({ except }) => except)).toEqual(
        expect.arrayContaining(['10.0.0.0/8', '169.254.0.0/16', '192.168.0.0/16', 'fc00::/7']),
      );
    }
  });

  test('have a service and an ingress that lead to the API of the coordinator', () => {
    const [service] = named('Service');
    const [ingress] = named('Ingress');
    const coordinator = deployments.find(({ metadata }) => metadata.name === 'seine-coordinator')!;
    expect(service!.spec.selector).toEqual(labelsOf(coordinator));
    expect(JSON.stringify(podOf(coordinator))).toContain('"name":"http","containerPort":7420');
    expect(JSON.stringify(ingress)).toContain('"service":{"name":"seine","port":{"name":"http"}}');
  });

  test('scale and protect the workers that there are, by the queues that there are', () => {
    const workers = deployments.filter(({ metadata }) => metadata.name.includes('worker'));
    const budgets = named('PodDisruptionBudget').map(
      ({ spec }) => (spec.selector as Manifest['spec']).matchLabels,
    );
    expect(budgets).toEqual(expect.arrayContaining(workers.map(labelsOf)));
    const scaled = named('ScaledObject').map(({ spec }) => spec);
    expect(scaled.map((spec) => (spec.scaleTargetRef as { name: string }).name).sort()).toEqual(
      workers.map(({ metadata }) => metadata.name).sort(),
    );
    for (const spec of scaled) {
      const triggers = spec.triggers as { name: string; metadata: { listName: string } }[];
      const kind = (spec.scaleTargetRef as { name: string }).name.split('-').at(-1) as keyof typeof QUEUES;
      expect(triggers.map(({ metadata }) => metadata.listName)).toEqual([
        `bull:${QUEUES[kind]}:wait`,
        `bull:${QUEUES[kind]}:active`,
      ]);
      const { formula } = (spec.advanced as { scalingModifiers: { formula: string } }).scalingModifiers;
      expect(formula.split(' + ')).toEqual(triggers.map(({ name }) => name));
      expect(spec.minReplicaCount).toBe(1);
    }
  });

  test('have a job that is one', async () => {
    const jobs = named('ConfigMap').find(({ metadata }) => metadata.name === 'seine-jobs')!.data!;
    expect(Object.keys(jobs)).toEqual(['shop.yaml']);
    for (const [name, text] of Object.entries(jobs)) {
      const { spec } = await parseJob(parse(text), name, 'job');
      // What `serve` starts are the jobs that have a schedule.
      expect(spec.schedule, name).toBeDefined();
    }
  });
});
