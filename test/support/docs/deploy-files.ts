import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

/** Reads what is in deploy/ as data. */

export const ROOT = join(import.meta.dirname, '../../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface Service {
  image: string;
  build?: { target: string; context: string; dockerfile: string };
  command?: string[];
  environment?: Record<string, string>;
  secrets?: string[];
  env_file?: { path: string; required: boolean }[];
  volumes?: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test: string[] };
  stop_grace_period?: string;
  read_only?: boolean;
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  mem_limit?: string;
  pids_limit?: number;
  networks?: string[];
  user?: string;
}

interface Compose {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
  secrets: Record<string, { file: string }>;
  networks: Record<string, { internal?: boolean } | null>;
}

export function readCompose(): Compose {
  return parse(read('deploy/compose.yaml'), { merge: true });
}

export interface Container {
  name: string;
  image: string;
  args: string[];
  env?: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[];
  envFrom?: { configMapRef: { name: string } }[];
  volumeMounts: { name: string; mountPath: string }[];
  securityContext: Record<string, unknown>;
  lifecycle?: { preStop: { exec: { command: string[] } } };
  livenessProbe?: { exec?: { command: string[] } };
}

export interface PodSpec {
  initContainers: Container[];
  containers: Container[];
  terminationGracePeriodSeconds: number;
  securityContext: { runAsNonRoot: boolean };
  volumes: {
    name: string;
    configMap?: { name: string };
    secret?: { secretName: string; items: { key: string; path: string }[] };
  }[];
}

export interface Manifest {
  kind: string;
  metadata: { name: string; labels?: Record<string, string> };
  data?: Record<string, string>;
  spec: Record<string, unknown>;
}

export function readManifests(): Manifest[] {
  const dir = 'deploy/kubernetes';
  return readdirSync(join(ROOT, dir))
    .filter((name) => name !== 'kustomization.yaml')
    .flatMap((name) => parseAllDocuments(read(`${dir}/${name}`)))
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0];
      return document.toJS();
    });
}

export function readKustomization(): { resources: string[]; images: { name: string }[] } {
  return parse(read('deploy/kubernetes/kustomization.yaml'));
}

/** Instructions of the Dockerfile with their stage; lines that go on are joined. */
export function readDockerfile(): { stage: string; from: string; verb: string; rest: string }[] {
  const lines = read('deploy/Dockerfile')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));
  let stage = '';
  let from = '';
  return lines.map((line) => {
    const [verb = '', ...words] = line.trim().split(/\s+/);
    if (verb === 'FROM') [from = '', , stage = ''] = words;
    return { stage, from, verb, rest: words.join(' ') };
  });
}

/** What a build may see, by .dockerignore: everything is left out but these. */
export function sentToBuild(): string[] {
  const lines = read('.dockerignore')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (lines[0] !== '*') throw new Error('.dockerignore must leave out everything first');
  return lines.slice(1).map((line) => line.replace(/^!/, ''));
}
