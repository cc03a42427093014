import { APPROACHES_MIGRATION } from './migration-approaches.ts';
import { GROUPS_MIGRATION } from './migration-groups.ts';
import { PROXIES_MIGRATION } from './migration-proxies.ts';
import { ROBOTS_MIGRATION } from './migration-robots.ts';
import { SHOTS_MIGRATION } from './migration-shots.ts';

/** After the first version, in the order in which they came. Append only. */
export const LATER_MIGRATIONS: readonly string[] = [
  APPROACHES_MIGRATION,
  PROXIES_MIGRATION,
  GROUPS_MIGRATION,
  SHOTS_MIGRATION,
  ROBOTS_MIGRATION,
];
